//! From family to family, with the account of each setting.

use super::super::settings::Settings;
use super::super::tests::{AL2, AL2023, BOTTLEROCKET, WINDOWS, tree};
use super::*;
use crate::userdata::{render, samples};

/// A blob with a CA that is one.
fn real(blob: &str) -> Node {
    let authority = samples::cluster().certificate_authority.unwrap();
    tree(blob.replace("LS0tLS1CRUdJTg==", &authority))
}

fn facts() -> Cluster {
    let Cluster { service_cidr, region, version, .. } = samples::cluster();
    Cluster { service_cidr, region, version, ..Cluster::default() }
}

fn to(text: &str) -> Target {
    Target::parse(text).unwrap()
}

fn fates(converted: &Converted, fate: Fate) -> Vec<&str> {
    let entries = converted.account.iter().filter(|entry| entry.fate == fate);
    entries.map(|entry| entry.setting.as_str()).collect()
}

fn settings(converted: &Converted) -> Settings {
    collect(&tree(converted.rendered.bytes.clone()))
}

#[test]
fn targets_are_read() {
    for (text, kind, mode) in [
        ("AmazonLinux2023", Kind::SelfManaged, Mode::Native),
        ("AmazonLinux2/managed", Kind::Managed, Mode::Native),
        ("Flatcar", Kind::SelfManaged, Mode::SelfContained),
        ("Ubuntu2204/custom:self-contained", Kind::ManagedCustom, Mode::SelfContained),
        ("AmazonLinux2:tenon", Kind::SelfManaged, Mode::Tenon),
    ] {
        let target = to(text);
        assert_eq!((target.kind, target.mode), (kind, mode), "{text}");
    }
    for wrong in ["", "Debian", "AmazonLinux2/x", "AmazonLinux2:x", "AmazonLinux2:native/managed"] {
        assert_eq!(Target::parse(wrong).unwrap_err().exit(), 3, "{wrong}");
    }
}

#[test]
fn bootstrap_arguments_become_a_node_config() {
    let converted = convert(&real(AL2), to("AmazonLinux2023"), &facts()).unwrap();
    assert!(converted.is_lossless(), "{:#?}", converted.account);
    let settings = settings(&converted);
    assert_eq!(settings.text(&["cluster", "name"]), Some("my-cluster"));
    assert_eq!(settings.text(&["labels", "team"]), Some("web"));
    assert_eq!(settings.text(&["taints", "special", "NoSchedule"]), Some("true"));
    assert_eq!(settings.get(&["maxPods"]), Some(&17.into()));
    assert_eq!(settings.text(&["clusterDns"]), Some("10.100.0.10"));
    assert!(settings.join.is_none() && settings.pre[0].text.contains("yum install"));
    assert_eq!(fates(&converted, Fate::Mapped), ["bootstrap.use-max-pods"]);
    assert_eq!(fates(&converted, Fate::NeedsReview).len(), 2);
}

#[test]
fn docker_and_unknown_options_are_lost() {
    let text = AL2
        .replace("--use-max-pods false", "--container-runtime dockerd --docker-config-json '{}'");
    let converted = convert(&real(&text), to("AmazonLinux2023"), &facts()).unwrap();
    assert_eq!(fates(&converted, Fate::Lost), ["bootstrap.docker-config-json", "containerRuntime"]);
}

#[test]
fn bottlerocket_loses_scripts_and_what_it_has_no_setting_for() {
    let text =
        AL2023.replace("evictionHard:", "nodeStatusUpdateFrequency: 5s\n      evictionHard:");
    let converted = convert(&real(&text), to("Bottlerocket"), &facts()).unwrap();
    assert_eq!(
        fates(&converted, Fate::Lost),
        [
            "environment.default.HTTPS_PROXY",
            "kubelet.config.nodeStatusUpdateFrequency",
            "preCommands.\"1 (part 1 (text/x-shellscript))\"",
        ]
    );
    let settings = settings(&converted);
    assert_eq!(
        settings.text(&["kubelet", "config", "evictionHard", "memory.available"]),
        Some("300Mi")
    );
    assert_eq!(settings.get(&["maxPods"]), Some(&30.into()));
}

#[test]
fn flags_are_lost_where_there_are_only_settings() {
    let text = AL2023
        .replace("    - --node-labels=tier=back", "    - --node-labels=tier=back\n    - --v=2");
    let converted = convert(&real(&text), to("Bottlerocket"), &facts()).unwrap();
    assert!(fates(&converted, Fate::Lost).contains(&"kubelet.flags.v"), "{:#?}", converted.account);
}

