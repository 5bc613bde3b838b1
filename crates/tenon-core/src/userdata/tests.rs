//! The matrix, cell by cell; what each document says; what is refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::group::{ExtraFile, InstanceStore, MaxPodsPolicy, Proxy, Signal};
use super::samples::{cluster, group, labelled};
use super::*;
use crate::config::{DiskStrategy, Taint};
use crate::tree::Dialect;
use crate::yaml;

fn rendered(group: &Group, mode: Mode) -> Rendered {
    render(&cluster(), group, mode, &Options::default())
        .unwrap_or_else(|findings| panic!("{findings:#?}"))
}

fn text(group: &Group, mode: Mode) -> String {
    rendered(group, mode).document.text()
}

fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.problem.page.code).collect()
}

fn refused(group: &Group, mode: Mode) -> Vec<&'static str> {
    codes(&render(&cluster(), group, mode, &Options::default()).unwrap_err())
}

/// The one document of a YAML text as JSON.
fn yaml_value(text: &str) -> Value {
    let mut trees = yaml::parse(text).unwrap();
    assert_eq!(trees.len(), 1);
    trees.remove(0).to_json(Dialect::Yaml12)
}

/// The files of a cloud-config, by path.
fn files(rendered: &Rendered) -> BTreeMap<&str, &str> {
    let files = rendered.document.files().iter();
    files.map(|file| (file.path.as_str(), file.content.as_str())).collect()
}

/// The body of the part of this type.
fn part(rendered: &Rendered, media_type: &str) -> String {
    let Document::Mime(parts) = &rendered.document else { panic!("not a message") };
    parts.iter().find(|part| part.media_type == media_type).unwrap().body.clone()
}

#[test]
fn every_cell_renders_or_gives_its_documented_error() {
    let mut works = 0;
    for family in Family::examples() {
        for (_, kind) in Kind::ALL {
            for (_, mode) in Mode::ALL {
                let group = Group { family, ..labelled("AmazonLinux2023", kind) };
                // Windows 2025 starts with Kubernetes 1.35; its managed images take no pod limit.
                let max_pods =
                    group.max_pods.filter(|_| !(family.is_windows() && kind == Kind::Managed));
                let group = Group { max_pods, ..group };
                let cluster = Cluster { version: Some((1, 35)), ..cluster() };
                let outcome = render(&cluster, &group, mode, &Options::default());
                match (family::cell(family, kind, mode), outcome) {
                    (Ok(_), Ok(done)) => {
                        assert!(done.bytes.len() <= size::LIMIT);
                        let again = render(&cluster, &group, mode, &Options::default()).unwrap();
                        assert_eq!(done.bytes, again.bytes);
                        works += 1;
                    }
                    (Err((page, _)), Err(findings)) => assert_eq!(codes(&findings), [page.code]),
                    (cell, outcome) => panic!("{family:?} {kind:?} {mode:?}: {cell:?} {outcome:?}"),
                }
            }
        }
    }
    assert_eq!(works, 61);
}

#[test]
fn al2023_is_one_node_config() {
    let done = rendered(&labelled("AmazonLinux2023", Kind::SelfManaged), Mode::Native);
    let config = yaml_value(&part(&done, "application/node.eks.aws"));
    let spec = &config["spec"];
    assert_eq!(config["apiVersion"], "node.eks.aws/v1alpha1");
    assert_eq!(spec["cluster"]["name"], "ironman-2022");
    assert_eq!(spec["cluster"]["cidr"], "10.100.0.0/16");
    assert_eq!(spec["kubelet"]["config"], json!({"clusterDNS": ["10.100.0.10"], "maxPods": 58}));
    let flags = json!(["--node-labels=team=web", "--register-with-taints=special=true:NoSchedule"]);
    assert_eq!(spec["kubelet"]["flags"], flags);
}

#[test]
fn al2023_on_an_eks_image_says_nothing_about_the_cluster() {
    let group = labelled("AmazonLinux2023", Kind::Managed);
    let spec =
        yaml_value(&part(&rendered(&group, Mode::Native), "application/node.eks.aws"))["spec"]
            .clone();
    assert_eq!(spec, json!({"kubelet": {"config": {"maxPods": 58}}}));
    let quiet = Group { max_pods: None, ..group };
    assert_eq!(rendered(&quiet, Mode::Native).document, Document::Empty);
}

