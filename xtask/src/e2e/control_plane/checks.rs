//! What must be true of the cluster, asked from the master with the administrator's certificate.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::machine::Machine;
use super::disks::{MASTER, MASTER_ADDRESS, TOKEN_ID, WORKER};

const PODS: &str = "/api/v1/namespaces/kube-system/pods";
const PLANE: &[&str] = &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// Takes the administrator's certificate and key out of their kubeconfig.
const KEYS: &str = "
import base64, yaml
user = yaml.safe_load(open('/etc/kubernetes/admin.conf'))['users'][0]['user']
for name, key in (('crt', 'client-certificate-data'), ('key', 'client-key-data')):
    open('/root/admin.' + name, 'wb').write(base64.b64decode(user[key]))
";

pub fn keys_for_questions(master: &Machine) -> anyhow::Result<()> {
    master.must(&["python3", "-c", KEYS]).map(drop)
}

/// Asks again and again until there is an answer. A question that fails is asked again.
pub fn wait_until<T>(
    what: &str,
    seconds: u64,
    mut look: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        let seen = look();
        if let Ok(Some(found)) = seen {
            return Ok(found);
        }
        if Instant::now() >= end {
            let cause = seen.err().map_or_else(String::new, |error| format!(": {error:#}"));
            anyhow::bail!("waited {seconds} s until {what}{cause}");
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// Reads an object of the API.
pub fn get(master: &Machine, path: &str) -> anyhow::Result<Value> {
    let url = format!("https://{MASTER_ADDRESS}:6443{path}");
    let answer = master.must(&[
        "curl",
        "-sS",
        "--fail-with-body",
        "--max-time",
        "20",
        "--cacert",
        "/etc/kubernetes/pki/ca.crt",
        "--cert",
        "/root/admin.crt",
        "--key",
        "/root/admin.key",
        &url,
    ])?;
    serde_json::from_str(&answer).with_context(|| format!("the answer to {path}"))
}

pub fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == condition && it["status"] == "True")
}

/// The final plane runs as static pods, the temporary one has left nothing.
pub fn of_the_control_plane(master: &Machine) -> anyhow::Result<usize> {
    static_pods_run(master)?;
    nothing_temporary_is_left(master)?;
    the_node_is_marked(master)?;
    secrets_are_encrypted(master)?;
    discovery_is_signed(master)?;
    modes_are_narrow(master)?;
    kubeadm_would_keep_it(master)?;
    Ok(7)
}

fn static_pods_run(master: &Machine) -> anyhow::Result<()> {
    for name in PLANE {
        wait_until(&format!("{name} is Ready"), 60, || {
            let pod = get(master, &format!("{PODS}/{name}-{MASTER}"))?;
            let mark = &pod["metadata"]["annotations"]["tenon.dev/manifest"];
            ensure!(
                mark.as_str().is_some_and(|mark| mark.starts_with("sha256:")),
                "{name}: {mark}"
            );
            Ok(is_true(&pod, "Ready").then_some(()))
        })?;
    }
    let pods = get(master, PODS)?;
    let names = pods["items"].as_array().into_iter().flatten().map(|pod| &pod["metadata"]["name"]);
    let temporary: Vec<_> = names
        .filter(|name| name.as_str().is_some_and(|name| name.starts_with("bootstrap-")))
        .collect();
    ensure!(temporary.is_empty(), "left over: {temporary:?}");
    Ok(())
}

fn nothing_temporary_is_left(master: &Machine) -> anyhow::Result<()> {
    let manifests = master.must(&["ls", "/etc/kubernetes/manifests"])?;
    let expected: String = PLANE.iter().map(|name| format!("{name}.yaml\n")).collect();
    ensure!(manifests == expected, "static pods: {manifests}");
    master.must(&["test", "!", "-e", "/etc/kubernetes/bootstrap-secrets"])?;
    let listening = master.must(&["ss", "-ltn"])?;
    for port in [":6444 ", ":10267 "] {
        ensure!(!listening.contains(port), "somebody listens on {port}: {listening}");
    }
    ensure!(listening.contains(":6443 "), "nobody listens on 6443: {listening}");
    let endpoints = get(master, "/api/v1/namespaces/default/endpoints/kubernetes")?;
    let ports = &endpoints["subsets"][0]["ports"];
    ensure!(ports[0]["port"] == 6443 && ports[1].is_null(), "the Service knows {ports}");
    Ok(())
}

