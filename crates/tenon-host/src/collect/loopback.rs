//! Asks a server on the loopback interface, in the oldest and simplest way.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tenon_core::collect::manifest::Status;

use super::item::{Job, Outcome};
use super::sink::Sink;

/// The longest begin of an answer, before its body.
const LONGEST_HEAD: usize = 64 << 10;
/// The longest sleep between two looks at the deadline.
const SLICE: Duration = Duration::from_millis(200);

/// Gets an address; the body goes to the sink.
pub fn get(job: &Job<'_>, sink: &mut Sink<'_>, url: &str, cap: u64) -> Result<Outcome, Outcome> {
    let mut stream = connect(job, url)?;
    let mut buffer = vec![0; 16 << 10];
    let (mut head, mut bytes) = (Vec::new(), None::<u64>);
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error)
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
            {
                if job.is_late() {
                    return Ok(Outcome::with(Status::Timeout, "no whole answer"));
                }
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut chunk = &buffer[..count];
        let Some(taken) = bytes.as_mut() else {
            head.extend_from_slice(chunk);
            if let Some(at) = head.windows(4).position(|four| four == b"\r\n\r\n") {
                sink.take(&head[at + 4..]);
                bytes = Some((head.len() - at - 4) as u64);
            } else if head.len() > LONGEST_HEAD {
                return Err(Outcome::with(Status::Error, "not HTTP"));
            }
            continue;
        };
        let room = usize::try_from(cap.saturating_sub(*taken)).unwrap_or(usize::MAX);
        chunk = &chunk[..chunk.len().min(room)];
        sink.take(chunk);
        *taken += count as u64;
        if *taken > cap {
            return Ok(Outcome {
                status: Status::Truncated,
                note: "kept: head".into(),
                original: *taken,
            });
        }
    }
    judge(&head, bytes.unwrap_or_default())
}

fn connect(job: &Job<'_>, url: &str) -> Result<TcpStream, Outcome> {
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let address: SocketAddr =
        host.parse().map_err(|_| Outcome::with(Status::Error, "not an address"))?;
    let left = job.end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    let mut stream =
        TcpStream::connect_timeout(&address, left).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => Outcome::with(Status::Absent, "nobody listens"),
            io::ErrorKind::TimedOut => Outcome::with(Status::Timeout, "no connection"),
            _ => error.into(),
        })?;
    stream.set_read_timeout(Some(SLICE))?;
    stream.set_write_timeout(Some(left))?;
    // In one piece: a server may answer what it has read so far.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: */*\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    Ok(stream)
}

fn judge(head: &[u8], bytes: u64) -> Result<Outcome, Outcome> {
    let status = String::from_utf8_lossy(head).split(' ').nth(1).unwrap_or_default().to_owned();
    match status.as_str() {
        "200" => Ok(Outcome::ok(bytes)),
        "401" | "403" => Err(Outcome::with(Status::Denied, format!("status {status}"))),
        "" => Err(Outcome::with(Status::Error, "no answer")),
        _ => Ok(Outcome { note: format!("status {status}"), ..Outcome::ok(bytes) }),
    }
}
