//! Every check of the field tables: what is found, how bad it is, and where.

use super::*;

/// Spec, findings in `node.eks.aws`, findings in `tenon.dev`. A class letter follows the code.
const BOTH: &[(&str, &[&str], &[&str])] = &[
    ("cluster: {name: a.b}", &["TN03010E"], &["TN03010E"]),
    ("cluster: {apiServerEndpoint: 'http://a.example'}", &["TN03012W"], &["TN03012E"]),
    ("cluster: {apiServerEndpoint: a.example}", &["TN03011E"], &["TN03011E"]),
    ("cluster: {certificateAuthority: '!'}", &["TN03013E"], &["TN03013E"]),
    ("cluster: {certificateAuthority: YQ==}", &["TN03014W"], &["TN03014E"]),
    ("cluster: {cidr: 10.0.0.0}", &["TN03016E"], &["TN03016E"]),
    ("cluster: {cidr: 10.0.0.0/30}", &["TN03017E"], &["TN03017E"]),
    ("cluster: {cidr: 10.0.0.1/16}", &["TN03018W"], &["TN03018W"]),
    ("cluster: {enableOutpost: true}", &["TN03050E"], &["TN03050E"]),
    ("cluster: {id: a b}", &["TN03019E"], &["TN03019E"]),
    ("containerd: {config: 'a = '}", &["TN03020E"], &["TN03020E"]),
    ("containerd: {baseRuntimeSpec: {proces: {}}}", &["TN03061T"], &["TN03061E"]),
    ("containerd: {baseRuntimeSpec: {linux: {x: {}}}}", &["TN03061T"], &["TN03061E"]),
    ("instance: {localStorage: {strategy: raid5}}", &["TN03003E"], &["TN03003E"]),
    ("instance: {localStorage: {mountPath: mnt}}", &["TN03021E"], &["TN03021E"]),
    ("instance: {localStorage: {mountPath: /mnt/a/}}", &["TN03021W"], &["TN03021E"]),
    ("instance: {localStorage: {mountPath: /etc}}", &["TN03022E"], &["TN03022E"]),
    ("instance: {localStorage: {disabledMounts: [Podlogs]}}", &["TN03003T"], &["TN03003E"]),
    ("instance: {localStorage: {disabledMounts: [Kubelet]}}", &["TN03003T"], &[]),
    ("instance: {environment: {../x: {A: b}}}", &["TN03023E"], &["TN03023E"]),
    ("instance: {environment: {kubelet: {A-B: c}}}", &["TN03024E"], &["TN03024E"]),
    ("instance: {environment: {kubelet: {A: \"a\\e\"}}}", &["TN03009E"], &["TN03009E"]),
    ("instance: {environment: {kubelet: {A: \"a\\nb\\tc\"}}}", &[], &[]),
    (
        "instance: {environment: {default: {HTTPS_PROXY: 'http://p:1'}}}",
        &["TN03053W"],
        &["TN03053W"],
    ),
    (
        "instance: {environment: {default: {https_proxy: 'http://p:1', no_proxy: '169.254.169.254, fd00:ec2::254'}}}",
        &[],
        &[],
    ),
    ("instance: {network: {nameservers: [a]}}", &["TN03025E"], &["TN03025E"]),
    ("instance: {network: {domains: [a b]}}", &["TN03026E"], &["TN03026E"]),
    ("kubelet: {config: {maxPod: 5}}", &["TN03060T"], &["TN03060E"]),
    ("kubelet: {config: {maxPods: five}}", &["TN03060T"], &["TN03060E"]),
    ("kubelet: {flags: [--max-pod=5]}", &["TN03028T"], &["TN03028E"]),
    ("kubelet: {flags: [--node-ip=1.2.3.4]}", &["TN03029W"], &["TN03029W"]),
    ("kubelet: {flags: [\"--v=2\\n--x\"]}", &["TN03009E"], &["TN03009E"]),
    ("kubelet: {flags: [\"--v=2\\0\"]}", &["TN03009E"], &["TN03009E"]),
    ("kubelet: {maxPodsExpression: max_pods +}", &["TN03030T"], &["TN03030E"]),
    ("featureGates: {FastImagePul: true}", &["TN03062T"], &["TN03062E"]),
    ("featureGates: {FastImagePull: 'true'}", &["TN03002E"], &["TN03002E"]),
    ("featureGates: {InstanceIdNodeName: true}", &["TN03056W"], &["TN03056W"]),
    ("cluster: {name: 12}", &["TN03008W"], &["TN03008E"]),
    ("cluster: {enableOutpost: yes, id: x}", &[], &["TN03002E"]),
    ("instance: {environment: {default: {on: a}}}", &["TN03008W"], &[]),
    ("instance: {environment: {default: {'on': a}}}", &[], &[]),
    ("kubelet: {flags: ['']}", &["TN03002T"], &["TN03002E"]),
    ("cluster: []", &["TN03002E"], &["TN03002E"]),
    ("kubelet: {flags: --v=2}", &["TN03002E"], &["TN03002E"]),
    ("kublet: {}", &["TN03001T"], &["TN03001E"]),
    (
        "kubelet: {config: {reservedSystemCPUs: '0', systemReservedCgroup: /system, kubeReservedCgroup: /runtime}}",
        &["TN03052E"],
        &["TN03052E"],
    ),
    (
        "kubelet: {flags: [--reserved-cpus=0], config: {systemReservedCgroup: /system, kubeReservedCgroup: /runtime}}",
        &["TN03052E"],
        &["TN03052E"],
    ),
    ("kubelet: {config: {reservedSystemCPUs: '0', systemReservedCgroup: /system}}", &[], &[]),
];

