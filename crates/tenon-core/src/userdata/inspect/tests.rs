//! Whole blobs, read as users have them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use super::settings::{Settings, collect, shown};
use super::*;
use crate::userdata::samples;
use crate::userdata::size::gzip;
use crate::userdata::{self as render_room, Family, Mode};

pub(super) const EKSCTL_AL2: &str = include_str!("blobs/eksctl-al2.yaml");
pub(super) const AL2023: &str = include_str!("blobs/al2023.mime");
pub(super) const BOTTLEROCKET: &str = include_str!("blobs/bottlerocket.toml");
pub(super) const WINDOWS: &str = include_str!("blobs/windows.ps1");
pub(super) const STACK: &str = include_str!("blobs/stack.yaml");
pub(super) const IGNITION: &str = include_str!("blobs/ignition.json");
pub(super) const AL2: &str = include_str!("blobs/al2.sh");

pub(super) fn tree(bytes: impl Into<Vec<u8>>) -> Node {
    read("test:", bytes.into(), &Options::default()).unwrap()
}

fn settings(text: &str) -> Settings {
    collect(&tree(text))
}

fn lines(settings: &Settings) -> Vec<String> {
    settings.values.iter().map(|(key, s)| format!("{}={}", shown(key), s.value)).collect()
}

fn kinds(node: &Node) -> Vec<&'static str> {
    node.walk().iter().map(|(_, node)| node.kind.name()).collect()
}

#[test]
fn the_manual_decoding_of_a_stack_is_one_call() {
    // As `get-template --query …UserData` prints it: a JSON string of base64 of gzip.
    let blob = format!("\"{}\"\n", STANDARD.encode(gzip(EKSCTL_AL2.as_bytes())));
    let node = tree(blob);
    assert_eq!(kinds(&node)[..4], ["JSON string", "base64", "gzip", "cloud-config"]);
    assert_eq!(lines(&collect(&node)), lines(&settings(EKSCTL_AL2)));
}

#[test]
fn eksctl_files_are_followed_into_their_scripts() {
    let settings = settings(EKSCTL_AL2);
    assert_eq!(
        lines(&settings),
        [
            "cluster.certificateAuthority=\"LS0tLS1CRUdJTg==\"",
            "cluster.endpoint=\"https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com\"",
            "cluster.name=\"ironman-2022\"",
            "clusterDns=\"10.100.0.10\"",
            "containerRuntime=\"containerd\"",
            "kubelet.config.evictionHard.\"memory.available\"=\"300Mi\"",
            "kubelet.config.featureGates.KubeletTracing=true",
            "labels.\"alpha.eksctl.io/cluster-name\"=\"ironman-2022\"",
            "labels.\"alpha.eksctl.io/nodegroup-name\"=\"demo-self-ng\"",
            "taints.special.NoSchedule=\"true\"",
        ]
    );
    assert_eq!(
        settings.run_time.keys().map(shown).collect::<Vec<_>>(),
        ["bootstrap.kubelet-extra-args"]
    );
    assert_eq!(settings.pre.len(), 1);
    assert_eq!(settings.pre[0].first_line(), "yum install -y nfs-utils");
    assert_eq!((settings.post.len(), settings.files.len()), (0, 4));
    assert_eq!(settings.join.as_ref().unwrap().0, "/etc/eks/bootstrap.sh");
}

#[test]
fn node_configs_are_merged_in_order() {
    let settings = settings(AL2023);
    let value = |names: &[&str]| settings.values[&settings::key(names)].clone();
    let pods = value(&["maxPods"]);
    assert_eq!(pods.value, 30);
    assert_eq!(pods.from, "part 3 (application/node.eks.aws)");
    assert_eq!(pods.overrode, ["part 2 (application/node.eks.aws)"]);
    assert_eq!(value(&["labels", "tier"]).value, "back");
    assert_eq!(value(&["labels", "team"]).value, "web");
    assert_eq!(value(&["instanceStore", "strategy"]).value, "RAID0");
    assert_eq!(settings.pre.len(), 1);
    assert_eq!(settings.remote.keys().collect::<Vec<_>>(), ["https://example.com"]);
    assert_eq!(settings.programs.keys().collect::<Vec<_>>(), ["curl", "dnf"]);
}

