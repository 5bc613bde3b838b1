//! The kubelet's config and arguments: gates, order, conflicts.

use serde_json::{Value, json};

use super::*;
use crate::config::{ConfigMode, Fips, Flag, Taint};
use crate::plan::kubelet::{CONFIG_PATH, DROP_IN_PATH, ENVIRONMENT_PATH};

fn document(plan: &Plan) -> Value {
    serde_json::from_str(&text(plan, CONFIG_PATH)).unwrap()
}

fn at_version(version: &str, change: impl FnOnce(&mut Config, &mut Facts)) -> Plan {
    let (mut config, mut facts) = (fixture::config(), fixture::facts());
    facts.machine.kubelet_version = version.into();
    change(&mut config, &mut facts);
    built(&config, &facts)
}

fn flag(text: &str, verbatim: bool) -> Flag {
    Flag { text: text.into(), verbatim }
}

/// Keys at the first level, in the order of the file.
fn keys(plan: &Plan) -> Vec<String> {
    let first_level = |line: &&str| line.starts_with("    \"");
    text(plan, CONFIG_PATH)
        .lines()
        .filter(first_level)
        .map(|line| line.split('"').nth(1).unwrap().to_owned())
        .collect()
}

#[test]
fn keys_stand_in_the_known_order() {
    let plan = at_version("v1.34.1", |config, facts| {
        config.fast_image_pull = true;
        facts.machine.online_cpus = 4;
        config.node.taints =
            vec![Taint { key: "a".into(), value: "".into(), effect: "NoSchedule".into() }];
        config.kubelet.reserved.system = [("cpu".to_owned(), "100m".to_owned())].into();
    });
    let expected = "address authentication authorization cgroupDriver cgroupRoot clusterDNS \
        clusterDomain containerRuntimeEndpoint imageServiceEndpoint evictionHard featureGates \
        hairpinMode kubeReserved kubeReservedCgroup logging maxPods protectKernelDefaults \
        providerID readOnlyPort registerWithTaints serializeImagePulls serverTLSBootstrap \
        shutdownGracePeriod shutdownGracePeriodCriticalPods systemReserved systemReservedCgroup \
        tlsCipherSuites kind apiVersion";
    assert_eq!(keys(&plan).join(" "), expected);
}