#[test]
fn fields_of_both_kinds() {
    for (spec, eks, tenon) in BOTH {
        assert_eq!(codes(Kind::Eks, spec), *eks, "node.eks.aws: {spec}");
        assert_eq!(codes(Kind::Tenon, spec), *tenon, "tenon.dev: {spec}");
    }
}

const TENON: &[(&str, &[&str])] = &[
    ("aws: {api: sometimes}", &["TN03003E"]),
    ("node: {labels: {a b: c}}", &["TN03031E"]),
    ("node: {labels: {a: b c}}", &["TN03031E"]),
    ("node: {labels: {a: 5}}", &["TN03008E"]),
    ("node: {labels: {kubernetes.io/x: y}}", &["TN03032E"]),
    ("node: {taints: [{key: --x, effect: NoSchedule}]}", &["TN03033E"]),
    ("node: {taints: [{key: a, effect: Never}]}", &["TN03003E"]),
    ("node: {taints: [{key: a}]}", &["TN03006E"]),
    (
        "node: {taints: [{key: a, effect: NoExecute}, {key: a, value: x, effect: NoExecute}]}",
        &["TN03043E"],
    ),
    ("node: {taints: [{key: a, effect: NoExecute}, {key: a, effect: NoSchedule}]}", &[]),
    ("kubelet: {maxPods: {mode: fixed}}", &["TN03051E"]),
    ("kubelet: {maxPods: {mode: min}}", &["TN03051E"]),
    ("kubelet: {maxPods: {mode: expression}}", &["TN03051E"]),
    ("kubelet: {maxPods: {expression: max_pods}}", &["TN03051E"]),
    ("kubelet: {maxPods: {mode: expression, expression: 'max(1, max_pods)'}}", &[]),
    ("kubelet: {maxPods: {mode: fixed, value: 5}, maxPodsExpression: max_pods}", &["TN03051E"]),
    ("kubelet: {maxPods: {mode: fixed, value: 0}}", &["TN03044E"]),
    ("kubelet: {maxPods: {cap: 0}}", &["TN03044E"]),
    ("kubelet: {maxPods: {cap: some}}", &["TN03003E"]),
    ("kubelet: {maxPods: {cap: 100, onUnknownInstance: refuse}}", &[]),
    ("kubelet: {configMode: mix}", &["TN03003E"]),
    ("kubelet: {reserved: {kube: {cpu: lots}}}", &["TN03034E"]),
    ("kubelet: {reserved: {kube: {gpu: '1'}}}", &["TN03046E"]),
    ("kubelet: {reserved: {systemCPUs: 0-}}", &["TN03035E"]),
    (
        "kubelet: {reserved: {systemCPUs: 0-1}, config: {systemReservedCgroup: /a, kubeReservedCgroup: /b}}",
        &["TN03052E"],
    ),
    ("containerd: {sandboxImage: a b}", &["TN03036E"]),
    ("containerd: {registries: [{host: ../x}]}", &["TN03037E"]),
    ("containerd: {registries: [{host: a.io, mirrors: [{url: a}]}]}", &["TN03038E"]),
    ("containerd: {registries: [{host: a.io, mirrors: [{capabilities: [pull]}]}]}", &["TN03006E"]),
    (
        "containerd: {registries: [{host: a.io, mirrors: [{url: 'https://a', capabilities: [pul]}]}]}",
        &["TN03003E"],
    ),
    (
        "containerd: {registries: [{host: a.io, mirrors: [{url: 'https://a', caFile: a.pem}]}]}",
        &["TN03021E"],
    ),
    ("instance: {proxy: {http: p}}", &["TN03039E"]),
    ("instance: {proxy: {http: 'http://p:1', noProxy: ['*.a']}}", &["TN03040E"]),
    ("instance: {fips: maybe}", &["TN03003E"]),
    ("instance: {localStorage: {existingData: burn}}", &["TN03003E"]),
    ("hooks: {postJoin: [{name: a}]}", &["TN03041E"]),
    ("hooks: {postJoin: [{name: a, argv: [/a], script: b}]}", &["TN03041E"]),
    ("hooks: {postJoin: [{name: a, argv: [a]}]}", &["TN03041E"]),
    ("hooks: {postJoin: [{name: a, argv: [/a]}, {name: a, argv: [/b]}]}", &["TN03043E"]),
    ("hooks: {postJoin: [{name: a, argv: [/a], timeout: 16m}]}", &["TN03042E"]),
    ("hooks: {postJoin: [{name: a/b, argv: [/a]}]}", &["TN03041E"]),
    ("hooks: {postJoin: [{argv: [/a]}]}", &["TN03006E"]),
    ("hooks: {postJoin: [{name: a, argv: [/a], onFailure: cry}]}", &["TN03003E"]),
    ("node: {name: instance-id}", &["TN03056W"]),
];

