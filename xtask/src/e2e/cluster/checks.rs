//! What must be true of a node that joined.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::machine::Machine;
use super::super::metadata::REGION;
use super::control_plane::ControlPlane;
use super::shape::Shape;

const CONFIG: &str = "/etc/kubernetes/kubelet/config.json";
const DROP_IN: &str = "/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf";
const POD: &str = "hello";
const FILES: &str = "find /etc/kubernetes /etc/containerd /etc/eks /var/lib/kubelet/kubeconfig \
                     -type f -printf '%p %m %i %T@\\n' | sort";

/// Waits until the API says that the node is Ready.
pub fn becomes_ready(plane: &mut ControlPlane, shape: &Shape) -> anyhow::Result<()> {
    plane.wait_until("the node is Ready", 120, |plane| {
        let Ok(object) = plane.get_json(&node_path(shape.node())) else { return Ok(None) };
        Ok(is_true(&object, "Ready").then_some(()))
    })
}

/// Everything about the Node object and the kubelet's effective config.
pub fn of_the_node(
    plane: &mut ControlPlane,
    machine: &Machine,
    shape: &Shape,
) -> anyhow::Result<usize> {
    let node = shape.node();
    serving_certificate(plane, node)?;
    let object = plane.get_json(&node_path(node))?;
    let written: Value = serde_json::from_str(&machine.must(&["cat", CONFIG])?)?;
    labels_and_taints(&object)?;
    identity(&object, shape)?;
    capacity(&object, &written)?;
    effective_config(plane, machine, shape, written)?;
    cgroups(machine, shape)?;
    runtime(&object, shape)?;
    proxy(machine, shape)?;
    Ok(8)
}

fn node_path(node: &str) -> String {
    format!("/api/v1/nodes/{node}")
}

fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|found| found["type"] == condition && found["status"] == "True")
}

/// The kubelet asks for a serving certificate; it is approved as an administrator would.
pub fn serving_certificate(plane: &mut ControlPlane, node: &str) -> anyhow::Result<()> {
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let mut request = plane.wait_until("the kubelet asks for a certificate", 60, |plane| {
        let list = plane.get_json(path)?;
        let requests = list["items"].as_array().cloned().unwrap_or_default();
        Ok(requests.into_iter().find(|request| {
            request["spec"]["signerName"] == "kubernetes.io/kubelet-serving"
                && request["spec"]["username"] == format!("system:node:{node}")
        }))
    })?;
    let name = request["metadata"]["name"].as_str().context("a request without a name")?.to_owned();
    request["status"]["conditions"] = json!([
        {"type": "Approved", "status": "True", "reason": "Lab", "message": "approved by the lab"}
    ]);
    plane.ask("PUT", &format!("{path}/{name}/approval"), Some(&request))?;
    plane.wait_until("the kubelet serves with its certificate", 60, |plane| {
        Ok(plane.get(&format!("{}/proxy/healthz", node_path(node))).is_ok().then_some(()))
    })
}

fn labels_and_taints(object: &Value) -> anyhow::Result<()> {
    let labels = &object["metadata"]["labels"];
    for (name, value) in [("team", "web"), ("zone.corp/rack", "12")] {
        ensure!(labels[name] == value, "label {name} is {}", labels[name]);
    }
    let taints = object["spec"]["taints"].as_array().context("no taints")?;
    let ours = json!({"key": "dedicated", "value": "lab", "effect": "NoSchedule"});
    ensure!(taints.contains(&ours), "the taint is missing: {taints:?}");
    // No cloud controller runs here, so the kubelet's own mark stays.
    let mark = "node.cloudprovider.kubernetes.io/uninitialized";
    ensure!(taints.iter().any(|taint| taint["key"] == mark), "no external cloud: {taints:?}");
    Ok(())
}

fn identity(object: &Value, shape: &Shape) -> anyhow::Result<()> {
    let provider = format!("aws:///{REGION}a/{}", shape.instance.id);
    let found = &object["spec"]["providerID"];
    ensure!(found == &provider, "providerID is {found}, not {provider}");
    let address = shape.address()?.to_string();
    let addresses = object["status"]["addresses"].as_array().context("no addresses")?;
    let internal = addresses.iter().find(|found| found["type"] == "InternalIP");
    let internal = internal.context("no internal address")?;
    ensure!(internal["address"] == address, "the node's address is {internal}");
    let version = &object["status"]["nodeInfo"]["kubeletVersion"];
    let prefix = format!("v{}.", shape.minor);
    ensure!(version.as_str().is_some_and(|text| text.starts_with(&prefix)), "{version}");
    Ok(())
}

