//! `tenon validate` and `tenon harden` from outside, on trees that the real `init` made.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;
use tempfile::TempDir;

const CACHE: &str = "/run/eks/nodeadm/config.json";
const KUBECONFIG: &str = "var/lib/kubelet/kubeconfig";
const CONFIG: &str = "etc/kubernetes/kubelet/config.json";
const ENVIRONMENT: &str = "etc/eks/kubelet/environment";
const CANARY: &str = "canary-7f3a91c2-value";

fn golden(case: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(case).join(name)
}

fn tenon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon")).args(arguments).output().unwrap()
}

/// A command on a tree.
fn on(root: &Path, command: &str, arguments: &[&str]) -> Output {
    let root = root.to_str().unwrap();
    tenon(&[&[command, "--root", root, "-q"], arguments].concat())
}

/// Makes the node of a golden case; None when the case is one that `init` refuses.
fn node(case: &str) -> Option<TempDir> {
    let root = tempfile::tempdir().unwrap();
    let config = match golden(case, "config.yaml").exists() {
        true => golden(case, "config.yaml"),
        false => golden(case, "config.d"),
    };
    let facts: Value =
        serde_json::from_slice(&fs::read(golden(case, "facts.json")).unwrap()).unwrap();
    // The facts name drop-ins of others: they must be there as well.
    for name in facts["machine"]["kubeletDropIns"].as_array().into_iter().flatten() {
        let path = format!("{CONFIG}.d/{}", name.as_str().unwrap());
        write(root.path(), &path, "{}");
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(root.path().join(path), private).unwrap();
    }
    let facts = golden(case, "facts.json");
    let (config, facts) = (config.to_str().unwrap(), facts.to_str().unwrap());
    let arguments = ["--facts", facts, "-c", config, "--skip", "run", "--config-cache", CACHE];
    on(root.path(), "init", &arguments).status.success().then_some(root)
}

