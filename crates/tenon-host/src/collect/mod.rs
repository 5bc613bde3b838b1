//! Reads a node that misbehaves, and packs what was read.
//!
//! ```text
//! source   one face for a live node, a dead node's volume and a bundle
//! journal  systemd's journal files
//! bundle   reads an archive that may be hostile
//! spool    content that has no name yet
//! ```
//!
//! Nothing here changes the node; the one thing written is the bundle.

pub mod journal;
