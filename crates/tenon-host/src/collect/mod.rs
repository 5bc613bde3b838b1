//! Reads a node that misbehaves, and packs what was read.
//!
//! ```text
//! source   one face for a live node, a dead node's volume and a bundle
//! journal  systemd's journal files
//! bundle   reads an archive that may be hostile; tar, its one form of member
//! spool    content that has no name
//! ```
//!
//! Nothing here changes the node; the one thing written is the bundle.

pub mod bundle;
pub mod journal;
pub mod source;
pub mod spool;
pub mod tar;

pub use self::bundle::Bundle;
pub use self::journal::{Match, Query};
pub use self::source::{Answer, Kind, Node, Source, Unit};