#[test]
fn al2023_parts_stand_in_order() {
    let group = Group {
        pre_commands: vec!["echo one".into(), "#!/bin/sh\necho two".into()],
        post_commands: vec!["echo later".into()],
        override_command: Some(
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {}\n".into(),
        ),
        ..group("AmazonLinux2023", Kind::SelfManaged)
    };
    let done = rendered(&group, Mode::Native);
    let Document::Mime(parts) = &done.document else { panic!() };
    let roles: Vec<_> = parts.iter().map(|part| part.role.as_str()).collect();
    let expected = [
        "preBootstrapCommands[0]",
        "preBootstrapCommands[1]",
        "post-bootstrap and signal units",
        "NodeConfig",
        "overrideBootstrapCommand",
    ];
    assert_eq!(roles, expected);
    assert!(parts[1].body.starts_with("#!/bin/sh\n"));
    assert!(parts[2].body.contains("systemctl start --no-block tenon-post.service"));
    let shell = Group { override_command: Some("echo hi".into()), ..group };
    assert_eq!(refused(&shell, Mode::Native), ["TN03423"]);
}

#[test]
fn the_smaller_limit_is_an_expression_on_al2023() {
    let group = Group {
        max_pods_policy: MaxPodsPolicy::Min,
        ..labelled("AmazonLinux2023", Kind::SelfManaged)
    };
    let kubelet = yaml_value(&part(&rendered(&group, Mode::Native), "application/node.eks.aws"))["spec"]["kubelet"].clone();
    let expression = kubelet["maxPodsExpression"].as_str().unwrap();
    assert_eq!(expression, "max_pods < 58 ? max_pods : 58");
    assert!(crate::expression::parse(expression, false).is_ok());
    assert_eq!(kubelet["config"].get("maxPods"), None);
}

#[test]
fn al2_writes_the_contract_of_override_commands() {
    let group = Group {
        pre_commands: vec!["echo 'hi'".into()],
        ..labelled("AmazonLinux2", Kind::SelfManaged)
    };
    let done = rendered(&group, Mode::Native);
    let paths: Vec<_> =
        done.document.files().iter().map(|file| (file.path.as_str(), file.mode)).collect();
    let expected = [
        ("/etc/eksctl/kubelet-extra.json", 0o644),
        ("/etc/eksctl/kubelet.env", 0o644),
        ("/var/lib/cloud/scripts/eksctl/bootstrap.al2.sh", 0o755),
        ("/var/lib/cloud/scripts/eksctl/bootstrap.helper.sh", 0o755),
    ];
    assert_eq!(paths, expected);
    let files = files(&done);
    assert_eq!(files["/etc/eksctl/kubelet-extra.json"], "{}\n");
    let keys: Vec<_> = files["/etc/eksctl/kubelet.env"]
        .lines()
        .map(|line| line.split('=').next().unwrap())
        .collect();
    assert_eq!(
        keys,
        [
            "API_SERVER_URL",
            "B64_CLUSTER_CA",
            "CLUSTER_DNS",
            "CLUSTER_NAME",
            "CONTAINER_RUNTIME",
            "MAX_PODS",
            "NODE_LABELS",
            "NODE_TAINTS"
        ]
    );
    assert!(files["/etc/eksctl/kubelet.env"].contains("NODE_TAINTS=\"special=true:NoSchedule\"\n"));
    let config = yaml_value(&done.document.text());
    assert_eq!(
        config["runcmd"],
        json!([
            ["/bin/bash", "-c", "echo 'hi'"],
            ["/var/lib/cloud/scripts/eksctl/bootstrap.al2.sh"]
        ])
    );
    assert!(done.document.text().starts_with("#cloud-config\n"));
}

#[test]
fn al2_override_replaces_the_join() {
    let group = Group {
        override_command: Some("/custom/join".into()),
        ..group("AmazonLinux2", Kind::SelfManaged)
    };
    let done = rendered(&group, Mode::Native);
    assert!(!files(&done).contains_key("/var/lib/cloud/scripts/eksctl/bootstrap.al2.sh"));
    assert_eq!(
        yaml_value(&done.document.text())["runcmd"],
        json!([["/bin/bash", "-c", "/custom/join"]])
    );
}

