//! How the layer builds an image: a server of Debian, a config of kind NodeImage, and a cache that
//! holds everything, so that no build needs a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::machine::text;
use super::super::stage::Stage;
use crate::lab::{KUBERNETES_1_34, PACKAGES, PAUSE, PAUSE_IMAGE, SERVER, kubernetes_version, must};

/// Kubelet and sandbox image come in as any user's would: by version, checksum and digest.
const CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
kind: NodeImage
metadata: {name: lab}
spec:
  family: debian
  kubernetes: \"{version}\"
  components:
    kubelet: {version: \"{version}\", source: upstream, sha256: {x86_64: \"{kubelet}\"}}
  cachedImages:
    - {name: pause, ref: localhost/kubernetes/pause, digest: \"sha256:{pause}\", pin: true, names: [\"{name}\"]}
";

/// Everything that builds have in common.
pub struct Workshop {
    place: PathBuf,
    tenon: PathBuf,
    /// The root that every build begins with.
    pub server: PathBuf,
    pub config: PathBuf,
    /// What the config pins.
    pub pause: String,
    packages: PathBuf,
    kubelet: (PathBuf, String),
    archive: PathBuf,
}

/// A root that becomes an image, and the cache of its build.
pub struct Build<'a> {
    workshop: &'a Workshop,
    pub root: PathBuf,
    cache: PathBuf,
}

impl Workshop {
    pub fn open(stage: &Stage) -> anyhow::Result<Self> {
        let kubelet = KUBERNETES_1_34.ready(&stage.cache)?.join("kubelet");
        let sum = hex(&fs::read(&kubelet).context("reading the kubelet")?);
        let archive = PAUSE.ready(&stage.cache)?.join("pause.tar");
        let pause = digest(&archive)?;
        let config = stage.place.join("image.yaml");
        let text = CONFIG
            .replace("{version}", &kubernetes_version("1.34")?)
            .replace("{kubelet}", &sum)
            .replace("{pause}", &pause)
            .replace("{name}", PAUSE_IMAGE);
        fs::write(&config, text)?;
        Ok(Workshop {
            place: stage.place.clone(),
            tenon: stage.tenon.clone(),
            server: SERVER.ready(&stage.cache)?.join("root"),
            config,
            pause,
            packages: PACKAGES.ready(&stage.cache)?,
            kubelet: (kubelet, sum),
            archive,
        })
    }

    /// A server with Tenon on it, as a build begins with.
    pub fn begin(&self, name: &str) -> anyhow::Result<Build<'_>> {
        let build = Build {
            workshop: self,
            root: self.place.join(name),
            cache: self.place.join(format!("{name}-cache")),
        };
        copy(&self.server, &build.root)?;
        let mut install = Command::new("install");
        install.args(["-m", "0755"]).arg(&self.tenon).arg(build.root.join("usr/bin/tenon"));
        must(&mut install)?;
        // Links, because apt writes into its cache, and by replacing files.
        must(Command::new("cp").arg("-al").arg(&self.packages).arg(&build.cache))?;
        let (kubelet, sum) = &self.kubelet;
        fs::hard_link(kubelet, build.cache.join("sha256").join(sum))?;
        let archive = format!("{}.tar", self.pause);
        fs::hard_link(&self.archive, build.cache.join("images").join(archive))?;
        Ok(build)
    }

    /// A `tenon image` command.
    pub fn image(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.tenon);
        command.arg("image").args(words);
        command
    }
}

impl Build<'_> {
    /// Applies the image's plan.
    pub fn apply(&self) -> anyhow::Result<Value> {
        json(&self.command().output().context("starting tenon image apply")?)
    }

    /// Applies the plan of another level of CIS.
    pub fn apply_level(&self, level: usize) -> anyhow::Result<Value> {
        let mut command = self.command();
        command.args(["--set", &format!("spec.cis.level={level}")]);
        json(&command.output().context("starting tenon image apply")?)
    }

    /// Begins to.
    pub fn start(&self) -> anyhow::Result<Child> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().context("starting tenon image apply")
    }

    fn command(&self) -> Command {
        let mut command = self.workshop.image(&["apply", "--offline", "--output", "json"]);
        command.arg("--config").arg(&self.workshop.config);
        command.arg("--root").arg(&self.root).arg("--cache").arg(&self.cache);
        command
    }

    /// Everything that the plan says holds in the root; gives how much that is.
    pub fn verify(&self) -> anyhow::Result<usize> {
        verify(self.workshop, &self.root)
    }
}

/// The same for any root.
pub fn verify(workshop: &Workshop, root: &Path) -> anyhow::Result<usize> {
    let output = workshop.image(&["verify", "--output", "json", "--root"]).arg(root).output()?;
    let report = json(&output).context("tenon image verify")?;
    ensure!(report["unknown"] == 0 && report["holds"] == true, "verify: {report:#}");
    Ok(report["checks"].as_array().context("no checks")?.len())
}

/// The answer of a command that must succeed.
pub fn json(output: &Output) -> anyhow::Result<Value> {
    ensure!(output.status.success(), "{}: {}", output.status, text(output));
    serde_json::from_slice(&output.stdout).with_context(|| format!("no JSON: {}", text(output)))
}

/// Copies a root with all that belongs to its files.
pub fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    must(Command::new("cp").arg("-a").arg(from).arg(to))
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of the one image of an OCI archive.
fn digest(archive: &Path) -> anyhow::Result<String> {
    let mut tar = Command::new("tar");
    let index = json(&tar.arg("-xOf").arg(archive).arg("./index.json").output()?)?;
    let digest = index["manifests"][0]["digest"].as_str().context("no image in the archive")?;
    Ok(digest.trim_start_matches("sha256:").to_owned())
}
