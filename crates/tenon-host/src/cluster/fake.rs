//! An API server for tests: real TLS on loopback, answers from a closure.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tenon_core::bootstrap_token::discovery::CaHash;
use tenon_core::kubeconfig::{Credential, Kubeconfig};
use tenon_core::pki::Certificate;

use super::{Auth, Client, Trust};

/// One request as the server saw it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authorization: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

/// A running server. It ends with the test process.
pub(crate) struct FakeApi {
    pub(crate) url: String,
    /// PEM of its self-signed certificate.
    pub(crate) authority: String,
    pub(crate) seen: Arc<Mutex<Vec<Seen>>>,
}

impl FakeApi {
    /// Serves what `answer` gives: a status and a body.
    pub(crate) fn start(answer: impl Fn(&Seen) -> (u16, Value) + Send + 'static) -> Self {
        let names = vec!["127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (shared, config) = (Arc::clone(&seen), Arc::new(config));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that refuses the certificate ends its connection; the next may come.
                let _ = serve(stream, &config, &shared, &answer);
            }
        });
        FakeApi { url, authority: made.cert.pem(), seen }
    }

    pub(crate) fn client(&self, auth: &Auth) -> Client {
        let trust = Trust::Authority(self.authority.clone().into_bytes());
        Client::new(&self.url, &trust, auth).unwrap()
    }

    /// `METHOD PATH` of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect()
    }
}

/// The token that [`signed_info`] signs with.
pub(crate) const TOKEN: &str = "abcdef.0123456789abcdef";

/// The data of a `cluster-info`, signed with [`TOKEN`].
pub(crate) fn signed_info(authority: &str, server: &str) -> Value {
    let authority = authority.as_bytes().to_vec();
    let text = Kubeconfig::new("", server, authority, "", Credential::None).write();
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","kid":"abcdef"}"#);
    let mut hmac = Hmac::<sha2::Sha256>::new_from_slice(b"0123456789abcdef").unwrap();
    hmac.update(format!("{header}.{}", URL_SAFE_NO_PAD.encode(&text)).as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(hmac.finalize().into_bytes());
    json!({"kubeconfig": text, "jws-kubeconfig-abcdef": format!("{header}..{signature}")})
}

/// A server that answers everything with a ConfigMap of this data, which is set after its start
/// because it holds the server's own certificate; 404 until then.
pub(crate) fn cluster() -> (FakeApi, Arc<Mutex<Value>>) {
    let data = Arc::new(Mutex::new(Value::Null));
    let shared = Arc::clone(&data);
    let api = FakeApi::start(move |_| match shared.lock().unwrap().clone() {
        Value::Null => (404, json!({})),
        data => (200, json!({"data": data})),
    });
    (api, data)
}

/// The hash that pins a server's certificate.
pub(crate) fn pin(api: &FakeApi) -> CaHash {
    CaHash::of(&Certificate::from_pem(&api.authority).unwrap())
}

fn serve(
    mut stream: TcpStream,
    config: &Arc<rustls::ServerConfig>,
    shared: &Mutex<Vec<Seen>>,
    answer: &dyn Fn(&Seen) -> (u16, Value),
) -> std::io::Result<()> {
    let mut session = rustls::ServerConnection::new(Arc::clone(config)).unwrap();
    let mut reader = BufReader::new(rustls::Stream::new(&mut session, &mut stream));
    let seen = read(&mut reader)?;
    shared.lock().unwrap().push(seen.clone());
    let (code, body) = answer(&seen);
    let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    let length = body.len();
    let head =
        format!("HTTP/1.1 {code} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    let stream = reader.get_mut();
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()?;
    stream.conn.send_close_notify();
    stream.flush()
}

fn read(reader: &mut impl BufRead) -> std::io::Result<Seen> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut seen = Seen {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        ..Seen::default()
    };
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => seen.authorization = value.to_owned(),
            "content-type" => seen.content_type = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    seen.body = serde_json::from_slice(&body).unwrap_or_default();
    Ok(seen)
}
