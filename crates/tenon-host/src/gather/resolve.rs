//! Addresses of the API server's host name, for Outposts, where they are pinned.

use std::collections::BTreeSet;
use std::net::{IpAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use tenon_core::codes::facts::ENDPOINT_UNRESOLVED;
use tenon_core::problem::Problem;

use super::background;
use crate::stop;

const TRIES: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const WHOLE: Duration = Duration::from_secs(15);

/// Resolves a host name; the addresses come sorted.
pub fn addresses(host: &str) -> Result<Vec<IpAddr>, Problem> {
    let end = Instant::now() + WHOLE;
    let mut pause = FIRST_PAUSE;
    let mut last = String::from("the name has no address");
    for attempt in 1..=TRIES {
        match look_up(host, end)? {
            Ok(found) if !found.is_empty() => return Ok(found),
            Ok(_) => {}
            Err(cause) => last = cause,
        }
        if attempt == TRIES || Instant::now() + pause >= end {
            break;
        }
        stop::sleep(pause)?;
        pause *= 2;
    }
    Err(Problem::new(&ENDPOINT_UNRESOLVED, "the API server's host name has no address").cause(last))
}

/// One look-up. The resolver of the C library knows no deadline.
fn look_up(host: &str, end: Instant) -> Result<Result<Vec<IpAddr>, String>, Problem> {
    let name = host.to_owned();
    let found = background::wait_for(end, move || {
        let found = (name.as_str(), 443_u16).to_socket_addrs();
        found.map(|list| list.map(|address| address.ip()).collect::<BTreeSet<_>>())
    })?;
    Ok(match found {
        Some(Ok(list)) => Ok(list.into_iter().collect()),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the resolver did not answer".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_sorted_and_once() {
        assert_eq!(addresses("127.0.0.1").unwrap(), ["127.0.0.1".parse::<IpAddr>().unwrap()]);
    }
}