#[test]
fn ubuntu_differs_in_script_and_runtime() {
    let done = rendered(&labelled("Ubuntu2204", Kind::SelfManaged), Mode::Native);
    let files = files(&done);
    assert!(
        files["/var/lib/cloud/scripts/eksctl/bootstrap.ubuntu.sh"]
            .contains("snap restart kubelet-eks")
    );
    assert!(!files["/etc/eksctl/kubelet.env"].contains("CONTAINER_RUNTIME"));
    let options = Options { pin_endpoint: true, ..Options::default() };
    let pinned =
        render(&cluster(), &group("Ubuntu2204", Kind::SelfManaged), Mode::Native, &options)
            .unwrap();
    assert!(pinned.document.text().contains("PIN_ENDPOINT=\"true\""));
}

#[test]
fn al2_on_an_eks_image_adds_the_limit_beside_eks_arguments() {
    let done = rendered(&labelled("AmazonLinux2", Kind::Managed), Mode::Native);
    let script = part(&done, "text/x-shellscript");
    assert!(script.contains("ExecStartPre=/opt/tenon/max-pods.sh 58\n"));
    assert!(!script.contains("/etc/eks/bootstrap.sh"));
    assert_eq!(
        rendered(&group("AmazonLinux2", Kind::Managed), Mode::Native).document,
        Document::Empty
    );
}

#[test]
fn bottlerocket_is_settings() {
    let mut group = labelled("Bottlerocket", Kind::SelfManaged);
    group.taints.push(Taint {
        key: "special".into(),
        value: "true".into(),
        effect: "NoExecute".into(),
    });
    group.labels.insert("example.com/a.b".into(), "c".into());
    group.bottlerocket.enable_admin_container = Some(true);
    group.bottlerocket.settings =
        toml::from_str("motd = \"hi\"\n[kubernetes]\nunknown-setting = 3\n").unwrap();
    group.kubelet_config =
        json!({"evictionHard": {"memory.available": "5%"}}).as_object().unwrap().clone();
    group.pre_commands = vec!["apiclient set motd=x".into()];
    let table: toml::Table = text(&group, Mode::Native).parse().unwrap();
    let settings = &table["settings"];
    let kubernetes = &settings["kubernetes"];
    assert_eq!(kubernetes["cluster-name"].as_str(), Some("ironman-2022"));
    assert_eq!(kubernetes["node-labels"]["example.com/a.b"].as_str(), Some("c"));
    let taints = kubernetes["node-taints"]["special"].as_array().unwrap();
    assert_eq!(taints.len(), 2);
    assert_eq!(kubernetes["max-pods"].as_integer(), Some(58));
    assert_eq!(kubernetes["unknown-setting"].as_integer(), Some(3));
    assert_eq!(kubernetes["eviction-hard"]["memory.available"].as_str(), Some("5%"));
    assert_eq!(settings["host-containers"]["admin"]["enabled"].as_bool(), Some(true));
    assert_eq!(
        settings["bootstrap-commands"]["001-pre-bootstrap"]["commands"][0][2].as_str(),
        Some("motd=x")
    );
}

#[test]
fn bottlerocket_conflicts_are_errors() {
    let with = |settings: &str, kind| {
        let mut group = labelled("Bottlerocket", kind);
        group.bottlerocket.settings = toml::from_str(settings).unwrap();
        group
    };
    for settings in [
        "[kubernetes]\ncluster-name = \"other\"",
        "[kubernetes]\nmax-pods = 7",
        "[kubernetes]\nnode-labels = 3",
    ] {
        assert!(
            !refused(&with(settings, Kind::SelfManaged), Mode::Native).is_empty(),
            "{settings}"
        );
    }
    let managed = with("[kubernetes]\nnode-labels = { a = \"b\" }", Kind::Managed);
    assert_eq!(refused(&managed, Mode::Native), ["TN03414"]);
    let mut admin = with("[host-containers.admin]\nenabled = true", Kind::SelfManaged);
    admin.bottlerocket.enable_admin_container = Some(true);
    assert_eq!(refused(&admin, Mode::Native), ["TN03414"]);
}

