//! Makes a root file system a node image, and says whether it still is one.
//!
//! ```text
//! site      the root, its facts and its record: what everything below looks at
//! gap       what an item asks for and the root lacks; verify tells it, apply mends it
//! recorded  the same of what the plan does not hold itself: downloads, outputs
//! mend      the ways to close a gap that is a file
//! place     large files, streamed; unpack takes them out of archives
//! program   Tenon itself, copied into the root
//! cache     what fetch brought
//! fetch     what a plan needs, by download, registry and the package manager of this machine
//! download  one file; registry one container image: with fetch the only rooms with network
//! sources   where packages come from while they are fetched
//! inside    programs inside the root, in namespaces of their own
//! packages  installs and removes, by the root's own package manager
//! apply     all items in order, then the record
//! live      the running kernel, only when asked for
//! verify    checks; running adds what the kernel says
//! manifest  what is in the root, for the manifest and the bill of materials
//! seal      the last step before a snapshot
//! ```
//!
//! An item that has no gap is not touched: running twice writes once.

pub mod apply;
pub mod cache;
mod download;
pub mod facts;
pub mod fetch;
mod gap;
mod inside;
pub mod live;
pub mod manifest;
mod mend;
mod packages;
mod place;
mod program;
pub mod record;
mod recorded;
mod registry;
mod running;
pub mod seal;
mod site;
mod sources;
mod unpack;
pub mod verify;

#[cfg(test)]
mod tests;
