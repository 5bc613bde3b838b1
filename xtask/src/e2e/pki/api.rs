//! Kubeconfigs, tokens, discovery and approvals before a real API server.

use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tenon_core::bootstrap_token::Token;
use tenon_core::bootstrap_token::discovery::CaHash;
use tenon_core::kubeconfig::{Credential, Kubeconfig};
use tenon_core::pki::Certificate;
use tenon_core::secret::Secret;
use tenon_host::cluster::{ApiError, Auth, Client, Look, Patch, Trust, discover, wait_until};

use super::plane::{Plane, told};
use super::verify::openssl;
use super::{Lab, NODE, must_tenon, tenon};

const PATIENCE: Duration = Duration::from_secs(60);
const REVIEW: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const CSRS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const MANAGER: &str = "tenon-e2e";

fn failed(error: ApiError) -> anyhow::Error {
    told(error.into())
}

/// Who the API server says that a client is.
fn who(client: &Client) -> Result<(String, Vec<String>), ApiError> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = client.create(REVIEW, &review)?;
    let info = &answer["status"]["userInfo"];
    let groups = info["groups"].as_array().cloned().unwrap_or_default();
    let groups = groups.iter().filter_map(|group| group.as_str().map(str::to_owned)).collect();
    Ok((info["username"].as_str().unwrap_or_default().to_owned(), groups))
}

/// Each kubeconfig is who it should be; the administrators' group has rights once it is bound.
pub fn administrators(plane: &Plane) -> anyhow::Result<usize> {
    for (name, user, group) in [
        ("admin.conf", "kubernetes-admin", "kubeadm:cluster-admins"),
        ("super-admin.conf", "kubernetes-super-admin", "system:masters"),
        ("scheduler.conf", "system:kube-scheduler", "system:authenticated"),
        ("controller-manager.conf", "system:kube-controller-manager", "system:authenticated"),
        ("kubelet.conf", "system:node:cp-1", "system:nodes"),
    ] {
        let (found, groups) = who(&plane.client(name)?).map_err(failed)?;
        ensure!(found == user && groups.iter().any(|it| it == group), "{name}: {found} {groups:?}");
    }
    let admin = plane.client("admin.conf")?;
    let refused = admin.get("/api/v1/nodes").err().context("rights without a binding")?;
    ensure!(refused.is_forbidden(), "{}", refused.summary());
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "kubeadm:cluster-admins"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "kubeadm:cluster-admins"}],
    });
    plane.client("super-admin.conf")?.apply(&binding, MANAGER, false).map_err(failed)?;
    wait_until("administrators may list nodes", PATIENCE, || match admin.list("/api/v1/nodes") {
        Err(error) if error.is_forbidden() => Ok(Look::NotYet("still forbidden".into())),
        result => result.map(Look::Ready),
    })
    .map_err(told)?;
    Ok(7)
}

/// Apply is repeatable; a field of another manager is a conflict that names it, unless forced.
pub fn server_side_apply(plane: &Plane) -> anyhow::Result<usize> {
    let client = plane.client("admin.conf")?;
    let object = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "owned", "namespace": "kube-system"}, "data": {"key": value}})
    };
    let first = client.apply(&object("one"), "first", false).map_err(failed)?;
    let again = client.apply(&object("one"), "first", false).map_err(failed)?;
    let version = |value: &Value| value["metadata"]["resourceVersion"].clone();
    ensure!(version(&first) == version(&again), "a repeated apply is a change");
    let conflict = client.apply(&object("two"), "second", false).err().context("no conflict")?;
    let ApiError::Refused(refusal) = &conflict else { return Err(failed(conflict)) };
    ensure!(conflict.is_conflict() && refusal.causes[0].contains("first"), "{refusal:?}");
    ensure!(refusal.causes[0].starts_with(".data.key"), "{refusal:?}");
    let forced = client.apply(&object("two"), "second", true).map_err(failed)?;
    ensure!(forced["data"]["key"] == "two", "{forced}");
    let unknown =
        client.resource("example.com/v1", "Widget").err().context("a kind from nowhere")?;
    ensure!(matches!(unknown, ApiError::UnknownKind { .. }), "{unknown:?}");
    let path = client.path_of(&forced).map_err(failed)?;
    ensure!(client.delete(&path).map_err(failed)?, "it was not there");
    ensure!(!client.delete(&path).map_err(failed)?, "it was there twice");
    Ok(6)
}

