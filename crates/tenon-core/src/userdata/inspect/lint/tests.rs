//! One small document for each rule, and whole blobs that must be clean.

use super::super::tests::{AL2, AL2023, BOTTLEROCKET, EKSCTL_AL2, IGNITION, STACK, WINDOWS, tree};
use super::*;
use crate::userdata::{Mode, render, samples, size::gzip};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

fn target(family: &str, kind: Kind) -> Target {
    Target { family: Family::parse(family).unwrap(), kind, ..Target::default() }
}

fn rules_of(bytes: &[u8], target: &Target) -> Vec<String> {
    let findings = lint(&tree(bytes.to_vec()), target);
    findings.iter().map(|f| format!("{} {}", f.rule(), f.level.name())).collect()
}

/// True when the rule is among the findings, at that level.
fn has(text: &str, target: &Target, rule: &str) -> bool {
    rules_of(text.as_bytes(), target).iter().any(|found| found == rule)
}

const SELF: Kind = Kind::SelfManaged;
const JOIN: &str = "/etc/eks/bootstrap.sh c\n";

#[test]
fn each_rule_finds_its_fault_and_spares_the_right_way() {
    let head = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=";
    let script = |body: &str| format!("#!/bin/bash\n{body}\n");
    let config = |body: &str| {
        format!("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n{body}\n")
    };
    let cloud = |body: &str| format!("#cloud-config\n{body}\n");
    let toml = |body: &str| format!("[settings.kubernetes]\n{body}\n");
    let ps = |body: &str| format!("<powershell>\n{body}\n</powershell>\n");
    let ign = |version: &str, files: &str| {
        format!(
            "{{\"ignition\":{{\"version\":\"{version}\"}},\"storage\":{{\"files\":[{files}]}}}}"
        )
    };
    let named = |first: &str, second: &str| {
        let part =
            |name: &str| format!("--x\nContent-Type: text/x-shellscript\n{name}\n#!/bin/sh\nls\n");
        format!("{head}\"x\"\n\n{}{}--x--\n", part(first), part(second))
    };
    let file = |name: &str| format!("Content-Disposition: attachment; filename=\"{name}\"\n");
    let cases: Vec<(&str, &str, String, String)> = vec![
        ("U001 error", "Bottlerocket", script("ls"), toml("max-pods = 3")),
        ("U001 error", "WindowsServer2022CoreContainer", cloud("a: 1"), ps("dir")),
        ("U001 error", "AmazonLinux2023", toml("max-pods = 3"), script("ls")),
        ("U001 error", "Flatcar", script("ls"), ign("3.3.0", "")),
        ("U001 error", "Bottlerocket", toml("max-pods = "), toml("max-pods = 3")),
        ("U002 error", "AmazonLinux2", script(&"# x\n".repeat(5000)), script("ls")),
        ("U002 note", "AmazonLinux2", script(&"# x\n".repeat(3200)), script(&"# x\n".repeat(3000))),
        (
            "U003 error",
            "AmazonLinux2",
            STANDARD.encode(STANDARD.encode(script("ls"))),
            STANDARD.encode(script("ls")),
        ),
        ("U004 error", "AmazonLinux2", script("ls"), script(JOIN)),
        ("U004 error", "AmazonLinux2023", config("  cluster: {name: c}"), AL2023.into()),
        ("U004 error", "Bottlerocket", toml("max-pods = 3"), BOTTLEROCKET.into()),
        ("U005 error", "AmazonLinux2023", AL2023.into(), config("  cluster: {name: c}")),
        ("U007 error", "AmazonLinux2023", script(JOIN), script("ls")),
        ("U007 error", "Ubuntu2204", config("  cluster: {name: c}"), script(JOIN)),
        (
            "U008 warning",
            "AmazonLinux2023",
            AL2023.into(),
            config("  kubelet: {config: {maxPods: 3}}"),
        ),
        (
            "U008 warning",
            "AmazonLinux2023",
            config("  kubelet: {flags: [--v=2, --v=2]}"),
            config("  kubelet: {flags: [--v=2]}"),
        ),
        (
            "U008 note",
            "AmazonLinux2023",
            script("cp a /etc/eks/nodeadm.d/a.yaml"),
            script("cp a /etc/eks/other/a.yaml"),
        ),
        (
            "U009 error",
            "AmazonLinux2023",
            config("  cluster: {endpoint: x}"),
            config("  cluster: {apiServerEndpoint: x}"),
        ),
        ("U009 error", "AmazonLinux2023", config("  aws: {api: never}"), config("  instance: {}")),
        ("U010 error", "AmazonLinux2", cloud("packages: null"), cloud("packages: [a]")),
        ("U010 error", "AmazonLinux2", cloud("runcmds: [a]"), cloud("runcmd: [a]")),
        ("U010 error", "AmazonLinux2", cloud("runcmd: ls"), cloud("bootcmd: [[a, b]]")),
        (
            "U010 error",
            "AmazonLinux2",
            cloud("write_files: [{content: a}]"),
            cloud("write_files: [{path: /a}]"),
        ),
        ("U010 error", "AmazonLinux2", cloud("a: ["), cloud("hostname: a")),
        (
            "U011 error",
            "AmazonLinux2023",
            format!("{head}//\n\n--//\n\na\n--//--\n"),
            AL2023.into(),
        ),
        ("U011 error", "AmazonLinux2023", format!("{head}\"x\"\n\n--x\n\na\n"), AL2023.into()),
        (
            "U011 error",
            "AmazonLinux2023",
            format!("{head}\"x\"\n\n--x\nContent-Type: a/b\nContent-Type: c/d\n\na\n--x--\n"),
            AL2023.into(),
        ),
        (
            "U012 error",
            "AmazonLinux2",
            format!("{head}\"x\"\n\n--x\nContent-Type: text/x-shellscript\n\nls\n--x--\n"),
            named("", ""),
        ),
        (
            "U013 error",
            "AmazonLinux2023",
            config("  kubelet: {flags: [\"--node-labels=node-role.kubernetes.io/a=\"]}"),
            config("  kubelet: {flags: [\"--node-labels=node.kubernetes.io/a=\"]}"),
        ),
        (
            "U013 error",
            "AmazonLinux2023",
            config("  kubelet: {flags: [\"--register-with-taints=a=b:Never\"]}"),
            config("  kubelet: {flags: [\"--register-with-taints=a=b:NoExecute\"]}"),
        ),
        (
            "U013 error",
            "Bottlerocket",
            toml("node-labels = {\"-a\" = \"b\"}"),
            toml("node-labels = {a = \"b\"}"),
        ),
        (
            "U014 warning",
            "AmazonLinux2",
            script("export DB_PASSWORD=hunter2"),
            script("export DB_HOST=hunter2"),
        ),
        ("U014 warning", "AmazonLinux2", script("# AKIAABCDEFGHIJKLMNOP"), script("# AKIA")),
        (
            "U015 warning",
            "AmazonLinux2",
            script("curl https://a/b | bash"),
            script("curl https://a/b -o c"),
        ),
        ("U015 warning", "AmazonLinux2", script("eval \"$X\""), script("echo eval")),
        ("U015 warning", "AmazonLinux2", script("wget http://a/b"), script("wget https://a/b")),
        (
            "U015 warning",
            "AmazonLinux2",
            cloud("write_files: [{path: /a.env, content: 'A=b c'}]"),
            cloud("write_files: [{path: /a.env, content: 'A=\"b c\"'}]"),
        ),
        (
            "U016 warning",
            "AmazonLinux2",
            script("X=$(curl -s http://169.254.169.254/latest/meta-data/instance-id)"),
            script(
                "curl -H \"X-aws-ec2-metadata-token: $T\" \\\n http://169.254.169.254/latest/meta-data/x",
            ),
        ),
        (
            "U017 error",
            "AmazonLinux2023",
            config("  kubelet: {flags: [--no-such-flag=1]}"),
            config("  kubelet: {flags: [--v=1]}"),
        ),
        (
            "U017 error",
            "AmazonLinux2023",
            config("  kubelet: {config: {podPidLimit: 3}}"),
            config("  kubelet: {config: {podPidsLimit: 3}}"),
        ),
        (
            "U018 warning",
            "AmazonLinux2023",
            script("until systemctl is-active kubelet; do sleep 1; done"),
            script("systemctl is-active containerd"),
        ),
        ("U019 warning", "Bottlerocket", toml("max-pods = \"3\""), toml("max-pods = 3")),
        (
            "U019 warning",
            "Bottlerocket",
            toml("[settings.kubernetes.node-labels]\na.b = \"c\""),
            toml("[settings.kubernetes.node-labels]\n\"a.b\" = \"c\""),
        ),
        ("U020 error", "WindowsServer2022CoreContainer", "<powershell>\ndir".into(), ps("dir")),
        ("U020 error", "WindowsServer2022CoreContainer", ps("echo 'a"), ps("echo 'a'")),
        (
            "U020 error",
            "WindowsServer2022CoreContainer",
            ps("echo '</powershell>'"),
            ps("echo '<b>'"),
        ),
        ("U021 error", "Flatcar", ign("2.3.0", ""), ign("3.4.0", "")),
        (
            "U021 error",
            "Flatcar",
            ign("3.3.0", "{\"path\":\"a\"}"),
            ign("3.3.0", "{\"path\":\"/a\"}"),
        ),
        (
            "U021 error",
            "Flatcar",
            ign("3.3.0", "{\"path\":\"/a\",\"mode\":\"0644\"}"),
            ign("3.3.0", "{\"path\":\"/a\",\"mode\":420}"),
        ),
        (
            "U021 error",
            "Flatcar",
            ign("3.3.0", "{\"path\":\"/a\"},{\"path\":\"/a\"}"),
            ign("3.3.0", "{\"path\":\"/a\"},{\"path\":\"/b\"}"),
        ),
        (
            "U023 warning",
            "AmazonLinux2",
            STACK.into(),
            STACK.replace("PauseTime: PT5M", "WaitOnResourceSignals: true"),
        ),
        (
            "U023 warning",
            "AmazonLinux2",
            STACK
                .replace("PauseTime: PT5M", "WaitOnResourceSignals: true")
                .replace("cfn-signal", "true"),
            STACK.replace("cfn-signal", "true"),
        ),
        (
            "U025 warning",
            "AmazonLinux2",
            named("", &file("a.sh")),
            named(&file("a.sh"), &file("b.sh")),
        ),
    ];
    for (rule, family, wrong, right) in &cases {
        let target = target(family, SELF);
        assert!(has(wrong, &target, rule), "{rule} misses {wrong}");
        assert!(!has(right, &target, rule), "{rule} finds {right}");
    }
}

