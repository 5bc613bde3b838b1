//! Probes against servers on loopback: each layer is told from the others.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tenon_core::doctor::{Options as Question, Tcp, Tls, Trust, examine};

use super::reach::{Goal, Proxy, reach};
use super::*;
use crate::cluster::fake::{FakeApi, Seen};

const HERE: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST)];

fn port(url: &str) -> u16 {
    url.rsplit(':').next().unwrap().parse().unwrap()
}

fn goal<'a>(port: u16, authority: Option<&'a [u8]>) -> Goal<'a> {
    let path = Some("/livez");
    Goal { host: "127.0.0.1", port, addresses: HERE, proxy: None, authority, path }
}

fn api() -> FakeApi {
    FakeApi::start(|_| (401, json!({"kind": "Status", "code": 401})))
}

#[test]
fn trust_is_judged_without_stopping_the_connection() {
    let (api, other) = (api(), api());
    for (host, authority, trust) in [
        ("127.0.0.1", Some(&api.authority), Trust::Good),
        ("127.0.0.1", Some(&other.authority), Trust::UnknownAuthority),
        ("127.0.0.2", Some(&api.authority), Trust::WrongName),
        ("127.0.0.1", None, Trust::NoAuthority),
    ] {
        let authority = authority.map(|pem| pem.as_bytes());
        let (found, answer) = reach(&Goal { host, ..goal(port(&api.url), authority) });
        assert_eq!((found.tcp, found.tls), (Tcp::Connected, Some(Tls::Up)), "{found:?}");
        assert_eq!(found.trust, Some(trust), "{host}");
        assert_eq!(found.chain[0].names, ["127.0.0.1"]);
        assert_eq!(answer.unwrap().status, 401);
    }
}

#[test]
fn a_closed_port_and_a_server_without_tls_differ() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 400 no\r\n\r\n");
        }
    });
    let (found, _) = reach(&goal(plain, None));
    assert_eq!((found.tcp, found.tls), (Tcp::Connected, Some(Tls::NotTls)), "{found:?}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert_eq!(reach(&goal(closed, None)).0.tcp, Tcp::Refused);
    assert_eq!(reach(&Goal { addresses: &[], ..goal(closed, None) }).0.tcp, Tcp::NoAddress);
}

/// A proxy that answers `status` and, if that is 200, passes everything on.
fn proxy(status: u16) -> Proxy {
    proxy_to(status, None).0
}

/// The same, to a port of its own choice; what it was asked for is counted.
fn proxy_to(status: u16, port: Option<u16>) -> (Proxy, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://me:secret@{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::Relaxed);
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && client.read_exact(&mut byte).is_ok() {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let word = "proxy-authorization: basic bwu6c2vjcmv0";
            assert!(head.to_ascii_lowercase().contains(word), "{head}");
            let target = head.split_whitespace().nth(1).unwrap();
            let target = port.map_or_else(|| target.to_owned(), |port| format!("127.0.0.1:{port}"));
            write!(client, "HTTP/1.1 {status} x\r\n\r\n").unwrap();
            if status == 200 {
                let server = TcpStream::connect(target).unwrap();
                std::thread::spawn(move || pass_on(client, server));
            }
        }
    });
    (Proxy::parse(&url).unwrap(), asked)
}

fn pass_on(client: TcpStream, server: TcpStream) {
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
    let (mut from, mut to) = (server, client);
    let _ = std::io::copy(&mut from, &mut to);
}

#[test]
fn a_proxy_opens_a_tunnel_or_says_no() {
    let api = api();
    let authority = Some(api.authority.as_bytes());
    for (status, tcp, tls) in [(200, Tcp::Connected, Some(Tls::Up)), (407, Tcp::ProxyRefused, None)]
    {
        let proxy = proxy(status);
        let (found, _) = reach(&Goal { proxy: Some(&proxy), ..goal(port(&api.url), authority) });
        assert_eq!((found.tcp, found.tls), (tcp, tls), "{found:?}");
    }
}

/// A node whose kubeconfig leads to the fake API server.
fn node(api: &FakeApi) -> Snapshot {
    let mut node = Snapshot { kind: Kind::Live, now_us: now_us(), ..Snapshot::default() };
    let kubeconfig = json!({
        "clusters": [{"name": "c", "cluster": {
            "server": api.url, "certificate-authority": "/etc/kubernetes/pki/ca.crt",
        }}],
    });
    let files = [
        ("/etc/kubernetes/pki/ca.crt", api.authority.clone()),
        ("/var/lib/kubelet/kubeconfig", kubeconfig.to_string()),
        ("/etc/eks/kubelet/environment", "A_ARGS=--hostname-override=node-1\n".to_owned()),
        ("/proc/uptime", "4000.00 1.00\n".to_owned()),
    ];
    node.files = files.map(|(path, text)| (path.to_owned(), text)).into();
    node
}

fn answers(seen: &Seen) -> (u16, Value) {
    match seen.path.as_str() {
        "/livez" => (200, json!("ok")),
        "/version" => (200, json!({"gitVersion": "v1.34.2"})),
        "/api/v1/nodes/node-1" => {
            let condition = json!({"type": "Ready", "status": "False", "message": "cni plugin not initialized"});
            (200, json!({"spec": {"providerID": "x"}, "status": {"conditions": [condition]}}))
        }
        _ => (
            201,
            json!({"status": {"userInfo": {
                "username": "system:node:node-1", "groups": ["system:nodes"],
            }}}),
        ),
    }
}

