//! Sockets and HTTP of the simulated service. Each answer leaves in one write.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Request;
use super::faults::{Faults, Framing, Rule};
use super::tree::{self, Tree};

/// Requests larger than this are dropped with their connection.
const REQUEST_CAP: usize = 16 * 1024;
/// The longest life a token may ask for, as on EC2.
const LONGEST_TOKEN: u64 = 21_600;

/// Everything the connections share.
#[derive(Debug)]
pub struct Service {
    allow_version_1: bool,
    stopping: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tree: Tree,
    rules: Vec<Used>,
    tokens: BTreeMap<String, Instant>,
    issued: u32,
    log: Vec<Request>,
    connections: Vec<TcpStream>,
}

/// A rule and how often it was met.
#[derive(Debug)]
struct Used {
    rule: Rule,
    met: u32,
    recent: VecDeque<Instant>,
}

/// An answer before it is written.
struct Reply {
    status: u16,
    body: Vec<u8>,
    headers: Vec<String>,
}

impl Reply {
    fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Reply { status, body: body.into(), headers: Vec::new() }
    }
}

/// A request as read from the wire.
struct Asked {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
}

impl Service {
    pub fn new(tree: Tree, allow_version_1: bool, faults: Faults) -> Self {
        let rules = faults.rules.into_iter();
        let state = State {
            tree,
            rules: rules.map(|rule| Used { rule, met: 0, recent: VecDeque::new() }).collect(),
            tokens: BTreeMap::new(),
            issued: 0,
            log: Vec::new(),
            connections: Vec::new(),
        };
        Service { allow_version_1, stopping: AtomicBool::new(false), state: Mutex::new(state) }
    }

    pub fn log(&self) -> Vec<Request> {
        self.state().log.clone()
    }

    pub fn set(&self, path: &str, value: &str) {
        self.state().tree.insert(path.to_owned(), value.as_bytes().to_vec());
    }

    /// Ends every connection.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        for stream in self.state().connections.drain(..) {
            // An error means that the connection has ended already.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// A panic in one connection must not hide the log from the test that wants to see it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides the answer to a request, and the rule that spoils it.
    fn reply(&self, asked: &Asked) -> (Reply, Rule) {
        let mut state = self.state();
        let rule = state.pick(asked);
        if rule.as_ref().is_some_and(|rule| rule.expire_tokens) {
            state.tokens.clear();
        }
        let mut reply = match asked.method.as_str() {
            "PUT" => state.put(asked),
            "GET" => state.get(asked, self.allow_version_1),
            _ => Reply::new(405, ""),
        };
        if let Some(rule) = &rule {
            rule.change(&mut reply);
        }
        (reply, rule.unwrap_or_default())
    }

    fn record(&self, asked: Asked, status: Option<u16>, connection: usize) {
        let Asked { method, path, .. } = asked;
        tracing::debug!(method, path, status, connection, "request");
        self.state().log.push(Request { method, path, status, connection });
    }
}

impl State {
    /// The first rule that is about this request and not used up.
    fn pick(&mut self, asked: &Asked) -> Option<Rule> {
        let rules = self.rules.iter_mut();
        let mut active = rules.filter(|used| used.rule.matches(&asked.method, &asked.path));
        active.find_map(|used| used.acts().then(|| used.rule.clone()))
    }

    fn put(&mut self, asked: &Asked) -> Reply {
        if asked.path != "/latest/api/token" {
            return Reply::new(404, "");
        }
        let life = asked.headers.get("x-aws-ec2-metadata-token-ttl-seconds");
        match life.and_then(|text| text.parse().ok()) {
            Some(seconds @ 1..=LONGEST_TOKEN) => {
                self.issued += 1;
                let token = format!("simulated-token-{:08}==", self.issued);
                self.tokens.insert(token.clone(), Instant::now() + Duration::from_secs(seconds));
                let mut reply = Reply::new(200, token);
                reply.headers.push(format!("X-Aws-Ec2-Metadata-Token-Ttl-Seconds: {seconds}"));
                reply
            }
            _ => Reply::new(400, ""),
        }
    }

    fn get(&self, asked: &Asked, allow_version_1: bool) -> Reply {
        let known = match asked.headers.get("x-aws-ec2-metadata-token") {
            Some(token) => self.tokens.get(token).is_some_and(|end| Instant::now() < *end),
            None => allow_version_1,
        };
        if !known {
            return Reply::new(401, "");
        }
        if asked.path == "/" {
            return Reply::new(200, "latest");
        }
        let Some(path) = below_version(&asked.path) else {
            return Reply::new(404, "");
        };
        let value = self.tree.get(path).cloned().or_else(|| tree::listing(&self.tree, path));
        value.map_or_else(|| Reply::new(404, ""), |body| Reply::new(200, body))
    }
}

/// The path below `/latest` or a dated version. The service keeps old versions for old readers:
/// cloud-init asks for `/2009-04-04`.
fn below_version(path: &str) -> Option<&str> {
    let path = path.strip_prefix('/')?;
    let (version, rest) = path.split_once('/').unwrap_or((path, ""));
    let dated = version.len() == 10
        && version.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    (version == "latest" || dated).then(|| rest.trim_start_matches('/'))
}

impl Used {
    /// Counts the request; true if the rule acts on it.
    fn acts(&mut self) -> bool {
        if let Some(limit) = self.rule.per_second {
            let now = Instant::now();
            while self.recent.front().is_some_and(|old| now - *old > Duration::from_secs(1)) {
                self.recent.pop_front();
            }
            self.recent.push_back(now);
            if self.recent.len() <= limit as usize {
                return false;
            }
        }
        self.met += 1;
        let last = self.rule.times.map_or(u32::MAX, |times| self.rule.skip.saturating_add(times));
        self.met > self.rule.skip && self.met <= last
    }
}

