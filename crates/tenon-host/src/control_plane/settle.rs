//! Hand-over, the final look and the marks on the node.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tenon_core::codes::control_plane as pages;
use tenon_core::control_plane::{BOOTSTRAP_SECRETS, MANIFEST_MARK, Phase, pod};
use tenon_core::problem::Problem;
use tenon_core::stages::kubelet::control_plane_taint;

use super::{Bootstrap, objects, pods};
use crate::cluster::{ApiError, Client, Look, Patch, wait_until};
use crate::root::Root;
use crate::stages::{Check, Run, Step};

const DEADLINE: Duration = Duration::from_secs(5 * 60);
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const PODS: &str = "/api/v1/namespaces/kube-system/pods";
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// Where kubeadm looks for the runtime of a node that it upgrades, up to 1.35.
const RUNTIME: (&str, &str) =
    ("kubeadm.alpha.kubernetes.io/cri-socket", "unix:///run/containerd/containerd.sock");
const LABELS: &[&str] = &[CONTROL_PLANE, "node.kubernetes.io/exclude-from-external-load-balancers"];

pub(super) const HAND_OVER: Step<Bootstrap> = Step {
    name: "hand-over",
    check: |bootstrap, run| {
        if bootstrap.direct {
            return Ok(Check::Satisfied("there was no temporary plane".into()));
        }
        let over = !pods::bootstrap_is_written(bootstrap, run.root)?
            && !run.root.exists(BOOTSTRAP_SECRETS)
            && bootstrap_ports(bootstrap)?.iter().all(|port| refuses(*port));
        Ok(match over {
            true => Check::Satisfied("the temporary plane is gone".into()),
            false => Check::Needed,
        })
    },
    apply: |bootstrap, run| {
        pods::remove_bootstrap(bootstrap, run)?;
        wait_until_gone(bootstrap, run.root)?;
        pods::remove_secrets(run.root)
    },
    verify: None,
};

pub(super) const VERIFY: Step<Bootstrap> = Step {
    name: "verify",
    check: |_, _| Ok(Check::Needed),
    apply: |bootstrap, run| look(bootstrap, run),
    verify: Some(|_, _| Ok(())),
};

pub(super) const MARK: Step<Bootstrap> = Step {
    name: "mark",
    check: |bootstrap, run| {
        let node = node(bootstrap, &bootstrap.api(run.root)?)?;
        Ok(match is_marked(&node) {
            true => Check::Satisfied("the node has its label and taint".into()),
            false => Check::Needed,
        })
    },
    apply: |bootstrap, run| mark(bootstrap, run),
    verify: None,
};

fn bootstrap_ports(bootstrap: &Bootstrap) -> Result<Vec<u16>, Problem> {
    let manifests = bootstrap.manifests(Phase::Bootstrap)?;
    let ports = manifests.iter().flat_map(|it| pod::ports(it.component, Phase::Bootstrap));
    Ok(ports.copied().collect())
}

fn refuses(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_err()
}

/// Waits until neither the API nor the ports know the temporary pods any more. The mirror pods
/// are the kubelet's own list as the API shows it.
fn wait_until_gone(bootstrap: &Bootstrap, root: &Root) -> Result<(), Problem> {
    let api = bootstrap.api(root)?;
    let (ports, manifests) = (bootstrap_ports(bootstrap)?, bootstrap.manifests(Phase::Bootstrap)?);
    let what = "the temporary control plane is gone";
    let waited = wait_until(what, bootstrap.patience(DEADLINE), || {
        if let Some(port) = ports.iter().find(|port| !refuses(**port)) {
            return Ok(Look::NotYet(format!("port {port} still answers")));
        }
        for manifest in &manifests {
            let pod = format!("{}-{}", manifest.name(), bootstrap.cluster.node_name);
            if api.find(&format!("{PODS}/{pod}"))?.is_some() {
                return Ok(Look::NotYet(format!("the API still shows {pod}")));
            }
        }
        Ok(Look::Ready(()))
    });
    waited.map_err(|problem| match problem.exit() {
        9 => Problem::new(&pages::STEP_DEADLINE, problem.what.clone())
            .cause(problem.causes.join("; ")),
        _ => problem,
    })
}

