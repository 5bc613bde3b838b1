//! One connection, layer by layer: TCP, a proxy's tunnel, TLS without believing the server,
//! whether it could be believed, and one plain request.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};
use tenon_core::doctor::{Lookup, Reach, Resolution, Tcp, Tls, Trust, describe_certificate};
use tenon_core::problem::Problem;

use crate::gather::background;

/// For each layer of one connection.
pub(super) const EACH: Duration = Duration::from_secs(3);
/// The largest answer that is looked at.
const BODY_CAP: usize = 16 << 10;
/// More addresses than this are not tried.
const MOST_ADDRESSES: usize = 3;

/// Asks the resolver.
pub(super) fn look_up(host: &str) -> Result<Lookup, Problem> {
    let name = host.to_owned();
    let found = background::wait_for(Instant::now() + EACH, move || {
        let list = (name.as_str(), 443_u16).to_socket_addrs();
        list.map(|list| list.map(|address| address.ip()).collect::<Vec<_>>())
    })?;
    let (result, addresses, detail) = match found {
        None => (Resolution::Timeout, Vec::new(), String::new()),
        Some(Ok(mut list)) => {
            list.sort_unstable();
            list.dedup();
            (Resolution::Found, list, String::new())
        }
        Some(Err(error)) => (resolution(&error.to_string()), Vec::new(), error.to_string()),
    };
    Ok(Lookup { host: host.to_owned(), result, addresses, detail })
}

/// The C libraries tell "no such name" from "no answer" by words only.
fn resolution(words: &str) -> Resolution {
    let absent = ["not known", "does not resolve", "No address associated", "no usable address"];
    match absent.iter().any(|text| words.contains(text)) {
        true => Resolution::NoSuchName,
        false => Resolution::Error,
    }
}

/// A proxy, taken apart.
#[derive(Debug, Clone)]
pub(super) struct Proxy {
    host: String,
    port: u16,
    /// `user:password`
    user: Option<String>,
}

impl Proxy {
    pub(super) fn parse(url: &str) -> Option<Proxy> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
        let (user, address) = match rest.rsplit_once('@') {
            Some((user, address)) => (Some(user.to_owned()), address),
            None => (None, rest),
        };
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (address, 3128),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        (!host.is_empty()).then_some(Proxy { host, port, user })
    }

    /// The same for a client that makes whole requests.
    pub(super) fn for_client(&self) -> Option<ureq::Proxy> {
        let mut proxy =
            ureq::Proxy::builder(ureq::ProxyProtocol::Http).host(&self.host).port(self.port);
        if let Some(user) = &self.user {
            let (name, password) = user.split_once(':').unwrap_or((user, ""));
            proxy = proxy.username(name).password(password);
        }
        proxy.build().ok()
    }
}

/// What to connect to.
#[derive(Debug)]
pub(super) struct Goal<'a> {
    pub host: &'a str,
    pub port: u16,
    pub addresses: &'a [IpAddr],
    pub proxy: Option<&'a Proxy>,
    /// PEM of the authorities to believe.
    pub authority: Option<&'a [u8]>,
    /// A path to ask for; None ends after the handshake.
    pub path: Option<&'a str>,
}

/// The head of a plain answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub status: u16,
    pub date: String,
    pub kubernetes: bool,
}

/// Connects as far as it goes.
pub(super) fn reach(goal: &Goal) -> (Reach, Option<Answer>) {
    let mut found = Reach {
        tcp: Tcp::Connected,
        tls: None,
        trust: None,
        chain: Vec::new(),
        detail: String::new(),
    };
    let socket = match connect(goal) {
        Ok(socket) => socket,
        Err((tcp, detail)) => {
            (found.tcp, found.detail) = (tcp, detail);
            return (found, None);
        }
    };
    let answer = talk(goal, socket, &mut found);
    (found, answer)
}