#[test]
fn gates_of_each_minor() {
    // (minor, feature gates, graceful shutdown, GPU label, alpha switch of the drop-in directory)
    let all =
        "DynamicResourceAllocation MutableCSINodeAllocatableCount RotateKubeletServerCertificate";
    let two = "DynamicResourceAllocation RotateKubeletServerCertificate";
    let one = "RotateKubeletServerCertificate";
    let cases = [
        (29, one, false, false, true),
        (30, one, false, false, false),
        (31, one, false, false, false),
        (32, one, false, false, false),
        (33, two, false, false, false),
        (34, all, true, false, false),
        (35, all, true, true, false),
        (36, all, true, true, false),
    ];
    for (minor, gates, graceful, label, alpha) in cases {
        let plan = at_version(&format!("v1.{minor}.3-eks-abc"), |config, facts| {
            config.kubelet.config = json!({"registryPullQPS": 0}).as_object().unwrap().clone();
            facts.machine.nvidia_device = true;
            facts.machine.nvidia_runtime = true;
        });
        let document = document(&plan);
        let found: Vec<&str> =
            document["featureGates"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(found.join(" "), gates, "1.{minor}");
        assert_eq!(document.get("shutdownGracePeriod").is_some(), graceful, "1.{minor}");
        let environment = text(&plan, ENVIRONMENT_PATH);
        assert_eq!(environment.contains("nvidia.com/gpu.present=true"), label, "1.{minor}");
        assert_eq!(
            environment.starts_with("KUBELET_CONFIG_DROPIN_DIR_ALPHA=on\n"),
            alpha,
            "1.{minor}"
        );
        let provider = text(&plan, "/etc/eks/image-credential-provider/config.json");
        assert_eq!(provider.contains("ecr-public.aws.com"), minor >= 32, "1.{minor}");
        let containerd = text(&plan, "/etc/containerd/config.toml");
        assert_eq!(containerd.contains("enable_cdi = true\n"), minor >= 32, "1.{minor}");
        assert!(containerd.contains("enable_cdi = "), "1.{minor}");
    }
}

#[test]
fn the_drop_in_keeps_zeros_and_gets_its_kind() {
    let plan = at_version("v1.34.1", |config, _| {
        config.kubelet.config =
            json!({"z": {"a": ""}, "registryPullQPS": 0}).as_object().unwrap().clone();
    });
    let expected = "{\n    \"apiVersion\": \"kubelet.config.k8s.io/v1beta1\",\n    \"kind\": \"KubeletConfiguration\",\n    \"registryPullQPS\": 0,\n    \"z\": {\n        \"a\": \"\"\n    }\n}\n";
    assert_eq!(text(&plan, DROP_IN_PATH), expected);
    assert!(!text(&plan, CONFIG_PATH).contains("registryPullQPS"));
    assert!(
        text(&plan, ENVIRONMENT_PATH)
            .contains(" --config-dir=/etc/kubernetes/kubelet/config.json.d ")
    );
}

#[test]
fn drop_ins_of_others_are_read_too() {
    let plan = at_version("v1.34.1", |_, facts| {
        facts.machine.kubelet_drop_ins = vec!["10-site.conf".into()];
    });
    assert!(text(&plan, ENVIRONMENT_PATH).contains(" --config-dir="));
    assert!(file(&plan, DROP_IN_PATH).is_none());
}

#[test]
fn owned_flags_stand_in_order_and_users_last() {
    let plan = at_version("v1.34.1", |config, _| {
        config.node.labels =
            [("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1".to_owned())].into();
        config.kubelet.flags = vec![flag("--v=3 --x='y z'", true), flag("--log-dir=/a b", false)];
    });
    let expected = "NODEADM_KUBELET_ARGS=--cloud-provider=external \
        --hostname-override=ip-10-0-0-1.us-west-2.compute.internal --node-ip=10.0.0.1 \
        --config=/etc/kubernetes/kubelet/config.json --kubeconfig=/var/lib/kubelet/kubeconfig \
        --image-credential-provider-bin-dir=/etc/eks/image-credential-provider \
        --image-credential-provider-config=/etc/eks/image-credential-provider/config.json \
        --runtime-cgroups=/runtime.slice/containerd.service --node-labels=a=1,b=2 \
        --v=3 --x='y z' \"--log-dir=/a b\"\n";
    assert_eq!(text(&plan, ENVIRONMENT_PATH), expected);
}

#[test]
fn a_repeated_flag_is_explained_unless_it_adds_up() {
    let plan = at_version("v1.34.1", |config, _| {
        config.kubelet.flags = vec![flag("--node-ip=10.0.0.9 --node-labels=x=y", true)];
    });
    let told: Vec<&str> =
        plan.reasons["kubeletFlags"].iter().map(|reason| reason.text.as_str()).collect();
    assert_eq!(told, ["--node-ip: the config's flag wins over 10.0.0.1"]);
}

#[test]
fn reserved_cpus_and_reserved_cgroups_exclude_each_other() {
    let reserve: [fn(&mut Config); 3] = [
        |config| config.kubelet.reserved.system_cpus = Some("0-1".into()),
        |config| drop(config.kubelet.config.insert("reservedSystemCPUs".into(), json!("0-1"))),
        |config| config.kubelet.flags.push(flag("--v=2 --reserved-cpus 0-1", true)),
    ];
    for change in reserve {
        let mut config = fixture::config();
        change(&mut config);
        let document = document(&built(&config, &fixture::facts()));
        assert!(document.get("kubeReservedCgroup").is_none());
        assert!(document.get("systemReservedCgroup").is_none());
        config.kubelet.config.insert("kubeReservedCgroup".into(), json!("/runtime"));
        assert_eq!(refused(&config, &fixture::facts()), ["reserved-conflict"]);
    }
    let plain = document(&built(&fixture::config(), &fixture::facts()));
    assert_eq!(plain["kubeReservedCgroup"], "/runtime");
    assert_eq!(plain["systemReservedCgroup"], "/system");
}

#[test]
fn replacing_keeps_what_the_node_needs() {
    let plan = at_version("v1.34.1", |config, _| config.kubelet.config_mode = ConfigMode::Replace);
    let expected = "authentication cgroupDriver clusterDNS clusterDomain containerRuntimeEndpoint \
        maxPods providerID kind apiVersion";
    assert_eq!(keys(&plan).join(" "), expected);
    assert_eq!(slugs(&plan), ["kubelet-config-replaced"]);
    assert!(plan.findings[0].problem.details[0].contains("evictionHard"));
}

#[test]
fn fips_leaves_out_chacha() {
    for (fips, count) in [(Fips::Auto, 8), (Fips::Require, 6)] {
        let plan = at_version("v1.34.1", |config, facts| {
            config.instance.fips = fips;
            facts.machine.fips_enabled = true;
        });
        let suites = document(&plan)["tlsCipherSuites"].as_array().unwrap().len();
        assert_eq!(suites, count);
    }
}

#[test]
fn the_provider_id_names_zone_and_instance() {
    let plan = at_version("v1.34.1", |_, facts| {
        facts.instance.availability_zone = "eu-west-1b".into();
    });
    assert_eq!(document(&plan)["providerID"], "aws:///eu-west-1b/i-0abc12345678def90");
}

#[test]
fn readiness_follows_the_health_port() {
    let ready = |change: fn(&mut Config)| {
        let mut config = fixture::config();
        change(&mut config);
        let plan = built(&config, &fixture::facts());
        let unit = plan.steps.iter().find_map(|step| match &step.action {
            Action::Unit(unit) if unit.name == "kubelet.service" => Some(unit.ready),
            _ => None,
        });
        unit.unwrap()
    };
    assert_eq!(ready(|_| ()), Ready::KubeletHealth { port: 10248 });
    assert_eq!(
        ready(|c| drop(c.kubelet.config.insert("healthzPort".into(), json!(10300)))),
        Ready::KubeletHealth { port: 10300 }
    );
    assert_eq!(
        ready(|c| drop(c.kubelet.config.insert("healthzPort".into(), json!(0)))),
        Ready::StableActive
    );
    assert_eq!(
        ready(|c| c.kubelet.flags.push(flag("--healthz-port=10400", false))),
        Ready::KubeletHealth { port: 10400 }
    );
    assert_eq!(
        ready(|c| drop(c.kubelet.config.insert("healthzBindAddress".into(), json!("10.0.0.1")))),
        Ready::StableActive
    );
}
