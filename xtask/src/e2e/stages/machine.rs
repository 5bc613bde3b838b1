//! One simulated machine: its tree, its boots, and what was seen of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Workshop;
use crate::lab::must;

/// The first master of a cluster whose runtime changes, so that a reboot is needed.
pub const CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: first-master
  cluster: {name: prod, endpoint: \"https://api.prod.example:6443\", kubernetesVersion: v1.34.2}
  node: {name: cp-1, ip: 10.0.0.4}
  runtime: {source: sysext}
  assets: {source: push}
";
/// More boots than any fault may cost.
const MOST_BOOTS: u32 = 6;
/// What differs between two machines that are the same: times, locks and random keys.
const NOT_COMPARED: &[&str] = &["timeline.jsonl", "/lock/", "/pki/", "kubelet.conf", "/done/"];

pub struct Machine<'w> {
    workshop: &'w Workshop,
    directory: tempfile::TempDir,
    boots: u32,
}

impl<'w> Machine<'w> {
    /// A machine as Ignition leaves it.
    pub fn new(workshop: &'w Workshop, config: &str) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let machine = Machine { workshop, directory, boots: 0 };
        let image = "an image of containerd 2.1.9";
        let digest: String =
            Sha256::digest(image.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86-64" };
        machine.put("config.yaml", config)?;
        machine.put(
            "catalogue.yaml",
            &format!(
                "kind: ExtensionCatalogue\nimages:\n  - {{name: containerd, version: 2.1.9, \
                 architecture: {architecture}, os: {{id: _any}}, url: \"file:/srv/containerd.raw\", \
                 size: {}, sha256: \"{digest}\"}}\n",
                image.len()
            ),
        )?;
        must(
            Command::new(workshop.repository.join("e2e/stages/set-up.sh"))
                .arg(machine.place())
                .arg(&workshop.tenon)
                .arg(machine.place().join("config.yaml"))
                .arg(&workshop.ignition),
        )?;
        machine.put("root/srv/containerd.raw", image)?;
        machine.put("root/var/lib/containerd/meta.db", "of the old runtime")?;
        machine.runtime("1.7.20")?;
        machine.goals(&["cleanup"])?;
        Ok(machine)
    }

    pub fn place(&self) -> &Path {
        self.directory.path()
    }

    pub fn put(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let path = self.place().join(path);
        fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        Ok(fs::write(path, text)?)
    }

    pub fn has(&self, path: &str) -> bool {
        self.place().join("root").join(path).exists()
    }

    /// The runtime that this boot finds in /usr.
    fn runtime(&self, version: &str) -> anyhow::Result<()> {
        self.program("root/usr/bin/containerd", &format!("echo containerd x {version} y"))
    }

    pub fn program(&self, path: &str, script: &str) -> anyhow::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        self.put(path, &format!("#!/bin/sh\n{script}\n"))?;
        let path = self.place().join(path);
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
    }

    /// Stages whose markers end a boot.
    pub fn goals(&self, stages: &[&str]) -> anyhow::Result<()> {
        let goal = |stage: &&str| {
            let path = self.place().join("root/var/lib/tenon/done").join(stage);
            path.display().to_string()
        };
        self.put("goals", &stages.iter().map(goal).collect::<Vec<_>>().join("\n"))?;
        self.put("patience", "150")
    }

    pub fn tenon(&self, arguments: &[&str]) -> anyhow::Result<std::process::Output> {
        let output = Command::new(&self.workshop.tenon)
            .arg("--root")
            .arg(self.place().join("root"))
            .args(arguments)
            .output()?;
        Ok(output)
    }

