//! The same config and facts give the same bytes: whoever runs it, wherever, in which language
//! and at what hour.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::Mode;
use serde_json::Value;
use tenon_host::rehearsal::SAMPLE;
use tenon_host::simulator::faults::Faults;
use tenon_host::simulator::profile::Profile;

use crate::desk::{Desk, TENON, code, files_below, furnish, json, profile, quiet_command, stderr};

/// Changes something about a run that must not change its answer.
type Change<'a> = dyn Fn(&mut Command) + 'a;

/// What plans are compared on: a facts file and a config with something of everything.
struct Case {
    desk: Desk,
    facts: String,
    config: String,
}

fn case() -> Case {
    let desk = Desk::new();
    let sample = SAMPLE.replace("node.eks.aws/v1alpha1", "tenon.dev/v1alpha1");
    let config = format!(
        "{sample}  instance:
    environment: {{default: {{Z: z, A: a, M: m}}, kubelet: {{B: b, A: a}}}}
    proxy: {{http: 'http://proxy.corp:3128', noProxy: [.z, .a]}}
  node:
    labels: {{z: z, a: a, m: m}}
    taints: [{{key: z, value: z, effect: NoSchedule}}, {{key: a, value: a, effect: NoExecute}}]
"
    );
    Case { facts: desk.facts(), config: desk.file("node.yaml", &config), desk }
}

impl Case {
    /// A plan at the desk, on an empty root.
    fn plan(&self, change: impl FnOnce(&mut Command)) -> Vec<u8> {
        let root = self.desk.side.path().join("empty-root");
        fs::create_dir_all(&root).unwrap();
        let mut command = quiet_command(TENON);
        command.args(["plan", "--facts", &self.facts, "-c", &self.config, "--output", "json"]);
        command.arg("--root").arg(root);
        change(&mut command);
        let output = command.output().unwrap();
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        output.stdout
    }
}