fn connect(goal: &Goal) -> Result<TcpStream, (Tcp, String)> {
    let Some(proxy) = goal.proxy else { return first(goal.addresses, goal.port) };
    let lookup = look_up(&proxy.host).map_err(|problem| (Tcp::NoAddress, problem.what.clone()))?;
    if lookup.addresses.is_empty() {
        return Err((Tcp::NoAddress, "the proxy's name has no address".into()));
    }
    let mut socket = first(&lookup.addresses, proxy.port)?;
    let refused = |detail: String| (Tcp::ProxyRefused, detail);
    let status = tunnel(&mut socket, goal, proxy).map_err(|error| refused(error.to_string()))?;
    match status {
        200..=299 => Ok(socket),
        status => Err(refused(format!("the proxy answers {status}"))),
    }
}

fn first(addresses: &[IpAddr], port: u16) -> Result<TcpStream, (Tcp, String)> {
    let mut last = (Tcp::NoAddress, String::new());
    for address in addresses.iter().take(MOST_ADDRESSES) {
        let end = SocketAddr::new(*address, port);
        match TcpStream::connect_timeout(&end, EACH) {
            Ok(socket) => {
                let set = socket
                    .set_read_timeout(Some(EACH))
                    .and_then(|()| socket.set_write_timeout(Some(EACH)));
                return set.map(|()| socket).map_err(|error| (Tcp::Reset, error.to_string()));
            }
            Err(error) => last = (tcp_of(&error), format!("{end}: {error}")),
        }
    }
    Err(last)
}

fn tcp_of(error: &io::Error) -> Tcp {
    match error.kind() {
        ErrorKind::ConnectionRefused => Tcp::Refused,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => Tcp::Reset,
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Tcp::Timeout,
        _ => Tcp::Unreachable,
    }
}

/// Asks a proxy for a tunnel; gives its status.
fn tunnel(socket: &mut TcpStream, goal: &Goal, proxy: &Proxy) -> io::Result<u16> {
    let target = match goal.host.contains(':') {
        true => format!("[{}]:{}", goal.host, goal.port),
        false => format!("{}:{}", goal.host, goal.port),
    };
    let user = proxy
        .user
        .as_ref()
        .map(|user| format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(user)));
    let user = user.unwrap_or_default();
    write!(socket, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{user}\r\n")?;
    let mut head = Vec::new();
    let mut byte = [0];
    // Byte by byte: what follows the head belongs to TLS.
    while !head.ends_with(b"\r\n\r\n") && head.len() < BODY_CAP {
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(parse_head(&head).status)
}

/// What a server showed, whether it could be believed, and why not.
#[derive(Debug, Default)]
struct Shown {
    chain: Vec<Vec<u8>>,
    trust: Option<Trust>,
    detail: String,
}

/// Believes every server and keeps what it showed.
#[derive(Debug)]
struct Recorder {
    provider: Arc<CryptoProvider>,
    judge: Option<Arc<WebPkiServerVerifier>>,
    seen: Mutex<Shown>,
}

impl ServerCertVerifier for Recorder {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = std::iter::once(end_entity).chain(intermediates).map(|der| der.to_vec());
        let judged = self
            .judge
            .as_ref()
            .map(|judge| judge.verify_server_cert(end_entity, intermediates, name, ocsp, now));
        let (trust, detail) = match judged {
            None => (Trust::NoAuthority, String::new()),
            Some(Ok(_)) => (Trust::Good, String::new()),
            Some(Err(error)) => (trust_of(&error), error.to_string()),
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = Shown { chain: chain.collect(), trust: Some(trust), detail };
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Another CA of the same name shows as a bad signature: every cluster's is called kubernetes.
fn trust_of(error: &rustls::Error) -> Trust {
    let rustls::Error::InvalidCertificate(error) = error else { return Trust::Other };
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Trust::UnknownAuthority,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Trust::WrongName
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => Trust::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            Trust::NotYetValid
        }
        _ => Trust::Other,
    }
}

fn judge(provider: &Arc<CryptoProvider>, pem: &[u8]) -> Option<Arc<WebPkiServerVerifier>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).filter_map(Result::ok));
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build().ok()
}

