//! `cargo xtask lab`: the real programs that end-to-end tests run, built once and kept.
//!
//! Each part lies in the cache under its name and the hash of its recipe, so a changed recipe is a
//! new part and a kept one is never stale. A part appears under its name only when it is whole.

mod components;
mod image;
mod images;
mod kubernetes;
mod newer;
mod nodeadm;
mod packages;
mod pause;
mod root;
mod scap;

pub use images::REPOSITORY as IMAGE_REPOSITORY;
pub use nodeadm::version as nodeadm_version;
pub use pause::NAME as PAUSE_IMAGE;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};

use crate::checkout;

#[derive(clap::Args)]
pub struct Args {
    /// Parts to build; all if none is named
    parts: Vec<String>,
    /// List the parts and say which are there
    #[arg(long)]
    list: bool,
}

/// One thing that the lab builds and keeps.
pub struct Part {
    pub name: &'static str,
    about: &'static str,
    /// Everything that decides the content, as text.
    recipe: fn() -> anyhow::Result<String>,
    /// Builds into an empty directory.
    build: fn(&Path) -> anyhow::Result<()>,
}

pub const ROOT: Part = Part {
    name: "root",
    about: "Debian with systemd, cloud-init and containerd",
    recipe: root::recipe,
    build: root::build,
};
pub const PAUSE: Part = Part {
    name: "pause",
    about: "the image of sandboxes and pods",
    recipe: pause::recipe,
    build: pause::build,
};
pub const ETCD: Part = Part {
    name: "etcd",
    about: "etcd of Debian",
    recipe: || Ok(newer::ETCD.recipe()),
    build: |place| newer::ETCD.build(place),
};
pub const VALGRIND: Part = Part {
    name: "valgrind",
    about: "valgrind of Debian, new enough to know openat2",
    recipe: || Ok(newer::VALGRIND.recipe()),
    build: |place| newer::VALGRIND.build(place),
};
pub const CONTAINERD_1_7: Part = Part {
    name: "containerd-1.7",
    about: "containerd 1.7 of Debian",
    recipe: || Ok(newer::CONTAINERD_1_7.recipe()),
    build: |place| newer::CONTAINERD_1_7.build(place),
};
pub const CONTAINERD_2: Part = Part {
    name: "containerd-2",
    about: "containerd 2 of Debian",
    recipe: || Ok(newer::CONTAINERD_2.recipe()),
    build: |place| newer::CONTAINERD_2.build(place),
};
pub const KUBERNETES_1_34: Part = Part {
    name: "kubernetes-1.34",
    about: "kubelet, control plane and kubeadm, from their Go modules",
    recipe: || kubernetes::recipe("1.34"),
    build: |place| kubernetes::build("1.34", place),
};
pub const KUBERNETES_1_36: Part = Part {
    name: "kubernetes-1.36",
    about: "the same programs of a later minor",
    recipe: || kubernetes::recipe("1.36"),
    build: |place| kubernetes::build("1.36", place),
};

pub const NODEADM: Part = Part {
    name: "nodeadm",
    about: "the program that Tenon takes the place of, from its Go module",
    recipe: nodeadm::recipe,
    build: nodeadm::build,
};

pub const IMAGES_1_34: Part = Part {
    name: "images-1.34",
    about: "images of etcd, API server, controller manager and scheduler",
    recipe: || images::recipe("1.34"),
    build: |place| images::build("1.34", &KUBERNETES_1_34, place),
};
pub const IMAGES_1_36: Part = Part {
    name: "images-1.36",
    about: "the same images of a later minor",
    recipe: || images::recipe("1.36"),
    build: |place| images::build("1.36", &KUBERNETES_1_36, place),
};

pub const SERVER: Part = Part {
    name: "server",
    about: "Debian as a server has it, with kernel, sshd, sudo and cron",
    recipe: root::server_recipe,
    build: root::build_server,
};
pub const PACKAGES: Part = Part {
    name: "packages",
    about: "what the profiles of an image add to the server",
    recipe: packages::recipe,
    build: packages::build,
};
pub const COMPONENTS: Part = Part {
    name: "components",
    about: "kubelet, credential provider, crictl and sandbox, as an image takes them",
    recipe: components::recipe,
    build: components::build,
};
pub const DNF: Part = Part {
    name: "dnf",
    about: "Debian with dnf and rpm, to play Amazon Linux",
    recipe: root::dnf_recipe,
    build: root::build_dnf,
};
pub const SCAP: Part = Part {
    name: "scap",
    about: "OpenSCAP of Debian, with the rules of its newest suite",
    recipe: scap::recipe,
    build: scap::build,
};

pub const PACKER: Part = Part {
    name: "packer",
    about: "packer of Debian, which reads the templates of images",
    recipe: || Ok(newer::PACKER.recipe()),
    build: |place| newer::PACKER.build(place),
};

const PARTS: &[Part] = &[
    ROOT,
    PAUSE,
    ETCD,
    VALGRIND,
    CONTAINERD_1_7,
    CONTAINERD_2,
    KUBERNETES_1_34,
    KUBERNETES_1_36,
    NODEADM,
    IMAGES_1_34,
    IMAGES_1_36,
    SERVER,
    PACKAGES,
    COMPONENTS,
    SCAP,
    DNF,
    PACKER,
];