fn the_node_is_marked(master: &Machine) -> anyhow::Result<()> {
    let node = get(master, &format!("/api/v1/nodes/{MASTER}"))?;
    let role = "node-role.kubernetes.io/control-plane";
    ensure!(node["metadata"]["labels"][role] == "", "no label: {}", node["metadata"]["labels"]);
    let taints = node["spec"]["taints"].as_array().context("no taints")?;
    let ours = json!({"key": role, "effect": "NoSchedule"});
    ensure!(taints.contains(&ours), "no taint: {taints:?}");
    master.must(&["test", "-e", "/var/lib/tenon/done/bootstrap"])?;
    master.must(&["test", "!", "-e", "/var/lib/tenon/trigger/bootstrap"]).map(drop)
}

/// The value of the token's Secret as etcd holds it.
fn secrets_are_encrypted(master: &Machine) -> anyhow::Result<()> {
    let script = format!(
        "key=$(printf %s /registry/secrets/kube-system/bootstrap-token-{TOKEN_ID} | base64 -w0)
         cd /etc/kubernetes/pki/etcd
         curl -sS --fail --cacert ca.crt --cert healthcheck-client.crt --key healthcheck-client.key \
             --data '{{\"key\": \"'$key'\"}}' https://127.0.0.1:2379/v3/kv/range |
         python3 -c 'import base64, json, sys; print(base64.b64decode(json.load(sys.stdin)[\"kvs\"][0][\"value\"])[:40])'"
    );
    let value = master.must(&["sh", "-c", &script])?;
    // Python writes bytes in either quotes, by which of them are among the bytes.
    let bytes = value.trim_start_matches('b').trim_start_matches(['\'', '"']);
    ensure!(bytes.starts_with("k8s:enc:secretbox:v1:key1:"), "in etcd: {value}");
    let secret =
        get(master, &format!("/api/v1/namespaces/kube-system/secrets/bootstrap-token-{TOKEN_ID}"))?;
    ensure!(secret["type"] == "bootstrap.kubernetes.io/token", "{}", secret["type"]);
    ensure!(secret["data"]["expiration"].is_string(), "the token has no end");
    Ok(())
}

/// A node without any credential reads where the cluster is, and finds it signed for its token.
fn discovery_is_signed(master: &Machine) -> anyhow::Result<()> {
    let url = format!(
        "https://{MASTER_ADDRESS}:6443/api/v1/namespaces/kube-public/configmaps/cluster-info"
    );
    wait_until("cluster-info is signed", 60, || {
        let answer = master.must(&["curl", "-sSk", "--fail", "--max-time", "20", &url])?;
        let found: Value = serde_json::from_str(&answer)?;
        let signed = found["data"][format!("jws-kubeconfig-{TOKEN_ID}")].is_string();
        Ok((signed && found["data"]["kubeconfig"].is_string()).then_some(()))
    })
}

/// What an upgrade by kubeadm would take away from a static pod and may: the claim's name, and
/// what only Tenon writes.
const LOST: &[&str] = &["tenon.dev/manifest", "--initial-cluster-token="];

