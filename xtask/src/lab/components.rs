//! The components of a node image as their publishers pack them, built from Go modules at pinned
//! versions and checksums (`e2e/components`), beside the lab's own kubelet and sandbox image: a
//! cache for `tenon image apply --offline`, and the config that names its contents.
//!
//! The SOCI snapshotter is not among them: its programs are in a module that the public proxy does
//! not have.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{KUBERNETES_1_34, PAUSE, PAUSE_IMAGE, go_build, kubernetes, must, pause, source};

const MINOR: &str = "1.34";

/// A program, and the module that it is built from.
struct Program {
    name: &'static str,
    module: &'static str,
    package: &'static str,
    /// Where its own version is stamped in.
    stamp: &'static str,
    /// Its publisher packs it as an archive.
    packed: bool,
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "crictl",
        module: "sigs.k8s.io/cri-tools",
        package: "cmd/crictl",
        stamp: "sigs.k8s.io/cri-tools/pkg/version.Version",
        packed: true,
    },
    Program {
        name: "ecr-credential-provider",
        module: "k8s.io/cloud-provider-aws",
        package: "cmd/ecr-credential-provider",
        stamp: "k8s.io/component-base/version.gitVersion",
        packed: false,
    },
];

impl Program {
    fn home(&self, file: &str) -> String {
        format!("e2e/components/{}/{file}", self.name)
    }

    /// `1.36.0`, from the line that requires it.
    fn version(&self) -> anyhow::Result<String> {
        let text = source(&self.home("go.mod"))?;
        let line =
            text.lines().find_map(|line| line.strip_prefix("require ")?.strip_prefix(self.module));
        let line = line.with_context(|| format!("go.mod names no version of {}", self.module))?;
        Ok(line.trim().trim_start_matches('v').to_owned())
    }

    /// Builds it as its publisher gives it away; the file lies in `place`.
    fn build(&self, place: &Path) -> anyhow::Result<()> {
        let links = format!("-s -w -X {}=v{}", self.stamp, self.version()?);
        let program = place.join(self.name);
        let package = format!("{}/{}", self.module, self.package);
        go_build(&self.home(""), &links, &[package], &program)?;
        if !self.packed {
            return Ok(());
        }
        let archive = place.join("packed");
        let mut tar = Command::new("tar");
        tar.args(["--mtime=@0", "--owner=0", "--group=0", "--use-compress-program=gzip -n"]);
        must(tar.arg("-cf").arg(&archive).arg("-C").arg(place).arg(self.name))?;
        Ok(fs::rename(archive, program)?)
    }
}

pub(super) fn recipe() -> anyhow::Result<String> {
    let mut text = [include_str!("components.rs"), &pause::recipe()?].concat();
    text.push_str(&kubernetes::recipe(MINOR)?);
    for program in PROGRAMS {
        text.push_str(&source(&program.home("go.mod"))?);
        text.push_str(&source(&program.home("go.sum"))?);
    }
    Ok(text)
}

/// Leaves `image.yaml`, and `cache` as `tenon image fetch` would fill it.
pub(super) fn build(place: &Path) -> anyhow::Result<()> {
    let lab = place.parent().context("a part without a place")?;
    fs::create_dir_all(place.join("cache/sha256"))?;
    fs::create_dir_all(place.join("cache/images"))?;
    let work = tempfile::tempdir_in(place)?;
    let mut components = serde_json::Map::new();
    for program in PROGRAMS {
        program.build(work.path())?;
        let entry = keep(place, &work.path().join(program.name), &program.version()?)?;
        components.insert(program.name.to_owned(), entry);
    }
    let version = kubernetes::version(MINOR)?;
    let kubelet = KUBERNETES_1_34.ready(lab)?.join("kubelet");
    components.insert("kubelet".to_owned(), keep(place, &kubelet, &version)?);
    let digest = keep_pause(place, &PAUSE.ready(lab)?.join("pause.tar"))?;
    let reference = PAUSE_IMAGE.trim_end_matches(":latest");
    let config = json!({
        "apiVersion": "tenon.dev/v1alpha1",
        "kind": "NodeImage",
        "metadata": {"name": "lab"},
        "spec": {
            "kubernetes": version,
            "components": components,
            "cachedImages": [{
                "name": "pause", "ref": reference, "digest": digest, "pin": true,
                "names": [PAUSE_IMAGE],
            }],
        },
    });
    // JSON is YAML.
    Ok(fs::write(place.join("image.yaml"), format!("{config:#}\n"))?)
}

/// Puts a file into the cache under its hash, and says what a config says of it.
fn keep(place: &Path, file: &Path, version: &str) -> anyhow::Result<Value> {
    let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
    let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    link(file, &place.join("cache/sha256").join(&sum))?;
    let sums = json!({std::env::consts::ARCH: sum});
    Ok(json!({"version": version, "source": "upstream", "sha256": sums}))
}

/// Puts the sandbox image into the cache and gives its digest.
fn keep_pause(place: &Path, archive: &Path) -> anyhow::Result<String> {
    let output = Command::new("tar").arg("-xOf").arg(archive).arg("./index.json").output()?;
    ensure!(output.status.success(), "{} has no index", archive.display());
    let index: Value = serde_json::from_slice(&output.stdout)?;
    let digest = index["manifests"][0]["digest"].as_str().context("an index without a digest")?;
    let hex = digest.trim_start_matches("sha256:");
    link(archive, &place.join("cache/images").join(format!("{hex}.tar")))?;
    Ok(digest.to_owned())
}

/// A second name where the file system can, else a copy.
fn link(from: &Path, to: &Path) -> anyhow::Result<()> {
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).with_context(|| format!("copying {}", from.display()))?;
    }
    Ok(())
}
