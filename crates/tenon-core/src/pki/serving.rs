//! May a kubelet's serving certificate be approved?
//!
//! The rules are those of the specification: a node may speak for itself alone, under addresses
//! that the cluster knows it by. Whatever breaks one is left to a person, never denied.

use serde_json::Value;

use super::certificate::Request;
use super::names::San;

pub const SIGNER: &str = "kubernetes.io/kubelet-serving";
const GROUP: &str = "system:nodes";
const USER: &str = "system:node:";
const USAGES: &[&str] = &["digital signature", "key encipherment", "server auth"];

/// The node that asks; the reason when the asker is no node.
pub fn requester(csr: &Value) -> Result<&str, String> {
    if csr["spec"]["signerName"] != SIGNER {
        return Err(format!("it is not for the signer {SIGNER}"));
    }
    let user = csr["spec"]["username"].as_str().unwrap_or_default();
    let node = user.strip_prefix(USER).filter(|node| !node.is_empty());
    let node = node.ok_or_else(|| "the requester is not a node".to_owned())?;
    match strings(&csr["spec"]["groups"]).any(|group| group == GROUP) {
        true => Ok(node),
        false => Err(format!("the requester is not in the group {GROUP}")),
    }
}

/// Decides over a request of a node; `node` is its Node object. An error is the reason to wait.
pub fn decide(csr: &Value, request: &Request, node: Option<&Value>) -> Result<(), String> {
    let name = requester(csr)?;
    if request.common_name != format!("{USER}{name}") {
        return Err("its common name is not the requester's".into());
    }
    if request.organizations != [GROUP] || request.more_subject {
        return Err(format!("its organization is not exactly {GROUP}"));
    }
    if request.alt.others > 0 {
        return Err("it asks for an e-mail address, a URI or another kind of name".into());
    }
    usages(&csr["spec"]["usages"])?;
    let node = node.ok_or_else(|| format!("there is no node {name}"))?;
    addresses(request, node)
}

fn usages(asked: &Value) -> Result<(), String> {
    if let Some(other) = strings(asked).find(|usage| !USAGES.contains(usage)) {
        return Err(format!("it asks for the usage `{other}`"));
    }
    match strings(asked).any(|usage| usage == "server auth") {
        true => Ok(()),
        false => Err("it does not ask for the usage `server auth`".into()),
    }
}

fn addresses(request: &Request, node: &Value) -> Result<(), String> {
    if request.alt.names.is_empty() {
        return Err("it names no address".into());
    }
    let known = node["status"]["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let known: Vec<San> =
        known.iter().filter_map(|entry| San::parse(entry["address"].as_str()?)).collect();
    match request.alt.names.iter().find(|name| !known.contains(name)) {
        Some(name) => Err(format!("{name} is not an address of the node")),
        None => Ok(()),
    }
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(Value::as_str)
}

/// True for a request that nobody has decided about yet.
pub fn is_pending(csr: &Value) -> bool {
    csr["status"]["conditions"].as_array().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::certificate::AltNames;
    use super::*;

    fn csr() -> Value {
        json!({"spec": {
            "signerName": SIGNER, "username": "system:node:n1",
            "groups": ["system:nodes", "system:authenticated"],
            "usages": ["digital signature", "server auth"],
        }})
    }

    fn request() -> Request {
        let names = ["n1.example", "10.0.0.4"].map(|name| San::parse(name).unwrap());
        Request {
            common_name: "system:node:n1".into(),
            organizations: vec![GROUP.into()],
            more_subject: false,
            alt: AltNames { names: names.into(), others: 0 },
        }
    }

    fn node() -> Value {
        json!({"status": {"addresses": [
            {"type": "InternalIP", "address": "10.0.0.4"},
            {"type": "Hostname", "address": "n1.example"},
        ]}})
    }

    #[test]
    fn a_node_that_speaks_for_itself_is_approved() {
        assert_eq!(decide(&csr(), &request(), Some(&node())), Ok(()));
        let mut rsa = csr();
        rsa["spec"]["usages"] = json!(["digital signature", "key encipherment", "server auth"]);
        assert_eq!(decide(&rsa, &request(), Some(&node())), Ok(()));
    }

    #[test]
    fn each_rule_about_the_object_leaves_it_pending() {
        for (path, value, reason) in [
            ("/spec/signerName", json!("kubernetes.io/kube-apiserver-client-kubelet"), "signer"),
            ("/spec/username", json!("system:serviceaccount:a:b"), "not a node"),
            ("/spec/username", json!("system:node:"), "not a node"),
            ("/spec/username", json!("system:node:n2"), "common name"),
            ("/spec/groups", json!(["system:authenticated"]), "group"),
            ("/spec/usages", json!(["server auth", "client auth"]), "client auth"),
            ("/spec/usages", json!(["digital signature"]), "server auth"),
        ] {
            let mut csr = csr();
            *csr.pointer_mut(path).unwrap() = value;
            let found = decide(&csr, &request(), Some(&node())).unwrap_err();
            assert!(found.contains(reason), "{found}");
        }
        assert!(decide(&csr(), &request(), None).unwrap_err().contains("no node n1"));
    }

    #[test]
    fn each_rule_about_the_request_leaves_it_pending() {
        type Row = (&'static str, fn(&mut Request));
        let wrong: [Row; 8] = [
            ("common name", |it| it.common_name = "system:node:n2".into()),
            ("organization", |it| it.organizations.clear()),
            ("organization", |it| it.organizations.push("system:masters".into())),
            ("organization", |it| it.more_subject = true),
            ("e-mail", |it| it.alt.others = 1),
            ("names no address", |it| it.alt.names.clear()),
            ("10.0.0.9", |it| it.alt.names.push(San::parse("10.0.0.9").unwrap())),
            ("other.example", |it| it.alt.names.push(San::parse("other.example").unwrap())),
        ];
        for (reason, change) in wrong {
            let mut request = request();
            change(&mut request);
            let found = decide(&csr(), &request, Some(&node())).unwrap_err();
            assert!(found.contains(reason), "{found}");
        }
    }

    #[test]
    fn decided_requests_are_not_pending() {
        assert!(is_pending(&csr()));
        let mut denied = csr();
        denied["status"] = json!({"conditions": [{"type": "Denied"}]});
        assert!(!is_pending(&denied));
    }
}