#[test]
fn bottlerocket_windows_and_scripts_give_the_same_form() {
    let br = settings(BOTTLEROCKET);
    assert_eq!(br.text(&["cluster", "name"]), Some("br"));
    assert_eq!(br.below(&["taints", "special"]).count(), 2);
    assert_eq!(br.text(&["labels", "example.com/tier"]), Some("front"));
    assert_eq!(
        br.get(&["bottlerocket", "host-containers", "admin", "enabled"]),
        Some(&true.into())
    );
    assert_eq!(br.signals.len(), 1);

    let win = settings(WINDOWS);
    assert_eq!(win.text(&["cluster", "cidr"]), Some("10.100.0.0/16"));
    assert_eq!(win.get(&["maxPods"]), Some(&20.into()));
    let first = |commands: &[settings::Command]| commands[0].text.clone();
    assert!(first(&win.pre).contains("Install-WindowsFeature"));
    assert_eq!(first(&win.post), "Write-Host done\n");

    let al2 = settings(AL2);
    assert_eq!(al2.text(&["clusterDns"]), Some("10.100.0.10"));
    assert_eq!(al2.text(&["bootstrap", "use-max-pods"]), Some("false"));
    assert!(first(&al2.pre).starts_with("#!/bin/bash\nset -ex\nyum install"));
    assert_eq!(first(&al2.post), "#!/bin/bash\nsystemctl enable --now amazon-ssm-agent\n");
}

#[test]
fn templates_show_the_user_data_they_embed() {
    let node = tree(STACK);
    assert_eq!(kinds(&node), ["CloudFormation template", "script"]);
    assert_eq!(
        node.children[0].name,
        "Resources.NodeLaunchTemplate.Properties.LaunchTemplateData.UserData"
    );
    let settings = collect(node.documents()[0]);
    assert_eq!(settings.run_time.keys().map(shown).collect::<Vec<_>>(), ["bootstrap.arguments"]);

    let parameters =
        [("ClusterName", "prod"), ("BootstrapArguments", "--dns-cluster-ip 10.0.0.10")];
    let parameters = parameters.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let node = read("test:", STACK.into(), &Options { parameters }).unwrap();
    let settings = collect(node.documents()[0]);
    assert_eq!(lines(&settings), ["cluster.name=\"prod\"", "clusterDns=\"10.0.0.10\""]);

    let encoded = STANDARD.encode(AL2);
    for json in [
        format!(
            "{{\"LaunchTemplateVersions\": [{{\"LaunchTemplateData\": {{\"UserData\": \"{encoded}\"}}}}]}}"
        ),
        format!(
            "{{\"terraform_version\": \"1.9\", \"values\": {{\"user_data_base64\": \"{encoded}\"}}}}"
        ),
        format!("{{\"InstanceId\": \"i-1\", \"UserData\": {{\"Value\": \"{encoded}\"}}}}"),
        format!(
            "{{\"TemplateBody\": {{\"Resources\": {{\"L\": {{\"UserData\": \"{encoded}\"}}}}}}}}"
        ),
    ] {
        let node = tree(json.clone());
        let documents = node.documents();
        assert_eq!(documents.len(), 1, "{json}");
        assert_eq!(collect(documents[0]).text(&["cluster", "name"]), Some("my-cluster"), "{json}");
    }
}

#[test]
fn ignition_files_and_units_are_read() {
    let settings = settings(IGNITION);
    assert_eq!(
        lines(&settings),
        [
            "clusterDns=\"10.100.0.10\"",
            "kubelet.config.serverTLSBootstrap=true",
            "labels.team=\"web\"",
            "maxPods=58"
        ]
    );
    let paths: Vec<_> = settings.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/etc/tenon/kubelet.env",
            "/etc/tenon/kubelet.yaml",
            "/opt/remote",
            "/etc/systemd/system/tenon-bootstrap.service",
            "/etc/systemd/system/kubelet.service.d/10-tenon.conf",
        ]
    );
    assert_eq!(settings.remote.keys().collect::<Vec<_>>(), ["https://configs.example.com"]);
}

