//! Anyone's user data, read back: what it holds, what it means for the node, what is wrong
//! with it.
//!
//! ```text
//! bytes ─read─▶ Node tree ─settings─▶ normal form with provenance ─report─▶ text, JSON
//!                   │                        ├─ convert ─▶ another family
//!                   ├─ lint ─▶ findings      └─ lint
//!                   └─ extract ─▶ files
//! merge: the user's own data and generated data into one document
//! ```

pub mod certificate;
mod cloud_config;
pub mod convert;
mod document;
pub mod extract;
mod here;
mod ignition;
pub mod lint;
pub mod merge;
pub mod node;
pub mod read;
mod recognise;
pub mod redact;
pub mod report;
pub mod settings;
mod shell;
mod template;
mod windows;

pub use node::{Kind, Node};
pub use read::{Options, read};
pub use report::{Report, report};
pub use settings::Settings;

#[cfg(test)]
mod tests;