#[test]
fn windows_calls_the_script_of_the_image() {
    let group = Group {
        pre_commands: vec!["Write-Host 'hi'".into()],
        ..labelled("WindowsServer2022CoreContainer", Kind::SelfManaged)
    };
    let text = text(&group, Mode::Native);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "<powershell>");
    assert!(lines[1].starts_with("[string]$EKSBootstrapScriptFile = "));
    assert_eq!(lines[2], "Write-Host 'hi'");
    assert!(lines[3].starts_with(
        "& $EKSBootstrapScriptFile -EKSClusterName 'ironman-2022' -APIServerEndpoint 'https://"
    ));
    assert!(lines[3].ends_with("-ServiceCIDR '10.100.0.0/16' -DNSClusterIP '10.100.0.10' -KubeletExtraArgs '--node-labels=team=web --register-with-taints=special=true:NoSchedule --max-pods=58' 3>&1 4>&1 5>&1 6>&1"));
    assert_eq!(lines[4], "</powershell>");
    let tag = Group { pre_commands: vec!["echo </PowerShell>".into()], ..group.clone() };
    assert_eq!(refused(&tag, Mode::Native), ["TN03418"]);
    let map = Group { override_command: Some("& $EKSBootstrapScriptFile".into()), ..group };
    assert!(
        super::tests::text(&map, Mode::Native)
            .contains("$KubeletExtraArgsMap = @{ 'node-labels' = 'team=web'; ")
    );
}

#[test]
fn self_contained_carries_the_complete_files() {
    let group = Group { max_pods: None, ..labelled("AmazonLinux2023", Kind::SelfManaged) };
    let done = rendered(&group, Mode::SelfContained);
    let files = files(&done);
    let paths: Vec<_> = done.document.files().iter().map(|file| file.path.as_str()).collect();
    let expected = [
        "/etc/tenon/kubelet.yaml",
        "/etc/tenon/kubeconfig.yaml",
        "/etc/tenon/ca.crt",
        "/etc/tenon/metadata.env",
        "/etc/tenon/kubelet.env",
        "/etc/tenon/max_pods.map",
        "/opt/tenon/bootstrap.sh",
        "/etc/systemd/system/tenon-bootstrap.service",
        "/etc/systemd/system/kubelet.service.d/10-tenon.conf",
    ];
    assert_eq!(paths, expected);
    let kubelet = yaml_value(files["/etc/tenon/kubelet.yaml"]);
    assert_eq!(kubelet["authentication"]["anonymous"]["enabled"], false);
    assert_eq!(kubelet["clusterDNS"], json!(["10.100.0.10"]));
    assert_eq!(
        kubelet["registerWithTaints"],
        json!([{"key": "special", "value": "true", "effect": "NoSchedule"}])
    );
    assert_eq!(files["/etc/tenon/max_pods.map"], "m5.large 29\n");
    assert_eq!(files["/etc/tenon/ca.crt"], samples::CA);
    assert!(files["/etc/tenon/metadata.env"].contains("AWS_EKS_ECR_ACCOUNT=\"602401143452\"\n"));
    let user = &yaml_value(files["/etc/tenon/kubeconfig.yaml"])["users"][0]["user"]["exec"];
    assert_eq!(user["args"], json!(["token", "-i", "ironman-2022"]));
    assert!(files["/opt/tenon/bootstrap.sh"].lines().count() < 60);
    let unit = files["/etc/systemd/system/tenon-bootstrap.service"];
    assert!(unit.contains("RequiredBy=kubelet.service\n") && !unit.contains("Restart="));
    let drop_in = files["/etc/systemd/system/kubelet.service.d/10-tenon.conf"];
    assert!(drop_in.contains("ExecStart=\nExecStart=/usr/bin/kubelet \\\n"));
    for gone in ["docker", "network-plugin", "cni", "pod-infra", "cloud-provider=aws"] {
        assert!(!drop_in.contains(gone), "{gone}");
    }
}