impl Rule {
    fn change(&self, reply: &mut Reply) {
        if let Some(status) = self.status {
            *reply = Reply::new(status, "");
        }
        if let Some(body) = &self.body {
            reply.body = body.clone().into_bytes();
        }
        reply.headers.extend(self.retry_after.map(|seconds| format!("Retry-After: {seconds}")));
        reply.headers.extend(self.location.as_ref().map(|to| format!("Location: {to}")));
        if self.close || self.framing == Framing::Close {
            reply.headers.push("Connection: close".into());
        }
    }
}

/// Accepts connections until the service stops.
pub fn accept(service: &Arc<Service>, listener: &TcpListener) {
    let mut count = 0;
    for stream in listener.incoming() {
        if service.stopping.load(Ordering::Relaxed) {
            return;
        }
        let Ok(stream) = stream else { continue };
        count += 1;
        if let Ok(clone) = stream.try_clone() {
            service.state().connections.push(clone);
        }
        let (service, connection) = (Arc::clone(service), count);
        // An error is the client's way to end a connection.
        std::thread::spawn(move || drop(converse(&service, stream, connection)));
    }
}

/// Answers requests on one connection until either side ends it.
fn converse(service: &Service, mut stream: TcpStream, connection: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut inbox, mut hung) = (Inbox { bytes: Vec::new(), arrived: Instant::now() }, false);
    while let Some(asked) = inbox.receive(&mut stream)? {
        let (reply, rule) = service.reply(&asked);
        // Answers come in the order of the requests: after one that never comes, none does.
        hung |= rule.hang;
        service.record(asked, (!hung).then_some(reply.status), connection);
        if hung {
            continue;
        }
        // Counted from the arrival, so that requests sent together wait together.
        let due = inbox.arrived + Duration::from_millis(rule.delay_ms);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let text = encode(&reply, rule.framing);
        let body_start = text.len() - reply.body.len().min(text.len());
        let cut = rule.truncate.map_or(text.len(), |keep| (body_start + keep).min(text.len()));
        send(&mut stream, &text[..cut], rule.drip_ms)?;
        if rule.reset {
            rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        }
        if rule.reset || rule.close || rule.truncate.is_some() || rule.framing == Framing::Close {
            return hang_up(service, stream, connection, rule.reset);
        }
    }
    hang_up(service, stream, connection, false)
}

/// Closes the connection, also the copy kept for stopping.
fn hang_up(service: &Service, stream: TcpStream, connection: usize, reset: bool) -> io::Result<()> {
    let peer = stream.peer_addr()?;
    tracing::debug!(connection, reset, "closing");
    service.state().connections.retain(|kept| kept.peer_addr().is_ok_and(|other| other != peer));
    if reset { Ok(()) } else { stream.shutdown(std::net::Shutdown::Both) }
}

fn send(stream: &mut TcpStream, text: &[u8], drip_ms: Option<u64>) -> io::Result<()> {
    let Some(pause) = drip_ms else { return stream.write_all(text) };
    for byte in text {
        stream.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_millis(pause));
    }
    Ok(())
}

fn encode(reply: &Reply, framing: Framing) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} Simulated\r\nContent-Type: text/plain\r\n", reply.status);
    for header in &reply.headers {
        head.push_str(&format!("{header}\r\n"));
    }
    match framing {
        Framing::Length => head.push_str(&format!("Content-Length: {}\r\n\r\n", reply.body.len())),
        Framing::Chunked => head.push_str("Transfer-Encoding: chunked\r\n\r\n"),
        Framing::Close => head.push_str("\r\n"),
    }
    let mut text = head.into_bytes();
    if framing == Framing::Chunked {
        for chunk in reply.body.chunks(7) {
            text.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            text.extend_from_slice(chunk);
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"0\r\n\r\n");
    } else {
        text.extend_from_slice(&reply.body);
    }
    text
}

/// Bytes of requests that are not answered yet, and when the last of them arrived.
struct Inbox {
    bytes: Vec<u8>,
    arrived: Instant,
}

impl Inbox {
    /// Reads the next request; None at the end of the connection.
    fn receive(&mut self, stream: &mut TcpStream) -> io::Result<Option<Asked>> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(end) = self.bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.bytes[..end]).into_owned();
                self.bytes.drain(..end + 4);
                return Ok(request(&head));
            }
            if self.bytes.len() > REQUEST_CAP {
                return Ok(None);
            }
            match stream.read(&mut chunk)? {
                0 => return Ok(None),
                count => self.bytes.extend_from_slice(&chunk[..count]),
            }
            self.arrived = Instant::now();
        }
    }
}

fn request(head: &str) -> Option<Asked> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
    Some(Asked { method, path, headers: headers.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_and_dated_versions_show_the_same_tree() {
        for (path, below) in [
            ("/latest/meta-data/mac", Some("meta-data/mac")),
            ("/latest", Some("")),
            ("/latest/", Some("")),
            ("/2009-04-04/meta-data/", Some("meta-data/")),
            ("/2021-03-23/user-data", Some("user-data")),
            ("/2009-4-4/user-data", None),
            ("/oldest/user-data", None),
            ("/latestmeta-data", None),
        ] {
            assert_eq!(below_version(path), below, "{path}");
        }
    }
}