#[test]
fn what_cannot_be_read_is_opaque_and_limits_are_errors() {
    for (bytes, kinds_expected) in [
        (Vec::new(), vec!["empty"]),
        (b" \n".to_vec(), vec!["empty"]),
        (b"\xff\xfeh\0i\0".to_vec(), vec!["opaque"]),
        (b"\x1f\x8bnot gzip".to_vec(), vec!["opaque"]),
        (b"just words".to_vec(), vec!["text"]),
        (b"a: [".to_vec(), vec!["text"]),
        (b"#cloud-config\na: [".to_vec(), vec!["cloud-config"]),
        (b"[settings]\nx = ".to_vec(), vec!["Bottlerocket settings"]),
        (STANDARD.encode(b"\x00\xff\x00binary bytes here").into_bytes(), vec!["text"]),
    ] {
        assert_eq!(kinds(&tree(bytes.clone())), kinds_expected, "{bytes:?}");
    }
    let bomb = gzip(&vec![0; 4 << 20]);
    let limits = [bomb, vec![b'x'; read::SOURCE_BYTES + 1], layered(3)];
    for bytes in limits {
        assert_eq!(read("test:", bytes, &Options::default()).unwrap_err().exit(), 3);
    }
    assert!(read("test:", layered(2), &Options::default()).is_ok());
}

/// A script inside that many gzip layers.
fn layered(count: usize) -> Vec<u8> {
    (0..count).fold(b"#!/bin/sh\n".to_vec(), |bytes, _| gzip(&bytes))
}

#[test]
fn reports_show_no_secret() {
    let text = AL2023.replace("dnf install -y", "PASSWORD=hunter2 dnf install -y");
    let node = tree(text.clone());
    let report = report(&node);
    assert!(!report.to_text(false).contains("hunter2"));
    assert!(!report.to_json(false).to_string().contains("hunter2"));
    assert!(report.to_text(true).contains("hunter2"));
    assert!(
        report
            .to_text(false)
            .contains("maxPods: 30  [part 3 (application/node.eks.aws), overrides part 2")
    );
}

#[test]
fn long_commands_are_cut_after_their_secrets_are_hidden() {
    let token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4eHh4eHh4eHh4In0.c2lnbmF0dXJl";
    let text = format!("#!/bin/sh\necho {} {token}\n", "x".repeat(90));
    let settings = settings(&text);
    let line = settings.pre[0].shown_line(false);
    assert!(line.ends_with("***") && line.chars().count() <= 121, "{line}");
    let long = settings::Command { from: String::new(), text: "y".repeat(500) };
    assert_eq!(long.shown_line(false).chars().count(), 121);
}

#[test]
fn pieces_are_the_innermost_parts() {
    let blob = STANDARD.encode(gzip(EKSCTL_AL2.as_bytes()));
    let paths: Vec<_> = extract::pieces(&tree(blob)).into_iter().map(|piece| piece.path).collect();
    assert_eq!(
        paths,
        [
            "user-data.cloud-config.yaml",
            "files/etc/eksctl/kubelet-extra.json",
            "files/etc/eksctl/kubelet.env",
            "files/var/lib/cloud/scripts/eksctl/bootstrap.al2.sh",
            "files/var/lib/cloud/scripts/eksctl/bootstrap.helper.sh",
        ]
    );
    let names = |text: &str| -> Vec<String> {
        extract::pieces(&tree(text)).into_iter().map(|piece| piece.path).collect()
    };
    assert_eq!(names(AL2), ["user-data.sh"]);
    assert_eq!(names(AL2023), ["part-1.sh", "part-2.yaml", "part-3.yaml"]);
    assert_eq!(names(WINDOWS), ["block-1.ps1"]);
    assert_eq!(extract::pieces(&tree(AL2))[0].bytes, AL2.as_bytes());
}