/// Looks at the final control plane from outside, as its clients do.
fn look(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    let api = bootstrap.api(run.root)?;
    match objects::nonce(&api)? {
        found if found.as_deref() == run.output("nonce") => {}
        _ => return Err(Problem::new(&pages::NONCE_DIFFERS, "the cluster's nonce is another")),
    }
    for lease in ["kube-controller-manager", "kube-scheduler"] {
        wait_for_renewal(bootstrap, &api, lease)?;
    }
    for manifest in bootstrap.manifests(Phase::Final)? {
        let pod = format!("{PODS}/{}-{}", manifest.name(), bootstrap.cluster.node_name);
        let what = format!("the API shows {} as it was written", manifest.name());
        wait_until(&what, bootstrap.patience(DEADLINE), || {
            let Some(pod) = api.find(&pod)? else { return Ok(Look::NotYet("no such pod".into())) };
            Ok(match pod["metadata"]["annotations"][MANIFEST_MARK] == manifest.digest() {
                true => Look::Ready(()),
                false => Look::NotYet("the pod is of another manifest".into()),
            })
        })?;
    }
    wait_for_node(bootstrap, &api)
}

/// A lease is renewed now, when only the final pods are left to do it. The time in it is compared
/// with itself alone: no clock of ours decides.
fn wait_for_renewal(bootstrap: &Bootstrap, api: &Client, lease: &str) -> Result<(), Problem> {
    let mut first: Option<Value> = None;
    wait_until(&format!("the lease {lease} is renewed"), bootstrap.patience(DEADLINE), || {
        let Some(found) = api.find(&format!("{LEASES}/{lease}"))? else {
            return Ok(Look::NotYet("nobody holds it".into()));
        };
        let (time, holder) = (&found["spec"]["renewTime"], &found["spec"]["holderIdentity"]);
        let held = holder.as_str().is_some_and(|holder| !holder.is_empty());
        match first.get_or_insert_with(|| time.clone()) {
            first if held && first != time => Ok(Look::Ready(())),
            _ => Ok(Look::NotYet("its holder has not renewed it yet".into())),
        }
    })
}

fn node(bootstrap: &Bootstrap, api: &Client) -> Result<Value, ApiError> {
    api.get(&format!("/api/v1/nodes/{}", bootstrap.cluster.node_name))
}

/// The node is registered, and Ready or not ready for want of a pod network only.
fn wait_for_node(bootstrap: &Bootstrap, api: &Client) -> Result<(), Problem> {
    wait_until("the node is registered", bootstrap.patience(DEADLINE), || {
        let path = format!("/api/v1/nodes/{}", bootstrap.cluster.node_name);
        let Some(node) = api.find(&path)? else {
            return Ok(Look::NotYet("the kubelet has not registered it".into()));
        };
        Ok(node_verdict(&node).map_or_else(Look::NotYet, Look::Ready))
    })
}

/// Ok for a node that is Ready, or waits for nothing but its pod network.
pub(super) fn node_verdict(node: &Value) -> Result<(), String> {
    let conditions = node["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().find(|it| it["type"] == "Ready");
    let Some(ready) = ready else { return Err("the node says nothing about itself yet".into()) };
    let message = ready["message"].as_str().unwrap_or_default();
    let network =
        message.contains("NetworkPluginNotReady") || message.contains("NetworkReady=false");
    match ready["status"] == "True" || network {
        true => Ok(()),
        false => Err(format!("the node is not ready: {message}")),
    }
}

fn taints(node: &Value) -> Vec<Value> {
    node["spec"]["taints"].as_array().cloned().unwrap_or_default()
}

fn is_marked(node: &Value) -> bool {
    let metadata = &node["metadata"];
    LABELS.iter().all(|label| metadata["labels"][*label].is_string())
        && metadata["annotations"][RUNTIME.0].is_string()
        && taints(node).iter().any(|taint| taint["key"] == CONTROL_PLANE)
}

/// The labels that a kubelet may not give to itself, the taint, and a note for kubeadm.
fn mark(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    let api = bootstrap.api(run.root)?;
    let node = node(bootstrap, &api)?;
    let mut taints = taints(&node);
    if !taints.iter().any(|taint| taint["key"] == CONTROL_PLANE) {
        taints.push(control_plane_taint());
    }
    let labels: serde_json::Map<String, Value> =
        LABELS.iter().map(|label| ((*label).to_owned(), json!(""))).collect();
    let patch = json!({
        "metadata": {
            "labels": labels,
            "annotations": {RUNTIME.0: RUNTIME.1},
            // Taints are one list: nobody may have changed it since it was read.
            "resourceVersion": node["metadata"]["resourceVersion"],
        },
        "spec": {"taints": taints},
    });
    let path = format!("/api/v1/nodes/{}", bootstrap.cluster.node_name);
    api.patch(&path, Patch::Merge, &patch)?;
    Ok(())
}
