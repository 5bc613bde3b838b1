//! A small client of the Kubernetes API: what bootstrap, add-ons, tokens and checks need.
//!
//! ```text
//! access     kubeconfig or single parts → whom to ask, whom to trust, who is asking
//! client     requests with a deadline: get, list, create, apply, patch, delete
//! error      what the API server says when it says no, as a value
//! resources  kind → path, from the server's own discovery
//! tokens     bootstrap tokens        approve  requests for certificates
//! discover   a cluster found with a token and the hash of its CA
//! wait       look until it is so, and say what was seen last
//! ```
//!
//! Objects are JSON values: add-ons bring kinds that no list in here could know.

mod access;
pub mod approve;
mod client;
mod discover;
mod error;
mod resources;
pub mod tokens;
mod wait;

pub use self::access::{Auth, Trust, endpoint, read_kubeconfig};
pub use self::client::{Client, Patch};
pub use self::discover::discover;
pub use self::error::{ApiError, Refusal};
pub use self::resources::Resource;
pub use self::wait::{Look, wait_until};

#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod tests;
