//! Whom to ask, whom to trust, and who is asking.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenon_core::codes::cluster::BAD_KUBECONFIG;
use tenon_core::codes::host::FILE_READ;
use tenon_core::kubeconfig::{self, Credential, Kubeconfig, Material};
use tenon_core::problem::{Place, Problem};
use tenon_core::secret::Secret;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::Client;
use crate::command;
use crate::root::Root;

/// The largest kubeconfig, certificate or token file that is read.
const FILE_CAP: u64 = 1 << 20;
/// How long a credential program may take.
const EXEC_BOUND: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(5);

/// Whose server certificates are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those signed by one of these, PEM.
    Authority(Vec<u8>),
    /// Those that every browser accepts.
    Public,
    /// Any. For the first step of discovery alone: what is read so must be proven otherwise.
    Anyone,
}

/// Who is asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    None,
    Bearer(Secret),
    /// PEM of the certificate chain and of its key.
    Certificate {
        chain: Vec<u8>,
        key: Secret,
    },
}

/// Reads a kubeconfig file below the root.
pub fn read_kubeconfig(root: &Root, path: &str) -> Result<Kubeconfig, Problem> {
    let bytes = read(root, path)?;
    kubeconfig::read(&String::from_utf8_lossy(&bytes), path)
}

/// The server of a kubeconfig file and the PEM of its CA, for whoever is to join.
pub fn endpoint(root: &Root, path: &str) -> Result<(String, Vec<u8>), Problem> {
    let config = read_kubeconfig(root, path)?;
    match &config.authority {
        Some(material) => Ok((config.server, load(root, material)?)),
        None => Err(refuse("the kubeconfig names no CA", "clusters.cluster")),
    }
}

impl Client {
    /// A client for what a kubeconfig describes. Files it names are read below the root.
    pub fn from_kubeconfig(config: &Kubeconfig, root: &Root) -> Result<Self, Problem> {
        Client::through(None, config, root)
    }

    /// The same, with requests that go through a proxy.
    pub fn through(
        proxy: Option<ureq::Proxy>,
        config: &Kubeconfig,
        root: &Root,
    ) -> Result<Self, Problem> {
        let trust = match &config.authority {
            Some(material) => Trust::Authority(load(root, material)?),
            None => Trust::Public,
        };
        let auth = match &config.credential {
            Credential::None => Auth::None,
            Credential::Token(token) => Auth::Bearer(token.clone()),
            Credential::TokenFile(path) => Auth::Bearer(secret(&read(root, path)?)),
            Credential::Certificate { certificate, key } => Auth::Certificate {
                chain: load(root, certificate)?,
                key: secret(&load(root, key)?),
            },
            Credential::Exec { .. } => exec(config)?,
        };
        Ok(Client::with_agent(&config.server, agent(&trust, &auth, proxy)?, &auth))
    }

    /// A client for the kubeconfig file at this path.
    pub fn open(root: &Root, path: &str) -> Result<Self, Problem> {
        Client::from_kubeconfig(&read_kubeconfig(root, path)?, root)
    }
}

fn load(root: &Root, material: &Material) -> Result<Vec<u8>, Problem> {
    match material {
        Material::Inline(bytes) => Ok(bytes.clone()),
        Material::File(path) => read(root, path),
    }
}

fn read(root: &Root, path: &str) -> Result<Vec<u8>, Problem> {
    let problem = || Problem::new(&FILE_READ, format!("reading {path}"));
    let found = root.read(path, FILE_CAP).map_err(|error| problem().cause(error))?;
    found.ok_or_else(|| problem().cause("there is no such file"))
}

fn secret(bytes: &[u8]) -> Secret {
    Secret::new(String::from_utf8_lossy(bytes).trim())
}

fn refuse(what: &str, path: &str) -> Problem {
    Problem::new(&BAD_KUBECONFIG, what).at(Place::field(path))
}

/// Asks the kubeconfig's own program who is asking.
fn exec(config: &Kubeconfig) -> Result<Auth, Problem> {
    let Credential::Exec { api_version, command, arguments, variables } = &config.credential else {
        return Ok(Auth::None);
    };
    let info = json!({
        "apiVersion": api_version, "kind": "ExecCredential", "spec": {"interactive": false},
    });
    let mut environment = variables.clone();
    environment.push(("KUBERNETES_EXEC_INFO".into(), info.to_string()));
    let argv: Vec<String> = [command].into_iter().chain(arguments).cloned().collect();
    let output = command::must(&argv, EXEC_BOUND, &environment)?;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let status = &answer["status"];
    let text = |key: &str| status[key].as_str().filter(|text| !text.is_empty());
    match (text("token"), text("clientCertificateData"), text("clientKeyData")) {
        (Some(token), _, _) => Ok(Auth::Bearer(Secret::new(token))),
        (None, Some(chain), Some(key)) => {
            Ok(Auth::Certificate { chain: chain.as_bytes().to_vec(), key: Secret::new(key) })
        }
        _ => Err(refuse("the credential program printed no credential", "users.user.exec")),
    }
}

/// The connection's settings: no redirect, no proxy of the environment, a status is no error.
pub(super) fn agent(
    trust: &Trust,
    auth: &Auth,
    proxy: Option<ureq::Proxy>,
) -> Result<ureq::Agent, Problem> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = match trust {
        Trust::Authority(pem) => {
            let list = certificates(pem);
            if list.is_empty() {
                return Err(refuse("the CA holds no certificate", "certificate-authority"));
            }
            RootCerts::new_with_certs(&list)
        }
        Trust::Public | Trust::Anyone => RootCerts::WebPki,
    };
    let tls = TlsConfig::builder()
        .unversioned_rustls_crypto_provider(provider)
        .root_certs(roots)
        .client_cert(client_certificate(auth)?)
        .disable_verification(*trust == Trust::Anyone)
        .build();
    let config = ureq::Agent::config_builder()
        .tls_config(tls)
        .proxy(proxy)
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_connect(Some(CONNECT));
    Ok(config.build().new_agent())
}

fn certificates(pem: &[u8]) -> Vec<Certificate<'static>> {
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    };
    parse_pem(pem).filter_map(certificate).collect()
}

fn client_certificate(auth: &Auth) -> Result<Option<ClientCert>, Problem> {
    let Auth::Certificate { chain, key } = auth else { return Ok(None) };
    let chain = certificates(chain);
    let key = PrivateKey::from_pem(key.expose().as_bytes());
    match (chain.is_empty(), key) {
        (false, Ok(key)) => Ok(Some(ClientCert::new_with_certs(&chain, key))),
        _ => Err(refuse("the client certificate or its key is not PEM", "users.user")),
    }
}