#[test]
fn self_contained_on_ignition_has_units() {
    let group = Group {
        pre_commands: vec!["echo hi".into()],
        post_commands: vec!["echo bye".into()],
        ..labelled("Flatcar", Kind::SelfManaged)
    };
    let value: Value = serde_json::from_str(&text(&group, Mode::SelfContained)).unwrap();
    assert_eq!(value["ignition"]["version"], "3.3.0");
    let names: Vec<_> = value["systemd"]["units"]
        .as_array()
        .unwrap()
        .iter()
        .map(|unit| unit["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["tenon-pre.service", "tenon-bootstrap.service", "kubelet.service", "tenon-post.service"]
    );
    assert!(
        value["systemd"]["units"][2]["contents"].as_str().unwrap().contains("/opt/bin/kubelet")
    );
}

#[test]
fn unknown_instance_types_are_found_at_the_desk() {
    let group = Group {
        instance_types: vec!["m5.large".into(), "m99.huge".into()],
        ..group("AmazonLinux2023", Kind::SelfManaged)
    };
    let findings =
        render(&cluster(), &group, Mode::SelfContained, &Options::default()).unwrap_err();
    assert_eq!(codes(&findings), ["TN03429"]);
    assert_eq!(findings[0].problem.place.as_ref().unwrap().path, "nodeGroups[0].instanceTypes[1]");
}

#[test]
fn the_full_map_is_small_when_compressed() {
    let mut options = Options::default();
    options.self_contained.map = self_contained::PodMap::Full;
    let group = group("AmazonLinux2023", Kind::SelfManaged);
    let done = render(&cluster(), &group, Mode::SelfContained, &options).unwrap();
    assert!(files(&done)["/etc/tenon/max_pods.map"].lines().count() > 800);
    assert!(done.bytes.len() < 14_000, "{}", done.bytes.len());
}

#[test]
fn mode_tenon_writes_either_kind() {
    let group = labelled("AmazonLinux2023", Kind::SelfManaged);
    let done = rendered(&group, Mode::Tenon);
    assert!(part(&done, "application/node.eks.aws").contains("kind: NodeConfig"));
    let options = Options { tenon_part: true, ..Options::default() };
    let post = Group { post_commands: vec!["echo hi".into()], ..group.clone() };
    let own = render(&cluster(), &post, Mode::Tenon, &options).unwrap();
    let config = yaml_value(&part(&own, "application/tenon.dev"));
    assert_eq!(config["spec"]["node"]["labels"], json!({"team": "web"}));
    assert_eq!(
        config["spec"]["hooks"]["postJoin"][0]["argv"],
        json!(["/bin/bash", "-c", "echo hi"])
    );
    assert_eq!(refused(&post, Mode::Tenon), ["TN03409"]);
}

#[test]
fn fields_without_a_place_are_named_with_what_to_use() {
    let set = |field: &str, group: &mut Group| match field {
        "preBootstrapCommands" => group.pre_commands = vec!["echo hi".into()],
        "overrideBootstrapCommand" => group.override_command = Some("x".into()),
        "postBootstrapCommands" => group.post_commands = vec!["echo hi".into()],
        "instanceStore" => {
            group.instance_store = Some(InstanceStore {
                strategy: DiskStrategy::Raid0,
                mount_path: None,
                disabled_mounts: vec![],
            })
        }
        "proxy" => {
            group.proxy = Some(Proxy { https: Some("http://p:3128".into()), ..Proxy::default() })
        }
        "files" => {
            group.files =
                vec![ExtraFile { path: "/etc/x".into(), mode: 0o644, content: "x".into() }]
        }
        "clusterDNS" => group.cluster_dns = "10.0.0.10".parse().ok(),
        "maxPodsPerNode" => group.max_pods = Some(20),
        "reboot" => group.reboot_before_join = true,
        _ => group.kubelet_config = json!({"podPidsLimit": 100}).as_object().unwrap().clone(),
    };
    let cases = [
        ("preBootstrapCommands", "Bottlerocket", Kind::SelfManaged, Mode::Native),
        ("overrideBootstrapCommand", "Bottlerocket", Kind::SelfManaged, Mode::Native),
        ("overrideBootstrapCommand", "WindowsServer2022CoreContainer", Kind::Managed, Mode::Native),
        ("overrideBootstrapCommand", "Flatcar", Kind::SelfManaged, Mode::SelfContained),
        ("postBootstrapCommands", "Bottlerocket", Kind::SelfManaged, Mode::Native),
        ("instanceStore", "Ubuntu2204", Kind::SelfManaged, Mode::Native),
        ("instanceStore", "WindowsServer2022CoreContainer", Kind::SelfManaged, Mode::Native),
        ("proxy", "AmazonLinux2", Kind::SelfManaged, Mode::Native),
        ("files", "AmazonLinux2023", Kind::SelfManaged, Mode::Native),
        ("clusterDNS", "AmazonLinux2023", Kind::Managed, Mode::Native),
        ("maxPodsPerNode", "WindowsServer2022CoreContainer", Kind::Managed, Mode::Native),
        ("reboot", "AmazonLinux2023", Kind::SelfManaged, Mode::Native),
        ("kubeletExtraConfig", "AmazonLinux2", Kind::Managed, Mode::Native),
        (
            "kubeletExtraConfig.podPidsLimit",
            "WindowsServer2022CoreContainer",
            Kind::SelfManaged,
            Mode::Native,
        ),
    ];
    for (field, family, kind, mode) in cases {
        let mut group = group(family, kind);
        set(field, &mut group);
        let findings = render(&cluster(), &group, mode, &Options::default()).unwrap_err();
        assert_eq!(codes(&findings), ["TN03409"], "{field} {family}");
        let place = findings[0].problem.place.as_ref().unwrap();
        assert_eq!(place.path, format!("nodeGroups[0].{field}"));
    }
}

#[test]
fn ipv6_and_outposts_have_their_switches() {
    let six = Cluster { service_cidr: "fd12:3456::/108".parse().ok(), ..cluster() };
    let render_on = |cluster: &Cluster, family: &str| {
        render(cluster, &group(family, Kind::SelfManaged), Mode::Native, &Options::default())
    };
    let text = render_on(&six, "AmazonLinux2").unwrap().document.text();
    assert!(
        text.contains("SERVICE_IPV6_CIDR=\"fd12:3456::/108\"")
            && text.contains("CLUSTER_DNS=\"fd12:3456::a\"")
    );
    assert_eq!(codes(&render_on(&six, "WindowsServer2022CoreContainer").unwrap_err()), ["TN03409"]);
    let local = Cluster { outpost: true, id: Some("abc".into()), ..cluster() };
    let text = render_on(&local, "AmazonLinux2023").unwrap().document.text();
    assert!(text.contains("enableOutpost: true") && text.contains("id: abc"));
    for family in ["Ubuntu2204", "Bottlerocket"] {
        assert_eq!(codes(&render_on(&local, family).unwrap_err()), ["TN03409"], "{family}");
    }
    let nameless = Cluster { outpost: true, ..cluster() };
    assert_eq!(codes(&render_on(&nameless, "AmazonLinux2023").unwrap_err()), ["TN03412"]);
}

#[test]
fn an_empty_fact_is_never_rendered() {
    for family in [
        "AmazonLinux2023",
        "AmazonLinux2",
        "Ubuntu2204",
        "Bottlerocket",
        "WindowsServer2022CoreContainer",
    ] {
        let bare = Cluster { version: Some((1, 32)), ..Cluster::default() };
        let findings =
            render(&bare, &group(family, Kind::SelfManaged), Mode::Native, &Options::default())
                .unwrap_err();
        assert!(findings.len() >= 3, "{family}");
        assert!(codes(&findings).iter().all(|code| *code == "TN03412"), "{family}");
    }
}

#[test]
fn labels_and_taints_outside_the_grammar_are_refused_everywhere() {
    for family in Family::examples().into_iter().filter(|family| *family != Family::Custom) {
        let mode = family.default_mode();
        for (key, value) in [
            ("a b", "x"),
            ("a", "x y"),
            ("a", "x\ny"),
            ("a", "$(id)"),
            ("a", "`x`"),
            ("a=b", "x"),
            ("--flag", "x"),
            ("a", "x,b=c"),
            ("a", "%n"),
            ("node-role.kubernetes.io/x", ""),
        ] {
            let mut group = Group { family, ..group("AmazonLinux2023", Kind::SelfManaged) };
            group.labels.insert(key.into(), value.into());
            let cluster = Cluster { version: Some((1, 35)), ..cluster() };
            let findings = render(&cluster, &group, mode, &Options::default()).unwrap_err();
            assert!(
                ["TN03415", "TN03416"].contains(&findings[0].problem.page.code),
                "{key}={value}"
            );
            assert!(!findings[0].problem.what.contains(value) || value.is_empty() || value == "x");
        }
    }
}

#[test]
fn kubelet_settings_are_checked_against_the_version() {
    let with = |config: Value| Group {
        kubelet_config: config.as_object().unwrap().clone(),
        ..group("AmazonLinux2023", Kind::SelfManaged)
    };
    assert_eq!(refused(&with(json!({"podPidLimit": 1})), Mode::Native), ["TN03419"]);
    assert_eq!(refused(&with(json!({"clusterDomain": "x"})), Mode::Native), ["TN03421"]);
    let twice = Group { max_pods: Some(5), ..with(json!({"maxPods": 6})) };
    assert_eq!(refused(&twice, Mode::Native), ["TN03414"]);
}

#[test]
fn secrets_are_refused_unless_allowed() {
    let group = Group {
        pre_commands: vec!["export X=AKIAIOSFODNN7EXAMPLE".into()],
        ..group("AmazonLinux2023", Kind::SelfManaged)
    };
    assert_eq!(refused(&group, Mode::Native), ["TN03424"]);
    let options = Options { allow_secrets: true, ..Options::default() };
    assert_eq!(render(&cluster(), &group, Mode::Native, &options).unwrap().findings.len(), 1);
}

/// Text that gzip cannot shrink much, in ASCII.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let mut letter = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + (state >> 33) as u8 % 90)
    };
    (0..length).map(|_| letter()).collect()
}

