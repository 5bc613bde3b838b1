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
    let mut looks = 0;
    let late = wait_until::<()>("it is so", Duration::from_millis(700), || {
        looks += 1;
        Ok(Look::NotYet(format!("look {looks}")))
    });
    assert_eq!(late.unwrap_err().causes, ["seen first: look 1", "seen last: look 2"]);
    let refused = wait_until::<()>("x", Duration::from_secs(30), || {
        Err(ApiError::Refused(Refusal { code: 403, ..Refusal::default() }))
    });
    assert_eq!(refused.unwrap_err().exit(), 10);
}

#[test]
fn tokens_are_made_listed_and_deleted() {
    use tenon_core::bootstrap_token::secret::Wish;
    let api = FakeApi::start(|seen| match seen.method.as_str() {
        "POST" => (201, seen.body.clone()),
        "DELETE" if seen.path.contains("bootstrap-token-gone00") => refuse(404, "NotFound"),
        "DELETE" => (200, json!({})),
        _ => (
            200,
            json!({"items": [{"type": "Opaque"}, {"type": "bootstrap.kubernetes.io/token",
            "data": {"token-id": "YWJjZGVm", "usage-bootstrap-signing": "dHJ1ZQ=="}}]}),
        ),
    });
    let client = api.client(&bearer());
    let wish =
        Wish { expires: Some(1_794_700_000), usages: vec!["signing".into()], ..Wish::default() };
    let token = tokens::create(&client, &wish).unwrap();
    let sent = api.seen.lock().unwrap()[0].body.clone();
    assert_eq!(sent["metadata"]["name"], format!("bootstrap-token-{}", token.id));
    assert_eq!(sent["stringData"]["token-secret"], token.secret.expose());
    assert!(sent["stringData"]["expiration"].is_string());
    let listed = tokens::list(&client).unwrap();
    assert_eq!((listed.len(), listed[0].id.as_str()), (1, "abcdef"));
    assert!(tokens::delete(&client, "abcdef").unwrap());
    assert!(!tokens::delete(&client, "gone00").unwrap());
}

#[test]
fn a_taken_id_is_drawn_again() {
    let api = FakeApi::start({
        let count = std::sync::atomic::AtomicUsize::new(0);
        move |seen| match count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => refuse(409, "AlreadyExists"),
            _ => (201, seen.body.clone()),
        }
    });
    tokens::create(&api.client(&bearer()), &Default::default()).unwrap();
    let seen = api.seen.lock().unwrap();
    assert_ne!(seen[0].body["metadata"]["name"], seen[1].body["metadata"]["name"]);
}

mod serving_certificates {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn csr(name: &str, sans: &[&str]) -> Value {
        let mut params = rcgen::CertificateParams::new(
            sans.iter().map(|san| (*san).to_owned()).collect::<Vec<_>>(),
        )
        .unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
        params.distinguished_name.push(rcgen::DnType::CommonName, "system:node:n1");
        let key = rcgen::KeyPair::generate().unwrap();
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        json!({"metadata": {"name": name}, "spec": {
            "signerName": "kubernetes.io/kubelet-serving", "username": "system:node:n1",
            "groups": ["system:nodes"], "usages": ["digital signature", "server auth"],
            "request": STANDARD.encode(pem),
        }})
    }

    #[test]
    fn those_that_follow_the_rules_are_approved_and_no_other() {
        let mut decided = csr("old", &["10.0.0.4"]);
        decided["status"] = json!({"conditions": [{"type": "Denied"}]});
        let list = [csr("good", &["n1.example", "10.0.0.4"]), csr("bad", &["10.0.0.9"]), decided];
        let api = FakeApi::start(move |seen| match seen.path.split('?').next().unwrap() {
            "/api/v1/nodes/n1" => (
                200,
                json!({"status": {"addresses": [
                {"type": "InternalIP", "address": "10.0.0.4"}, {"type": "DNS", "address": "n1.example"}]}}),
            ),
            path if path.ends_with("/approval") => (200, seen.body.clone()),
            path if path.ends_with("/old") => (200, list[2].clone()),
            path if path.ends_with("/bad") => (200, list[1].clone()),
            _ => (200, json!({"items": list})),
        });
        let client = api.client(&bearer());
        let verdicts = approve::serving(&client, &[]).unwrap();
        let shown: Vec<_> =
            verdicts.iter().map(|it| (it.name.as_str(), it.reason.as_deref())).collect();
        assert_eq!(
            shown,
            [("good", None), ("bad", Some("10.0.0.9 is not an address of the node"))]
        );
        let put: Vec<_> =
            api.requests().into_iter().filter(|request| request.starts_with("PUT")).collect();
        assert_eq!(put.len(), 1);
        assert!(put[0].ends_with("/good/approval"));
        assert_eq!(verdicts[1].finding().unwrap().exit(), 1);

        let names = ["bad".to_owned(), "old".to_owned()];
        let verdicts = approve::named(&client, &names).unwrap();
        assert_eq!(verdicts[0].reason, None, "a person may know better");
        assert!(verdicts[1].reason.is_some(), "what was denied stays denied");
    }
}

mod discovery {
    use tenon_core::bootstrap_token::Token;

    use super::super::fake::{TOKEN, cluster, pin, signed_info};
    use super::*;

    fn token() -> Token {
        Token::parse(TOKEN).unwrap()
    }

    #[test]
    fn a_signed_and_pinned_cluster_is_found_with_two_readings() {
        let (api, data) = cluster();
        *data.lock().unwrap() = signed_info(&api.authority, &api.url);
        let found = discover(&api.url, &token(), &[pin(&api)], Duration::from_secs(5)).unwrap();
        assert_eq!(found.server, api.url);
        assert_eq!(found.authority, api.authority.as_bytes());
        assert_eq!(api.requests().len(), 2);
    }

    #[test]
    fn a_wrong_pin_and_a_foreign_authority_are_not_believed() {
        let ((api, data), (other, _)) = (cluster(), cluster());
        *data.lock().unwrap() = signed_info(&api.authority, &api.url);
        let problem = discover(&api.url, &token(), &[pin(&other)], Duration::ZERO).unwrap_err();
        assert_eq!(problem.page.code, "TN10632");

        // Signed and pinned, but the server's own certificate is another CA's.
        *data.lock().unwrap() = signed_info(&other.authority, &api.url);
        let problem = discover(&api.url, &token(), &[pin(&other)], Duration::ZERO).unwrap_err();
        assert_eq!(problem.page.code, "TN09625", "{problem:?}");
    }

    #[test]
    fn a_cluster_that_has_not_signed_yet_is_waited_for() {
        let (api, data) = cluster();
        let look = || discover(&api.url, &token(), &[pin(&api)], Duration::ZERO).unwrap_err();
        let problem = look();
        assert!(problem.causes[0].contains("no cluster-info"), "{problem:?}");
        let mut unsigned = signed_info(&api.authority, &api.url);
        unsigned.as_object_mut().unwrap().remove("jws-kubeconfig-abcdef");
        *data.lock().unwrap() = unsigned;
        let problem = look();
        assert!(problem.causes[0].contains("not signed with token abcdef"), "{problem:?}");
    }
}