/// What pods may use is what the machine has, less what Tenon reserved and the kubelet keeps free.
fn capacity(object: &Value, written: &Value) -> anyhow::Result<()> {
    let status = &object["status"];
    let pods = written["maxPods"].as_u64().context("no maxPods")?.to_string();
    ensure!(pods == "29", "m5.large runs 29 pods, not {pods}");
    ensure!(status["allocatable"]["pods"] == pods, "pods: {}", status["allocatable"]["pods"]);
    let memory = |value: &Value, unit: &str| -> anyhow::Result<u64> {
        let text = value.as_str().with_context(|| format!("no quantity: {value}"))?;
        let number = text.strip_suffix(unit).with_context(|| format!("{text} is not in {unit}"))?;
        Ok(number.parse()?)
    };
    let total = memory(&status["capacity"]["memory"], "Ki")?;
    let left = memory(&status["allocatable"]["memory"], "Ki")?;
    let reserved = memory(&written["kubeReserved"]["memory"], "Mi")?;
    let eviction = 100;
    let expected = (reserved + eviction) * 1024;
    ensure!(total - left == expected, "{total} - {left} Ki is not {expected}");
    ensure!(reserved == 11 * 29 + 255, "{reserved} Mi are reserved");
    Ok(())
}

/// Every value that Tenon wrote is in effect.
fn effective_config(
    plane: &ControlPlane,
    machine: &Machine,
    shape: &Shape,
    mut written: Value,
) -> anyhow::Result<()> {
    let answer = plane.get_json(&format!("{}/proxy/configz", node_path(shape.node())))?;
    let effective = &answer["kubeletconfig"];
    let drop_in: Value = serde_json::from_str(&machine.must(&["cat", DROP_IN])?)?;
    lay_over(&mut written, &drop_in);
    for field in ["kind", "apiVersion"] {
        written.as_object_mut().context("the config is no object")?.remove(field);
    }
    let mut differences = BTreeMap::new();
    compare("", &written, effective, &mut differences);
    ensure!(differences.is_empty(), "not in effect: {differences:#?}");
    let servers = &effective["clusterDNS"];
    ensure!(*servers == json!([shape.name_server()]), "name servers: {servers}");
    ensure!(effective["imageGCHighThresholdPercent"] == 91, "the user's value is not in effect");
    Ok(())
}