#[test]
fn fields_of_tenon_only() {
    for (spec, expected) in TENON {
        assert_eq!(codes(Kind::Tenon, spec), *expected, "{spec}");
    }
}

#[test]
fn tenon_fields_in_the_other_kind_are_named_as_such() {
    let found = findings(Kind::Eks, "node: {labels: {a: b}}\nkubelet: {maxPods: {mode: eni}}");
    let codes: Vec<_> = found.iter().map(|f| (f.problem.page.code, f.class)).collect();
    assert_eq!(codes, [("TN03007", Class::Tolerated); 2]);
}

#[test]
fn too_many_labels_are_refused() {
    let labels = |count: usize| {
        let list: Vec<_> = (0..count).map(|n| format!("l{n}: v")).collect();
        format!("node: {{labels: {{{}}}}}", list.join(", "))
    };
    assert_eq!(codes(Kind::Tenon, &labels(256)), [""; 0]);
    assert_eq!(codes(Kind::Tenon, &labels(257)), ["TN03045E"]);
}

#[test]
fn row_59_unknown_names_get_the_nearest_known_one() {
    for (spec, fix) in [
        ("kublet: {}", "did you mean `kubelet`?"),
        ("flags: []", "`flags` belongs under `spec.kubelet`"),
        ("kubelet: {nameservers: []}", "`nameservers` belongs under `spec.instance.network`"),
        ("instance: {localStorage: {strategy: RAID1}}", "did you mean `RAID0`?"),
        ("instance: {localStorage: {disabledMounts: [Podlog]}}", "did you mean `PodLogs`?"),
        ("featureGates: {instanceIdNodeName: true}", "did you mean `InstanceIdNodeName`?"),
        ("kubelet: {config: {maxPod: 1}}", "did you mean `maxPods`?"),
        ("cluster: {enableOutpost: 'true', id: x}", "write true or false without quotes"),
        ("cluster: {name: 12}", "put the value in quotes"),
    ] {
        let found = findings(Kind::Eks, spec);
        assert_eq!(found[0].problem.fix_text(), fix, "{spec}");
    }
}

#[test]
fn row_63_a_flag_cannot_begin_a_second_line() {
    for bad in ["\"--v=2\\n--x\"", "\"--v=2\\r\"", "\"--v=2\\0\"", "|\n    --v=2\n"] {
        for kind in Kind::ALL {
            let spec = format!("kubelet:\n  flags:\n  - {bad}");
            assert_eq!(codes(kind, &spec), ["TN03009E"], "{spec}");
        }
    }
    let spec = "kubelet: {flags: ['--node-labels=a=b c']}";
    assert_eq!(codes(Kind::Tenon, spec), [""; 0], "a blank is quoted, not refused");
}

