//! Keys and certificates of a control plane, as data: which there are, whom they name, who
//! signs them, and whether what lies on a disk is that.
//!
//! ```text
//! table        one row per certificate and per kubeconfig
//! names        whom a certificate names; what that depends on
//! pem          the armour around keys and certificates
//! certificate  a certificate or request, read
//! check        what is wrong with it, at a given time
//! show         the list for people
//! serving      may a kubelet's serving certificate be approved?
//! ```
//!
//! Making keys and signatures needs randomness and is `tenon-host`'s; the clock is an argument.

pub mod certificate;
pub mod check;
pub mod names;
pub mod pem;
pub mod serving;
pub mod show;
pub mod table;

pub use self::certificate::{Certificate, Request};
pub use self::names::{Identity, San};
pub use self::table::{CERTIFICATES, KUBECONFIGS, Row, Usage, Wanted};

/// Where the files of the table are.
pub const DIRECTORY: &str = "/etc/kubernetes/pki";
/// Where the kubeconfigs are.
pub const KUBECONFIG_DIRECTORY: &str = "/etc/kubernetes";
/// Where the short-lived leaf of the bootstrap API server is.
pub const BOOTSTRAP_DIRECTORY: &str = "/etc/kubernetes/bootstrap-secrets";
/// A certificate begins this long before now, for clocks that are behind.
pub const SKEW_SECONDS: u64 = 300;
pub const DAY_SECONDS: u64 = 86_400;

/// The path of a certificate of the table.
pub fn certificate_path(name: &str) -> String {
    format!("{DIRECTORY}/{name}.crt")
}

/// The path of its key.
pub fn key_path(name: &str) -> String {
    format!("{DIRECTORY}/{name}.key")
}