#[test]
fn the_limit_holds_to_the_byte() {
    let custom = |length: usize| Group {
        family: Family::Custom,
        user_text: Some("a".repeat(length)),
        ..Group::default()
    };
    for (length, fits) in [(16_383, true), (16_384, true), (16_385, false)] {
        let outcome = render(&cluster(), &custom(length), Mode::Native, &Options::default());
        assert_eq!(outcome.is_ok(), fits, "{length}");
    }
}

#[test]
fn gzip_is_used_only_where_it_is_read() {
    let long = |family: &str, kind, text: String| Group {
        pre_commands: vec![text],
        ..group(family, kind)
    };
    let flat = || format!("echo {}", "a".repeat(20_000));
    let done = rendered(&long("AmazonLinux2023", Kind::SelfManaged, flat()), Mode::Native);
    assert_eq!(done.encoding, Encoding::Gzip);
    assert_eq!(&done.bytes[..2], [0x1f, 0x8b]);
    for (family, kind) in
        [("AmazonLinux2023", Kind::Managed), ("WindowsServer2022CoreContainer", Kind::SelfManaged)]
    {
        let findings =
            render(&cluster(), &long(family, kind, flat()), Mode::Native, &Options::default())
                .unwrap_err();
        assert_eq!(codes(&findings), ["TN03420"]);
        assert!(
            findings[0].problem.details[0].contains("20,0"),
            "{:?}",
            findings[0].problem.details
        );
    }
    let findings = render(
        &cluster(),
        &long("AmazonLinux2023", Kind::SelfManaged, noise(30_000)),
        Mode::Native,
        &Options::default(),
    )
    .unwrap_err();
    assert_eq!(codes(&findings), ["TN03420"]);
    assert!(findings[0].problem.details[0].contains("preBootstrapCommands[0]"));
}

