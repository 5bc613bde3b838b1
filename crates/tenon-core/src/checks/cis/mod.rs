//! Benchmark items for a node, judged on effective values.
//!
//! `items` is the table: one row per item of each profile. `rules` holds the few kinds of
//! questions that all rows are made of, `settings` those about the kubelet's settings.

mod items;
mod rules;
mod settings;

use super::Finding;
use super::snapshot::Snapshot;
use crate::codes;
use crate::nearest::nearest;
use crate::problem::Problem;

pub use items::{EKS, EXTRA, Item, K8S};

/// A benchmark by the name that `--profile` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    pub name: &'static str,
    pub title: &'static str,
    /// Leads the id of each of its findings.
    pub prefix: &'static str,
    pub items: &'static [Item],
}

/// Every profile; the first is the one that holds without `--profile`.
pub static PROFILES: [Profile; 2] = [
    Profile { name: "eks-1.8", title: "CIS Amazon EKS 1.8, section 3", prefix: "eks", items: EKS },
    Profile {
        name: "k8s-1.11",
        title: "CIS Kubernetes 1.11, section 4",
        prefix: "k8s",
        items: K8S,
    },
];

impl Profile {
    /// Finds a profile; an unknown name is told with the known ones.
    pub fn find(name: &str) -> Result<&'static Profile, Problem> {
        let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        PROFILES.iter().find(|profile| profile.name == name).ok_or_else(|| {
            let known = names.join(", ");
            let near = nearest(name, names.iter().copied());
            let fix = near.map_or_else(
                || format!("the profiles are {known}"),
                |near| format!("did you mean {near}? the profiles are {known}"),
            );
            Problem::new(&codes::checks::UNKNOWN_PROFILE, "unknown profile").fix(fix)
        })
    }

    /// Judges every item of the profile, and those that every profile has.
    pub fn judge(&self, snapshot: &Snapshot) -> Vec<Finding> {
        let bench = rules::Bench::new(snapshot);
        let own = self.items.iter().map(|item| (self.prefix, item));
        let extra = EXTRA.iter().map(|item| ("extra", item));
        own.chain(extra).map(|(prefix, item)| bench.judge(prefix, item)).collect()
    }
}

/// The ids of all items of all profiles.
pub fn ids() -> impl Iterator<Item = String> {
    let own = PROFILES.iter().flat_map(|profile| {
        profile.items.iter().map(|item| format!("{}-{}", profile.prefix, item.id))
    });
    own.chain(EXTRA.iter().map(|item| format!("extra-{}", item.id)))
}

#[cfg(test)]
mod tests;
