//! The client before a server with real TLS.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_core::kubeconfig::{Credential, Kubeconfig};
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;

use super::fake::{FakeApi, Seen};
use super::*;
use crate::root::Root;

fn bearer() -> Auth {
    Auth::Bearer(Secret::new("canary-token"))
}

fn refuse(code: u16, reason: &str) -> (u16, Value) {
    let causes = json!([{"reason": "FieldManagerConflict", "field": ".spec.replicas",
        "message": "conflict with \"kubectl\""}]);
    let status = json!({"kind": "Status", "code": code, "reason": reason,
        "message": "the server's words", "details": {"causes": causes}});
    (code, status)
}

fn kinds(seen: &Seen) -> (u16, Value) {
    let kind = |name: &str, kind: &str, namespaced: bool| json!({"name": name, "kind": kind, "namespaced": namespaced});
    match seen.path.split('?').next().unwrap() {
        "/api/v1" => (
            200,
            json!({"resources": [kind("pods/log", "Pod", true), kind("configmaps", "ConfigMap", true),
                kind("nodes", "Node", false)]}),
        ),
        "/apis/apps/v1" => (200, json!({"resources": [kind("deployments", "Deployment", true)]})),
        path if path.starts_with("/apis/example.com") => refuse(404, "NotFound"),
        _ => (200, seen.body.clone()),
    }
}

#[test]
fn objects_find_their_path_by_discovery_which_is_asked_once() {
    let api = FakeApi::start(kinds);
    let client = api.client(&bearer());
    let object = |version: &str, kind: &str, namespace: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a:b", "namespace": namespace}});
    for (object, path) in [
        (
            object("v1", "ConfigMap", json!("kube-system")),
            "/api/v1/namespaces/kube-system/configmaps/a%3Ab",
        ),
        (object("v1", "ConfigMap", Value::Null), "/api/v1/namespaces/default/configmaps/a%3Ab"),
        (object("v1", "Node", Value::Null), "/api/v1/nodes/a%3Ab"),
        (
            object("apps/v1", "Deployment", json!("x")),
            "/apis/apps/v1/namespaces/x/deployments/a%3Ab",
        ),
    ] {
        assert_eq!(client.path_of(&object).unwrap(), path);
    }
    assert_eq!(api.requests(), ["GET /api/v1", "GET /apis/apps/v1"]);
    client.refresh_resources();
    client.resource("v1", "Node").unwrap();
    assert_eq!(api.requests().len(), 3);
    let unknown = client.resource("example.com/v1", "Widget").unwrap_err();
    assert!(unknown.is_transient(), "its definition may come");
    assert_eq!(Problem::from(unknown).page.code, "TN10631");
    let nameless = client.path_of(&json!({"apiVersion": "v1", "kind": "Node"})).unwrap_err();
    assert_eq!(Problem::from(nameless).exit(), 3);
}

#[test]
fn apply_names_its_manager_and_a_conflict_names_the_other_one() {
    let api = FakeApi::start(|seen| match seen.method.as_str() {
        "PATCH" if seen.path.contains("force=false") => refuse(409, "Conflict"),
        _ => kinds(seen),
    });
    let client = api.client(&bearer());
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
    let conflict = client.apply(&object, "tenon-addons", false).unwrap_err();
    assert!(conflict.is_conflict());
    let ApiError::Refused(refusal) = &conflict else { panic!("{conflict:?}") };
    assert_eq!(refusal.causes, [".spec.replicas: conflict with \"kubectl\""]);
    assert_eq!(client.apply(&object, "tenon-addons", true).unwrap(), object);
    let seen = api.seen.lock().unwrap().pop().unwrap();
    assert!(seen.path.ends_with("/deployments/d?fieldManager=tenon-addons&force=true"));
    assert_eq!(seen.content_type, "application/apply-patch+yaml");
    assert_eq!(seen.authorization, "Bearer canary-token");
}

