//! Makes, reads and renews the keys and certificates of a control plane.
//!
//! ```text
//! keys         private keys: made, read in the forms that other tools write
//! sign         certificates and requests out of what core's table wants
//! disk         the files: read, written key first, never overwritten
//! init         makes what is missing      kubeconfigs  the same for kubeconfigs
//! renew        signs again before the end
//! inspect      what is there, and what is wrong with it
//! ```

mod disk;
mod init;
mod inspect;
mod keys;
mod kubeconfigs;
mod renew;
mod sign;

use serde_json::{Value, json};
use tenon_core::pki::{CERTIFICATES, KUBECONFIGS};
use tenon_core::stages::Machine;

pub use self::init::External;
pub use self::inspect::{Inspection, check, list};
pub use self::keys::Algorithm;
pub use self::renew::{Due, Renewal};

use crate::root::Root;

/// The pair that signs tokens of service accounts, `sa.key` and `sa.pub`.
pub const SERVICE_ACCOUNTS: &str = "sa";

/// How certificates are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub algorithm: Algorithm,
    pub ca_days: u32,
    pub leaf_days: u32,
    /// A file whose key becomes `sa.key`: an RSA key for clouds that know nothing else.
    pub service_account_key: Option<String>,
    /// Seconds since 1970.
    pub now: u64,
}

impl Options {
    /// P-256, a CA for ten years, a leaf for one.
    pub fn at(now: u64) -> Self {
        Options {
            algorithm: Algorithm::P256,
            ca_days: 3650,
            leaf_days: 365,
            service_account_key: None,
            now,
        }
    }

    /// What a machine's config asks for.
    pub fn of(machine: &Machine, now: u64) -> Self {
        let wish = &machine.pki;
        Options {
            algorithm: match wish.algorithm.as_str() {
                "ecdsa-p384" => Algorithm::P384,
                _ => Algorithm::P256,
            },
            ca_days: wish.ca_days,
            leaf_days: wish.leaf_days,
            service_account_key: wish.service_account_key.clone(),
            now,
        }
    }
}

/// The keys and certificates below a root. Whoever writes holds a lock.
#[derive(Debug, Clone)]
pub struct Pki<'a> {
    root: &'a Root,
    options: Options,
}

impl<'a> Pki<'a> {
    pub fn new(root: &'a Root, options: Options) -> Self {
        Pki { root, options }
    }
}

/// What happened to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Key and certificate are new.
    Made,
    /// The key was there, the certificate is new.
    Signed,
    /// It was there and is as it should be.
    Kept,
    /// A request lies in the directory for them, to be signed elsewhere.
    Requested,
    Renewed,
}

impl Action {
    pub fn word(self) -> &'static str {
        match self {
            Action::Made => "made",
            Action::Signed => "signed",
            Action::Kept => "kept",
            Action::Requested => "requested",
            Action::Renewed => "renewed",
        }
    }
}

/// One line of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// As in the table.
    pub name: String,
    pub path: String,
    pub action: Action,
}

impl Done {
    fn new(name: &str, path: impl Into<String>, action: Action) -> Self {
        Done { name: name.to_owned(), path: path.into(), action }
    }

    pub fn to_json(&self) -> Value {
        json!({"name": self.name, "file": self.path, "action": self.action.word()})
    }
}

/// Every name that `--only` takes.
pub fn names() -> Vec<&'static str> {
    let certificates = CERTIFICATES.iter().map(|row| row.name);
    let kubeconfigs = KUBECONFIGS.iter().map(|entry| entry.row.name);
    certificates.chain([SERVICE_ACCOUNTS]).chain(kubeconfigs).collect()
}

/// True when a list of names has this one, or is empty and so means all.
fn chosen(only: &[String], name: &str) -> bool {
    only.is_empty() || only.iter().any(|chosen| chosen == name)
}

#[cfg(test)]
mod tests;
