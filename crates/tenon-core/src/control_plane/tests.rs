//! Rules that goldens do not show: patches, add-ons, refusals.

use serde_json::{Value, json};

use super::addons::{self, Readiness};
use super::patch::{self, Patch};
use super::*;
use crate::kube_version::Version;

#[test]
fn only_known_minors_are_started() {
    for minor in 33..=36 {
        assert!(Cluster::release(Version::new(1, minor, 0)).is_ok());
    }
    for version in [Version::new(1, 32, 9), Version::new(1, 37, 0), Version::new(2, 34, 0)] {
        assert_eq!(Cluster::release(version).unwrap_err().exit(), 3);
    }
}

fn patched(name: &str, text: &str) -> Result<Value, Problem> {
    let mut pod = json!({
        "metadata": {"labels": {"a": "1", "b": "2"}},
        "spec": {
            "containers": [{"name": "etcd", "command": ["etcd", "--v=1"], "env": [{"name": "A", "value": "1"}]}],
            "volumes": [{"name": "data"}, {"name": "certs"}],
        },
    });
    for patch in patch::read(name, text)? {
        patch::apply(&patch, &mut pod)?;
    }
    Ok(pod)
}

#[test]
fn a_merge_replaces_lists_and_removes_by_null() {
    let pod =
        patched("etcd+merge.yaml", "metadata: {labels: {a: null}}\nspec: {volumes: []}").unwrap();
    assert_eq!(pod["metadata"]["labels"], json!({"b": "2"}));
    assert_eq!(pod["spec"]["volumes"], json!([]));
    assert_eq!(pod["spec"]["containers"][0]["name"], "etcd");
}

#[test]
fn a_strategic_merge_knows_the_keys_of_lists() {
    let text = "spec:
  containers: [{name: etcd, command: [etcd], env: [{name: A, value: '2'}, {name: B, value: x}]}]
  volumes: [{name: data, $patch: delete}, {name: more}]
";
    let pod = patched("etcd1.yaml", text).unwrap();
    let container = &pod["spec"]["containers"][0];
    assert_eq!(container["command"], json!(["etcd"]));
    assert_eq!(container["env"], json!([{"name": "A", "value": "2"}, {"name": "B", "value": "x"}]));
    assert_eq!(pod["spec"]["volumes"], json!([{"name": "certs"}, {"name": "more"}]));
    for bad in ["spec: {$patch: replace}", "spec: {containers: [{image: x}]}"] {
        assert_eq!(
            patched("etcd.yaml", bad).unwrap_err().page.slug,
            "patch-does-not-apply",
            "{bad}"
        );
    }
}

#[test]
fn json_patches_follow_the_rfc() {
    let text = r#"[
        {"op": "test", "path": "/spec/volumes/0/name", "value": "data"},
        {"op": "add", "path": "/spec/containers/0/command/-", "value": "--x"},
        {"op": "add", "path": "/spec/volumes/1", "value": {"name": "middle"}},
        {"op": "replace", "path": "/metadata/labels/a", "value": "9"},
        {"op": "move", "from": "/metadata/labels/b", "path": "/metadata/labels/c~1d"},
        {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/name"},
        {"op": "remove", "path": "/spec/volumes/0"}
    ]"#;
    let pod = patched("etcd0+json.json", text).unwrap();
    assert_eq!(pod["spec"]["containers"][0]["command"], json!(["etcd", "--v=1", "--x"]));
    assert_eq!(pod["spec"]["volumes"], json!([{"name": "middle"}, {"name": "certs"}]));
    assert_eq!(pod["metadata"], json!({"labels": {"a": "9", "c/d": "2"}, "name": "9"}));
    for bad in [
        r#"{"op": "add"}"#,
        r#"[{"op": "remove", "path": "/spec/none"}]"#,
        r#"[{"op": "add", "path": "/spec/volumes/9", "value": 1}]"#,
        r#"[{"op": "test", "path": "/kind", "value": "Pod"}]"#,
        r#"[{"op": "turn", "path": "/kind"}]"#,
    ] {
        let problem = patched("etcd+json.yaml", bad).unwrap_err();
        assert_eq!(problem.page.slug, "patch-does-not-apply", "{bad}");
    }
}

