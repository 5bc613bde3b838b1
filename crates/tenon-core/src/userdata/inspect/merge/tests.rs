//! Each family's rule, on small documents and on what Tenon renders.

use super::super::tests::{AL2, AL2023, BOTTLEROCKET, EKSCTL_AL2, IGNITION, WINDOWS, tree};
use super::*;
use crate::userdata::{Kind as Owner, Mode, render, render_with, samples, size::gzip};

fn options(family: &str) -> Options {
    Options { family: Family::parse(family).unwrap(), ..Options::default() }
}

fn text(custom: &str, ours: &str, options: &Options) -> String {
    let merged = merge(custom.as_bytes(), ours.as_bytes(), options).unwrap();
    String::from_utf8(merged.bytes).unwrap()
}

const FAMILIES: [(&str, &str); 6] = [
    ("AmazonLinux2", EKSCTL_AL2),
    ("Ubuntu2204", AL2),
    ("AmazonLinux2023", AL2023),
    ("Bottlerocket", BOTTLEROCKET),
    ("WindowsServer2022CoreContainer", WINDOWS),
    ("Flatcar", IGNITION),
];

#[test]
fn equal_documents_merge_to_themselves_and_nothing_changes_nothing() {
    for (family, blob) in FAMILIES {
        assert_eq!(text(blob, blob, &options(family)), blob, "{family}");
        assert_eq!(text("", blob, &options(family)), blob, "{family}");
        assert_eq!(text(blob, "anything", &options("Custom")), blob);
    }
}

#[test]
fn messages_keep_the_users_parts_and_order() {
    let script = "#!/bin/sh\necho hi\n";
    let merged = text(script, AL2023, &options("AmazonLinux2023"));
    let kinds = |text: &str| -> Vec<Option<String>> {
        tree(text).children.iter().map(|part| part.media_type.clone()).collect()
    };
    let names =
        |list: &[&str]| list.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
    let (shell, node) = ("text/x-shellscript", "application/node.eks.aws");
    assert_eq!(kinds(&merged), names(&[shell, shell, node, node]));
    assert_eq!(tree(merged.clone()).children[0].text(), script);
    let first = Options { ours: Placement::First, ..options("AmazonLinux2023") };
    assert_eq!(kinds(&text(script, AL2023, &first)), names(&[shell, node, node, shell]));
    let after = Options { ours: Placement::After("part 1".into()), ..options("AmazonLinux2023") };
    assert_eq!(kinds(&text(AL2023, script, &after)), names(&[shell, shell, node, node]));
    let nowhere = Options { ours: Placement::After("x".into()), ..options("AmazonLinux2023") };
    assert_eq!(merge(AL2023.as_bytes(), script.as_bytes(), &nowhere).unwrap_err()[0].exit(), 3);
}

#[test]
fn framing_is_repaired_and_bodies_are_not_touched() {
    let broken = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=//\r\n\r\n--//\r\n\
        Content-Type: text/x-shellscript\r\nContent-Type: text/plain\r\n\
        Content-Disposition: attachment; filename=\"a.sh\"\r\n\r\n#!/bin/sh\r\necho '--//x'\r\n";
    let merged = merge(broken.as_bytes(), b"#!/bin/sh\nls\n", &options("AmazonLinux2")).unwrap();
    let node = tree(merged.bytes.clone());
    assert_eq!(node.framing, []);
    assert_eq!(node.children[0].framing, []);
    assert_eq!(node.children[0].text(), "#!/bin/sh\r\necho '--//x'\r\n");
    assert_eq!(node.children[0].filename.as_deref(), Some("a.sh"));
    assert_eq!(merged.notes.len(), 2);
    let again = merge(broken.as_bytes(), b"#!/bin/sh\nls\n", &options("AmazonLinux2")).unwrap();
    assert_eq!(merged, again);
    let clash = "#!/bin/sh\ncat <<E\n--//\nE\n";
    let node = tree(text(clash, "#!/bin/sh\nls\n", &options("AmazonLinux2")));
    assert_eq!((node.children.len(), node.children[0].text().as_str()), (2, clash));
}