#[test]
fn statuses_are_values_and_problems_have_pages() {
    for (code, page, transient) in [
        (401, "TN10627", false),
        (403, "TN10627", false),
        (404, "TN10629", false),
        (409, "TN10628", false),
        (422, "TN10626", false),
        (429, "TN10626", true),
        (503, "TN10626", true),
    ] {
        let api = FakeApi::start(move |_| refuse(code, "Some"));
        let error = api.client(&bearer()).get("/api/v1/x").unwrap_err();
        assert_eq!((error.code(), error.is_transient()), (Some(code), transient));
        let problem = Problem::from(error);
        assert_eq!(problem.page.code, page, "{code}");
        assert_eq!(problem.causes, ["the server's words"]);
        assert!(!problem.render("error").contains("canary"));
    }
    let api = FakeApi::start(|_| (404, json!("<html>not here</html>")));
    let client = api.client(&bearer());
    assert_eq!(client.find("/x").unwrap(), None);
    assert!(!client.delete("/x").unwrap());
}

#[test]
fn lists_are_read_to_their_last_page() {
    let api = FakeApi::start(|seen| match seen.path.contains("continue=a%26b") {
        false => (200, json!({"items": [1, 2], "metadata": {"continue": "a&b"}})),
        true => (200, json!({"items": [3], "metadata": {}})),
    });
    assert_eq!(api.client(&Auth::None).list("/x?labelSelector=a").unwrap(), [1, 2, 3]);
    assert_eq!(api.requests()[0], "GET /x?labelSelector=a&limit=500");
}

#[test]
fn a_server_of_another_authority_is_not_talked_to() {
    let (api, other) = (FakeApi::start(|_| (200, json!({}))), FakeApi::start(|_| (200, json!({}))));
    let trust = Trust::Authority(other.authority.into_bytes());
    let error = Client::new(&api.url, &trust, &bearer()).unwrap().get("/x").unwrap_err();
    assert!(matches!(error, ApiError::Unreachable { .. }), "{error:?}");
    assert!(api.requests().is_empty(), "not even the token was sent");
}

#[test]
fn silence_ends_at_the_deadline() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let client = Client::new(&url, &Trust::Anyone, &Auth::None).unwrap();
    let error = client.within(Duration::from_millis(60)).get("/x").unwrap_err();
    assert!(matches!(error, ApiError::Unreachable { .. }), "{error:?}");
}

#[test]
fn a_kubeconfig_is_enough() {
    let api = FakeApi::start(|_| (200, json!({"ok": true})));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), "from-a-file\n").unwrap();
    let root = Root::open(dir.path()).unwrap();
    for (credential, shown) in [
        (Credential::TokenFile("/token".into()), "Bearer from-a-file"),
        (
            Credential::Exec {
                api_version: "client.authentication.k8s.io/v1".into(),
                command: "sh".into(),
                arguments: vec![
                    "-c".into(),
                    "case $KUBERNETES_EXEC_INFO in *ExecCredential*) echo '{\"status\":{\"token\":\"run\"}}';; esac".into(),
                ],
                variables: Vec::new(),
            },
            "Bearer run",
        ),
    ] {
        let ca = api.authority.clone().into_bytes();
        let config = Kubeconfig::new("c", &api.url, ca, "u", credential);
        std::fs::write(dir.path().join("a.conf"), config.write()).unwrap();
        let client = Client::open(&root, "/a.conf").unwrap();
        assert_eq!(client.get("/x").unwrap(), json!({"ok": true}));
        assert_eq!(api.seen.lock().unwrap().pop().unwrap().authorization, shown);
    }
}

#[test]
fn a_wait_says_what_it_saw_last() {
    let mut looks = 0;
    let found = wait_until("three looks are done", Duration::from_secs(30), || {
        looks += 1;
        match looks {
            1 => Err(ApiError::Unreachable { request: "GET /".into(), cause: "refused".into() }),
            2 => Ok(Look::NotYet("two".into())),
            _ => Ok(Look::Ready(looks)),
        }
    });
    assert_eq!(found.unwrap(), 3);
    let late = wait_until::<()>("it is so", Duration::ZERO, || Ok(Look::NotYet("not so".into())));
    let problem = late.unwrap_err();
    assert_eq!((problem.exit(), problem.causes.clone()), (9, vec!["seen last: not so".to_owned()]));
    let refused = wait_until::<()>("x", Duration::from_secs(30), || {
        Err(ApiError::Refused(Refusal { code: 403, ..Refusal::default() }))
    });
    assert_eq!(refused.unwrap_err().exit(), 10);
}
