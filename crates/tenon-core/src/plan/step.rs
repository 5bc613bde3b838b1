//! A plan as data: it can be printed, hashed, compared, reviewed and refused.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::record::LastingWarning;
use crate::codes;
use crate::config::Hook;
use crate::problem::{Finding, Problem};

/// The whole job, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub summary: Summary,
    pub steps: Vec<Step>,
    pub findings: Vec<Finding>,
    /// How the values a user asks about came to be: `maxPods` → its chain, oldest first.
    pub reasons: BTreeMap<String, Vec<Reason>>,
    /// Mount index of each instance store disk by serial, to be kept in the record.
    pub disk_indexes: BTreeMap<String, u32>,
}

impl Plan {
    /// The warnings that stay visible for as long as the node runs on this plan.
    pub fn lasting_warnings(&self) -> Vec<LastingWarning> {
        let lasting = [
            &codes::max_pods::UNKNOWN_INSTANCE_TYPE,
            &codes::max_pods::BAD_EXPRESSION,
            &codes::max_pods::EXPRESSION_UNUSED,
        ];
        let problems = self.findings.iter().map(|finding| &finding.problem);
        problems
            .filter(|problem| lasting.iter().any(|page| page.code == problem.page.code))
            .map(|problem| LastingWarning {
                code: problem.page.code.to_owned(),
                what: problem.what.clone(),
                fix: problem.fix_text().to_owned(),
            })
            .collect()
    }
}

/// The values that name this node, for the head of `plan`, `init` and `status`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub instance_id: String,
    pub instance_type: String,
    pub region: String,
    pub node_name: String,
    pub node_ip: String,
    pub kubelet_version: String,
    pub containerd_version: String,
    /// The pod limit the kubelet ends up with.
    pub max_pods: u32,
    /// sha256 of the config with secrets replaced by a constant; safe to publish.
    pub config_hash: String,
}

/// One link of a chain of reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// `default`, `facts`, `config`, `flags`, `effect`
    pub rank: &'static str,
    pub text: String,
}

/// One thing to make true.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub phase: Phase,
    pub action: Action,
    /// Why this step is in the plan, in a few words.
    pub because: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Config,
    Run,
}

/// Paths are absolute node paths (`/etc/…`), joined to `--root` by the host.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Created with this mode if it is missing; a directory that is there is left as it is.
    Directory {
        path: String,
        mode: u32,
    },
    File(FileBody),
    /// A symbolic link with exactly this target.
    Link {
        path: String,
        target: String,
    },
    /// A marked block in a file that belongs to someone else.
    Block(Block),
    /// A file that must not be there.
    Remove(Removal),
    /// A file or a whole directory that another machine left, removed as it is.
    Discard {
        path: String,
    },
    /// `daemon-reload`, when any of these paths changed.
    Reload {
        inputs: Vec<String>,
    },
    Unit(Unit),
    /// A program of the host, such as `mdadm`.
    Program(Program),
    /// A directory moved onto another file system, once.
    Bind(Bind),
    Hook {
        stage: HookStage,
        hook: Hook,
    },
}

impl Action {
    /// The path that this action writes as a whole and that the record therefore lists.
    pub fn written_path(&self) -> Option<&String> {
        match self {
            Action::File(file) => Some(&file.path),
            Action::Link { path, .. } => Some(path),
            Action::Program(program) => program.stdout_to.as_ref(),
            _ => None,
        }
    }
}

/// A file with exact content. Owner is always root:root.
#[derive(Clone, PartialEq)]
pub struct FileBody {
    pub path: String,
    pub mode: u32,
    pub body: Vec<u8>,
    /// Content holds values that must not be printed.
    pub secret: bool,
    /// A file that is there but not ours (not in the record) is a clash, not an overwrite.
    pub refuse_foreign: bool,
}

