//! What a log bundle holds.
//!
//! ```text
//! journal    an entry of the journal as a line
//! ```

pub mod journal;