#[test]
fn two_cloud_configs_append_their_lists() {
    let merged = text("#cloud-config\nruncmd: [a]\n", EKSCTL_AL2, &options("AmazonLinux2"));
    assert_eq!(merged.matches("Merge-Type: list(append)").count(), 1);
    let own = text(
        "#cloud-config\nruncmd: [a]\n",
        "#cloud-config\nmerge_how: x\n",
        &options("AmazonLinux2"),
    );
    assert_eq!(own.matches("Merge-Type").count(), 0);
}

#[test]
fn foreign_formats_are_refused() {
    for (family, custom, ours) in [
        ("AmazonLinux2023", "just words", AL2023),
        ("AmazonLinux2023", "[settings]\na = 1", AL2023),
        ("Bottlerocket", "#!/bin/sh\n", BOTTLEROCKET),
        ("Bottlerocket", "[settings]\na = ", BOTTLEROCKET),
        ("WindowsServer2022CoreContainer", "#cloud-config\n", WINDOWS),
        ("WindowsServer2022CoreContainer", "<powershell>\na", WINDOWS),
        ("Flatcar", "#!/bin/sh\n", IGNITION),
    ] {
        let problems = merge(custom.as_bytes(), ours.as_bytes(), &options(family)).unwrap_err();
        assert_eq!(problems[0].exit(), 3, "{family} {custom}");
    }
}

#[test]
fn settings_keep_comments_order_and_unknown_keys() {
    let custom = "# mine\n[settings.kubernetes]\nmax-pods = 5 # why\nfuture-key = \"x\"\n\n\
        [settings.kubernetes.node-labels]\n# theirs\nteam = \"db\"\n\"a.b/c\" = \"d\"\n\n\
        [settings.kubernetes.node-taints]\nspecial = \"no:NoSchedule\"\nother = \"y:NoExecute\"\n\n\
        [settings.motd]\nx = 1\n";
    let merged =
        merge(custom.as_bytes(), BOTTLEROCKET.as_bytes(), &options("Bottlerocket")).unwrap();
    let text = String::from_utf8(merged.bytes).unwrap();
    for kept in [
        "# mine\n",
        "max-pods = 58 # why\n",
        "future-key = \"x\"",
        "# theirs\n",
        "\"a.b/c\" = \"d\"",
        "[settings.motd]",
    ] {
        assert!(text.contains(kept), "{kept} in\n{text}");
    }
    assert_eq!(
        merged.replaced,
        ["settings.kubernetes.max-pods", "settings.kubernetes.node-labels.team"]
    );
    let node = tree(text);
    let at = |pointer: &str| node.document.as_ref().unwrap().pointer(pointer).cloned();
    assert_eq!(at("/settings/kubernetes/node-labels/team"), Some("web".into()));
    let taints = at("/settings/kubernetes/node-taints/special").unwrap();
    assert_eq!(taints, serde_json::json!(["true:NoSchedule", "true:NoExecute"]));
    assert_eq!(at("/settings/kubernetes/node-taints/other"), Some("y:NoExecute".into()));
    assert_eq!(at("/settings/kubernetes/cluster-name"), Some("br".into()));
}

#[test]
fn another_cluster_is_a_conflict() {
    let custom = "[settings.kubernetes]\ncluster-name = \"other\"\napi-server = \"https://x\"\n";
    let problems =
        merge(custom.as_bytes(), BOTTLEROCKET.as_bytes(), &options("Bottlerocket")).unwrap_err();
    assert_eq!(problems.len(), 2);
    assert!(problems.iter().all(|problem| !problem.render("error").contains("https://x")));
}

