//! The node's signal to its stack: waits for the kubelet, sends once, remembers that it did.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tenon_core::codes;
use tenon_core::problem::Problem;

use crate::gather::aws::Cloud;
use crate::gather::aws::cloudformation::{self, Status};
use crate::root::Root;
use crate::stop;

const STATE: &str = "var/lib/tenon";
const KUBELET_PORT: u16 = 10_248;
const PAUSE: Duration = Duration::from_secs(1);

/// Which stack hears what.
#[derive(Debug, Clone)]
pub struct Wish {
    pub stack: String,
    pub resource: String,
    /// How the bootstrap ended.
    pub exit_code: u8,
    /// How long the kubelet may take to become healthy.
    pub patience: Duration,
    /// Where the kubelet answers; moved by tests.
    pub health: SocketAddr,
}

impl Wish {
    pub fn new(stack: String, resource: String, exit_code: u8, patience: Duration) -> Self {
        let health = SocketAddr::from((Ipv4Addr::LOCALHOST, KUBELET_PORT));
        Wish { stack, resource, exit_code, patience, health }
    }
}

/// What was done.
#[derive(Debug, PartialEq)]
pub struct Sent {
    pub status: Status,
    pub reason: String,
    /// An earlier run had signalled already; nothing was sent.
    pub before: bool,
}

/// Signals once per instance. The answer tells what the stack heard.
pub fn send(
    root: &Root,
    cloud: &mut Cloud<'_>,
    instance_id: &str,
    wish: &Wish,
) -> Result<Sent, Problem> {
    let marker = format!("{STATE}/signalled-{instance_id}");
    let earlier = root.read_text(&marker).map_err(|error| {
        Problem::new(&codes::host::FILE_READ, format!("reading /{marker}")).cause(error)
    })?;
    if let Some(earlier) = earlier {
        let status = if earlier.trim() == "SUCCESS" { Status::Success } else { Status::Failure };
        return Ok(Sent { status, reason: "signalled before".into(), before: true });
    }
    let (status, reason) = match wish.exit_code {
        0 if wait_healthy(wish)? => (Status::Success, "the kubelet is healthy".to_owned()),
        0 => (Status::Failure, "the kubelet did not become healthy".to_owned()),
        code => (Status::Failure, format!("the bootstrap ended with {code}")),
    };
    cloudformation::signal(cloud, &wish.stack, &wish.resource, instance_id, status)?;
    remember(root, &marker, status)?;
    Ok(Sent { status, reason, before: false })
}

fn remember(root: &Root, marker: &str, status: Status) -> Result<(), Problem> {
    let write = || {
        fs::create_dir_all(root.join(STATE))?;
        fs::write(root.join(marker), format!("{}\n", status.name()))
    };
    write().map_err(|error| {
        Problem::new(&codes::host::FILE_WRITE, format!("writing {marker}")).cause(error)
    })
}

fn wait_healthy(wish: &Wish) -> Result<bool, Problem> {
    let end = Instant::now() + wish.patience;
    loop {
        if is_healthy(wish.health) {
            return Ok(true);
        }
        if Instant::now() + PAUSE > end {
            return Ok(false);
        }
        stop::sleep(PAUSE)?;
    }
}

fn is_healthy(address: SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&address, PAUSE)?;
        stream.set_read_timeout(Some(PAUSE))?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut head = [0_u8; 12];
        stream.read_exact(&mut head)?;
        std::io::Result::Ok(head)
    };
    ask().is_ok_and(|head| head.ends_with(b" 200"))
}

#[cfg(test)]
mod tests;
