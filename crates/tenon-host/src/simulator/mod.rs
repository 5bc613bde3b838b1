//! A metadata service for desks and tests: the tree that EC2 shows to an instance, session
//! tokens with a life, and faults on demand.
//!
//! ```text
//! profile  the pretended instance        tree    its paths and values
//! server   sockets and HTTP              faults  what goes wrong, and when
//! machine  the files of a pretended machine, for rehearsals
//! ```
//!
//! One thread per connection; everything stops when the [`Simulator`] is dropped.

pub mod faults;
pub mod machine;
pub mod profile;
mod server;
mod tree;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use self::faults::Faults;
use self::profile::Profile;
use self::server::Service;
use crate::stop;

/// One request as the service saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// What was answered; None when the fault was to answer nothing.
    pub status: Option<u16>,
    /// Number of the connection it came on, from 1.
    pub connection: usize,
}

/// A running metadata service.
#[derive(Debug)]
pub struct Simulator {
    address: SocketAddr,
    service: Arc<Service>,
    acceptor: Option<JoinHandle<()>>,
}

impl Simulator {
    /// Starts on a free port of the loopback address.
    pub fn start(profile: &Profile, faults: Faults) -> io::Result<Self> {
        Simulator::listen(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), profile, faults)
    }

    /// Starts on a chosen address.
    pub fn listen(address: SocketAddr, profile: &Profile, faults: Faults) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let refuse_for = Duration::from_millis(faults.refuse_for_ms);
        let service = Arc::new(Service::new(tree::build(profile), profile.allow_version_1, faults));
        let shared = Arc::clone(&service);
        // Given up before this returns, so that connections are refused from the first moment.
        let listener = if refuse_for.is_zero() { Some(listener) } else { None };
        let acceptor = std::thread::spawn(move || {
            std::thread::sleep(refuse_for);
            if let Some(listener) = listener.or_else(|| TcpListener::bind(address).ok()) {
                server::accept(&shared, &listener);
            }
        });
        Ok(Simulator { address, service, acceptor: Some(acceptor) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The value for `AWS_EC2_METADATA_SERVICE_ENDPOINT`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far, in order of arrival.
    pub fn log(&self) -> Vec<Request> {
        self.service.log()
    }

    /// Requests so far for paths that end like this.
    pub fn count(&self, suffix: &str) -> usize {
        self.log().iter().filter(|request| request.path.ends_with(suffix)).count()
    }

    /// Puts another value at a path below `/latest/`, as when an address is attached.
    pub fn set(&self, path: &str, value: &str) {
        self.service.set(path, value);
    }

    /// Serves until SIGINT or SIGTERM, telling each request if asked to.
    pub fn serve(&self, tell: bool) {
        let mut told = 0;
        while stop::sleep(stop::SLICE).is_ok() {
            let log = if tell { self.log() } else { Vec::new() };
            for Request { method, path, status, connection } in &log[told..] {
                tracing::info!(method, path, status, connection, "request");
            }
            told = log.len();
        }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.service.stop();
        // Wakes the acceptor out of its wait; an error means that it is gone already.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}