#[test]
fn signals_go_with_every_self_managed_family() {
    let signal = Signal {
        stack: "my-stack".into(),
        resource: "NodeGroup".into(),
        region: "eu-west-1".into(),
        timeout: "PT15M".into(),
    };
    for (family, mode, mark) in [
        ("AmazonLinux2023", Mode::Native, "tenon-signal.service"),
        ("AmazonLinux2", Mode::Native, "/var/lib/cloud/scripts/tenon/signal.sh"),
        ("Ubuntu2204", Mode::Native, "/run/tenon/join-status"),
        ("Bottlerocket", Mode::Native, "should-signal = true"),
        (
            "WindowsServer2022CoreContainer",
            Mode::Native,
            "Send-CFNResourceSignal -StackName 'my-stack'",
        ),
        ("AmazonLinux2023", Mode::SelfContained, "- my-stack"),
        ("AmazonLinux2023", Mode::Tenon, "--exit-code \\\"$${code:-1}\\\""),
        ("Flatcar", Mode::Tenon, "ExecMainStatus"),
    ] {
        let group = Group { signal: Some(signal.clone()), ..group(family, Kind::SelfManaged) };
        let text = text(&group, mode);
        assert!(text.contains(mark) && text.contains("my-stack"), "{family} {mode:?}");
    }
    let managed = Group { signal: Some(signal), ..group("AmazonLinux2023", Kind::Managed) };
    assert_eq!(refused(&managed, Mode::Native), ["TN03409"]);
}