#[test]
fn row_107_a_bad_expression_is_never_silent() {
    for bad in ["max_pods +", "max_pods * 1.5", "pods", "(1", "max_pods > 1"] {
        let spec = format!("kubelet: {{maxPodsExpression: '{bad}'}}");
        assert_eq!(codes(Kind::Eks, &spec), ["TN03030T"], "{bad}");
        assert_eq!(codes(Kind::Tenon, &spec), ["TN03030E"], "{bad}");
    }
}

#[test]
fn what_is_required() {
    let complete = "cluster: {name: a, apiServerEndpoint: 'https://a', certificateAuthority: YQ==, cidr: 10.0.0.0/16}";
    let of = |kind, spec: &str| {
        let loaded = load(&[file("f", &document(kind, spec))], Options::default());
        let found = loaded.map_or_else(|findings| findings, |loaded| loaded.findings);
        let class = |finding: &Finding| (finding.problem.page.code, finding.class);
        found.iter().map(class).filter(|(code, _)| *code != "TN03014").collect::<Vec<_>>()
    };
    assert_eq!(of(Kind::Eks, complete), []);
    assert_eq!(of(Kind::Eks, "cluster: {name: a}"), [("TN03055", Class::Warning); 3]);
    assert_eq!(of(Kind::Tenon, "cluster: {name: a}"), []);
    assert_eq!(
        of(Kind::Tenon, "cluster: {name: a}\naws: {api: never}"),
        [("TN03006", Class::Error); 3]
    );
    assert_eq!(of(Kind::Tenon, "kubelet: {}"), [("TN03006", Class::Error)]);
}

#[test]
fn a_toml_error_is_placed_in_the_document() {
    let spec = "containerd:\n  config: |\n    [a]\n    b = 1\n    c = nope\n";
    let found = findings(Kind::Eks, spec);
    assert_eq!(summary(&found), [("TN03020", 'E', 8, 11)]);
    let found = findings(Kind::Eks, "kubelet:\n  maxPodsExpression: max_pods +* 2");
    assert_eq!(summary(&found), [("TN03030", 'T', 5, 34)]);
}

#[test]
fn yaml_1_1_words_are_read_by_kind() {
    let config = |kind, spec: &str| load_partial(&[document(kind, spec)]).unwrap().config;
    let spec = "kubelet: {config: {seccompDefault: yes}}";
    assert_eq!(config(Kind::Eks, spec).kubelet.config["seccompDefault"], true);
    let spec = "kubelet: {config: {maxPods: 010}}";
    assert_eq!(config(Kind::Eks, spec).kubelet.config["maxPods"], 8);
    let env = "instance: {environment: {default: {A: on, B: 010, C: 1.50}}}";
    let environment = config(Kind::Eks, env).instance.environment;
    let values: Vec<_> = environment["default"].values().map(|secret| secret.expose()).collect();
    assert_eq!(values, ["on", "010", "1.50"]);
}

#[test]
fn values_are_normalised() {
    let spec = "cluster: {apiServerEndpoint: 'https://a.example/', cidr: 10.100.7.9/16}\ninstance: {localStorage: {strategy: rAiD10, mountPath: /mnt//a/}}";
    let config = load_partial(&[document(Kind::Eks, spec)]).unwrap().config;
    assert_eq!(config.cluster.api_server_endpoint, "https://a.example");
    assert_eq!(config.cluster.cidr.unwrap().to_string(), "10.100.0.0/16");
    assert_eq!(config.instance.local_storage.strategy, Some(DiskStrategy::Raid10));
    assert_eq!(config.instance.local_storage.mount_path, "/mnt/a");
}

#[test]
fn the_kubelet_version_is_checked_when_it_is_known() {
    // Gone since 1.35 and new in 1.31, by the tables.
    let spec =
        "kubelet:\n  flags: [--pod-infra-container-image=x]\n  config:\n    failCgroupV1: true";
    let loaded = load_partial(&[document(Kind::Eks, spec)]).unwrap();
    let at = |version| summary(&loaded.version_findings(version));
    assert_eq!(at((1, 31)), []);
    assert_eq!(at((1, 29)), [("TN03060", 'T', 7, 7)]);
    assert_eq!(at((1, 36)), [("TN03028", 'T', 5, 13)]);
}