/// Without the content, which may be secret and is long in any case.
impl fmt::Debug for FileBody {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("FileBody")
            .field("path", &self.path)
            .field("mode", &format_args!("{:04o}", self.mode))
            .field("bytes", &self.body.len())
            .field("secret", &self.secret)
            .finish_non_exhaustive()
    }
}

/// Lines between `# BEGIN tenon NAME` and `# END tenon NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub path: String,
    pub name: String,
    /// Whole lines. A line that already stands outside the block is not repeated.
    /// Empty: the block is removed if it is there.
    pub lines: Vec<String>,
}

/// A file to delete if it is there and is ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    pub path: String,
    pub proof: Ownership,
}

/// What shows that a stale file is ours to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Its path is in the record of the last run, or the name is one that only Tenon or nodeadm uses.
    Certain,
    /// Only if every line has the shape that Tenon and nodeadm write: a section header, then
    /// `Environment=`, `DefaultEnvironment=` or `EnvironmentFile=` lines.
    EnvironmentShape,
}

/// A service to bring up.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    /// `containerd.service`
    pub name: String,
    pub verb: UnitVerb,
    /// Files whose change means a restart. A path ending in `/` stands for the directory's
    /// entries, foreign drop-ins included.
    pub inputs: Vec<String>,
    pub deadline: Duration,
    pub ready: Ready,
    /// Not started unless these units are active.
    pub requires: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitVerb {
    /// Start, or restart if running on older inputs.
    EnsureFresh,
    /// Restart only if an input changed and the unit is there.
    RestartOnChange,
    /// Start if not active; never restart.
    Start,
}

/// When a started unit counts as up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// When its start job is done.
    Job,
    /// When the job is done and the kubelet's health port answers 200.
    KubeletHealth { port: u16 },
    /// When the job is done and the unit stayed active for a while.
    StableActive,
}

/// A directory that lives on another file system from now on. Nothing happens if `at` is a mount
/// point already. Otherwise: stop the owners that run, copy `at` to `source` with owners, modes,
/// times, xattrs and hard links, start the mount unit, start again what was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    pub at: String,
    pub source: String,
    /// The mount unit, whose file an earlier step has written.
    pub unit: String,
    /// Services that use `at`: `kubelet.service`.
    pub owners: Vec<String>,
}

/// A program of the host with a bound on its time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    pub argv: Vec<String>,
    pub timeout: Duration,
    /// Skip when this path exists.
    pub unless_exists: Option<String>,
    /// After success, leave an empty file at `unless_exists`.
    pub stamp: bool,
    /// Skip when this block device bears the signature of a file system.
    pub unless_signature: Option<String>,
    /// Non-empty: run only if one of these, or `stdout_to`, is not what the last whole run left.
    pub when_changed: Vec<String>,
    /// Standard output goes to this file (root:root, 0644), atomically.
    pub stdout_to: Option<String>,
    /// What standard output must be before it replaces anything.
    pub output: Output,
}

/// What a program's standard output must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    #[default]
    Anything,
    /// A config that containerd can load.
    ContainerdConfig,
}

impl Output {
    /// Refuses output that is not what it must be.
    pub fn check(self, bytes: &[u8]) -> Result<(), Problem> {
        match self {
            Output::Anything => Ok(()),
            Output::ContainerdConfig => super::containerd::check_migrated(bytes),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HookStage {
    PreBootstrap,
    PostConfig,
    PostJoin,
}

impl Step {
    pub fn config(action: Action, because: impl Into<String>) -> Self {
        Step { phase: Phase::Config, action, because: because.into() }
    }

    pub fn run(action: Action, because: impl Into<String>) -> Self {
        Step { phase: Phase::Run, action, because: because.into() }
    }
}

impl FileBody {
    pub fn new(path: impl Into<String>, mode: u32, body: impl Into<Vec<u8>>) -> Self {
        FileBody {
            path: path.into(),
            mode,
            body: body.into(),
            secret: false,
            refuse_foreign: false,
        }
    }

    pub fn secret(mut self) -> Self {
        self.secret = true;
        self
    }
}
