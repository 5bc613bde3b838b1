//! The cluster's keys and certificates, by openssl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::network::{INFRA, INFRA_IPV6};
use crate::lab::must;

/// A directory of `NAME.crt` and `NAME.key`.
pub struct Pki {
    place: PathBuf,
}

impl Pki {
    pub fn new(place: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(place)?;
        let pki = Pki { place: place.to_owned() };
        must(
            pki.request("ca", "/CN=kubernetes").args(["-addext", "keyUsage=critical,keyCertSign"]),
        )?;
        let names = format!(
            "subjectAltName=DNS:kubernetes,DNS:kubernetes.default,DNS:localhost,IP:127.0.0.1,IP:{INFRA},IP:{INFRA_IPV6}"
        );
        pki.issue("apiserver", "/CN=kube-apiserver", &["-addext", &names])?;
        for (name, subject) in [
            ("admin", "/O=system:masters/CN=lab-admin"),
            ("kubelet-client", "/O=system:masters/CN=kube-apiserver-kubelet-client"),
            ("controller-manager", "/CN=system:kube-controller-manager"),
            ("scheduler", "/CN=system:kube-scheduler"),
        ] {
            pki.issue(name, subject, &[])?;
        }
        let (key, public) = (pki.path("accounts.key"), pki.path("accounts.pub"));
        must(Command::new("openssl").args(["genrsa", "-out", &key, "2048"]))?;
        must(Command::new("openssl").args(["rsa", "-in", &key, "-pubout", "-out", &public]))?;
        Ok(pki)
    }

    pub fn path(&self, name: &str) -> String {
        self.place.join(name).display().to_string()
    }

    fn issue(&self, name: &str, subject: &str, more: &[&str]) -> anyhow::Result<()> {
        let (ca, key) = (self.path("ca.crt"), self.path("ca.key"));
        let mut command = self.request(name, subject);
        // What openssl would add by default makes every certificate one of an authority, which
        // Go accepts of a server and rustls does not.
        command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        must(command.args(["-CA", &ca, "-CAkey", &key]).args(more))
    }

    /// A new key with a certificate of its own; with an authority added, of that.
    fn request(&self, name: &str, subject: &str) -> Command {
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-nodes", "-days", "2", "-subj", subject]);
        command.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
        command.args(["-keyout", &self.path(&format!("{name}.key"))]);
        command.args(["-out", &self.path(&format!("{name}.crt"))]);
        command
    }
}