fn plain() -> TempDir {
    node("plain").unwrap()
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn validate(root: &Path, arguments: &[&str]) -> (i32, Value) {
    let output = on(root, "validate", &[&["--output", "json"], arguments].concat());
    (output.status.code().unwrap(), json(&output))
}

/// The findings in a state, as `id where`.
fn with_state(report: &Value, state: &str) -> Vec<String> {
    let list = report["findings"].as_array().unwrap().iter();
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    list.filter(|finding| finding["state"] == state)
        .map(|finding| format!("{} {}", word(finding, "id"), word(finding, "where")))
        .collect()
}

/// Cases whose own config asks for what a benchmark refuses.
const CHOSEN: &[(&str, &[&str])] = &[(
    "kubelet-config-replaced",
    &["eks-3.2.9", "k8s-4.2.9", "k8s-4.2.12", "extra-kernel-defaults"],
)];

#[test]
fn a_fresh_node_has_no_finding_but_the_documented_exceptions() {
    let cases = fs::read_dir(golden("", "")).unwrap();
    let mut judged = 0;
    for case in cases {
        let case = case.unwrap().file_name().into_string().unwrap();
        // Images have goldens of their own.
        if !golden(&case, "facts.json").exists() {
            continue;
        }
        let Some(root) = node(&case) else { continue };
        judged += 1;
        let chosen = CHOSEN.iter().find(|(name, _)| *name == case).map_or(&[][..], |(_, ids)| ids);
        for profile in ["eks-1.8", "k8s-1.11"] {
            let (_, report) = validate(root.path(), &["--profile", profile]);
            let mut failed = with_state(&report, "fail");
            failed.retain(|line| !chosen.contains(&line.split(' ').next().unwrap()));
            assert_eq!(failed, Vec::<String>::new(), "{case} {profile}");
            let warned = with_state(&report, "warn");
            assert!(warned.iter().all(|line| line.starts_with("TN") || line.starts_with("config")));
            assert_eq!(with_state(&report, "unknown"), Vec::<String>::new(), "{case} {profile}");
            let excused = with_state(&report, "exception");
            let documented = ["k8s-4.2.7 ", "k8s-4.2.13 ", "k8s-4.2.14 ", "drift-foreign "];
            let is_documented =
                |line: &String| documented.iter().any(|start| line.starts_with(start));
            assert!(excused.iter().all(is_documented), "{case} {excused:?}");
            let expected = if profile == "eks-1.8" { 0 } else { 1 };
            assert!(excused.len() >= expected, "{case} {profile} {excused:?}");
        }
    }
    assert!(judged > 70, "{judged}");
}

/// What is done to a node.
type Mutation = fn(&Path);

/// Each kind of drift, with the finding that names it.
const DRIFTS: &[(&str, Mutation)] = &[
    ("drift-changed /etc/kubernetes/kubelet/config.json", |root| write(root, CONFIG, "{}")),
    ("drift-missing /etc/kubernetes/pki/ca.crt", |root| {
        fs::remove_file(root.join("etc/kubernetes/pki/ca.crt")).unwrap();
    }),
    ("drift-mode /etc/containerd/config.toml", |root| {
        let wide = fs::Permissions::from_mode(0o666);
        fs::set_permissions(root.join("etc/containerd/config.toml"), wide).unwrap();
    }),
    ("drift-replaced /var/lib/kubelet/kubeconfig", |root| {
        fs::remove_file(root.join(KUBECONFIG)).unwrap();
        symlink("/etc/passwd", root.join(KUBECONFIG)).unwrap();
    }),
    ("drift-foreign /etc/systemd/system/kubelet.service.d/50-x.conf", |root| {
        write(root, "etc/systemd/system/kubelet.service.d/50-x.conf", "[Service]\n");
    }),
    ("drift-foreign /etc/kubernetes/kubelet/config.json.d/50-x.conf", |root| {
        write(root, "etc/kubernetes/kubelet/config.json.d/50-x.conf", "{}");
    }),
    ("drift-pending /etc/eks/kubelet/environment", |root| {
        // A drop-in of someone else changes what the plan has the kubelet do.
        write(root, "etc/kubernetes/kubelet/config.json.d/50-x.conf", "{}");
    }),
    ("drift-directory /etc/kubernetes/kubelet", |root| {
        let wide = fs::Permissions::from_mode(0o777);
        fs::set_permissions(root.join("etc/kubernetes/kubelet"), wide).unwrap();
    }),
    ("drift-extra /etc/old.conf", |root| {
        write(root, "etc/old.conf", "x");
        let path = root.join("var/lib/tenon/record.json");
        let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let sha256 = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        record["files"]["/etc/old.conf"] = serde_json::json!({"sha256": sha256, "mode": 0o644});
        fs::write(path, record.to_string()).unwrap();
    }),
    ("drift-generation generation 1", |root| {
        let record: Value =
            serde_json::from_slice(&fs::read(root.join("var/lib/tenon/record.json")).unwrap())
                .unwrap();
        let saved = serde_json::json!({
            "schema": 1, "number": 1, "instanceId": record["instanceId"],
            "record": record, "files": {},
        });
        write(root, "var/lib/tenon/generations/1", &saved.to_string());
    }),
];

#[test]
fn each_kind_of_drift_is_found_named_and_has_a_remedy() {
    for (expected, mutate) in DRIFTS {
        let root = plain();
        mutate(root.path());
        let (exit, report) = validate(root.path(), &["--only", "drift", "--fail-on", "warn"]);
        assert_eq!(exit, 1, "{expected}: {report}");
        let named = |finding: &&Value| {
            format!("{} {}", finding["id"].as_str().unwrap(), finding["where"].as_str().unwrap())
                == *expected
        };
        let findings = report["findings"].as_array().unwrap();
        let finding = findings.iter().find(named).unwrap_or_else(|| panic!("{expected} {report}"));
        assert!(!finding["remedy"].as_str().unwrap().is_empty(), "{finding}");
    }
}

/// Only root can give a file away.
#[test]
fn an_owner_is_drift_and_is_mended() {
    let root = plain();
    if chown(root.path().join(KUBECONFIG), Some(1000), Some(1000)).is_err() {
        return;
    }
    let (exit, report) = validate(root.path(), &[]);
    assert_eq!(exit, 1);
    let expected =
        ["drift-owner /var/lib/kubelet/kubeconfig", "eks-3.1.2 /var/lib/kubelet/kubeconfig"];
    assert_eq!(with_state(&report, "fail"), expected);
    assert_eq!(on(root.path(), "harden", &["--fix"]).status.code(), Some(0));
    assert_eq!(validate(root.path(), &[]).0, 0);
}

#[test]
fn harden_shows_mends_and_has_nothing_left_to_do() {
    let root = plain();
    let wide = fs::Permissions::from_mode(0o666);
    fs::set_permissions(root.path().join(KUBECONFIG), wide).unwrap();
    let environment = fs::read_to_string(root.path().join(ENVIRONMENT)).unwrap();
    let dry = on(root.path(), "harden", &["--profile", "k8s-1.11", "--fix", "--dry-run"]);
    assert_eq!(dry.status.code(), Some(1));
    let planned = String::from_utf8(dry.stderr).unwrap();
    for line in ["~ /var/lib/kubelet/kubeconfig   mode 0600", "99-tenon-harden.conf   sets podPids"]
    {
        assert!(planned.contains(line), "{planned}");
    }
    assert_eq!(fs::read_to_string(root.path().join(ENVIRONMENT)).unwrap(), environment);

    let fixed = on(root.path(), "harden", &["--profile", "k8s-1.11", "--fix", "--output", "json"]);
    assert_eq!(fixed.status.code(), Some(0));
    assert_eq!(with_state(&json(&fixed), "exception"), ["k8s-4.2.7 --hostname-override"]);
    let told = String::from_utf8(fixed.stderr).unwrap();
    assert!(told.contains("systemctl restart kubelet.service"), "{told}");
    let (exit, report) = validate(root.path(), &["--profile", "k8s-1.11"]);
    assert_eq!((exit, with_state(&report, "fail")), (0, vec![]), "{report}");

    let before = tree(root.path());
    let second = on(root.path(), "harden", &["--profile", "k8s-1.11", "--fix"]);
    assert_eq!(second.status.code(), Some(0));
    assert!(String::from_utf8(second.stderr).unwrap().contains("nothing to mend"));
    assert_eq!(tree(root.path()), before);
}

/// Content and mode by path.
fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let (mut found, mut todo) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                found.insert(path.clone(), (mode, fs::read(path).unwrap()));
            }
        }
    }
    found
}

