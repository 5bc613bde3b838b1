//! Packages of a newer Debian than the host's: downloaded through a private state of apt and
//! unpacked, never installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::must;

const SUITE: &str = "trixie";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

pub(super) fn recipe(package: &str) -> anyhow::Result<String> {
    Ok(format!("{package} of {SUITE}"))
}

/// Leaves the package's files as they would lie below `/`.
pub(super) fn build(package: &str, place: &Path) -> anyhow::Result<()> {
    let state = tempfile::tempdir()?;
    let state = state.path();
    for directory in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(state.join(directory))?;
    }
    let list = format!("deb [signed-by={KEYRING}] http://deb.debian.org/debian {SUITE} main\n");
    fs::write(state.join("sources.list"), list)?;
    must(apt(state).arg("update"))?;
    must(apt(state).args(["download", package]))?;
    let is_package = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "deb");
    let files = fs::read_dir(state)?.map(|entry| entry.map(|entry| entry.path()));
    let files: Vec<_> = files.collect::<Result<_, _>>()?;
    let package = files.into_iter().find(is_package).context("apt downloaded no package")?;
    must(Command::new("dpkg").arg("-x").arg(package).arg(place))
}

fn apt(state: &Path) -> Command {
    let mut command = Command::new("apt-get");
    command.current_dir(state).arg("-q");
    let at = |name: &str| state.join(name).display().to_string();
    for (option, value) in [
        ("Dir::State::lists", at("lists")),
        ("Dir::Cache", state.display().to_string()),
        ("Dir::Etc::sourcelist", at("sources.list")),
        ("Dir::Etc::sourceparts", "-".into()),
        ("APT::Sandbox::User", "root".into()),
    ] {
        command.arg("-o").arg(format!("{option}={value}"));
    }
    command
}
