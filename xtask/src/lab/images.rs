//! Images of the control plane, made from the lab's own programs: one program each, and what it
//! needs to start.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::json;

use super::{ETCD, Part, ROOT, image, kubernetes};

/// The registry that Tenon's config names as the mirror.
pub const REPOSITORY: &str = "localhost/lab";
/// Debian's etcd is linked against the C library.
const C_LIBRARY: &[(&str, &str)] = &[
    ("usr/lib/x86_64-linux-gnu/libc.so.6", "lib/x86_64-linux-gnu/libc.so.6"),
    ("usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"),
];
const PROGRAMS: &[&str] = &["kube-apiserver", "kube-controller-manager", "kube-scheduler"];

pub(super) fn recipe(minor: &str) -> anyhow::Result<String> {
    let own = [include_str!("images.rs"), include_str!("image.rs")].concat();
    Ok(format!("{}\n{}\n{own}", (ETCD.recipe)()?, kubernetes::recipe(minor)?))
}

/// Leaves an archive for each component, `etcd.tag` and `kubernetes.tag`.
pub(super) fn build(minor: &str, programs: &Part, place: &Path) -> anyhow::Result<()> {
    let cache = place.parent().context("a part without a place")?;
    let programs = programs.ready(cache)?;
    let tag = format!("v{}", kubernetes::version(minor)?);
    for name in PROGRAMS {
        one(place, name, &tag, &programs.join(name), &[])?;
    }
    fs::write(place.join("kubernetes.tag"), tag)?;
    let etcd = ETCD.ready(cache)?.join("usr/bin/etcd");
    let root = ROOT.ready(cache)?.join("root");
    let libraries: Vec<_> = C_LIBRARY.iter().map(|(from, to)| (root.join(from), *to)).collect();
    let tag = format!("{}-0", etcd_version(&etcd)?);
    one(place, "etcd", &tag, &etcd, &libraries)?;
    Ok(fs::write(place.join("etcd.tag"), tag)?)
}

fn one(
    place: &Path,
    name: &str,
    tag: &str,
    program: &Path,
    more: &[(std::path::PathBuf, &str)],
) -> anyhow::Result<()> {
    let work = tempfile::tempdir()?;
    let to = format!("usr/local/bin/{name}");
    for (from, to) in
        more.iter().map(|(from, to)| (from.as_path(), *to)).chain([(program, to.as_str())])
    {
        let to = work.path().join(to);
        fs::create_dir_all(to.parent().context("a file at the root of an image")?)?;
        fs::copy(from, &to).with_context(|| format!("copying {}", from.display()))?;
    }
    let config = json!({"Env": ["PATH=/usr/local/bin"], "Entrypoint": [name]});
    image::write(
        work.path(),
        &format!("{REPOSITORY}/{name}:{tag}"),
        &config,
        &place.join(format!("{name}.tar")),
    )
}

/// `3.5.16`, as the program says it.
fn etcd_version(program: &Path) -> anyhow::Result<String> {
    let output = Command::new(program).arg("--version").output().context("starting etcd")?;
    ensure!(output.status.success(), "etcd --version: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.lines().find_map(|line| line.strip_prefix("etcd Version: "));
    Ok(version.context("etcd says no version")?.trim().to_owned())
}