#[test]
fn what_a_flag_decides_is_told_and_not_fought() {
    let root = plain();
    let text = fs::read_to_string(root.path().join(ENVIRONMENT)).unwrap();
    let text = format!("{} --read-only-port=10255\n", text.trim_end());
    write(root.path(), ENVIRONMENT, &text);
    let output = on(root.path(), "harden", &["--fix", "--output", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&output);
    assert_eq!(with_state(&report, "fail"), ["eks-3.2.4 readOnlyPort"]);
    let findings = report["findings"].as_array().unwrap();
    let port = findings.iter().find(|finding| finding["id"] == "eks-3.2.4").unwrap();
    assert_eq!(port["origin"], "flag --read-only-port, /etc/eks/kubelet/environment");
    assert_eq!(port["fixable"], false);
}

#[test]
fn exceptions_and_baselines_make_the_answer_yes_and_are_counted() {
    let root = plain();
    let wide = fs::Permissions::from_mode(0o666);
    fs::set_permissions(root.path().join(KUBECONFIG), wide).unwrap();
    let (exit, report) = validate(root.path(), &["--only", "cis"]);
    assert_eq!((exit, with_state(&report, "fail").len()), (1, 1));
    let beside = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        fs::write(beside.path().join(name), text).unwrap();
        beside.path().join(name).to_str().unwrap().to_owned()
    };
    let baseline = file("baseline.json", &report.to_string());
    let (exit, report) = validate(root.path(), &["--only", "cis", "--baseline", &baseline]);
    assert_eq!((exit, report["inBaseline"].as_u64()), (0, Some(1)));
    let entry = "exceptions:\n- id: eks-3.1.1\n  reason: shared volume\n  expires: ";
    let valid = file("valid.yaml", &format!("{entry}2999-01-01\n"));
    let (exit, report) = validate(root.path(), &["--only", "cis", "--exceptions", &valid]);
    assert_eq!((exit, with_state(&report, "exception").len()), (0, 1));
    let expired = file("expired.yaml", &format!("{entry}2020-01-01\n"));
    let (exit, _) = validate(root.path(), &["--only", "cis", "--exceptions", &expired]);
    assert_eq!(exit, 1);
    let broken = file("broken.yaml", "exceptions: 7\n");
    let output = on(root.path(), "validate", &["--exceptions", &broken]);
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn exit_codes_say_what_kind_of_no_it_is() {
    let root = plain();
    let empty = tempfile::tempdir().unwrap();
    let code = |root: &Path, arguments: &[&str]| on(root, "validate", arguments).status.code();
    assert_eq!(code(root.path(), &[]), Some(0));
    assert_eq!(code(root.path(), &["--profile", "stig"]), Some(64));
    assert_eq!(code(root.path(), &["--only", "cis,other"]), Some(64));
    assert_eq!(code(root.path(), &["--fail-on", "never"]), Some(64));
    assert_eq!(code(root.path(), &["--running"]), Some(64));
    assert_eq!(code(empty.path(), &[]), Some(5));
    assert_eq!(code(Path::new("/none/such"), &[]), Some(5));
    write(empty.path(), "bad.yaml", "kind: NodeConfig\napiVersion: tenon.dev/v1alpha1\nspec: 7\n");
    let bad = empty.path().join("bad.yaml");
    let bad = bad.to_str().unwrap();
    assert_eq!(code(root.path(), &["-c", bad]), Some(3));
    let harden = on(root.path(), "harden", &["--profile", "nist"]);
    assert_eq!(harden.status.code(), Some(64));
    let nowhere = on(Path::new("/none/such"), "harden", &["--profile", "nist"]);
    assert_eq!(nowhere.status.code(), Some(64), "the command line comes first");
    for command in ["validate", "harden"] {
        assert_eq!(on(root.path(), command, &["--bundle", "x"]).status.code(), Some(64));
    }
    assert!(String::from_utf8(harden.stderr).unwrap().contains("eks-1.8, k8s-1.11"));
    for output in ["text", "json", "junit", "sarif"] {
        let checked = tenon(&["validate", bad, "--output", output]);
        assert_eq!(checked.status.code(), Some(3), "{output}");
    }
}

#[test]
fn a_file_alone_is_checked_as_config_check_does() {
    let path = golden("plain", "config.yaml");
    let path = path.to_str().unwrap();
    let check = tenon(&["config", "check", "-c", path]);
    let validate = tenon(&["validate", path]);
    assert_eq!((check.status, check.stdout), (validate.status, validate.stdout));
}

#[test]
fn the_other_formats_parse_and_agree_on_the_count() {
    let root = plain();
    write(root.path(), CONFIG, "{}");
    let (_, report) = validate(root.path(), &[]);
    let failed = with_state(&report, "fail").len();
    let junit = on(root.path(), "validate", &["--output", "junit"]);
    assert_eq!(junit.status.code(), Some(1));
    let text = String::from_utf8(junit.stdout).unwrap();
    let (mut reader, mut cases, mut failures) = (Reader::from_str(&text), 0, 0);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                "testcase" => cases += 1,
                "failure" => failures += 1,
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!((cases, failures), (report["findings"].as_array().unwrap().len(), failed));
    let sarif = json(&on(root.path(), "validate", &["--output", "sarif"]));
    assert_eq!(sarif["version"], "2.1.0");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let errors = results.iter().filter(|result| result["level"] == "error").count();
    assert_eq!(errors, failed);
}

#[test]
fn no_value_of_a_node_shows_up_in_any_output() {
    let root = plain();
    let environment = fs::read_to_string(root.path().join(ENVIRONMENT)).unwrap();
    let text = format!(
        "{} --hostname-override={CANARY} --authorization-mode={CANARY} --client-ca-file={CANARY} \
         --tls-cipher-suites={CANARY} --streaming-connection-idle-timeout={CANARY}\n",
        environment.trim_end()
    );
    write(root.path(), ENVIRONMENT, &text);
    write(
        root.path(),
        CONFIG,
        &format!("{{\"password\": \"{CANARY}\", \"maxPods\": \"{CANARY}\"}}"),
    );
    write(root.path(), KUBECONFIG, CANARY);
    write(root.path(), "etc/systemd/system/kubelet.service.d/9.conf", CANARY);
    let data = format!("{CANARY} AKIAIOSFODNN7EXAMPLE");
    write(root.path(), "var/lib/cloud/instance/user-data.txt", &data);
    let families = "config,drift,cis,runtime,image";
    for output in ["text", "json", "junit", "sarif"] {
        for profile in ["eks-1.8", "k8s-1.11"] {
            let arguments = ["--all", "--only", families, "--profile", profile, "--output", output];
            let answer = on(root.path(), "validate", &arguments);
            let said = [answer.stdout, answer.stderr].concat();
            let said = String::from_utf8(said).unwrap();
            assert!(!said.contains(CANARY) && !said.contains("AKIAIOSF"), "{output}: {said}");
            assert_eq!(answer.status.code(), Some(1));
        }
    }
    let fixed = on(root.path(), "harden", &["--profile", "k8s-1.11", "--fix"]);
    let said = String::from_utf8([fixed.stdout, fixed.stderr].concat()).unwrap();
    assert!(!said.contains(CANARY), "{said}");
}

#[test]
fn a_file_for_prometheus_and_a_line_for_the_journal() {
    let root = plain();
    let path = root.path().join("tenon.prom");
    let arguments = ["validate", "--root", root.path().to_str().unwrap(), "--prometheus"];
    let output = tenon(&[&arguments[..], &[path.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0));
    let lines = fs::read_to_string(path).unwrap();
    assert!(
        lines.contains("tenon_validate_findings{family=\"cis\",state=\"fail\"} 0\n"),
        "{lines}"
    );
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told.lines().filter(|line| line.contains("0 fail")).count(), 1, "{told}");
}

#[test]
fn a_bundle_carries_the_verdict_and_is_examined_like_a_node() {
    let root = plain();
    for path in [CONFIG, KUBECONFIG] {
        let wide = fs::Permissions::from_mode(0o646);
        fs::set_permissions(root.path().join(path), wide).unwrap();
    }
    let beside = tempfile::tempdir().unwrap();
    let bundle = beside.path().join("node.tar.gz");
    let bundle = bundle.to_str().unwrap();
    // A directory has no journal, which the collector tells; the bundle is written all the same.
    on(root.path(), "logs", &["collect", "--out", bundle]);
    let carried = tenon(&["logs", "show", bundle, "verdict/validate.json"]);
    let carried = json(&carried);
    let failed = [
        "drift-mode /etc/kubernetes/kubelet/config.json",
        "drift-mode /var/lib/kubelet/kubeconfig",
        "eks-3.1.1 /var/lib/kubelet/kubeconfig",
        "eks-3.1.3 /etc/kubernetes/kubelet/config.json",
    ];
    assert_eq!(with_state(&carried, "fail"), failed);
    let examined = tenon(&["validate", "--bundle", bundle, "-q", "--output", "json"]);
    assert_eq!(examined.status.code(), Some(1));
    let examined = json(&examined);
    assert_eq!(with_state(&examined, "fail"), failed[2..]);
    assert!(with_state(&examined, "unknown").contains(&"drift-files ".to_owned()));
    let fix = tenon(&["harden", "--fix", "--bundle", bundle]);
    assert_eq!(fix.status.code(), Some(64));
}

/// The guide's tables are what a fresh node says.
#[test]
fn the_guide_lists_every_item_with_its_state_on_a_fresh_node() {
    let root = plain();
    let guide =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/validate-and-harden.md");
    let guide = fs::read_to_string(guide).unwrap();
    for profile in ["eks-1.8", "k8s-1.11"] {
        let (_, report) = validate(root.path(), &["--only", "cis", "--profile", profile]);
        for finding in report["findings"].as_array().unwrap() {
            let word = |key: &str| finding[key].as_str().unwrap();
            let row = format!("| {} | {} | {} |", word("id"), word("what"), word("state"));
            assert!(guide.contains(&row), "missing in the guide: {row}");
        }
    }
}

/// A node that was made from an image is held against what the image's plan says of it.
#[test]
fn the_plan_of_the_image_is_held_against_the_node() {
    let root = plain();
    let (exit, report) = validate(root.path(), &["--only", "image"]);
    assert_eq!((exit, with_state(&report, "not-applicable").len()), (0, 1));

    let profile = root.path().join("mine.toml");
    let text = "about = 'm'\n[[file]]\npath = '/etc/motd'\nmode = '0644'\ncontent = \"hello\\n\"\nreason = 'r'\n";
    fs::write(&profile, text).unwrap();
    let profile = profile.to_str().unwrap();
    let plan =
        tenon(&["image", "plan", "--family", "debian", "--profile", profile, "--output", "json"]);
    write(root.path(), "usr/lib/tenon/image/plan.json", &String::from_utf8(plan.stdout).unwrap());
    write(root.path(), "etc/motd", "hello\n");
    fs::set_permissions(root.path().join("etc/motd"), fs::Permissions::from_mode(0o644)).unwrap();
    let (exit, report) = validate(root.path(), &["--only", "image"]);
    assert_eq!((exit, with_state(&report, "pass").len()), (0, 1), "{report:#}");

    write(root.path(), "etc/motd", "other\n");
    let (exit, report) = validate(root.path(), &["--only", "image"]);
    assert_eq!((exit, with_state(&report, "fail")), (1, vec!["image-file /etc/motd".to_owned()]));
}