/// What is rendered can be read back, in every cell that renders.
#[test]
fn rendered_documents_read_back() {
    let mut cells = 0;
    for family in Family::examples() {
        for kind in [render_room::Kind::SelfManaged, render_room::Kind::ManagedCustom] {
            for mode in [Mode::Native, Mode::SelfContained, Mode::Tenon] {
                let group = samples::labelled(&family.name(), kind);
                let cluster = samples::cluster();
                let rendered = render_room::render(&cluster, &group, mode, &Default::default());
                let Ok(rendered) = rendered else { continue };
                if family == Family::Custom {
                    continue;
                }
                let settings = collect(&tree(rendered.bytes));
                let name = format!("{} {kind:?} {mode:?}", family.name());
                assert_eq!(settings.text(&["labels", "team"]), Some("web"), "{name}");
                assert_eq!(
                    settings.text(&["taints", "special", "NoSchedule"]),
                    Some("true"),
                    "{name}"
                );
                assert_eq!(
                    settings.text(&["cluster", "endpoint"]),
                    cluster.endpoint.as_deref(),
                    "{name}"
                );
                assert_eq!(
                    settings.text(&["cluster", "certificateAuthority"]),
                    cluster.certificate_authority.as_deref(),
                    "{name}"
                );
                cells += 1;
            }
        }
    }
    assert!(cells > 20, "only {cells} cells render");
}

/// Blobs with bytes changed at random places.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let whole = [EKSCTL_AL2, AL2023, BOTTLEROCKET, WINDOWS, STACK, IGNITION, AL2];
    let blob = prop::sample::select(whole.to_vec());
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12);
    (blob, changes, any::<bool>(), any::<prop::sample::Index>()).prop_map(
        |(text, changes, wrap, cut)| {
            let mut bytes = text.as_bytes().to_vec();
            for (index, byte) in changes {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
            bytes.truncate(1 + cut.index(bytes.len()));
            if wrap { STANDARD.encode(gzip(&bytes)).into_bytes() } else { bytes }
        },
    )
}

#[test]
fn units_give_the_flags_that_are_literal() {
    let text = "#cloud-config\nwrite_files:\n- path: /etc/systemd/system/kubelet.service.d/10-x.conf\n  content: |\n    \
        [Service]\n    ExecStart=\n    ExecStart=/usr/bin/kubelet \\\n      --node-ip=${NODE_IP} --max-pods=9 --v=2\n";
    assert_eq!(lines(&settings(text)), ["kubelet.flags.v=\"2\"", "maxPods=9"]);
}

/// Runs everything that reads over the bytes.
fn everything(bytes: Vec<u8>) {
    for (family, ours) in [
        (Family::AmazonLinux2023, AL2023),
        (Family::Bottlerocket { fips: false }, BOTTLEROCKET),
        (Family::Windows { year: 2022, full: false }, WINDOWS),
        (Family::Flatcar, IGNITION),
    ] {
        let options = merge::Options { family, ..merge::Options::default() };
        let _ = merge::merge(&bytes, ours.as_bytes(), &options);
    }
    let Ok(node) = read("test:", bytes, &Options::default()) else { return };
    for family in [Family::AmazonLinux2023, Family::AmazonLinux2, Family::Flatcar] {
        for finding in lint::lint(&node, &lint::Target { family, ..lint::Target::default() }) {
            finding.problem.render("error");
        }
        let (kind, mode) = (render_room::Kind::SelfManaged, family.default_mode());
        let target = convert::Target { family, kind, mode };
        let _ = convert::convert(&node, target, &samples::cluster());
    }
    let report = report(&node);
    let _ = (report.to_text(false), report.to_json(false));
    for piece in extract::pieces(&node) {
        assert!(!piece.path.starts_with('/') && !piece.path.split('/').any(|part| part == ".."));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2048)) {
        everything(bytes);
    }

    #[test]
    fn random_text_never_panics(text in "(#!|#cloud-config\n|<powershell>|\\[settings\\]\n|)[ -~\n\t$\"'`<>|&;(){}ü]{0,400}") {
        everything(text.into_bytes());
    }

    #[test]
    fn changed_blobs_never_panic(bytes in mutated()) {
        everything(bytes);
    }
}
