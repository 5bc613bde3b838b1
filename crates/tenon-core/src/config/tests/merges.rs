//! Every row of the merge table of the node contract, both columns.

use serde_json::{Value, json};

use super::*;

/// One step of a case: the kind of the document and the inside of its `spec`.
type Step = (Kind, &'static str);

/// Loads the steps in order and gives the merged config, always as `tenon.dev`.
fn merged(steps: &[Step]) -> Value {
    let documents: Vec<_> = steps.iter().map(|(kind, spec)| document(*kind, spec)).collect();
    match load_partial(&documents) {
        Ok(loaded) => dump(&loaded.config, Kind::Tenon).document,
        Err(findings) => panic!("{steps:?}: {:?}", summary(&findings)),
    }
}

fn check(cases: &[(&[Step], &str, Value)]) {
    for (steps, pointer, expected) in cases {
        let document = merged(steps);
        let value = document.pointer(pointer).cloned().unwrap_or(Value::Null);
        assert_eq!(&value, expected, "{steps:?}");
    }
}

const E: Kind = Kind::Eks;
const T: Kind = Kind::Tenon;

#[test]
fn strings() {
    let name = "/spec/cluster/name";
    check(&[
        (&[(E, "cluster: {name: a}"), (E, "cluster: {name: b}")], name, json!("b")),
        (&[(E, "cluster: {name: a}"), (E, "cluster: {name: ''}")], name, json!("a")),
        (&[(E, "cluster: {name: a}"), (E, "cluster: {name: null}")], name, json!("a")),
        (&[(E, "cluster: {name: a}"), (E, "cluster: null")], name, json!("a")),
        (&[(T, "cluster: {name: a}"), (T, "cluster: {name: ''}")], name, json!("a")),
        (&[(T, "cluster: {name: a}"), (T, "cluster: {name: null}")], name, json!(null)),
        (&[(E, "cluster: {name: a}"), (T, "cluster: {name: ~}")], name, json!(null)),
        (&[(T, "cluster: {name: a}"), (T, "cluster: null")], name, json!(null)),
    ]);
    let strategy = "/spec/instance/localStorage/strategy";
    check(&[
        (
            &[
                (E, "instance: {localStorage: {strategy: raid0}}"),
                (E, "instance: {localStorage: {strategy: ''}}"),
            ],
            strategy,
            json!("RAID0"),
        ),
        (
            &[
                (E, "instance: {localStorage: {strategy: raid0}}"),
                (E, "instance: {localStorage: {strategy: MOUNT}}"),
            ],
            strategy,
            json!("Mount"),
        ),
        (
            &[
                (T, "instance: {localStorage: {strategy: raid0}}"),
                (T, "instance: {localStorage: {strategy: null}}"),
            ],
            strategy,
            json!(null),
        ),
    ]);
}

#[test]
fn certificate_authority() {
    let path = "/spec/cluster/certificateAuthority";
    let (first, second) =
        ("cluster: {certificateAuthority: YQ==}", "cluster: {certificateAuthority: Yg==}");
    check(&[
        (&[(E, first), (E, second)], path, json!("Yg==")),
        (&[(E, first), (E, "cluster: {certificateAuthority: ''}")], path, json!("YQ==")),
        (&[(E, first), (T, "cluster: {certificateAuthority: null}")], path, json!(null)),
    ]);
}

#[test]
fn enable_outpost() {
    let path = "/spec/cluster/enableOutpost";
    let (on, off) = ("cluster: {enableOutpost: true, id: x}", "cluster: {enableOutpost: false}");
    check(&[
        (&[(E, on), (E, off)], path, json!(true)),
        (&[(E, on), (E, "cluster: {enableOutpost: null}")], path, json!(true)),
        (&[(E, on), (T, off)], path, json!(false)),
        (&[(E, on), (T, "cluster: {enableOutpost: null}")], path, json!(null)),
        (&[(E, off)], path, json!(false)),
        (&[(E, off), (E, on)], path, json!(true)),
    ]);
    let loaded = load_partial(&[document(E, on), document(E, off)]).unwrap();
    let latch = loaded.findings.iter().find(|finding| finding.problem.page.code == "TN03054");
    assert_eq!(latch.unwrap().class, Class::Tolerated);
    assert!(latch.unwrap().problem.what.contains("cannot be turned off here"));
}

#[test]
fn lists() {
    let path = "/spec/instance/network/nameservers";
    let (one, two) = (
        "instance: {network: {nameservers: [10.0.0.2]}}",
        "instance: {network: {nameservers: [10.0.0.3, 10.0.0.4]}}",
    );
    let none = "instance: {network: {nameservers: []}}";
    check(&[
        (&[(E, one), (E, two)], path, json!(["10.0.0.3", "10.0.0.4"])),
        (&[(E, one), (E, none)], path, json!(["10.0.0.2"])),
        (&[(E, one), (T, none)], path, json!(null)),
        (&[(T, one), (T, "instance: {network: {nameservers: null}}")], path, json!(null)),
    ]);
    let mounts = "/spec/instance/localStorage/disabledMounts";
    check(&[(
        &[
            (E, "instance: {localStorage: {disabledMounts: [PodLogs, SOCI]}}"),
            (E, "instance: {localStorage: {disabledMounts: [Containerd]}}"),
        ],
        mounts,
        json!(["Containerd"]),
    )]);
}

#[test]
fn kubelet_flags_are_joined() {
    let path = "/spec/kubelet/flags";
    let flags = "kubelet: {flags: [--v=2]}";
    check(&[
        (&[(E, flags), (E, flags)], path, json!(["--v=2", "--v=2"])),
        (
            &[(T, flags), (T, "kubelet: {flags: [--max-pods=5]}")],
            path,
            json!(["--v=2", "--max-pods=5"]),
        ),
        (&[(T, flags), (T, "kubelet: {flags: []}")], path, json!(["--v=2"])),
        (&[(T, flags), (T, "kubelet: {flags: null}")], path, json!(null)),
    ]);
}

#[test]
fn gates_and_environment_merge_by_key() {
    check(&[
        (
            &[
                (E, "featureGates: {FastImagePull: true, InstanceIdNodeName: true}"),
                (E, "featureGates: {InstanceIdNodeName: false}"),
            ],
            "/spec/featureGates",
            json!({"FastImagePull": true}),
        ),
        (
            &[
                (E, "featureGates: {FastImagePull: true}"),
                (T, "featureGates: {FastImagePull: null}"),
            ],
            "/spec/featureGates",
            json!(null),
        ),
    ]);
    let path = "/spec/instance/environment";
    let base = "instance: {environment: {default: {A: '1', B: '2'}, kubelet: {C: '3'}}}";
    check(&[
        (
            &[(E, base), (E, "instance: {environment: {default: {B: '', D: '4'}, kubelet: {}}}")],
            path,
            json!({"default": {"A": "1", "B": "", "D": "4"}, "kubelet": {"C": "3"}}),
        ),
        (
            &[(E, base), (T, "instance: {environment: {default: {A: null}, kubelet: null}}")],
            path,
            json!({"default": {"B": "2"}}),
        ),
        (
            &[(E, base), (E, "instance: {environment: {default: {A: null}, kubelet: null}}")],
            path,
            json!({"default": {"A": "", "B": "2"}, "kubelet": {"C": "3"}}),
        ),
    ]);
}

#[test]
fn free_form_objects_merge_deep() {
    let path = "/spec/kubelet/config";
    let base = "kubelet: {config: {evictionHard: {memory.available: 1Gi, nodefs.available: 5%}, allowedUnsafeSysctls: [a, b], maxPods: 10, seccompDefault: true}}";
    for kind in Kind::ALL {
        check(&[
            (
                &[
                    (kind, base),
                    (kind, "kubelet: {config: {evictionHard: {memory.available: 2Gi}}}"),
                ],
                "/spec/kubelet/config/evictionHard",
                json!({"memory.available": "2Gi", "nodefs.available": "5%"}),
            ),
            (
                &[(kind, base), (kind, "kubelet: {config: {allowedUnsafeSysctls: []}}")],
                "/spec/kubelet/config/allowedUnsafeSysctls",
                json!([]),
            ),
            (
                &[(kind, base), (kind, "kubelet: {config: {maxPods: 0, seccompDefault: false}}")],
                path,
                json!({
                    "evictionHard": {"memory.available": "1Gi", "nodefs.available": "5%"},
                    "allowedUnsafeSysctls": ["a", "b"],
                    "maxPods": 0,
                    "seccompDefault": false,
                }),
            ),
            (
                &[(kind, base), (kind, "kubelet: {config: {evictionHard: {}}}")],
                "/spec/kubelet/config/evictionHard",
                json!({"memory.available": "1Gi", "nodefs.available": "5%"}),
            ),
            (
                &[
                    (kind, "containerd: {baseRuntimeSpec: {hostname: a}}"),
                    (kind, "containerd: {baseRuntimeSpec: {hostname: {x: 1}}}"),
                ],
                "/spec/containerd/baseRuntimeSpec",
                json!({"hostname": {"x": 1}}),
            ),
        ]);
        let steps = [(kind, base), (kind, "kubelet: {config: {maxPods: null}}")];
        assert_eq!(merged(&steps).pointer("/spec/kubelet/config/maxPods"), Some(&json!(null)));
    }
    check(&[
        (&[(E, base), (E, "kubelet: {config: null}")], "/spec/kubelet/config/maxPods", json!(10)),
        (&[(E, base), (T, "kubelet: {config: null}")], path, json!(null)),
    ]);
}

#[test]
fn toml_stays_verbatim_or_merges() {
    let one = "containerd:\n  config: |\n    # mine\n    [metrics]\n    address = \"a\"\n    list = [1, 2]\n";
    let two = "containerd:\n  config: |\n    [metrics]\n    list = [3]\n    [debug]\n    level = \"info\"\n";
    check(&[
        (
            &[(E, one)],
            "/spec/containerd/config",
            json!("# mine\n[metrics]\naddress = \"a\"\nlist = [1, 2]\n"),
        ),
        (
            &[(E, one), (E, "containerd: {config: ''}")],
            "/spec/containerd/config",
            json!("# mine\n[metrics]\naddress = \"a\"\nlist = [1, 2]\n"),
        ),
        (&[(E, one), (T, "containerd: {config: null}")], "/spec/containerd/config", json!(null)),
    ]);
    let both = merged(&[(E, one), (E, two)]);
    let text = both.pointer("/spec/containerd/config").and_then(Value::as_str).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let expected: toml::Table =
        "[metrics]\naddress = \"a\"\nlist = [3]\n[debug]\nlevel = \"info\"".parse().unwrap();
    assert_eq!(table, expected);
}

#[test]
fn metadata_merges_by_key() {
    let head = |kind: Kind, metadata: &str| {
        format!(
            "apiVersion: {}\nkind: NodeConfig\nmetadata: {metadata}\nspec: {{}}\n",
            kind.api_version()
        )
    };
    let documents =
        [head(E, "{name: a, labels: {x: '1'}}"), head(E, "{name: '', labels: {y: '2'}, uid: u}")];
    let loaded = load_partial(&documents).unwrap();
    assert_eq!(
        Value::Object(loaded.config.metadata),
        json!({"name": "a", "labels": {"x": "1", "y": "2"}, "uid": "u"})
    );
}

#[test]
fn tenon_maps_merge_by_key() {
    check(&[
        (
            &[(T, "node: {labels: {a: x, b: y}}"), (T, "node: {labels: {b: z, a: null}}")],
            "/spec/node/labels",
            json!({"b": "z"}),
        ),
        (
            &[
                (T, "instance: {proxy: {http: 'http://a:1', https: 'http://b:1'}}"),
                (T, "instance: {proxy: {https: 'http://c:1', http: null}}"),
            ],
            "/spec/instance/proxy",
            json!({"https": "http://c:1"}),
        ),
        (
            &[
                (T, "kubelet: {maxPods: {mode: fixed, value: 20}, reserved: {kube: {cpu: 100m}}}"),
                (
                    T,
                    "kubelet: {maxPods: {value: 30, prefixDelegation: true}, reserved: {kube: {memory: 1Gi}}}",
                ),
            ],
            "/spec/kubelet",
            json!({
                "maxPods": {"mode": "fixed", "value": 30, "prefixDelegation": true},
                "reserved": {"kube": {"cpu": "100m", "memory": "1Gi"}},
            }),
        ),
        (
            &[
                (T, "cluster: {enableOutpost: true, id: x, outpost: {pinEndpoint: false}}"),
                (T, "cluster: {outpost: {authenticator: aws-iam-authenticator}}"),
            ],
            "/spec/cluster/outpost",
            json!({"pinEndpoint": false, "authenticator": "aws-iam-authenticator"}),
        ),
    ]);
}

#[test]
fn lists_of_objects_merge_by_identity() {
    check(&[
        (
            &[
                (
                    T,
                    "node: {taints: [{key: a, value: x, effect: NoSchedule}, {key: b, effect: NoExecute}]}",
                ),
                (
                    T,
                    "node: {taints: [{key: c, effect: NoSchedule}, {key: a, value: z, effect: NoSchedule}]}",
                ),
            ],
            "/spec/node/taints",
            json!([
                {"key": "a", "value": "z", "effect": "NoSchedule"},
                {"key": "b", "effect": "NoExecute"},
                {"key": "c", "effect": "NoSchedule"},
            ]),
        ),
        (
            &[
                (T, "containerd: {registries: [{host: docker.io, mirrors: [{url: 'https://a'}]}]}"),
                (
                    T,
                    "containerd: {registries: [{host: quay.io, mirrors: []}, {host: docker.io, mirrors: [{url: 'https://b'}]}]}",
                ),
            ],
            "/spec/containerd/registries",
            json!([
                {"host": "docker.io", "mirrors": [{"url": "https://b", "capabilities": ["pull", "resolve"]}]},
                {"host": "quay.io", "mirrors": []},
            ]),
        ),
        (
            &[
                (T, "hooks: {postJoin: [{name: a, argv: [/bin/a]}, {name: b, argv: [/bin/b]}]}"),
                (T, "hooks: {postJoin: [{name: a, script: 'true'}]}"),
            ],
            "/spec/hooks/postJoin",
            json!([{"name": "a", "script": "true"}, {"name": "b", "argv": ["/bin/b"]}]),
        ),
    ]);
}

#[test]
fn a_later_document_can_unset_values() {
    let first = "instance: {network: {nameservers: [10.0.0.2]}}
node: {labels: {a: b}}
featureGates: {FastImagePull: true}";
    let cases = [
        ("instance: {network: {nameservers: []}}", "/spec/instance/network/nameservers"),
        ("node: {labels: {a: null}}", "/spec/node/labels/a"),
    ];
    for (second, path) in cases {
        assert_ne!(merged(&[(T, first)]).pointer(path), None, "{path}");
        let left = merged(&[(T, first), (T, second)]).pointer(path).cloned().unwrap_or_default();
        let is_gone = left.is_null() || left == json!([]);
        assert!(is_gone, "{path}: {left}");
    }
    let gate = "/spec/featureGates/FastImagePull";
    let off = merged(&[(T, first), (T, "featureGates: {FastImagePull: false}")]);
    assert_eq!(merged(&[(T, first)]).pointer(gate), Some(&json!(true)));
    assert_ne!(off.pointer(gate), Some(&json!(true)));
}
