//! What a log bundle holds.
//!
//! ```text
//! catalogue  what is collected, as data: the embedded table and users' files
//! certificate  certificates in a few words
//! manifest   what became of each item; the first member of a bundle
//! journal    an entry of the journal as a line
//! compare    two bundles: versions, configuration, kernel settings, units
//! ```

pub mod catalogue;
pub mod certificate;
pub mod compare;
pub mod journal;
pub mod manifest;
