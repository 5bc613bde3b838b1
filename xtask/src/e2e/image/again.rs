//! The same image once more: a build of its own, and a build that is killed again and again, come
//! to the same files, but for a list of paths with reasons.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tenon_core::glob::fits;
use tenon_core::image::packages::dpkg;

use super::build::{Build, Workshop};
use super::page::{self, PAGE};

const HEADING: &str = "Paths that differ between two builds";
const KILLED: &str = "Paths that may differ after a kill";

/// What appears in a root while an apply works on it, in this order; at each it is killed.
const SIGNS: &[(&str, &str)] = &[
    ("packages are unpacked", "var/lib/dpkg/info/aide.list"),
    ("packages are set up", "etc/logrotate.conf"),
    ("a trigger runs", "boot/initrd.img-*.new"),
    ("directories are made", "etc/kubernetes/manifests"),
    ("the kubelet is there", "usr/bin/kubelet"),
    ("files are written", "etc/sysctl.d/90-tenon.conf"),
    ("the last links are made", "etc/systemd/system/graphical.target.wants/tenon-run.service"),
];

/// Each path of a root, with its kind, mode, owner and content.
pub struct Tree(BTreeMap<String, String>);

impl Tree {
    pub fn of(root: &Path) -> anyhow::Result<Self> {
        let list = |command: &str| -> anyhow::Result<String> {
            let output = Command::new("sh").args(["-euc", command]).current_dir(root).output()?;
            ensure!(output.status.success(), "{command}: {}", output.status);
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let mut tree = BTreeMap::new();
        for line in list("find . -printf '%p\t%y %m %U:%G %l\\n'")?.lines() {
            let (path, what) = line.split_once('\t').context("a path with a line break")?;
            tree.insert(path[1..].to_owned(), what.to_owned());
        }
        for line in list("find . -type f -print0 | xargs -0 sha256sum")?.lines() {
            let (sum, path) = line.split_once("  .").context("a sum without a path")?;
            tree.entry(path.to_owned()).or_default().push_str(sum);
        }
        ensure!(tree.len() > 10_000, "{} holds {} paths only", root.display(), tree.len());
        Ok(Tree(tree))
    }

    /// Paths that are not the same in both.
    fn differences<'a>(&'a self, other: &'a Tree) -> Vec<&'a str> {
        let mut paths: Vec<_> = self
            .0
            .keys()
            .chain(other.0.keys())
            .filter(|path| self.0.get(*path) != other.0.get(*path))
            .map(String::as_str)
            .collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }
}

/// A second build differs from the first in listed paths alone, and in each of those.
pub fn second_build(workshop: &Workshop, first: &Tree) -> anyhow::Result<usize> {
    let build = workshop.begin("second")?;
    build.apply()?;
    let tree = Tree::of(&build.root)?;
    let page = page::read()?;
    let known = page::rows(&page, HEADING)?;
    let found = first.differences(&tree);
    listed(&found, &[HEADING])?;
    let stale: Vec<_> =
        known.keys().filter(|path| !found.iter().any(|found| fits(found, path))).collect();
    ensure!(stale.is_empty(), "{PAGE} lists paths that are the same: {stale:?}");
    println!("  a second build differs in {} paths, all listed", found.len());
    fs::remove_dir_all(&build.root)?;
    Ok(1)
}

fn listed(found: &[&str], headings: &[&str]) -> anyhow::Result<()> {
    let page = page::read()?;
    let mut known = BTreeMap::new();
    for heading in headings {
        known.extend(page::rows(&page, heading)?);
    }
    // A row that fits a directory speaks for everything below it.
    let covered = |path: &str| {
        let mut paths = Path::new(path).ancestors().filter_map(Path::to_str);
        paths.any(|path| known.keys().any(|known| fits(path, known)))
    };
    let new: Vec<_> = found.iter().filter(|path| !covered(path)).collect();
    ensure!(new.is_empty(), "paths differ that {PAGE} does not list: {new:?}");
    Ok(())
}

/// A build that is killed at each sign, and run again, ends as one that nobody disturbed.
pub fn killed_build(
    workshop: &Workshop,
    first: &Tree,
    undisturbed: &Path,
) -> anyhow::Result<usize> {
    let build = workshop.begin("killed")?;
    for (name, sign) in SIGNS {
        kill_at(&build, sign).with_context(|| format!("while {name}"))?;
    }
    let report = build.apply()?;
    ensure!(report["changed"] == true, "there was nothing left to do: {report:#}");
    let again = build.apply()?;
    ensure!(again["changed"] == false, "after the cure: {again:#}");
    build.verify()?;
    let tree = Tree::of(&build.root)?;
    listed(&first.differences(&tree), &[HEADING, KILLED]).context("killed and cured")?;
    let packages = |root: &Path| -> anyhow::Result<_> {
        Ok(dpkg(&fs::read_to_string(root.join("var/lib/dpkg/status"))?))
    };
    ensure!(packages(&build.root)? == packages(undisturbed)?, "other packages, or in other states");
    println!("  killed at {} moments and cured, the same files", SIGNS.len());
    fs::remove_dir_all(&build.root)?;
    Ok(SIGNS.len())
}

fn kill_at(build: &Build, sign: &str) -> anyhow::Result<()> {
    ensure!(!appeared(&build.root, sign)?, "{sign} is there too early");
    let mut apply = build.start()?;
    let deadline = Instant::now() + Duration::from_secs(600);
    while !appeared(&build.root, sign)? {
        let ended = apply.try_wait()?;
        ensure!(ended.is_none(), "the apply ended ({ended:?}) before {sign}");
        ensure!(Instant::now() < deadline, "no {sign} in 600 s");
        std::thread::sleep(Duration::from_micros(500));
    }
    apply.kill()?;
    let status = apply.wait()?;
    ensure!(status.signal() == Some(9), "it ended before it was killed: {status}");
    Ok(())
}

/// True if a file of this name is there; only the last part may be a pattern.
fn appeared(root: &Path, sign: &str) -> anyhow::Result<bool> {
    let path = root.join(sign);
    if !sign.contains('*') {
        return Ok(path.symlink_metadata().is_ok());
    }
    let (Some(directory), Some(pattern)) = (path.parent(), path.file_name()) else {
        return Ok(false);
    };
    let names = fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut names = names.map(|name| name.to_string_lossy().into_owned());
    let pattern = pattern.to_string_lossy();
    Ok(names.any(|name| fits(&name, &pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_difference_is_found() {
        let tree = |pairs: &[(&str, &str)]| {
            Tree(pairs.iter().map(|(path, what)| ((*path).into(), (*what).into())).collect())
        };
        let one = tree(&[("/a", "f 644"), ("/b", "f 644"), ("/c", "d 755")]);
        let other = tree(&[("/a", "f 600"), ("/c", "d 755"), ("/d", "l x")]);
        assert_eq!(one.differences(&other), ["/a", "/b", "/d"]);
    }

    #[test]
    fn every_path_of_the_list_has_a_reason() {
        assert!(!page::rows(&page::read().unwrap(), HEADING).unwrap().is_empty());
        listed(&["/var/log/dpkg.log"], &[HEADING]).unwrap();
        listed(&["/var/tmp/mkinitramfs_x/usr/bin"], &[HEADING, KILLED]).unwrap();
        assert!(listed(&["/etc/passwd"], &[HEADING, KILLED]).is_err());
    }
}