#[test]
fn linux_scripts_do_not_run_on_windows_nor_the_other_way_round() {
    let windows = convert(&real(AL2), to("WindowsServer2022CoreContainer"), &facts()).unwrap();
    assert_eq!(fates(&windows, Fate::Lost).len(), 2);
    assert_eq!(settings(&windows).text(&["labels", "team"]), Some("web"));
    let linux = convert(&real(WINDOWS), to("AmazonLinux2023"), &facts()).unwrap();
    assert_eq!(fates(&linux, Fate::Lost).len(), 2);
    let bottlerocket = convert(&real(BOTTLEROCKET), to("AmazonLinux2023"), &facts()).unwrap();
    assert!(
        fates(&bottlerocket, Fate::Lost).contains(&"bottlerocket.host-containers.admin.enabled")
    );
}

#[test]
fn fields_that_a_group_has_not_keep_their_own_document() {
    let text = AL2023.replace(
        "  instance:\n",
        "  containerd: {baseRuntimeSpec: {process: {noNewPrivileges: true}}}\n  instance:\n",
    );
    let converted = convert(&real(&text), to("AmazonLinux2023"), &facts()).unwrap();
    assert!(converted.is_lossless());
    let found = settings(&converted);
    let key = ["containerd", "baseRuntimeSpec", "process", "noNewPrivileges"];
    assert_eq!(found.get(&key), Some(&true.into()));
}

#[test]
fn files_of_the_user_are_carried_or_written_by_a_script() {
    let text = "#cloud-config\nwrite_files:\n- {path: /opt/it's, content: \"a\\n\", permissions: '0600'}\nruncmd:\n\
        - [/etc/eks/bootstrap.sh, c, --apiserver-endpoint, 'https://e.example.com', --b64-cluster-ca, LS0tLS1CRUdJTg==]\n";
    let converted = convert(&real(text), to("AmazonLinux2023"), &facts()).unwrap();
    assert_eq!(fates(&converted, Fate::Mapped), ["files.\"/opt/it's\""]);
    let script = &settings(&converted).pre[0].text;
    assert!(script.contains("echo YQo= | base64 -d > '/opt/it'\\''s'\nchmod 0600 "), "{script}");
}

#[test]
fn a_missing_cluster_is_an_error_with_findings() {
    let findings = convert(&tree("#!/bin/sh\nls\n"), to("AmazonLinux2023"), &facts()).unwrap_err();
    assert!(findings.iter().any(|finding| finding.stops(false) && finding.problem.exit() == 3));
}

#[test]
fn own_output_converts_to_itself() {
    for kind in [Kind::SelfManaged, Kind::ManagedCustom] {
        let mut group = samples::labelled("AmazonLinux2023", kind);
        group.pre_commands = vec!["echo one".into(), "#!/bin/sh\necho two\n".into()];
        let taint = |key: &str| crate::config::Taint {
            key: key.into(),
            value: "v".into(),
            effect: "NoExecute".into(),
        };
        group.taints.extend([taint("z"), taint("a")]);
        group.kubelet_config = serde_json::from_str(r#"{"podPidsLimit": 100}"#).unwrap();
        let rendered =
            render(&samples::cluster(), &group, Mode::Native, &Default::default()).unwrap();
        let target = Target { family: Family::AmazonLinux2023, kind, mode: Mode::Native };
        let again = convert(&tree(rendered.bytes.clone()), target, &Cluster::default()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(text(&again.rendered.bytes), text(&rendered.bytes), "{kind:?}");
        assert!(again.is_lossless());
    }
}

/// What a group is stays the same through every pair of families.
#[test]
fn labels_taints_and_cluster_survive_every_pair() {
    let families = [
        "AmazonLinux2",
        "AmazonLinux2023",
        "Ubuntu2204",
        "Bottlerocket",
        "WindowsServer2022CoreContainer",
        "Flatcar",
    ];
    let mut pairs = 0;
    for from in families {
        let family = Family::parse(from).unwrap();
        let group = samples::labelled(from, Kind::SelfManaged);
        let rendered =
            render(&samples::cluster(), &group, family.default_mode(), &Default::default())
                .unwrap();
        for into in families {
            let converted = match convert(&tree(rendered.bytes.clone()), to(into), &facts()) {
                Ok(converted) => converted,
                Err(findings) => panic!("{from} to {into}: {findings:#?}"),
            };
            let found = settings(&converted);
            assert_eq!(found.text(&["labels", "team"]), Some("web"), "{from} to {into}");
            assert_eq!(
                found.text(&["taints", "special", "NoSchedule"]),
                Some("true"),
                "{from} to {into}"
            );
            assert_eq!(
                found.text(&["cluster", "endpoint"]),
                samples::cluster().endpoint.as_deref()
            );
            assert_eq!(found.get(&["maxPods"]), Some(&58.into()), "{from} to {into}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, 36);
}