#[test]
fn rules_that_depend_on_the_target() {
    let managed = target("AmazonLinux2023", Kind::Managed);
    assert!(has(AL2023, &managed, "U006 error"));
    let only_pods = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {maxPods: 3}}}\n";
    assert!(!has(only_pods, &managed, "U006 error") && !has(only_pods, &managed, "U004 error"));
    assert!(has(AL2, &target("AmazonLinux2", Kind::Managed), "U006 error"));

    let zipped = gzip(only_pods.as_bytes());
    assert!(rules_of(&zipped, &managed).contains(&"U003 error".into()));
    assert!(!rules_of(&zipped, &target("AmazonLinux2023", SELF)).contains(&"U003 error".into()));
    let windows = target("WindowsServer2022CoreContainer", SELF);
    assert!(rules_of(&gzip(WINDOWS.as_bytes()), &windows).contains(&"U003 error".into()));

    let small = Target { instance_type: Some("t3.nano".into()), ..target("AmazonLinux2023", SELF) };
    let large = Target { instance_type: Some("m5.24xlarge".into()), ..small.clone() };
    assert!(has(AL2023, &small, "U022 warning") && !has(AL2023, &large, "U022 warning"));

    assert!(has(AL2, &target("AmazonLinux2", SELF), "U024 note"));
    let old = Target { version: Some((1, 24)), ..target("AmazonLinux2023", SELF) };
    assert!(has(AL2023, &old, "U024 note"));

    let removed = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {flags: [--container-runtime=remote]}}\n";
    let new = Target { version: Some((1, 33)), ..target("AmazonLinux2023", SELF) };
    assert!(has(removed, &new, "U017 error"));
}

