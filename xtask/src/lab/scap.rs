//! The outside judge of images: OpenSCAP of the host's Debian, with the rules of a newer one, as a
//! directory that is laid over the root to be judged.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{must, newer};

/// The scanner and the libraries that a small root lacks.
const PACKAGES: &[&str] = &[
    "openscap-scanner",
    "openscap-common",
    "libopenscap25",
    "liblua5.3-0",
    "libopendbx1",
    "libpcre3",
    "libpopt0",
    "librpmio9",
    "librpm9",
    "libxslt1.1",
    "libxmlsec1",
    "libxmlsec1-openssl",
    "libxml2",
    "libcurl3-gnutls",
    "libapt-pkg6.0",
    "libicu72",
    "libyaml-0-2",
];

pub(super) fn recipe() -> anyhow::Result<String> {
    Ok(format!("{}\n{}", newer::SCAP_RULES.recipe(), PACKAGES.join(",")))
}

pub(super) fn build(place: &Path) -> anyhow::Result<()> {
    newer::SCAP_RULES.build(place)?;
    let downloads = tempfile::tempdir()?;
    let mut apt = Command::new("apt-get");
    apt.current_dir(&downloads).args(["-q", "-o", "APT::Sandbox::User=root", "download"]);
    must(apt.args(PACKAGES))?;
    for package in fs::read_dir(&downloads)? {
        must(Command::new("dpkg").arg("-x").arg(package?.path()).arg(place))?;
    }
    // Laid over a root, a directory /lib would hide the link that the root has there.
    let lib = place.join("lib");
    if lib.exists() {
        must(Command::new("cp").arg("-a").arg(lib.join(".")).arg(place.join("usr/lib")))?;
        fs::remove_dir_all(lib)?;
    }
    Ok(())
}