#[test]
fn powershell_bodies_are_joined_inside_one_pair_of_tags() {
    let family = options("WindowsServer2022CoreContainer");
    let merged =
        text("<script>\r\ndir\r\n</script>\n<POWERSHELL>\nmine\n</POWERSHELL>\n", WINDOWS, &family);
    let body = &merged[..merged.find("</powershell>").unwrap()];
    assert!(body.starts_with("<powershell>\nmine\n[string]$EKSBootstrapScriptFile"), "{merged}");
    assert!(
        merged.ends_with("</powershell>\n<script>\r\ndir\r\n</script>\n<persist>true</persist>\n"),
        "{merged}"
    );
    assert_eq!(merged.to_ascii_lowercase().matches("<powershell>").count(), 1);
    let bare = text("mine\n", WINDOWS, &family);
    assert!(bare.starts_with("<powershell>\nmine\n[string]"), "{bare}");
}

#[test]
fn ignition_configs_join_by_path_and_name() {
    let custom = r#"{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/mine"}]},
        "systemd":{"units":[{"name":"kubelet.service","enabled":true,"dropins":[{"name":"a.conf","contents":"x"}]}]}}"#;
    let node = tree(text(custom, IGNITION, &options("Flatcar")));
    let document = node.document.unwrap();
    assert_eq!(document["ignition"]["version"], "3.4.0");
    assert_eq!(document["storage"]["files"].as_array().unwrap().len(), 4);
    assert_eq!(document["systemd"]["units"].as_array().unwrap().len(), 2);
    assert_eq!(document["systemd"]["units"][0]["dropins"].as_array().unwrap().len(), 2);

    let clash =
        r#"{"ignition":{"version":"3.3.0"},"storage":{"files":[{"path":"/opt/remote","mode":1}]}}"#;
    let problems = merge(clash.as_bytes(), IGNITION.as_bytes(), &options("Flatcar")).unwrap_err();
    assert!(problems[0].what.contains("storage.files[/opt/remote]"));
    let force = Options { force: true, ..options("Flatcar") };
    let merged = merge(clash.as_bytes(), IGNITION.as_bytes(), &force).unwrap();
    assert_eq!(merged.replaced, ["storage.files[/opt/remote]"]);
}

#[test]
fn what_is_rendered_merges_with_a_users_script() {
    let group = samples::labelled("AmazonLinux2", Owner::SelfManaged);
    let rendered = render(&samples::cluster(), &group, Mode::Native, &Default::default()).unwrap();
    let merged =
        merge(&gzip(b"#!/bin/sh\nls\n"), &rendered.bytes, &options("AmazonLinux2")).unwrap();
    let node = tree(merged.bytes);
    assert_eq!(node.children[0].text(), "#!/bin/sh\nls\n");
    assert_eq!(node.children[1].kind, Kind::CloudConfig);
    assert_eq!(super::super::settings::collect(&node).text(&["labels", "team"]), Some("web"));
}

#[test]
fn rendering_joins_the_users_own_data() {
    let group = samples::labelled("Bottlerocket", Owner::SelfManaged);
    let custom = b"# mine\n[settings.motd]\nx = 1\n";
    let cluster = samples::cluster();
    let options = Default::default();
    let rendered = render_with(&cluster, &group, Mode::Native, &options, custom).unwrap();
    let text = String::from_utf8(rendered.bytes).unwrap();
    assert!(text.starts_with("# mine\n[settings.motd]\nx = 1\n"), "{text}");
    assert!(text.contains("[settings.kubernetes"), "{text}");
    let large = format!("#!/bin/sh\n{}", "# x\n".repeat(5000));
    let group = samples::labelled("AmazonLinux2023", Owner::SelfManaged);
    let rendered = render_with(&cluster, &group, Mode::Native, &options, large.as_bytes()).unwrap();
    assert!(rendered.bytes.starts_with(b"\x1f\x8b"));
    assert_eq!(tree(rendered.bytes).core().children[0].text(), large);
    let wrong = render_with(&cluster, &group, Mode::Native, &options, b"words").unwrap_err();
    assert!(wrong.iter().all(|finding| finding.problem.exit() == 3));
}