pub fn run(args: &Args) -> anyhow::Result<()> {
    let cache = cache_directory()?;
    let mut rows = Vec::new();
    for part in choose(&args.parts)? {
        let there = part.place(&cache)?.exists();
        let start = Instant::now();
        if !args.list {
            part.ready(&cache)?;
        }
        let state = match (there, args.list) {
            (true, _) => "kept",
            (false, true) => "missing",
            (false, false) => "built",
        };
        rows.push((part, state, start.elapsed()));
    }
    println!("{:<16} {:<8} {:>7}  what", "part", "state", "seconds");
    for (part, state, time) in rows {
        println!("{:<16} {state:<8} {:>7.1}  {}", part.name, time.as_secs_f64(), part.about);
    }
    Ok(())
}

fn choose(names: &[String]) -> anyhow::Result<Vec<&'static Part>> {
    if names.is_empty() {
        return Ok(PARTS.iter().collect());
    }
    let find = |name: &String| {
        let part = PARTS.iter().find(|part| part.name == name);
        part.with_context(|| format!("no part `{name}`; `cargo xtask lab --list` names them"))
    };
    names.iter().map(find).collect()
}

impl Part {
    /// Where the part lies once it is built.
    pub fn place(&self, cache: &Path) -> anyhow::Result<PathBuf> {
        let recipe = (self.recipe)().with_context(|| format!("recipe of {}", self.name))?;
        let digest = Sha256::digest(recipe.as_bytes());
        let key: String = digest[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(cache.join(format!("{}-{key}", self.name)))
    }

    /// Builds the part unless it is there, and says where.
    pub fn ready(&self, cache: &Path) -> anyhow::Result<PathBuf> {
        let place = self.place(cache)?;
        if place.exists() {
            return Ok(place);
        }
        println!("building {}: {}", self.name, self.about);
        let start = Instant::now();
        let part = cache.join(format!("{}.part", self.name));
        if part.exists() {
            fs::remove_dir_all(&part).with_context(|| format!("removing {}", part.display()))?;
        }
        fs::create_dir_all(&part)?;
        (self.build)(&part).with_context(|| format!("building {}", self.name))?;
        fs::rename(&part, &place)?;
        println!("built {} in {:.0} s", self.name, start.elapsed().as_secs_f64());
        Ok(place)
    }
}

/// Where parts are kept: `$TENON_LAB`, else below the user's cache directory.
pub fn cache_directory() -> anyhow::Result<PathBuf> {
    let cache = match (std::env::var_os("TENON_LAB"), std::env::var_os("HOME")) {
        (Some(lab), _) => PathBuf::from(lab),
        (None, Some(home)) => PathBuf::from(home).join(".cache/tenon-lab"),
        (None, None) => bail!("neither TENON_LAB nor HOME says where caches may lie"),
    };
    fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
    Ok(cache)
}

/// Installs a Debian package unless its program is there already.
pub fn install(package: &str, program: &str) -> anyhow::Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|dir| dir.join(program).exists()) {
        return Ok(());
    }
    println!("installing {package}");
    let apt = || {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command.args(["-q", "-y", "-o", "DPkg::Lock::Timeout=120"]);
        command
    };
    must(apt().arg("update"))?;
    must(apt().args(["install", "--no-install-recommends", package]))
}

/// Runs a command that must succeed; its output is shown only if it does not.
pub fn must(command: &mut Command) -> anyhow::Result<()> {
    let name = format!("{command:?}");
    let output = command.output().with_context(|| format!("starting {name}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{name}: {}\n{}", output.status, String::from_utf8_lossy(&text));
    }
    Ok(())
}

/// Builds programs of pinned Go modules into a directory.
fn go_build(home: &str, links: &str, packages: &[String], place: &Path) -> anyhow::Result<()> {
    let go = Command::new("go").arg("version").output();
    if !go.is_ok_and(|output| output.status.success()) {
        bail!("go is not here; the programs are built from their Go modules");
    }
    // Below everything else that runs here: it takes minutes of every core.
    let mut command = Command::new("nice");
    command
        .args(["-n", "10", "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false"])
        .args(["-ldflags", links, "-o"])
        .arg(place)
        .args(packages)
        .current_dir(checkout().join(home))
        .env("CGO_ENABLED", "0");
    must(&mut command)
}

/// A file of the checkout, as part of a recipe.
fn source(path: &str) -> anyhow::Result<String> {
    fs::read_to_string(checkout().join(path)).with_context(|| format!("reading {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Part = Part {
        name: "sample",
        about: "a file",
        recipe: || Ok("version 1".into()),
        build: |place| Ok(fs::write(place.join("file"), "content")?),
    };

    #[test]
    fn a_part_is_built_once_and_named_by_its_recipe() {
        let cache = tempfile::tempdir().unwrap();
        let place = SAMPLE.ready(cache.path()).unwrap();
        assert_eq!(fs::read_to_string(place.join("file")).unwrap(), "content");
        let refuses = Part { build: |_| bail!("built again"), ..SAMPLE };
        assert_eq!(refuses.ready(cache.path()).unwrap(), place);
        let changed = Part { recipe: || Ok("version 2".into()), ..SAMPLE };
        assert_ne!(changed.place(cache.path()).unwrap(), place);
    }

    #[test]
    fn a_failed_build_leaves_nothing_under_the_name() {
        let cache = tempfile::tempdir().unwrap();
        let fails = Part { build: |_| bail!("no network"), ..SAMPLE };
        let error = fails.ready(cache.path()).unwrap_err();
        assert!(format!("{error:#}").contains("no network"), "{error:#}");
        assert!(!fails.place(cache.path()).unwrap().exists());
        SAMPLE.ready(cache.path()).unwrap();
    }
}
