//! From [`Config`] and [`Facts`] to a [`Plan`]: every file, unit, disk and hook, as data.
//!
//! [`build`] is the table of contents. The same config and facts give the same bytes on any
//! machine at any hour; every refusal happens here, before anything is touched.

mod addresses;
pub mod baked;
pub mod block;
mod bpf;
mod containerd;
mod containerd_schema;
mod credential_provider;
pub mod diff;
pub mod digest;
mod disks;
mod environment;
mod guard;
mod hooks;
mod hosts;
mod identity;
pub(crate) mod json_text;
pub(crate) mod kubeconfig;
pub(crate) mod kubelet;
pub(crate) mod kubelet_args;
pub(crate) mod mounts;
pub mod network;
mod node;
mod node_name;
mod pods;
mod preflight;
pub mod record;
mod registries;
pub mod reserved;
mod resolved;
mod runtime_spec;
mod show;
mod soci;
mod stale;
pub mod step;
pub mod text_diff;
mod units;

#[cfg(test)]
mod fixture;

use std::collections::{BTreeMap, BTreeSet};

pub use digest::{hash_full, hash_public};
pub use hosts::host as endpoint_host;
pub use soci::REASON as FAST_IMAGE_PULL;
pub use step::Plan;

use crate::config::Config;
use crate::facts::Facts;
use crate::problem::{Class, Finding};
use node::Node;
use step::{Action, FileBody, Phase, Reason, Removal, Step, Summary};

/// Choices of the command line that change the plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// Write 0644 where nodeadm does (`--file-mode-compat`).
    pub file_mode_compat: bool,
    /// Only these daemons are configured and started; None means all.
    pub daemons: Option<Vec<String>>,
    /// Remove what a kubelet on another machine left (`--reset-identity`).
    pub reset_identity: bool,
    /// Mount `/sys/fs/bpf` where the image does not (`bootstrap.sh --mount-bpf-fs true`).
    pub mount_bpf: bool,
    /// Public hash of the config, for the plan's summary.
    pub config_hash: String,
}

/// Builds the whole plan, or returns every finding when one of them is an error.
pub fn build(config: &Config, facts: &Facts, options: &Options) -> Result<Plan, Vec<Finding>> {
    let mut draft = Draft::default();
    guard::check(config, facts, &mut draft);
    preflight::check(config, facts, options, &mut draft);
    let node = Node::resolve(config, facts, &mut draft);
    let Some(node) = node else { return Err(draft.findings) };

    hooks::before(&node, &mut draft);
    identity::plan(&node, options, &mut draft);
    kubelet::plan(&node, &mut draft);
    kubeconfig::plan(&node, &mut draft);
    hosts::plan(&node, &mut draft);
    credential_provider::plan(&node, &mut draft);
    containerd::plan(&node, &mut draft);
    runtime_spec::plan(&node, &mut draft);
    registries::plan(&node, &mut draft);
    soci::plan(&node, &mut draft);
    environment::plan(&node, &mut draft);
    resolved::plan(&node, &mut draft);
    units::reload(&mut draft);
    hooks::after_config(&node, &mut draft);
    units::marker(&mut draft);
    bpf::plan(&node, options, &mut draft);
    disks::plan(&node, &mut draft);
    units::start(&node, &mut draft);
    hooks::after_join(&node, &mut draft);

    draft.finish(&node, options)
}

/// Which daemon a step belongs to; `--daemon` drops those of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Node,
    Containerd,
    Kubelet,
}

impl Owner {
    fn is_wanted(self, options: &Options) -> bool {
        let wanted =
            |name| options.daemons.as_ref().is_none_or(|list| list.iter().any(|d| d == name));
        match self {
            Owner::Node => true,
            Owner::Containerd => wanted("containerd"),
            Owner::Kubelet => wanted("kubelet"),
        }
    }
}

/// A plan in the making.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    steps: Vec<(Owner, Step)>,
    pub findings: Vec<Finding>,
    pub reasons: BTreeMap<String, Vec<Reason>>,
    pub disk_indexes: BTreeMap<String, u32>,
}

impl Draft {
    fn add(&mut self, owner: Owner, step: Step) {
        self.steps.push((owner, step));
    }

    /// Adds a file of the config phase.
    fn file(&mut self, owner: Owner, file: FileBody, because: &str) {
        self.add(owner, Step::config(Action::File(file), because));
    }

    fn reason(&mut self, name: &str, rank: &'static str, text: impl Into<String>) {
        let reason = Reason { rank, text: text.into() };
        self.reasons.entry(name.into()).or_default().push(reason);
    }

