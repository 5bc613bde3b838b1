//! What a reader of an answer should know about the row that it rests on.

use super::formula;
use super::instances::{Arch, Origin};
use super::subject::Limits;

/// Types whose interfaces older public lists count over all cards. In doubt the lower value is
/// taken: too high a limit gives pods that never get an address.
const DISPUTED: [(&str, u32); 4] = [
    ("i7ie.48xlarge", 15),
    ("i7ie.metal-48xl", 15),
    ("i8ge.48xlarge", 24),
    ("i8ge.metal-48xl", 24),
];

/// What a reader of the answer should know about the row.
pub(super) fn about(limits: &Limits<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((_, older)) = DISPUTED.iter().find(|(name, _)| *name == limits.name) {
        let pods = formula::plain(*older, limits.ipv4_per_eni);
        notes.push(format!(
            "older public lists count {older} interfaces ({pods} pods); the default card has {}",
            limits.enis
        ));
    }
    if limits.enis == 1 {
        notes.push("a single interface: custom networking leaves no address for pods".to_owned());
    }
    let Some(row) = limits.row else { return notes };
    match row.arch {
        Arch::Mac => notes.push("a Mac: never a Linux node".to_owned()),
        Arch::X86_64 | Arch::Arm64 => {}
    }
    match row.origin {
        Origin::Api => {}
        Origin::Overlay => notes.push("not listed by the EC2 API; from the overlay".to_owned()),
        Origin::Corrected => notes.push("the EC2 API's row is corrected by the overlay".to_owned()),
    }
    notes
}