#[test]
fn the_chain_is_walked_with_the_kubelets_own_credentials() {
    let api = FakeApi::start(answers);
    let mut node = node(&api);
    let token = json!({"clusters": [{"name": "c", "cluster": {"server": api.url,
        "certificate-authority-data": base64(&api.authority)}}],
        "users": [{"name": "u", "user": {"token": "opaque"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, token.to_string()).unwrap();
    node.files.insert(path.display().to_string(), token.to_string());
    let flags = format!("A_ARGS=--hostname-override=node-1 --kubeconfig={}\n", path.display());
    node.files.insert("/etc/eks/kubelet/environment".into(), flags);
    let source = Source::live().unwrap();
    probes::run(&source, &mut node, Instant::now() + Duration::from_secs(20)).unwrap();
    let probes = &node.probes;
    assert_eq!(probes.direct.as_ref().unwrap().trust, Some(Trust::Good), "{probes:?}");
    assert_eq!(probes.credentials.as_ref().unwrap().kind, "token");
    assert_eq!(probes.identity.as_ref().unwrap().user, "system:node:node-1");
    assert_eq!(probes.node.as_ref().unwrap().ready, Some(false));
    assert_eq!(probes.server_version.as_deref(), Some("v1.34.2"));
    assert!(api.seen.lock().unwrap().iter().any(|seen| seen.authorization == "Bearer opaque"));
    let report = examine(&node, &Question::default());
    assert_eq!(report.state.name(), "joined-not-ready");
    assert_eq!(report.findings[0].cause.number, 26, "{}", report.text(true));
}

/// Where the kubelet needs a proxy, its credentials are tried through it: nothing listens at the
/// address of the kubeconfig, and the proxy leads to the API server.
#[test]
fn credentials_are_tried_on_the_kubelets_own_way() {
    let api = FakeApi::start(answers);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = format!("https://127.0.0.1:{closed}");
    let kubeconfig = json!({"clusters": [{"name": "c", "cluster": {"server": server,
        "certificate-authority-data": base64(&api.authority)}}],
        "users": [{"name": "u", "user": {"token": "opaque"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig").display().to_string();
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    let mut node = node(&api);
    node.files.insert(path.clone(), kubeconfig.to_string());
    let flags = format!("A_ARGS=--hostname-override=node-1 --kubeconfig={path}\n");
    node.files.insert("/etc/eks/kubelet/environment".into(), flags);
    let mut lane = probes::Api::of(&node).unwrap();
    let (proxy, asked) = proxy_to(200, Some(port(&api.url)));
    (lane.proxy, lane.uses_proxy) = (Some(proxy), true);
    lane.ask()(&mut node.probes);
    let probes = &node.probes;
    assert_eq!(probes.direct.as_ref().unwrap().tcp, Tcp::Refused);
    assert_eq!(probes.identity.as_ref().unwrap().user, "system:node:node-1", "{probes:?}");
    assert!(asked.load(Ordering::Relaxed) >= 2, "the probe and the client");
    // Without need of it, nothing goes through the proxy but the probe.
    lane.uses_proxy = false;
    lane.ask()(&mut node.probes);
    assert!(node.probes.credentials.is_none(), "{:?}", node.probes);
}

/// The kubeconfig that Tenon writes: the CA by path, a program for the token.
#[test]
fn the_credential_program_of_the_kubeconfig_is_run() {
    let api = FakeApi::start(answers);
    let mut node = node(&api);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("ca.crt"), &api.authority).unwrap();
    let credential = json!({"kind": "ExecCredential", "status": {"token": "from-program"}});
    let kubeconfig = format!(
        "apiVersion: \"v1\"\nkind: \"Config\"\nclusters:\n  - name: \"kubernetes\"\n    cluster:\n      \
         certificate-authority: \"{}\"\n      server: \"{}\"\ncurrent-context: \"kubelet\"\ncontexts:\n  \
         - name: \"kubelet\"\n    context:\n      cluster: \"kubernetes\"\n      user: \"kubelet\"\nusers:\n  \
         - name: \"kubelet\"\n    user:\n      exec:\n        apiVersion: \"client.authentication.k8s.io/v1beta1\"\n        \
         command: \"echo\"\n        args:\n          - '{credential}'\n",
        at("ca.crt"),
        api.url,
    );
    std::fs::write(at("kubeconfig"), &kubeconfig).unwrap();
    node.files.insert(at("ca.crt"), api.authority.clone());
    node.files.insert(at("kubeconfig"), kubeconfig);
    let flags = format!("A_ARGS=--hostname-override=node-1 --kubeconfig={}\n", at("kubeconfig"));
    node.files.insert("/etc/eks/kubelet/environment".into(), flags);
    let source = Source::live().unwrap();
    probes::run(&source, &mut node, Instant::now() + Duration::from_secs(20)).unwrap();
    let probes = &node.probes;
    assert!(probes.credentials.as_ref().unwrap().usable, "{probes:?}");
    assert_eq!(probes.identity.as_ref().unwrap().user, "system:node:node-1");
    assert_eq!(examine(&node, &Question::default()).state.name(), "joined-not-ready");
    let seen = api.seen.lock().unwrap();
    assert!(seen.iter().any(|seen| seen.authorization == "Bearer from-program"));
}

#[test]
fn a_wrong_ca_is_proven_by_the_probe_alone() {
    let (api, other) = (api(), api());
    let mut node = node(&api);
    node.files.insert("/etc/kubernetes/pki/ca.crt".into(), other.authority.clone());
    let source = Source::live().unwrap();
    probes::run(&source, &mut node, Instant::now() + Duration::from_secs(20)).unwrap();
    let report = examine(&node, &Question::default());
    assert_eq!(report.findings[0].cause.number, 7, "{}", report.text(true));
    assert!(api.seen.lock().unwrap().iter().all(|seen| seen.authorization.is_empty()));
}

fn base64(text: &str) -> String {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(text)
}