/// The handshake, and the plain request behind it.
fn talk(goal: &Goal, mut socket: TcpStream, found: &mut Reach) -> Option<Answer> {
    let provider = Arc::new(ring::default_provider());
    let judge = goal.authority.and_then(|pem| judge(&provider, pem));
    let recorder =
        Arc::new(Recorder { provider: Arc::clone(&provider), judge, seen: Mutex::default() });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&recorder) as Arc<dyn ServerCertVerifier>)
        .with_no_client_auth();
    let name = ServerName::try_from(goal.host.to_owned()).ok()?;
    let mut session = ClientConnection::new(Arc::new(config), name).ok()?;
    let shaken = (|| {
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        Ok::<_, io::Error>(())
    })();
    let seen = std::mem::take(&mut *recorder.seen.lock().unwrap_or_else(PoisonError::into_inner));
    found.chain = seen.chain.iter().filter_map(|der| describe_certificate(der)).collect();
    (found.trust, found.detail) = (seen.trust, seen.detail);
    if let Err(error) = shaken {
        (found.tls, found.detail) = (Some(tls_of(&error)), error.to_string());
        return None;
    }
    found.tls = Some(Tls::Up);
    ask(goal.path?, goal.host, &mut session, &mut socket)
}

fn tls_of(error: &io::Error) -> Tls {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (inner, error.kind()) {
        (Some(rustls::Error::AlertReceived(_)), _) => Tls::Alert,
        (Some(rustls::Error::InvalidMessage(_)), _) => Tls::NotTls,
        (None, ErrorKind::TimedOut | ErrorKind::WouldBlock) => Tls::Timeout,
        (None, _) => Tls::Closed,
        _ => Tls::Alert,
    }
}

fn ask(
    path: &str,
    host: &str,
    session: &mut ClientConnection,
    socket: &mut TcpStream,
) -> Option<Answer> {
    let mut stream = rustls::Stream::new(session, socket);
    let agent = concat!("tenon/", env!("CARGO_PKG_VERSION"));
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 2048];
    while bytes.len() < BODY_CAP && !bytes.windows(4).any(|part| part == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    let answer = parse_head(&bytes);
    (answer.status > 0).then_some(answer)
}

fn parse_head(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let mut answer = Answer::default();
    let mut lines = text.lines();
    let status = lines.next().and_then(|line| line.split_whitespace().nth(1));
    answer.status = status.and_then(|word| word.parse().ok()).unwrap_or_default();
    for (name, value) in
        lines.take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(':'))
    {
        match name.to_ascii_lowercase().as_str() {
            "date" => answer.date = value.trim().to_owned(),
            "audit-id" | "x-kubernetes-pf-flowschema-uid" => answer.kubernetes = true,
            _ => {}
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_taken_apart() {
        for (url, host, port, user) in [
            ("http://p:3128", "p", 3128, None),
            ("http://u:pass@p.corp:80/", "p.corp", 80, Some("u:pass")),
            ("p.corp", "p.corp", 3128, None),
            ("http://[fd00::1]:8080", "fd00::1", 8080, None),
        ] {
            let proxy = Proxy::parse(url).unwrap();
            assert_eq!(
                (proxy.host.as_str(), proxy.port, proxy.user.as_deref()),
                (host, port, user),
                "{url}"
            );
        }
    }

    #[test]
    fn resolvers_of_both_c_libraries_are_understood() {
        for (words, expected) in [
            (
                "failed to lookup address information: Name or service not known",
                Resolution::NoSuchName,
            ),
            ("failed to lookup address information: Name does not resolve", Resolution::NoSuchName),
            ("failed to lookup address information: Try again", Resolution::Error),
            (
                "failed to lookup address information: Temporary failure in name resolution",
                Resolution::Error,
            ),
        ] {
            assert_eq!(resolution(words), expected, "{words}");
        }
    }

    #[test]
    fn heads_are_read() {
        let head = b"HTTP/1.1 401 Unauthorized\r\nAudit-Id: x\r\nDate: Sun, 15 Nov 2026 23:00:00 GMT\r\n\r\n{}";
        let answer = parse_head(head);
        assert_eq!((answer.status, answer.kubernetes), (401, true));
        assert_eq!(answer.date, "Sun, 15 Nov 2026 23:00:00 GMT");
    }
}
