//! The end of a build: manifest, bill of materials, what changed between two images, the seal, and
//! the template that does all this in a cloud.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::super::machine::text;
use super::super::stage::Stage;
use super::build::{self, Workshop, json};
use crate::lab::PACKER;

const EPOCH: &str = "1760000000";
/// What a build leaves behind that belongs to it or to one machine.
const PLANTED: &[(&str, &str)] = &[
    ("etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
    ("root/.bash_history", "secret things\n"),
    ("root/.ssh/authorized_keys", "ssh-ed25519 AAAA build\n"),
    ("var/lib/cloud/instance/user-data.txt", "#cloud-config\n"),
    ("var/log/build.log", "who was here\n"),
    ("var/lib/systemd/random-seed", "seed"),
    ("var/cache/apt/archives/left.deb", "package"),
    ("tmp/left", "by the build\n"),
];
/// Patterns of which nothing may be left.
const GONE: &[&str] = &[
    "etc/ssh/ssh_host_*",
    "root/.*_history",
    "root/.ssh/authorized_keys",
    "var/lib/cloud/*",
    "var/lib/systemd/random-seed",
    "var/cache/apt/*",
    "var/lib/apt/lists/*",
    "tmp/*",
];
/// Secrets that a seal must find and not remove: somebody has to know of them.
const SECRETS: &[(&str, &str)] = &[
    ("root/.ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"),
    (
        "etc/eks/token",
        "eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg\n",
    ),
];

/// Manifest and both bills are the same each time, and a diff tells what changed and only that.
pub fn described(workshop: &Workshop, root: &Path) -> anyhow::Result<usize> {
    let describe = |more: &[&str]| -> anyhow::Result<String> {
        let mut command = workshop.image(&["manifest", "--print-only", "--root"]);
        command.arg(root).args(more).env("SOURCE_DATE_EPOCH", EPOCH);
        let output = command.output()?;
        ensure!(output.status.success(), "manifest: {}", text(&output));
        Ok(String::from_utf8(output.stdout)?)
    };
    let twice = |more: &[&str]| -> anyhow::Result<String> {
        let first = describe(more)?;
        ensure!(first == describe(more)?, "two documents differ: {more:?}");
        Ok(first)
    };
    twice(&["--sbom", "spdx"])?;
    let bill: Value = serde_json::from_str(&twice(&["--sbom", "cyclonedx"])?)?;
    let before = twice(&[])?;
    let manifest: Value = serde_json::from_str(&before)?;
    let packages = manifest["packages"].as_array().context("no packages")?.len();
    ensure!(packages > 150, "{packages} packages");
    ensure!(manifest["rules"]["failed"] == 0, "{}", manifest["rules"]);
    let components = manifest["components"].as_array().context("no components")?;
    ensure!(components.iter().any(|one| one["name"] == "kubelet"), "{components:#?}");
    let listed = bill["components"].as_array().context("no components")?.len();
    ensure!(listed > packages, "the bill has {listed} of {packages} packages");

    let issue = root.join("etc/issue");
    let text = fs::read(&issue)?;
    fs::write(&issue, "Welcome\n")?;
    let after = describe(&[])?;
    fs::write(&issue, text)?;
    let files = [("before.json", &before), ("after.json", &after)];
    let place = root.with_file_name("manifests");
    fs::create_dir_all(&place)?;
    for (name, text) in files {
        fs::write(place.join(name), text)?;
    }
    let mut diff = workshop.image(&["diff", "--output", "json"]);
    let told = json(&diff.args(files.map(|(name, _)| place.join(name))).output()?)?;
    let changes = told["changes"].as_array().context("no changes")?;
    let files = changes.iter().filter(|change| change["part"] == "files");
    let keys: Vec<_> = files.filter_map(|change| change["key"].as_str()).collect();
    let rules =
        |change: &Value| change["key"].as_str().is_some_and(|key| key.starts_with("rules."));
    let rest = changes.iter().filter(|change| change["part"] != "files");
    ensure!(
        keys == ["/etc/issue"] && rest.clone().count() > 0 && rest.clone().all(rules),
        "{told:#}"
    );
    println!("  manifest: {packages} packages; manifest and bills are the same twice");
    Ok(2)
}

/// Seals a copy and gives it: secrets are found, what must go is gone, what the plan says holds.
pub fn sealed(workshop: &Workshop, root: &Path) -> anyhow::Result<(PathBuf, usize)> {
    let copy = root.with_file_name("sealed");
    build::copy(root, &copy)?;
    for (path, text) in PLANTED.iter().chain(SECRETS) {
        let path = copy.join(path);
        fs::create_dir_all(path.parent().context("a file without a directory")?)?;
        fs::write(path, text)?;
    }
    let refused = workshop.image(&["seal", "--output", "json", "--root"]).arg(&copy).output()?;
    let told: Value = serde_json::from_slice(&refused.stdout).context("seal")?;
    ensure!(refused.status.code() == Some(1) && told["sealed"] == false, "{}", text(&refused));
    let left = told["left"].as_array().context("no list")?;
    let mut left: Vec<_> = left.iter().filter_map(|one| one["path"].as_str()).collect();
    left.sort_unstable();
    ensure!(left == ["/etc/eks/token", "/root/.ssh/id_ed25519"], "left: {left:?}");
    for (path, _) in SECRETS {
        fs::remove_file(copy.join(path))?;
    }
    let mut seal = workshop.image(&["seal", "--output", "json", "--root"]);
    let told = json(&seal.arg(&copy).output()?)?;
    ensure!(told["sealed"] == true, "{told:#}");
    let again = json(&seal.output()?)?;
    ensure!(again["removed"].as_array().is_some_and(Vec::is_empty), "a second seal: {again:#}");

    let shell =
        |script: &str| Command::new("sh").args(["-euc", script]).current_dir(&copy).output();
    for pattern in GONE {
        let found = shell(&format!("ls -dA {pattern} 2>/dev/null || :"))?;
        ensure!(found.stdout.is_empty(), "a seal leaves {}", text(&found));
    }
    let logs = shell("find var/log -type f")?;
    ensure!(logs.stdout.is_empty(), "a seal leaves {}", text(&logs));
    ensure!(fs::read(copy.join("etc/machine-id"))?.is_empty(), "the machine's id is left");
    let checks = build::verify(workshop, &copy)?;
    println!("  sealed: secrets were found, traces are gone, {checks} checks hold");
    Ok((copy, 3))
}

/// Keys of the builder that came after the last Packer of Debian.
const LATER_KEYS: &[&str] = &["imds_support", "metadata_options"];

/// Packer reads the template, and its builder takes every key that this Packer can know.
pub fn template(stage: &Stage, workshop: &Workshop) -> anyhow::Result<usize> {
    let packer = PACKER.ready(&stage.cache)?.join("usr/bin/packer");
    let mut command =
        workshop.image(&["packer", "--family", "debian", "--format", "json", "--config"]);
    let mut template = json(&command.arg(&workshop.config).output()?)?;
    let file = stage.place.join("template.json");
    let validate = |template: &Value, words: &[&str]| -> anyhow::Result<Output> {
        fs::write(&file, template.to_string())?;
        let mut command = Command::new(&packer);
        command.env("HOME", &stage.place).env("CHECKPOINT_DISABLE", "1");
        Ok(command.arg("validate").args(words).arg(&file).output()?)
    };
    let syntax = validate(&template, &["-syntax-only"])?;
    ensure!(syntax.status.success(), "packer: {}", text(&syntax));

    // Files that are uploaded must be there. This Packer wants a throughput for gp3.
    let vars = [("tenon_binary", stage.tenon.as_path()), ("plan_file", &workshop.config)];
    let vars = vars.map(|(name, path)| format!("{name}={}", path.display()));
    let words = ["-var", &vars[0], "-var", &vars[1], "-var", "volume_type=gp2"];
    let builder = template["builders"][0].as_object_mut().context("no builder")?;
    for key in LATER_KEYS {
        builder.remove(*key).with_context(|| format!("the template has no {key}"))?;
    }
    let whole = validate(&template, &words)?;
    ensure!(whole.status.success(), "packer: {}", text(&whole));
    template["builders"][0]["no_such_key"] = Value::Bool(true);
    let odd = validate(&template, &words)?;
    ensure!(!odd.status.success(), "packer takes anything: {}", text(&odd));
    println!("  packer accepts the template, syntax and builder");
    Ok(2)
}