#[test]
fn a_plan_has_the_same_bytes_under_every_circumstance() {
    let case = case();
    let expected = case.plan(|_| {});
    let answer: Value = serde_json::from_slice(&expected).unwrap();
    assert!(answer["planHash"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(expected.last(), Some(&b'\n'));
    let home = tempfile::tempdir().unwrap();
    let circumstances: [(&str, &Change<'_>); 9] = [
        ("again", &|_| {}),
        ("time zone", &|command| _ = command.env("TZ", "Pacific/Kiritimati")),
        ("language", &|command| {
            _ = command.env("LANG", "tr_TR.UTF-8").env("LC_ALL", "tr_TR.UTF-8")
        }),
        ("home", &|command| _ = command.env("HOME", home.path()).env("USER", "x")),
        ("working directory", &|command| _ = command.current_dir(home.path())),
        ("order of the environment, one way", &|command| {
            command.env("A_FIRST", "1").env("Z_LAST", "2");
        }),
        ("order of the environment, other way", &|command| {
            command.env("Z_LAST", "2").env("A_FIRST", "1");
        }),
        ("name of the program", &|command| _ = command.arg0("/elsewhere/tenon")),
        ("volume", &|command| _ = command.arg("--quiet")),
    ];
    for (what, change) in circumstances {
        assert!(case.plan(change) == expected, "changed by: {what}");
    }
}

/// Makes a node's files under a umask, in a fresh root.
fn init_under_umask(case: &Case, mask: &str) -> (tempfile::TempDir, Value) {
    let root = tempfile::tempdir().unwrap();
    let line = format!("umask {mask}; exec \"$@\"");
    let output = quiet_command("/bin/sh")
        .args(["-c", &line, "sh", TENON, "init", "--skip", "run", "--output", "json"])
        .args(["--facts", &case.facts, "-c", &case.config, "--root"])
        .arg(root.path())
        .output()
        .unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let answer = json(&output);
    (root, answer)
}

#[test]
fn row_51_two_roots_and_two_umasks_get_the_same_files() {
    let case = case();
    let (first_root, first) = init_under_umask(&case, "000");
    let (second_root, second) = init_under_umask(&case, "077");
    assert_eq!(first["planHash"], second["planHash"]);
    assert_eq!(first["changes"], second["changes"]);
    assert_eq!(files_below(first_root.path()), files_below(second_root.path()));
    assert_eq!(directories(first_root.path()), directories(second_root.path()));
    let plan: Value = serde_json::from_slice(&case.plan(|_| {})).unwrap();
    assert_eq!(plan["planHash"], first["planHash"], "init does what plan shows");
}

/// Path and mode of the directories that the node's files lie in.
fn directories(root: &Path) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                let stat = rustix::fs::stat(&path).unwrap();
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push((name, Mode::from_raw_mode(stat.st_mode).as_raw_mode()));
                left.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_order_of_a_directory_does_not_matter() {
    let documents = [("a.yaml", "one"), ("b.yaml", "two"), ("c.json", "three")];
    let document = |name: &str| {
        format!(
            "{{\"apiVersion\": \"node.eks.aws/v1alpha1\", \"kind\": \"NodeConfig\", \"spec\": \
             {{\"kubelet\": {{\"flags\": [\"--node-labels=from={name}\"]}}}}}}\n"
        )
    };
    let bare = Profile { user_data: None, ..profile() };
    let mut orders = vec![vec![0, 1, 2], vec![2, 1, 0], vec![1, 2, 0]];
    let expected = {
        let desk = Desk::of(&bare, Faults::default());
        plan_of_directory(&desk, &orders.remove(0), &documents, &document)
    };
    for order in orders {
        let desk = Desk::of(&bare, Faults::default());
        let plan = plan_of_directory(&desk, &order, &documents, &document);
        assert_eq!(plan, expected, "{order:?}");
    }
}

/// Hash of the plan and of the config from a directory filled in this order.
fn plan_of_directory(
    desk: &Desk,
    order: &[usize],
    documents: &[(&str, &str)],
    document: &dyn Fn(&str) -> String,
) -> (Value, Value) {
    let directory = desk.side.path().join("nodeadm.d");
    fs::create_dir(&directory).unwrap();
    for index in order {
        let (name, content) = documents[*index];
        fs::write(directory.join(name), document(content)).unwrap();
    }
    let base = desk.file("base.yaml", SAMPLE);
    let directory = directory.to_str().unwrap();
    let root = desk.root();
    let output =
        desk.run(&["plan", "-c", &base, "-c", directory, "--root", root, "--output", "json"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let answer = json(&output);
    (answer["planHash"].clone(), answer["configHash"].clone())
}

#[test]
fn the_order_in_which_a_machine_was_made_does_not_matter() {
    let straight = Desk::new();
    let mut backward = Desk::new();
    backward.root = tempfile::tempdir().unwrap();
    // The same devices, listed by the kernel in another order.
    for cpu in (0..2).rev() {
        let node = format!("sys/devices/system/node/node0/cpu{cpu}");
        fs::create_dir_all(backward.path(&node)).unwrap();
    }
    for block in (0..8).rev() {
        backward.machine_file(&format!("sys/devices/system/memory/memory{block}/online"), "1\n");
    }
    for (name, desk) in
        [("zz9", &straight), ("aa0", &straight), ("aa0", &backward), ("zz9", &backward)]
    {
        desk.machine_file(&format!("sys/class/net/{name}/address"), "0a:00:00:00:00:01\n");
    }
    furnish(backward.root.path());
    let facts = |desk: &Desk| fs::read(desk.facts()).unwrap();
    assert_eq!(facts(&straight), facts(&backward));
}

#[test]
fn the_public_hash_does_not_depend_on_secrets() {
    let desk = Desk::new();
    let facts = desk.facts();
    let plan = |value: &str, label: &str| {
        let text = SAMPLE.replace("team=web", &format!("team={label}"))
            + &format!("  instance: {{environment: {{default: {{A: {value}}}}}}}\n");
        let config = desk.file("node.yaml", &text);
        let arguments = ["plan", "--facts", &facts, "-c", &config, "--output", "json"];
        let answer =
            json(&desk.command(TENON, &arguments).arg("--root").arg(desk.root()).output().unwrap());
        (answer["planHash"].clone(), answer["configHash"].clone())
    };
    assert_eq!(plan("first", "web"), plan("other-and-longer", "web"));
    assert_ne!(plan("first", "web").0, plan("first", "other").0);
    assert_ne!(plan("first", "web").1, plan("first", "other").1);
}