#[test]
fn a_patch_file_is_named_after_what_it_patches() {
    let target =
        |name: &str| patch::read(name, "a: b").map(|list: Vec<Patch>| list[0].target.clone());
    assert_eq!(target("kube-apiserver.yaml").unwrap(), "kube-apiserver");
    assert_eq!(target("kube-scheduler12a+json.json").unwrap(), "kube-scheduler");
    for name in
        ["kubelet.yaml", "etcd+other.yaml", "etcd.txt", "kube-apiserver_1.yaml", "+merge.yaml"]
    {
        assert_eq!(target(name).unwrap_err().page.slug, "bad-patch-name", "{name}");
    }
}

#[test]
fn addons_are_ordered_labelled_and_taken_apart() {
    let mut all = addons::read("20-b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n---\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: web}\n").unwrap();
    let list = "apiVersion: v1\nkind: List\nitems:\n  - {apiVersion: v1, kind: Service, metadata: {name: s, labels: {x: web}}}\n  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: c}}\n";
    all.extend(addons::read("dir/10 a.yaml", list).unwrap());
    addons::order(&mut all);
    let names: Vec<_> = all.iter().map(addons::Addon::name).collect();
    assert_eq!(names, ["web", "c", "b", "s"]);
    assert_eq!(all[3].object["metadata"]["labels"], json!({"x": "web", "tenon/addon": "10-a"}));
    assert_eq!(all[0].title(), "Namespace web of 20-b.yaml");
}

#[test]
fn a_document_that_is_no_object_is_refused_by_its_place() {
    for (text, slug) in [
        ("kind: A\nmetadata: {name: x}", "bad-manifest"),
        ("apiVersion: v1\nkind: A\nmetadata: {}", "bad-manifest"),
        ("just text", "bad-manifest"),
        ("a: [", "bad-syntax"),
    ] {
        let problem = addons::read("x.yaml", text).unwrap_err();
        assert_eq!((problem.page.slug, problem.exit()), (slug, 3), "{text}");
    }
}

#[test]
fn ready_means_the_same_generation_in_full() {
    let deployment = |seen: u32, updated: u32, available: u32, all: u32| {
        addons::readiness(&json!({
            "kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 2},
            "status": {"observedGeneration": seen, "updatedReplicas": updated,
                       "availableReplicas": available, "replicas": all},
        }))
    };
    assert_eq!(deployment(2, 2, 2, 2), Readiness::Ready);
    for (seen, updated, available, all) in [(1, 2, 2, 2), (2, 1, 2, 2), (2, 2, 1, 2), (2, 2, 2, 3)]
    {
        assert!(matches!(deployment(seen, updated, available, all), Readiness::Waiting(_)));
    }
    let conditioned = |kind: &str, name: &str, status: &str, note: Value| {
        addons::readiness(&json!({
            "kind": kind, "metadata": {"annotations": note},
            "status": {"conditions": [{"type": name, "status": status, "reason": "R"}]},
        }))
    };
    let none = || json!({});
    assert_eq!(conditioned("Job", "Complete", "True", none()), Readiness::Ready);
    assert!(matches!(conditioned("Job", "Failed", "True", none()), Readiness::Broken(_)));
    assert!(matches!(
        conditioned("APIService", "Available", "False", none()),
        Readiness::Waiting(_)
    ));
    assert_eq!(
        conditioned("CustomResourceDefinition", "Established", "True", none()),
        Readiness::Ready
    );
    let when = || json!({"tenon/ready-when": "Synced"});
    assert_eq!(conditioned("Thing", "Synced", "True", when()), Readiness::Ready);
    let waiting = Readiness::Waiting("condition Synced is not true: R".into());
    assert_eq!(conditioned("Thing", "Synced", "False", when()), waiting);
    assert_eq!(addons::readiness(&json!({"kind": "Thing"})), Readiness::Ready);
    let set = json!({"kind": "DaemonSet", "status": {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 1}});
    assert_eq!(addons::readiness(&set), Readiness::Waiting("numberAvailable is 1 of 2".into()));
}
