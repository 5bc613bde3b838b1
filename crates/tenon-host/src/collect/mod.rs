//! Reads a node that misbehaves, and packs what was read.
//!
//! ```text
//! source   one face for a live node, a dead node's volume and a bundle
//! journal  systemd's journal files
//! bundle   reads an archive that may be hostile; tar, its one form of member
//! run      one run of the collector: order, workers, budgets
//! item     takes one entry of the catalogue; file, loopback, child: how files, servers and
//!          programs are read; own: what Tenon finds out by itself
//! sink     redacts and packs while reading; spool: content that has no name
//! identity which node it is; upload: sends the bundle away
//! archive  manifest, members, and the name at the end
//! ```
//!
//! Nothing here changes the node; the one thing written is the bundle.

pub mod archive;
pub mod bundle;
mod child;
mod collected;
mod file;
pub mod identity;
mod item;
pub mod journal;
mod loopback;
mod own;
pub mod run;
mod sink;
pub mod source;
mod spool;
mod tar;
pub mod upload;

pub use self::archive::{Collected, Cover};
pub use self::bundle::Bundle;
pub use self::journal::{Match, Query};
pub use self::run::{Options, Order, Progress, collect};
pub use self::source::{Answer, Kind, Node, Source, Unit};

#[cfg(test)]
mod tests;