#[test]
fn eksctl_labels_are_added_and_guarded() {
    let options = Options { eksctl_labels: true, ..Options::default() };
    let done =
        render(&cluster(), &group("AmazonLinux2", Kind::SelfManaged), Mode::Native, &options)
            .unwrap();
    assert!(files(&done)["/etc/eksctl/kubelet.env"].contains(
        "NODE_LABELS=\"alpha.eksctl.io/cluster-name=ironman-2022,alpha.eksctl.io/nodegroup-name=demo-self-ng\"\n"
    ));
    let mut other = group("AmazonLinux2", Kind::SelfManaged);
    other.labels.insert("alpha.eksctl.io/cluster-name".into(), "other".into());
    assert_eq!(
        codes(&render(&cluster(), &other, Mode::Native, &options).unwrap_err()),
        ["TN03414"]
    );
}

#[test]
fn control_characters_are_refused_in_every_text() {
    for text in ["a\0b", "a\u{1b}[31m", "a\rb"] {
        let group =
            Group { pre_commands: vec![text.into()], ..group("AmazonLinux2", Kind::SelfManaged) };
        assert_eq!(refused(&group, Mode::Native), ["TN03418"], "{text:?}");
    }
}

/// What `tenon init` makes of the whole user data.
fn loaded(rendered: &Rendered) -> crate::config::Config {
    let source = crate::config::SourceRead {
        uri: "imds://user-data".into(),
        origin: crate::decode::Origin::Imds,
        bytes: Some(rendered.bytes.clone()),
    };
    let loaded = crate::config::load(&[source], crate::config::Options::default());
    let loaded = loaded.unwrap_or_else(|findings| panic!("{findings:#?}"));
    assert!(loaded.findings.is_empty(), "{:#?}", loaded.findings);
    loaded.config
}

#[test]
fn the_node_reads_what_the_desk_wrote() {
    let mut group = labelled("AmazonLinux2023", Kind::SelfManaged);
    group.instance_store = Some(InstanceStore {
        strategy: DiskStrategy::Raid0,
        mount_path: None,
        disabled_mounts: vec![],
    });
    group.proxy = Some(Proxy { https: Some("http://p:3128".into()), ..Proxy::default() });
    group.kubelet_config = json!({"podPidsLimit": 100}).as_object().unwrap().clone();
    let config = loaded(&rendered(&group, Mode::Native));
    assert_eq!(config.cluster.name, "ironman-2022");
    assert_eq!(config.kubelet.config["maxPods"], 58);
    group.post_commands = vec!["echo joined".into()];
    group.max_pods_policy = MaxPodsPolicy::Min;
    let options = Options { tenon_part: true, taints_in_config: true, ..Options::default() };
    let config = loaded(&render(&cluster(), &group, Mode::Tenon, &options).unwrap());
    assert_eq!(config.node.labels["team"], "web");
    assert_eq!(config.node.taints, group.taints);
    assert_eq!(config.kubelet.max_pods.mode, crate::config::MaxPodsMode::Min(58));
    assert_eq!(config.hooks.post_join.len(), 1);
}
