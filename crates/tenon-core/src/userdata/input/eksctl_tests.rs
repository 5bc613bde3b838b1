//! ClusterConfig files as people have them, and as they get them wrong.

use super::*;

const FILE: &str = r#"
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata:
  name: ironman-2022
  region: eu-west-1
  version: "1.33"
  tags: {owner: web}
iam: {withOIDC: true}
nodeGroups:
- name: workers
  amiFamily: AmazonLinux2
  instanceType: m5.large
  desiredCapacity: 2
  maxPodsPerNode: 58
  labels: {team: web, on: "yes"}
  taints: {special: "true:NoSchedule"}
  clusterDNS: 10.100.0.10
  kubeletExtraConfig:
    kubeReserved: {cpu: 300m}
  preBootstrapCommands:
  - echo one
  volumeSize: 100
managedNodeGroups:
- name: rocket
  amiFamily: Bottlerocket
  instanceTypes: [m6g.large, m7g.large]
  taints: [{key: a, value: b, effect: NoExecute}]
  bottlerocket:
    enableAdminContainer: true
    settings: {motd: hello, kubernetes: {max-pods: 20}}
- name: own
  amiFamily: Ubuntu2204
  ami: ami-0123456789abcdef0
"#;

#[test]
fn reads_every_group() {
    let config = read(FILE, "cluster.yaml").unwrap();
    assert_eq!(config.cluster.name.as_deref(), Some("ironman-2022"));
    assert_eq!(config.cluster.version, Some((1, 33)));
    let [workers, rocket, own] = &config.groups[..] else { panic!("three groups") };
    assert_eq!(workers.path, "nodeGroups[0]");
    assert_eq!(workers.family, Family::AmazonLinux2);
    assert_eq!(workers.labels["on"], "yes");
    assert_eq!(workers.taints[0].effect, "NoSchedule");
    assert_eq!(workers.max_pods, Some(58));
    assert_eq!(workers.kubelet_config["kubeReserved"]["cpu"], "300m");
    assert_eq!(workers.launch.volume.size_gib, Some(100));
    assert_eq!(rocket.kind, Kind::Managed);
    assert_eq!(rocket.instance_types, ["m6g.large", "m7g.large"]);
    assert_eq!(rocket.bottlerocket.settings["kubernetes"]["max-pods"].as_integer(), Some(20));
    assert_eq!(own.kind, Kind::ManagedCustom);
}

#[test]
fn mistakes_come_with_line_path_and_suggestion() {
    // (what to replace, with what, code, path of the finding, words of the fix)
    let cases = [
        (
            "maxPodsPerNode: 58",
            "maxPodPerNode: 58",
            "TN03427",
            "nodeGroups[0].maxPodPerNode",
            "maxPodsPerNode",
        ),
        (
            "maxPodsPerNode: 58",
            "maxPodsPerNode: many",
            "TN03428",
            "nodeGroups[0].maxPodsPerNode",
            "",
        ),
        (
            "amiFamily: AmazonLinux2\n",
            "amiFamily: AmazonLinux22\n",
            "TN03410",
            "nodeGroups[0].amiFamily",
            "did you mean",
        ),
        ("amiFamily: Ubuntu2204\n", "volumeSize: 1\n", "TN03411", "managedNodeGroups[1].ami", ""),
        ("ami: ami-0123456789abcdef0", "ami: my-image", "TN03428", "managedNodeGroups[1].ami", ""),
        ("clusterDNS: 10.100.0.10", "clusterDNS: ten", "TN03428", "nodeGroups[0].clusterDNS", ""),
        ("name: own", "name: rocket", "TN03414", "managedNodeGroups[1].name", ""),
        (
            "name: own",
            "launchTemplate: {id: lt-1}\n  name: own",
            "TN03422",
            "managedNodeGroups[1].launchTemplate",
            "",
        ),
        ("eksctl.io/v1alpha5", "eksctl.io/v1alpha4", "TN03425", "apiVersion", ""),
        (
            "enableAdminContainer: true",
            "enableAdminContainer: maybe",
            "TN03428",
            "managedNodeGroups[0].bottlerocket.enableAdminContainer",
            "",
        ),
    ];
    for (old, new, code, path, fix) in cases {
        let findings = read(&FILE.replace(old, new), "cluster.yaml").unwrap_err();
        let problem = &findings[0].problem;
        let place = problem.place.as_ref().unwrap();
        assert_eq!((problem.page.code, place.path.as_str()), (code, path), "{new}");
        assert!(place.line > 0, "{new}");
        assert!(problem.fix_text().contains(fix), "{new}: {}", problem.fix_text());
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = FILE.replace("maxPodsPerNode", "maxPods").replace("clusterDNS", "clusterDns");
    assert_eq!(read(&text, "x").unwrap_err().len(), 2);
}

#[test]
fn one_group_is_chosen_by_name() {
    let groups = read(FILE, "x").unwrap().groups;
    assert_eq!(select(&groups, Some("rocket")).unwrap().path, "managedNodeGroups[0]");
    assert!(select(&groups, None).unwrap_err().details[0].contains("`workers`, `rocket`, `own`"));
    assert!(select(&groups, Some("x")).is_err());
}