fn with_token(plane: &Plane, token: &str) -> anyhow::Result<Client> {
    let trust = Trust::Authority(fs::read(plane.pki("ca.crt"))?);
    let url = format!("https://127.0.0.1:{}", plane.port);
    Client::new(&url, &trust, &Auth::Bearer(Secret::new(token))).map_err(told)
}

/// A token made by the command lets a machine in; a deleted one does not.
pub fn tokens(lab: &Lab, plane: &Plane) -> anyhow::Result<usize> {
    let line = |line: &str| must_tenon(lab, plane.root.path(), line);
    let made = line("token create --ttl 90m --description rack-7")?;
    let token = Token::parse(&made).map_err(told)?;
    let client = with_token(plane, made.trim())?;
    let (user, groups) = wait_until("the token is known", PATIENCE, || match who(&client) {
        Err(error) if error.is_forbidden() => Ok(Look::NotYet("not known".into())),
        result => result.map(Look::Ready),
    })
    .map_err(told)?;
    ensure!(user == format!("system:bootstrap:{}", token.id), "{user}");
    let group = "system:bootstrappers:kubeadm:default-node-token";
    ensure!(groups.iter().any(|it| it == group), "{groups:?}");
    let listed = line("token list")?;
    ensure!(
        listed.contains(&token.id) && listed.contains("rack-7") && listed.contains(" 1h"),
        "{listed}"
    );
    ensure!(!listed.contains(token.secret.expose()), "the list shows the secret half");
    line(&format!("token delete {}", token.id))?;
    wait_until("the token is refused", PATIENCE, || match who(&client) {
        Err(error) if error.code() == Some(401) => Ok(Look::Ready(())),
        result => result.map(|_| Look::NotYet("still known".into())),
    })
    .map_err(told)?;
    let gone = tenon(lab, plane.root.path(), &format!("token delete {}", token.id))?;
    ensure!(gone.status.code() == Some(10), "{gone:?}");
    let wrong = tenon(lab, plane.root.path(), "token create --ttl 0s")?;
    ensure!(wrong.status.code() == Some(64), "{wrong:?}");
    Ok(6)
}

/// The controller manager signs cluster-info with a new token, and that is enough to find the
/// cluster; another token or another CA is not.
pub fn discovery(lab: &Lab, plane: &Plane) -> anyhow::Result<usize> {
    let client = plane.client("admin.conf")?;
    let authority = fs::read(plane.pki("ca.crt"))?;
    let url = format!("https://127.0.0.1:{}", plane.port);
    let public = Kubeconfig::new("", &url, authority.clone(), "", Credential::None).write();
    let info = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"kubeconfig": public},
        "metadata": {"name": "cluster-info", "namespace": "kube-public"}});
    let role = "kubeadm:bootstrap-signer-clusterinfo";
    let rbac = "rbac.authorization.k8s.io";
    let objects = [
        info,
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": role, "namespace": "kube-public"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["cluster-info"], "verbs": ["get"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": role, "namespace": "kube-public"},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": role},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": "system:anonymous"}]}),
    ];
    for object in &objects {
        client.apply(object, MANAGER, false).map_err(failed)?;
    }
    let answer = must_tenon(lab, plane.root.path(), "token create --print-join --output json")?;
    let answer: Value = serde_json::from_str(&answer)?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let token = Token::parse(&text(&answer["token"])).map_err(told)?;
    let pin = CaHash::parse(&text(&answer["join"]["caHash"])).map_err(told)?;
    let endpoint = text(&answer["join"]["endpoint"]);
    let found = discover(&endpoint, &token, std::slice::from_ref(&pin), PATIENCE).map_err(told)?;
    ensure!(found.server == url && found.authority == authority, "{found:?}");

    let other = Certificate::from_pem(&fs::read_to_string(plane.pki("etcd/ca.crt"))?);
    let other = CaHash::of(&other.context("etcd's CA")?);
    let refused = discover(&endpoint, &token, &[other], PATIENCE).err().context("a wrong pin")?;
    ensure!(refused.page.code == "TN10632", "{}", refused.render("error"));
    let forged = Token { id: token.id.clone(), secret: Secret::new("0123456789abcdef") };
    let refused = discover(&endpoint, &forged, &[pin], PATIENCE).err().context("a forged token")?;
    ensure!(refused.page.code == "TN10632", "{}", refused.render("error"));
    let hash = openssl(plane, "x509 -in ca.crt -noout -pubkey -out ca.pub")
        .and_then(|_| openssl(plane, "pkey -pubin -in ca.pub -outform DER -out ca.pub.der"))
        .and_then(|_| openssl(plane, "dgst -sha256 ca.pub.der"))?;
    let digits = text(&answer["join"]["caHash"]).replace("sha256:", "");
    ensure!(hash.trim().ends_with(&digits), "openssl counts another hash: {hash}");
    Ok(4)
}