/// kubeadm reads the cluster's config as its own, and its next upgrade would keep every flag.
fn kubeadm_would_keep_it(master: &Machine) -> anyhow::Result<()> {
    let version = master.must(&["kubeadm", "version", "-o", "short"])?;
    let config = "--kubeconfig=/etc/kubernetes/admin.conf";
    let diff = master.must(&["kubeadm", "upgrade", "diff", version.trim(), config])?;
    // Both lay lists out in their own way, so that every flag is in the difference.
    ensure!(diff.contains("--encryption-provider-config="), "kubeadm compared nothing: {diff}");
    let lost = diff.lines().filter(|line| line.starts_with('-') && line.contains("- --"));
    let lost: Vec<_> = lost.filter(|line| !LOST.iter().any(|known| line.contains(known))).collect();
    // A flag that moved is taken away and added again.
    let stays = |line: &&&str| {
        !diff.lines().any(|other| {
            other.strip_prefix('+').map(str::trim) == line.strip_prefix('-').map(str::trim)
        })
    };
    let lost: Vec<_> = lost.iter().filter(stays).collect();
    ensure!(lost.is_empty(), "an upgrade would lose {lost:#?}\n{diff}");
    Ok(())
}

fn modes_are_narrow(master: &Machine) -> anyhow::Result<()> {
    let script = "find /etc/kubernetes /var/lib/tenon \\( -name '*.key' -o -name '*.conf' -o \
                  -path '*/manifests/*' -o -path '*/encryption/*' -o -name state.json \\) -type f \
                  -perm /077 -print";
    let wide = master.must(&["sh", "-c", script])?;
    ensure!(wide.is_empty(), "others may read {wide}");
    Ok(())
}

pub fn version_is(master: &Machine, start: &str) -> anyhow::Result<()> {
    let version = &get(master, "/version")?["gitVersion"];
    ensure!(version.as_str().is_some_and(|text| text.starts_with(start)), "it is {version}");
    Ok(())
}

/// The worker has a certificate of its own and nothing of an administrator.
pub fn of_the_worker(master: &Machine, worker: &Machine) -> anyhow::Result<usize> {
    let pem = "/var/lib/kubelet/pki/kubelet-client-current.pem";
    let subject =
        worker.must(&["sh", "-c", &format!("test -s {pem} && grep -c CERTIFICATE {pem}")])?;
    ensure!(!subject.trim().is_empty(), "the kubelet has no certificate");
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let requests = get(master, path)?;
    let client = requests["items"].as_array().into_iter().flatten().find(|request| {
        request["spec"]["signerName"] == "kubernetes.io/kube-apiserver-client-kubelet"
            && request["spec"]["username"] == format!("system:bootstrap:{TOKEN_ID}")
    });
    let client = client.context("nobody asked for a certificate with the token")?;
    ensure!(is_true(client, "Approved"), "the request is not approved: {client:#}");
    let admin =
        worker.must(&["sh", "-c", "find /etc/kubernetes -name '*admin*' -o -name '*.key'"])?;
    ensure!(admin.is_empty(), "the worker holds {admin}");
    let node = get(master, &format!("/api/v1/nodes/{WORKER}"))?;
    let address = &node["status"]["addresses"][0]["address"];
    ensure!(address == super::WORKER_ADDRESS, "the worker's address is {address}");
    Ok(2)
}

/// Everything of the files is there, labelled and ready, and a second run does nothing.
pub fn of_the_add_ons(master: &Machine) -> anyhow::Result<usize> {
    let deployment = get(master, "/apis/apps/v1/namespaces/shop/deployments/front")?;
    ensure!(deployment["status"]["availableReplicas"] == 2, "{}", deployment["status"]);
    ensure!(deployment["metadata"]["labels"]["tenon/addon"] == "30-front", "no label");
    let widget = get(master, "/apis/lab.tenon.dev/v1/namespaces/shop/widgets/first")?;
    ensure!(widget["spec"]["size"] == 3, "{widget}");
    let pods = get(master, "/api/v1/namespaces/shop/pods")?;
    let places = pods["items"].as_array().into_iter().flatten().map(|pod| &pod["spec"]["nodeName"]);
    ensure!(
        places.clone().all(|place| place == WORKER),
        "they run on {:?}",
        places.collect::<Vec<_>>()
    );
    master.must(&["test", "-e", "/var/lib/tenon/done/addons"])?;
    let answer = master.must(&["tenon", "stage", "addons", "--output", "json"])?;
    let answer: Value = serde_json::from_str(&answer)?;
    ensure!(answer["changed"] == false, "a second run did something: {answer}");
    Ok(3)
}
