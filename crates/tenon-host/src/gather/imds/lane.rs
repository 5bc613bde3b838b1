//! One connection to the metadata service: non-blocking, with a deadline on everything and a
//! look at the stop flag at least every 50 ms.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};
use tenon_core::problem::Problem;

use super::http::{self, Answer, Refusal};
use crate::stop;

/// How long the preferred address has for itself before the next one joins the race.
const HEAD_START: Duration = Duration::from_millis(200);

/// Why one attempt gave no answer.
#[derive(Debug)]
pub enum Trouble {
    /// A signal asked for a stop.
    Stopped(Problem),
    /// The network or the service; another attempt may do better.
    Passing(String),
    /// Connected, but nothing came back before the deadline.
    Silent(String),
    /// More bytes than any value has.
    TooLarge,
}

/// An open connection and the bytes that arrived on it.
#[derive(Debug)]
pub struct Lane {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Lane {
    /// Connects to the first of `candidates` that answers, in their order of preference, and
    /// says which one it was. A later one joins when those before it failed or were slow.
    pub fn open(candidates: &[SocketAddr], deadline: Instant) -> Result<(usize, Self), Trouble> {
        let mut race = Race { running: Vec::new(), causes: Vec::new() };
        let mut waiting = candidates.iter().enumerate();
        let mut next_start = Instant::now();
        loop {
            let now = Instant::now();
            if race.running.is_empty() || now >= next_start {
                match waiting.next() {
                    Some((index, address)) => race.start(index, *address),
                    None if race.running.is_empty() => {
                        return Err(Trouble::Passing(race.causes.join("; ")));
                    }
                    None => {}
                }
                next_start = now + HEAD_START;
            }
            if let Some(won) = race.step(deadline.min(next_start))? {
                return Ok(won);
            }
            if Instant::now() >= deadline && !race.running.is_empty() {
                race.causes.push("connecting took too long".into());
                return Err(Trouble::Passing(race.causes.join("; ")));
            }
        }
    }

    /// Sends requests in one write.
    pub fn send(&mut self, text: &[u8], deadline: Instant) -> Result<(), Trouble> {
        let mut rest = text;
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(PollFlags::OUT, deadline)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(passing(&error)),
            }
        }
        Ok(())
    }

    /// Receives the next whole answer.
    pub fn receive(&mut self, deadline: Instant) -> Result<Answer, Trouble> {
        let mut ended = false;
        loop {
            match http::parse(&self.buffer, ended) {
                Ok(Some((answer, used))) => {
                    self.buffer.drain(..used);
                    return Ok(answer);
                }
                Ok(None) => ended = self.fill(deadline)?,
                Err(Refusal::TooLarge) => return Err(Trouble::TooLarge),
                Err(Refusal::Malformed(what)) => return Err(Trouble::Passing(what.into())),
                Err(Refusal::CutShort) => {
                    let cause = "the connection ended before the answer did";
                    return Err(Trouble::Passing(cause.into()));
                }
            }
        }
    }

    /// Reads what is there, waiting for it if nothing is; true at the end of the stream.
    fn fill(&mut self, deadline: Instant) -> Result<bool, Trouble> {
        let mut chunk = [0; 16 * 1024];
        loop {
            // Before the read: bytes that keep dripping in must not hold the deadline off.
            self.wait(PollFlags::IN, deadline)?;
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    self.buffer.extend_from_slice(&chunk[..count]);
                    return Ok(false);
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(passing(&error)),
            }
        }
    }

    fn wait(&self, flags: PollFlags, deadline: Instant) -> Result<(), Trouble> {
        loop {
            stop::check().map_err(Trouble::Stopped)?;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Trouble::Silent("no answer in time".into()));
            }
            let mut fds = [PollFd::new(&self.stream, flags)];
            match poll(&mut fds, Some(&slice(left))) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(Trouble::Passing(error.to_string())),
            }
        }
    }
}

/// Connections being opened, most wanted first, and why others failed.
struct Race {
    running: Vec<(usize, OwnedFd)>,
    causes: Vec<String>,
}

impl Race {
    fn start(&mut self, index: usize, address: SocketAddr) {
        match begin(address) {
            Ok(socket) => self.running.push((index, socket)),
            Err(error) => self.causes.push(describe(error)),
        }
    }

    /// Waits until a connection opens, one fails, or `until`; gives the most wanted open one.
    fn step(&mut self, until: Instant) -> Result<Option<(usize, Lane)>, Trouble> {
        stop::check().map_err(Trouble::Stopped)?;
        let left = until.saturating_duration_since(Instant::now());
        let mut fds: Vec<_> =
            self.running.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::OUT)).collect();
        match poll(&mut fds, Some(&slice(left))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Trouble::Passing(error.to_string())),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut position = 0;
        for ready in ready {
            if !ready {
                position += 1;
                continue;
            }
            let (index, socket) = self.running.remove(position);
            match sockopt::socket_error(&socket) {
                Ok(Ok(())) => {
                    let lane = Lane { stream: TcpStream::from(socket), buffer: Vec::new() };
                    return Ok(Some((index, lane)));
                }
                Ok(Err(error)) | Err(error) => self.causes.push(describe(error)),
            }
        }
        Ok(None)
    }
}

/// Opens a socket and begins to connect it.
fn begin(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    match connect(socket.as_fd(), &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// The time until the next look at the stop flag.
fn slice(left: Duration) -> Timespec {
    let left = left.min(stop::SLICE);
    // Rounded up, so that the last wait does not spin.
    Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos().saturating_add(1)) }
}

fn describe(error: Errno) -> String {
    match error {
        Errno::CONNREFUSED => "connection refused".into(),
        Errno::NETUNREACH | Errno::HOSTUNREACH => "no route".into(),
        other => std::io::Error::from(other).to_string(),
    }
}

fn passing(error: &std::io::Error) -> Trouble {
    Trouble::Passing(match error.kind() {
        ErrorKind::ConnectionReset => "the connection was reset".into(),
        ErrorKind::BrokenPipe => "the connection was closed".into(),
        _ => error.to_string(),
    })
}
