//! Approves requests for certificates: by name as told, or kubelets' serving certificates by the
//! rules of the core.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tenon_core::codes::cluster::CSR_LEFT_PENDING;
use tenon_core::pki::{Request, serving};
use tenon_core::problem::{Place, Problem};

use super::client::encode;
use super::{ApiError, Client};

const COLLECTION: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// What happened to one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub name: String,
    /// Why it was left pending; None when it was approved, now or earlier.
    pub reason: Option<String>,
}

impl Verdict {
    /// The finding of a request that was left pending.
    pub fn finding(&self) -> Option<Problem> {
        let reason = self.reason.as_ref()?;
        let what = format!("{} was left pending: {reason}", self.name);
        Some(Problem::new(&CSR_LEFT_PENDING, what).at(Place::field(self.name.clone())))
    }

    pub fn to_json(&self) -> Value {
        let verdict = if self.reason.is_none() { "approved" } else { "pending" };
        json!({"name": self.name, "verdict": verdict, "reason": self.reason})
    }
}

/// Approves the requests that are named, whatever they ask for.
pub fn named(client: &Client, names: &[String]) -> Result<Vec<Verdict>, ApiError> {
    let mut verdicts = Vec::new();
    for name in names {
        let csr = client.get(&format!("{COLLECTION}/{}", encode(name)))?;
        verdicts.push(match decided(&csr) {
            Some("Approved") => Verdict { name: name.clone(), reason: None },
            Some(_) => Verdict { name: name.clone(), reason: Some("it was denied already".into()) },
            None => approve(client, csr, "named by a person")?,
        });
    }
    Ok(verdicts)
}

/// Approves pending serving certificates of kubelets for which every rule holds; all of them, or
/// those that are named.
pub fn serving(client: &Client, names: &[String]) -> Result<Vec<Verdict>, ApiError> {
    let pending = match names {
        [] => {
            let signer = format!("?fieldSelector=spec.signerName%3D{}", encode(serving::SIGNER));
            client.list(&format!("{COLLECTION}{signer}"))?
        }
        names => {
            let get = |name: &String| client.get(&format!("{COLLECTION}/{}", encode(name)));
            names.iter().map(get).collect::<Result<_, _>>()?
        }
    };
    let pending = pending.into_iter().filter(serving::is_pending);
    pending.map(|csr| judge(client, csr)).collect()
}

fn judge(client: &Client, csr: Value) -> Result<Verdict, ApiError> {
    let node = match serving::requester(&csr) {
        Ok(node) => client.find(&format!("/api/v1/nodes/{}", encode(node)))?,
        Err(reason) => return Ok(Verdict { name: name(&csr), reason: Some(reason) }),
    };
    let verdict = match request(&csr) {
        Some(request) => serving::decide(&csr, &request, node.as_ref()),
        None => Err("the request inside it cannot be read".to_owned()),
    };
    match verdict {
        Ok(()) => approve(client, csr, "the node speaks for itself, under its own addresses"),
        Err(reason) => Ok(Verdict { name: name(&csr), reason: Some(reason) }),
    }
}

fn name(csr: &Value) -> String {
    csr["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// The type of the decision that was made; None for a request that waits for one.
fn decided(csr: &Value) -> Option<&str> {
    csr["status"]["conditions"].as_array()?.iter().find_map(|condition| condition["type"].as_str())
}

fn request(csr: &Value) -> Option<Request> {
    let bytes = STANDARD.decode(csr["spec"]["request"].as_str()?).ok()?;
    Request::from_pem(&String::from_utf8(bytes).ok()?)
}

fn approve(client: &Client, mut csr: Value, message: &str) -> Result<Verdict, ApiError> {
    let name = name(&csr);
    csr["status"]["conditions"] = json!([{
        "type": "Approved", "status": "True", "reason": "TenonApprove", "message": message,
    }]);
    client.replace(&format!("{COLLECTION}/{}/approval", encode(&name)), &csr)?;
    tracing::info!(%name, "approved");
    Ok(Verdict { name, reason: None })
}
