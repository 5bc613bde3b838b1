//! The user's own data and generated data as one document, by the rules of the family.

mod bottlerocket;
mod ignition;
mod mime;
mod windows;

use super::node::{Kind, Node};
use super::read::{self, Options as ReadOptions};
use crate::codes::inspect::NOT_MERGEABLE;
use crate::problem::{Place, Problem};
use crate::userdata::Family;

/// How two documents are joined.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    pub family: Family,
    /// Where our parts stand among the user's.
    pub ours: Placement,
    /// Ours wins where both write the same file (Ignition).
    pub force: bool,
}

/// Where our parts stand in a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Placement {
    First,
    #[default]
    Last,
    /// After the user's part of this filename, or `part N`.
    After(String),
}

/// One document out of two.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Merged {
    pub bytes: Vec<u8>,
    /// Keys of the user's that ours replaced.
    pub replaced: Vec<String>,
    /// What was repaired or added on the way.
    pub notes: Vec<String>,
}

/// Joins the user's data with ours. Every conflict is reported; one means no output.
pub fn merge(custom: &[u8], ours: &[u8], options: &Options) -> Result<Merged, Vec<Problem>> {
    if options.family == Family::Custom {
        return Ok(Merged { bytes: custom.to_vec(), ..Merged::default() });
    }
    let one = |problem| vec![problem];
    let custom = open("custom:", custom).map_err(one)?;
    let ours = open("generated:", ours).map_err(one)?;
    let (custom, ours) = (custom.core(), ours.core());
    if custom.kind == Kind::Empty || custom.bytes == ours.bytes {
        return Ok(Merged { bytes: ours.bytes.clone(), ..Merged::default() });
    }
    match options.family {
        Family::Bottlerocket { .. } => bottlerocket::merge(custom, ours),
        Family::Windows { .. } => windows::merge(custom, ours).map_err(one),
        Family::Flatcar | Family::FedoraCoreOs => ignition::merge(custom, ours, options.force),
        _ => mime::merge(custom, ours, options).map_err(one),
    }
}

fn open(source: &str, bytes: &[u8]) -> Result<Node, Problem> {
    read::read(source, bytes.to_vec(), &ReadOptions::default())
}

fn not_mergeable(node: &Node, what: impl Into<String>) -> Problem {
    Problem::new(&NOT_MERGEABLE, what).at(Place { ..node.place.clone() })
}

#[cfg(test)]
mod tests;
