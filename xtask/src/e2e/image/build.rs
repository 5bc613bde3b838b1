//! How the layer builds an image: a server of Debian, a config of kind NodeImage, and a cache that
//! holds everything, so that no build needs a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::super::machine::text;
use super::super::stage::Stage;
use crate::lab::{COMPONENTS, PACKAGES, SERVER, must};

/// Everything that builds have in common.
pub struct Workshop {
    place: PathBuf,
    tenon: PathBuf,
    /// The root that every build begins with.
    pub server: PathBuf,
    /// Kubelet and sandbox image come in as any user's would: by version, checksum and digest.
    pub config: PathBuf,
    /// The digest that the config pins the sandbox image by, without its kind.
    pub pause: String,
    /// Directories that make up the cache.
    caches: [PathBuf; 2],
}

/// A root that becomes an image, and the cache of its build.
pub struct Build<'a> {
    workshop: &'a Workshop,
    pub root: PathBuf,
    cache: PathBuf,
}

impl Workshop {
    pub fn open(stage: &Stage) -> anyhow::Result<Self> {
        let components = COMPONENTS.ready(&stage.cache)?;
        let config = components.join("image.yaml");
        let text: Value = serde_json::from_str(&fs::read_to_string(&config)?)?;
        let digest = text["spec"]["cachedImages"][0]["digest"].as_str().unwrap_or_default();
        let pause = digest.strip_prefix("sha256:").context("the config has no sandbox image")?;
        Ok(Workshop {
            place: stage.place.clone(),
            tenon: stage.tenon.clone(),
            server: SERVER.ready(&stage.cache)?.join("root"),
            pause: pause.to_owned(),
            caches: [PACKAGES.ready(&stage.cache)?, components.join("cache")],
            config,
        })
    }

    /// A server, as a build begins with.
    pub fn begin(&self, name: &str) -> anyhow::Result<Build<'_>> {
        let build = Build {
            workshop: self,
            root: self.place.join(name),
            cache: self.place.join(format!("{name}-cache")),
        };
        copy(&self.server, &build.root)?;
        fs::create_dir(&build.cache)?;
        for part in &self.caches {
            // Links will do, because apt writes into its cache by replacing files.
            must(Command::new("cp").arg("-al").arg(part.join(".")).arg(&build.cache))?;
        }
        for lock in ["apt/archives/lock", "apt/lists/lock"] {
            // But for its locks, which would be those of all builds.
            must(Command::new("rm").arg("-f").arg(build.cache.join(lock)))?;
        }
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
        let log = self.workshop.place.join("apply.log");
        let log = fs::File::options().create(true).append(true).open(log)?;
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
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