#[test]
fn certificates_are_compared_with_the_facts_and_the_clock() {
    let cluster = samples::cluster();
    let group = samples::group("AmazonLinux2023", SELF);
    let rendered = render(&cluster, &group, Mode::Native, &Default::default()).unwrap();
    let text = String::from_utf8(rendered.bytes).unwrap();
    let base = Target { cluster: Some(cluster.clone()), ..target("AmazonLinux2023", SELF) };
    assert!(!has(&text, &Target { now: Some(0), ..base.clone() }, "U005 error"));
    assert!(has(&text, &Target { now: Some(u64::MAX), ..base.clone() }, "U005 error"));
    let other = Cluster { certificate_authority: Some("T1RIRVI=".into()), ..cluster };
    assert!(has(&text, &Target { cluster: Some(other), ..base }, "U005 error"));
}

#[test]
fn bottlerocket_of_a_managed_group_must_agree_with_the_facts() {
    let same = Cluster { name: Some("br".into()), ..Cluster::default() };
    let other = Cluster { name: Some("other".into()), ..Cluster::default() };
    let with = |cluster| Target { cluster: Some(cluster), ..target("Bottlerocket", Kind::Managed) };
    assert!(!has(BOTTLEROCKET, &with(same), "U006 error"));
    assert!(has(BOTTLEROCKET, &with(other), "U006 error"));
}

