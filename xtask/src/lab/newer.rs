//! Packages of newer Debian suites than the host's: downloaded through a private state of apt and
//! unpacked, never installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::must;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A package and the suite it is taken from.
pub(super) struct Newer {
    pub package: &'static str,
    pub suite: &'static str,
}

pub(super) const ETCD: Newer = Newer { package: "etcd-server", suite: "trixie" };
pub(super) const VALGRIND: Newer = Newer { package: "valgrind", suite: "trixie" };
pub(super) const CONTAINERD_1_7: Newer = Newer { package: "containerd", suite: "trixie" };
pub(super) const CONTAINERD_2: Newer = Newer { package: "containerd", suite: "forky" };

/// The last release of Debian that has it.
pub(super) const PACKER: Newer = Newer { package: "packer", suite: "bookworm" };

/// Rules of OpenSCAP; older ones know no CIS profile of this Debian.
pub(super) const SCAP_RULES: Newer = Newer { package: "ssg-debian", suite: "sid" };

impl Newer {
    pub fn recipe(&self) -> String {
        format!("{} of {}", self.package, self.suite)
    }

    pub fn build(&self, place: &Path) -> anyhow::Result<()> {
        let state = tempfile::tempdir()?;
        let state = state.path();
        for directory in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(state.join(directory))?;
        }
        let list = format!("deb [signed-by={KEYRING}] {} {} main\n", mirror()?, self.suite);
        fs::write(state.join("sources.list"), list)?;
        must(apt(state).arg("update"))?;
        must(apt(state).args(["download", self.package]))?;
        let is_package =
            |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "deb");
        let files = fs::read_dir(state)?.map(|entry| entry.map(|entry| entry.path()));
        let files: Vec<_> = files.collect::<Result<_, _>>()?;
        let package = files.into_iter().find(is_package).context("apt downloaded no package")?;
        must(Command::new("dpkg").arg("-x").arg(package).arg(place))
    }
}

/// Where the host takes its own packages from.
fn mirror() -> anyhow::Result<String> {
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"])
        .output()
        .context("asking apt for its sources")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = text.lines().next().unwrap_or_default().to_owned();
    ensure!(!first.is_empty(), "apt has no source of packages on this host");
    Ok(first)
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