fn lay_over(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (name, value) in over {
                lay_over(base.entry(name).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// Notes each leaf of `written` that `effective` does not have.
fn compare(
    path: &str,
    written: &Value,
    effective: &Value,
    differences: &mut BTreeMap<String, (Value, Value)>,
) {
    if let Value::Object(fields) = written {
        for (name, value) in fields {
            compare(&format!("{path}.{name}"), value, &effective[name], differences);
        }
    } else if written != effective && !is_left_out(written, effective) {
        differences.insert(path.to_owned(), (written.clone(), effective.clone()));
    }
}

/// The kubelet's answer leaves out plain fields whose value is zero, such as `readOnlyPort`.
fn is_left_out(written: &Value, effective: &Value) -> bool {
    effective.is_null() && *written == json!(0)
}

fn cgroups(machine: &Machine, shape: &Shape) -> anyhow::Result<()> {
    let shown = machine.property("kubepods.slice", "ActiveState")?;
    let plain = machine.run(&["test", "-d", "/sys/fs/cgroup/memory/kubepods"])?.status.success();
    ensure!((shown == "active", plain) == (!shape.cgroupfs, shape.cgroupfs), "{shown}, {plain}");
    let group = machine.property("containerd.service", "ControlGroup")?;
    ensure!(group == "/runtime.slice/containerd.service", "containerd runs in {group}");
    Ok(())
}

/// The node runs the containerd that it was given.
fn runtime(object: &Value, shape: &Shape) -> anyhow::Result<()> {
    let Some(containerd) = &shape.containerd else { return Ok(()) };
    let version = &object["status"]["nodeInfo"]["containerRuntimeVersion"];
    let begin = format!("containerd://{}.", containerd.minor);
    ensure!(version.as_str().is_some_and(|text| text.starts_with(&begin)), "it runs {version}");
    Ok(())
}

/// What the kubelet says at error level on a healthy node: of the host (it may not change limits
/// and scores), of the runtime's age, and of the first seconds, when nothing is known yet.
const ALLOWED: &[&str] = &[
    "Failed to set rlimit on max file handles",
    "Failed to ensure process in container with oom score",
    "RuntimeConfig from runtime service failed",
    "Error getting the current node from lister",
    "Failed to get node when trying to set owner ref to the node lease",
    "Skipping pod synchronization",
    "Image garbage collection failed once",
    "Failed to read data from checkpoint",
    "failed to check if we have separate container filesystem",
    "failed to get summary stats",
    "Failed to get system container stats",
    "Error updating node status, will retry",
    "Unable to register mirror pod because node is not registered yet",
    // A pod was just bound, and the API server's authorizer has not seen it yet; it is asked again.
    "no relationship found between node",
];

/// The kubelet of a healthy node has no error to tell that is not on the list.
pub fn of_the_log(machine: &Machine) -> anyhow::Result<usize> {
    let log = machine.must(&["journalctl", "--no-pager", "-o", "cat", "-u", "kubelet.service"])?;
    let is_error = |line: &&str| {
        let mut letters = line.chars();
        letters.next() == Some('E') && letters.take(4).all(|letter| letter.is_ascii_digit())
    };
    let is_new = |line: &&str| !ALLOWED.iter().any(|known| line.contains(known));
    let errors: Vec<_> = log.lines().filter(is_error).filter(is_new).collect();
    ensure!(errors.is_empty(), "the kubelet tells of errors:\n{}", errors.join("\n"));
    Ok(1)
}

/// Both daemons know the proxy, and that the node is Ready shows that they go past it where they
/// must. The values are not in what any user may ask of systemd.
fn proxy(machine: &Machine, shape: &Shape) -> anyhow::Result<()> {
    for unit in ["containerd.service", "kubelet.service"] {
        let process = machine.property(unit, "MainPID")?;
        let environment = machine.must(&["cat", &format!("/proc/{process}/environ")])?;
        let found = |name: &str| {
            let prefix = format!("{name}=");
            environment.split('\0').find_map(|variable| variable.strip_prefix(&prefix))
        };
        ensure!(found("HTTPS_PROXY").is_some_and(|url| url.ends_with(":3128")), "{unit}: no proxy");
        let past = found("NO_PROXY").with_context(|| format!("{unit} has no NO_PROXY"))?;
        for address in [".corp", "169.254.169.254", shape.services(), "10.0.0.0/16"] {
            ensure!(past.split(',').any(|word| word == address), "{unit}: {address} not in {past}");
        }
        let shown = machine.property(unit, "Environment")?;
        ensure!(!shown.contains(":3128"), "{unit} shows its proxy: {shown}");
    }
    Ok(())
}

/// A pod goes through the scheduler, runs, has an address and can be heard.
pub fn of_a_pod(plane: &mut ControlPlane, shape: &Shape) -> anyhow::Result<usize> {
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD},
        "spec": {
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": POD,
                "image": crate::lab::PAUSE_IMAGE,
                "imagePullPolicy": "Never",
                "args": ["hello", "600"],
            }],
        },
    });
    plane.ask("POST", pods, Some(&pod))?;
    let path = format!("{pods}/{POD}");
    let running = plane.wait_until("the pod is Running", 90, |plane| {
        let pod = plane.get_json(&path)?;
        Ok((pod["status"]["phase"] == "Running").then_some(pod))
    })?;
    let place = &running["spec"]["nodeName"];
    ensure!(place == shape.node(), "it runs on {place}");
    let address = running["status"]["podIP"].as_str().unwrap_or_default();
    ensure!(address.starts_with(shape.pods_begin()), "its address is {address:?}");
    plane.wait_until("the pod's log is there", 30, |plane| {
        let log = plane.get(&format!("{path}/log"))?;
        Ok((log == b"hello from the pod\n").then_some(()))
    })?;
    Ok(2)
}

/// What a reboot must not change.
pub struct Before {
    files: String,
    uid: Value,
}

pub fn of_a_reboot_before(
    machine: &Machine,
    plane: &ControlPlane,
    shape: &Shape,
) -> anyhow::Result<Before> {
    let object = plane.get_json(&node_path(shape.node()))?;
    Ok(Before {
        files: machine.must(&["sh", "-c", FILES])?,
        uid: object["metadata"]["uid"].clone(),
    })
}

/// The same node comes back, with the same files, and its pod runs again.
pub fn of_a_reboot_after(
    plane: &mut ControlPlane,
    machine: &Machine,
    shape: &Shape,
    before: &Before,
) -> anyhow::Result<()> {
    let files = machine.must(&["sh", "-c", FILES])?;
    ensure!(files == before.files, "a reboot changed files:\n{}\n{files}", before.files);
    becomes_ready(plane, shape)?;
    let object = plane.get_json(&node_path(shape.node()))?;
    ensure!(object["metadata"]["uid"] == before.uid, "the node registered anew");
    plane.wait_until("the pod runs again", 90, |plane| {
        let pod = plane.get_json(&format!("/api/v1/namespaces/default/pods/{POD}"))?;
        let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_u64();
        let running = pod["status"]["phase"] == "Running" && is_true(&pod, "Ready");
        Ok((running && restarts.is_some_and(|count| count > 0)).then_some(()))
    })
}