    /// Sends a bundle as an installer would.
    pub fn push(&self) -> anyhow::Result<String> {
        let bundle = self.bundle()?;
        let output = self.tenon(&["stage", "assets", "--import", &bundle.display().to_string()])?;
        ensure!(output.status.success(), "import: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("sent ").to_owned())
    }

    /// A bundle with an add-on and a manifest, built once.
    pub fn bundle(&self) -> anyhow::Result<PathBuf> {
        let archive = self.place().join("bundle.tar.gz");
        if !archive.exists() {
            self.put("bundle/addons/10-cni.yaml", "kind: Namespace\n")?;
            self.put("bundle/manifests/a.yaml", "kind: ConfigMap\n")?;
            must(
                Command::new(&self.workshop.tenon)
                    .args(["-q", "stage", "assets", "--cluster", "prod", "--build"])
                    .arg(self.place().join("bundle"))
                    .arg("--archive")
                    .arg(&archive),
            )?;
        }
        Ok(archive)
    }

    /// One boot, to its end or its reboot.
    pub fn boot(&mut self) -> anyhow::Result<()> {
        self.boots += 1;
        let id = format!("boot-{}", self.boots);
        self.put("root/proc/sys/kernel/random/boot_id", &format!("{id}\n"))?;
        if self.has("etc/extensions/containerd.raw") || self.boots > 1 && self.merged() {
            self.runtime("2.1.9")?;
        }
        let log = fs::File::create(self.place().join(format!("log-{id}")))?;
        let name = format!("stages-{}-{}", std::process::id(), self.boots);
        // Ending is by exit of the manager; its status tells nothing.
        Command::new("timeout")
            .arg("60")
            .arg(self.workshop.repository.join("e2e/manager.sh"))
            .arg(name)
            .arg(self.place().join("root/etc/systemd/system"))
            .arg("multi-user.target")
            .env("HOME", self.place().join("home"))
            .stdout(log.try_clone()?)
            .stderr(log)
            .status()
            .context("starting the manager")?;
        Ok(())
    }

    /// True when the link of the extension is there: a link whose target is a node path.
    fn merged(&self) -> bool {
        self.place().join("root/etc/extensions/containerd.raw").symlink_metadata().is_ok()
    }

    /// Boots until the goals are there, then once more: the boot of every later day.
    pub fn live(&mut self) -> anyhow::Result<()> {
        while !self.reached() {
            ensure!(
                self.boots < MOST_BOOTS,
                "{} boots did not end it: {}",
                self.boots,
                self.story()
            );
            self.boot()?;
        }
        self.boot()
    }

    fn reached(&self) -> bool {
        let goals = fs::read_to_string(self.place().join("goals")).unwrap_or_default();
        goals.lines().all(|goal| Path::new(goal).exists())
    }

    /// What the stand-ins noted: `boot-2 kubelet start gate=open prepared=yes`.
    pub fn events(&self) -> Vec<String> {
        let text = fs::read_to_string(self.place().join("events")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub fn count(&self, words: &str) -> usize {
        self.events().iter().filter(|event| event.contains(words)).count()
    }

    /// Everything that helps to understand a failure.
    pub fn story(&self) -> String {
        let status =
            self.tenon(&["stage", "status"]).map(|output| output.stdout).unwrap_or_default();
        let timeline = self
            .tenon(&["stage", "status", "--timeline"])
            .map(|output| output.stdout)
            .unwrap_or_default();
        format!(
            "events:\n{}\nstatus:\n{}\n{}",
            self.events().join("\n"),
            String::from_utf8_lossy(&status),
            String::from_utf8_lossy(&timeline)
        )
    }

    /// The line of a unit in the list that the last boot left.
    pub fn unit(&self, boot: u32, unit: &str) -> anyhow::Result<String> {
        let text = fs::read_to_string(self.place().join(format!("units-boot-{boot}")))?;
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(unit));
        Ok(line.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "))
    }

    pub fn boots(&self) -> u32 {
        self.boots
    }

    /// How often systemd restarted a unit by itself, as of the end of a boot.
    pub fn restarts(&self, boot: u32, unit: &str) -> anyhow::Result<u32> {
        let text = fs::read_to_string(self.place().join(format!("show-boot-{boot}")))?;
        let block = text.split("\n\n").find(|block| block.contains(&format!("Id={unit}")));
        let line =
            block.and_then(|block| block.lines().find_map(|line| line.strip_prefix("NRestarts=")));
        Ok(line.context("no such unit")?.parse()?)
    }

    pub fn state(&self) -> anyhow::Result<Value> {
        let bytes = fs::read(self.place().join("root/var/lib/tenon/state.json"))?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// The machine as far as two of the same kind must agree.
    pub fn snapshot(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let root = self.place().join("root");
        let mut map = BTreeMap::new();
        for top in ["etc/kubernetes", "var/lib/tenon", "etc/extensions", "opt", "etc/issue.d"] {
            walk(&root, &root.join(top), &mut map)?;
        }
        map.insert("var/lib/tenon/state.json".into(), essence(&self.state()?));
        Ok(map)
    }

    /// The promises that hold after every fault.
    pub fn promises(&self) -> anyhow::Result<()> {
        let wrong = |what: &str| -> anyhow::Result<()> { bail!("{what}\n{}", self.story()) };
        if self.count("kubelet start gate=closed") > 0 {
            wrong("the kubelet started before the gate")?;
        }
        if self.events().iter().any(|event| event.starts_with("boot-1 kubelet")) {
            wrong("the kubelet started in the boot before the reboot")?;
        }
        if self.count(" reboot") > 2 {
            wrong("more than two reboots")?;
        }
        if self.count("containerd start 2.1.9 state=old") > 0 {
            wrong("the new runtime started on the old one's state")?;
        }
        let last = self.boots;
        let text = fs::read_to_string(self.place().join(format!("units-boot-{last}")))?;
        if let Some(line) = text.lines().find(|line| line.contains(" failed ")) {
            wrong(&format!("a unit failed in the last boot: {line}"))?;
        }
        let quiet = |event: &String| {
            !event.starts_with(&format!("boot-{last} ")) || !event.contains(" tenon stage")
        };
        if !self.events().iter().all(quiet) {
            wrong("a stage ran in a boot after its end")?;
        }
        Ok(())
    }
}

fn walk(root: &Path, path: &Path, map: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let Ok(entries) = fs::read_dir(path) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let data = path.symlink_metadata()?;
        if data.is_dir() {
            walk(root, &path, map)?;
            continue;
        }
        let name = path.strip_prefix(root)?.display().to_string();
        let content = match data.is_symlink() {
            true => fs::read_link(&path)?.display().to_string(),
            false if NOT_COMPARED.iter().any(|part| name.contains(part)) => "there".into(),
            false => plain(&String::from_utf8_lossy(&fs::read(&path)?)),
        };
        map.insert(name, content);
    }
    Ok(())
}

/// A file without the boot that it was written in.
fn plain(text: &str) -> String {
    let keep =
        |line: &&str| !line.starts_with("TENON_PREPARED_BOOT_ID") && !line.starts_with("# Written");
    text.lines().filter(keep).collect::<Vec<_>>().join("\n")
}

/// What the state says, without times, attempts and boots.
fn essence(state: &Value) -> String {
    let stages = state["stages"].as_object().into_iter().flatten();
    let lines = stages.map(|(name, stage)| {
        format!("{name} {} {} {}", stage["status"], stage["outputs"], stage["lastError"])
    });
    let list: Vec<String> = lines.collect();
    format!("{}\nreboot {}", list.join("\n"), state["reboot"])
}