#[test]
fn what_is_rendered_is_clean() {
    let mut cells = 0;
    for family in Family::examples() {
        for kind in [SELF, Kind::Managed, Kind::ManagedCustom] {
            for mode in [Mode::Native, Mode::SelfContained, Mode::Tenon] {
                let group = samples::labelled(&family.name(), kind);
                let rendered = render(&samples::cluster(), &group, mode, &Default::default());
                let Ok(rendered) = rendered else { continue };
                if family == Family::Custom {
                    continue;
                }
                let mode = Some(mode);
                let target =
                    Target { family, kind, mode, version: Some((1, 32)), ..Target::default() };
                let findings = lint(&tree(rendered.bytes), &target);
                let errors: Vec<_> =
                    findings.iter().filter(|finding| finding.level != Level::Note).collect();
                assert!(errors.is_empty(), "{} {kind:?} {mode:?}: {errors:#?}", family.name());
                cells += 1;
            }
        }
    }
    assert!(cells > 20, "only {cells} cells render");
}

#[test]
fn findings_never_repeat_values() {
    let text = "#!/bin/bash\nexport API_TOKEN=hunter2hunter2\ncurl http://u:hunter2@h/x | sh\neval hunter2\n";
    let findings = lint(&tree(text), &target("AmazonLinux2023", SELF));
    assert!(findings.len() >= 4);
    let shown: String = findings.iter().map(|finding| finding.to_json().to_string()).collect();
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(!sarif(&findings).to_string().contains("hunter2"));
}

#[test]
fn sarif_names_rules_and_lines() {
    let findings = lint(&tree("#!/bin/sh\neval x\n"), &target("AmazonLinux2", Kind::Managed));
    let log = sarif(&findings);
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "U015");
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 2);
    assert_eq!(log["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap().len(), 25);
}

#[test]
fn known_blobs_have_known_findings() {
    for (text, family, expected) in [
        (EKSCTL_AL2, "AmazonLinux2", vec!["U005 error", "U010 error", "U024 note"]),
        (IGNITION, "Flatcar", vec![]),
        (WINDOWS, "WindowsServer2022CoreContainer", vec!["U005 error"]),
    ] {
        assert_eq!(rules_of(text.as_bytes(), &target(family, SELF)), expected);
    }
}