    /// Paths of everything planned so far that is a file or a link.
    fn planned(&self) -> BTreeSet<String> {
        self.steps.iter().filter_map(|(_, step)| step.action.written_path()).cloned().collect()
    }

    fn finish(mut self, node: &Node, options: &Options) -> Result<Plan, Vec<Finding>> {
        if self.findings.iter().any(|finding| finding.class == Class::Error) {
            return Err(self.findings);
        }
        let removals = stale::removals(node, &self.planned());
        self.place_removals(removals);
        let mut steps: Vec<Step> = self
            .steps
            .into_iter()
            .filter(|(owner, _)| owner.is_wanted(options))
            .map(|(_, step)| step)
            .collect();
        if options.file_mode_compat {
            steps.iter_mut().for_each(relax_mode);
        }
        add_directories(&mut steps);
        Ok(Plan {
            summary: summary(node, options),
            steps,
            findings: self.findings,
            reasons: self.reasons,
            disk_indexes: self.disk_indexes,
        })
    }

    /// Removals stand after the last file of the config phase and count as inputs of the reload.
    fn place_removals(&mut self, removals: Vec<(Owner, Removal)>) {
        let gone: Vec<String> = removals.iter().map(|(_, removal)| removal.path.clone()).collect();
        let place = self
            .steps
            .iter_mut()
            .position(|(_, step)| match &mut step.action {
                Action::Reload { inputs } if step.phase == Phase::Config => {
                    inputs.extend(gone.iter().filter(|path| units::needs_reload(path)).cloned());
                    inputs.sort();
                    true
                }
                _ => false,
            })
            .unwrap_or(self.steps.len());
        let steps = removals.into_iter().map(|(owner, removal)| {
            (owner, Step::config(Action::Remove(removal), "no longer part of the plan"))
        });
        self.steps.splice(place..place, steps);
    }
}

fn summary(node: &Node, options: &Options) -> Summary {
    let Node { facts, .. } = node;
    Summary {
        instance_id: facts.instance.id.clone(),
        instance_type: facts.instance.instance_type.clone(),
        region: facts.instance.region.clone(),
        node_name: node.name.clone(),
        node_ip: node.ip.to_string(),
        kubelet_version: node.kubelet_version.to_string(),
        containerd_version: node.containerd_version.to_string(),
        max_pods: node.pods.effective,
        config_hash: options.config_hash.clone(),
    }
}

/// nodeadm writes everything 0644; some tools on old images count on it. Files that it does not
/// know stay as they are.
fn relax_mode(step: &mut Step) {
    const OURS_ALONE: [&str; 2] = [environment::PROXY_PATH, containerd::MIGRATION_INPUT];
    match &mut step.action {
        Action::File(file) if !OURS_ALONE.contains(&file.path.as_str()) => file.mode = 0o644,
        _ => {}
    }
}

/// State of our own that nobody else may list.
const PRIVATE_DIRECTORIES: [&str; 2] = ["/run/tenon", "/var/lib/tenon"];

/// Puts the parents of all files first, outermost first, each once per phase that needs it.
fn add_directories(steps: &mut Vec<Step>) {
    let mut wanted: BTreeMap<String, Phase> =
        PRIVATE_DIRECTORIES.iter().map(|path| ((*path).to_owned(), Phase::Config)).collect();
    for step in steps.iter() {
        for path in step.action.written_path().into_iter().flat_map(|path| parents(path)) {
            let phase = wanted.entry(path).or_insert(step.phase);
            *phase = step.phase.min(*phase);
        }
    }
    for phase in [Phase::Run, Phase::Config] {
        let paths = wanted.iter().filter(|(_, when)| **when == phase).map(|(path, _)| path);
        let made: Vec<Step> = paths.map(|path| directory(phase, path)).collect();
        let place = steps.iter().position(|step| step.phase == phase).unwrap_or(steps.len());
        steps.splice(place..place, made);
    }
}

fn directory(phase: Phase, path: &str) -> Step {
    let private = PRIVATE_DIRECTORIES.contains(&path);
    let mode = if private { 0o700 } else { 0o755 };
    let because = if private { "holds Tenon's state" } else { "holds planned files" };
    let action = Action::Directory { path: path.to_owned(), mode };
    Step { phase, action, because: because.into() }
}

/// Directories above a file that may be missing: all but those every Linux has.
fn parents(path: &str) -> Vec<String> {
    const ALWAYS_THERE: [&str; 7] =
        ["/etc", "/run", "/var", "/var/lib", "/etc/systemd", "/etc/systemd/system", "/run/systemd"];
    let ends = path.match_indices('/').map(|(index, _)| &path[..index]);
    ends.filter(|dir| !dir.is_empty() && !ALWAYS_THERE.contains(dir)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