/// Asks for a serving certificate as the kubelet of this node does.
fn request(plane: &Plane, name: &str, names: &str) -> anyhow::Result<()> {
    let line = format!(
        "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -out {name}.csr \
         -subj /O=system:nodes/CN=system:node:{NODE} -addext subjectAltName={names}"
    );
    openssl(plane, &line)?;
    openssl(plane, &format!("base64 -A -in {name}.csr -out {name}.b64"))?;
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": fs::read_to_string(plane.pki(&format!("{name}.b64")))?.trim(),
            "signerName": "kubernetes.io/kubelet-serving",
            "usages": ["digital signature", "server auth"],
        },
    });
    plane.client("kubelet.conf")?.create(CSRS, &object).map_err(failed)?;
    Ok(())
}

/// A kubelet's serving certificate is approved under the node's own addresses, and signed; one
/// for another address waits, with the reason, until a person names it.
pub fn serving_certificates(lab: &Lab, plane: &Plane) -> anyhow::Result<usize> {
    let kubelet = plane.client("kubelet.conf")?;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    kubelet.create("/api/v1/nodes", &node).map_err(failed)?;
    let addresses = json!({"status": {"addresses": [
        {"type": "InternalIP", "address": "10.1.2.3"}, {"type": "Hostname", "address": NODE}]}});
    kubelet
        .patch(&format!("/api/v1/nodes/{NODE}/status"), Patch::Strategic, &addresses)
        .map_err(failed)?;
    request(plane, "honest", &format!("DNS:{NODE},IP:10.1.2.3"))?;
    request(plane, "greedy", &format!("DNS:{NODE},IP:10.96.0.1"))?;
    let output = tenon(lab, plane.root.path(), "csr approve --serving")?;
    let (said, told_of) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.code() == Some(1), "{output:?}");
    ensure!(said.trim() == "approved honest", "{said}");
    ensure!(told_of.contains("10.96.0.1 is not an address of the node"), "{told_of}");

    let admin = plane.client("admin.conf")?;
    let signed = wait_until("the certificate is signed", PATIENCE, || {
        let csr = admin.get(&format!("{CSRS}/honest"))?;
        match csr["status"]["certificate"].as_str() {
            Some(text) => Ok(Look::Ready(text.to_owned())),
            None => Ok(Look::NotYet("not signed".into())),
        }
    })
    .map_err(told)?;
    fs::write(plane.pki("honest.crt.b64"), signed)?;
    openssl(plane, "base64 -d -A -in honest.crt.b64 -out honest.crt")?;
    openssl(plane, "verify -purpose sslserver -CAfile ca.crt honest.crt")?;
    let greedy = admin.get(&format!("{CSRS}/greedy")).map_err(failed)?;
    ensure!(greedy["status"]["conditions"].is_null(), "it was decided: {greedy}");
    must_tenon(lab, plane.root.path(), "csr approve greedy")?;
    Ok(5)
}
