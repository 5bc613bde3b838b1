//! The node against its record, and against the plan of its recorded config.

use std::collections::BTreeSet;

use super::mend::HARDEN_NAME;
use super::snapshot::Snapshot;
use super::{Family, Finding, Severity, State, veiled};
use crate::hex::sha256;
use crate::plan::diff::{self, Changes, Held, LINK_MODE, Observed, Owner, Tree};
use crate::plan::kubelet::CONFIG_DIR;
use crate::plan::record::{FileMark, Record};

const REMEDY: &str = "`tenon plan --diff` shows the difference, `tenon init` mends it";

/// The ways in which a recorded file can be other than it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Missing,
    Changed,
    Mode,
    Owner,
    /// Something else than a file stands there.
    Replaced,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Missing => "missing",
            Kind::Changed => "changed",
            Kind::Mode => "mode",
            Kind::Owner => "owner",
            Kind::Replaced => "replaced",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Kind::Missing => "a file that Tenon wrote is gone",
            Kind::Changed => "a file that Tenon wrote has other content",
            Kind::Mode => "a file that Tenon wrote has another mode",
            Kind::Owner => "a file that Tenon wrote has another owner",
            Kind::Replaced => "something else stands where Tenon wrote a file",
        }
    }
}

/// One difference between a recorded file and what stands there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deviation {
    pub path: String,
    pub kind: Kind,
    pub expected: String,
    pub actual: String,
}

/// Everything that is not as recorded. Files under `/run` go with a reboot.
pub fn deviations(record: &Record, tree: &Tree, owner: Owner) -> Vec<Deviation> {
    let lasting = record.files.iter().filter(|(path, _)| !path.starts_with("/run/"));
    lasting
        .flat_map(|(path, mark)| {
            let found = tree.get(path).unwrap_or(&Observed::Absent);
            compare(mark, found, owner).into_iter().map(|(kind, expected, actual)| Deviation {
                path: path.clone(),
                kind,
                expected,
                actual,
            })
        })
        .collect()
}

fn compare(mark: &FileMark, found: &Observed, owner: Owner) -> Vec<(Kind, String, String)> {
    let held = match found {
        Observed::File(held) if held.is_link() == (mark.mode == LINK_MODE) => held,
        Observed::Absent => return vec![(Kind::Missing, "a file".into(), "nothing".into())],
        _ => return vec![(Kind::Replaced, "a file".into(), "something else".into())],
    };
    let Held { bytes, mode, .. } = held;
    let mut found = Vec::new();
    if sha256(bytes) != mark.sha256 {
        let recorded = mark.sha256.get(..12).unwrap_or(&mark.sha256);
        found.push((Kind::Changed, format!("sha256:{recorded}"), veiled(bytes)));
    }
    if *mode != mark.mode {
        found.push((Kind::Mode, format!("{:04o}", mark.mode), format!("{mode:04o}")));
    }
    if !held.is_link() && held.owner != owner {
        let words = |owner: Owner| format!("{}:{}", owner.uid, owner.gid);
        found.push((Kind::Owner, words(owner), words(held.owner)));
    }
    found
}

/// What the host found out besides the snapshot.
#[derive(Debug, Clone)]
pub struct Sight {
    /// What stands at the recorded paths; an error says why that cannot be seen.
    pub tree: Result<Tree, String>,
    pub owner: Owner,
    /// What the plan of the recorded config would change; an error says why there is none.
    pub changes: Option<Result<Changes, String>>,
    /// A run saved files of this generation and never came to its record.
    pub interrupted: Result<bool, String>,
    /// Kubelet drop-ins that were there when the node was planned.
    pub intended: Vec<String>,
}

/// Judges the node.
pub fn judge(snapshot: &Snapshot, sight: &Sight) -> Vec<Finding> {
    let Some(record) = &snapshot.record else {
        let blank = Finding::new(Family::Drift, "drift-record", "the record of the last run");
        return vec![
            blank.unknown("no run of Tenon has ended here").remedy("make the node: `tenon init`"),
        ];
    };
    let mut findings = Vec::new();
    match &sight.tree {
        Err(why) => findings.push(
            Finding::new(Family::Drift, "drift-files", "the files that Tenon wrote")
                .unknown(why.as_str()),
        ),
        Ok(tree) => findings.extend(recorded(record, tree, sight.owner)),
    }
    findings.extend(planned(sight, &findings));
    findings.extend(foreign(snapshot, record, sight));
    findings.extend(restarts(snapshot, record, sight));
    findings.extend(generation(record, &sight.interrupted));
    findings
}

/// A run that replaced files and never came to its record.
fn generation(record: &Record, interrupted: &Result<bool, String>) -> Option<Finding> {
    let what = "the last run did not come to its end";
    let blank = Finding::new(Family::Drift, "drift-generation", what)
        .severity(Severity::High)
        .at(format!("generation {}", record.generation));
    match interrupted {
        Ok(false) => None,
        Err(why) => Some(blank.unknown(why.as_str())),
        Ok(true) => Some(
            blank
                .state(State::Fail)
                .values("a record of the files on disk", "files newer than the record")
                .remedy("run `tenon init` again: it ends what was begun"),
        ),
    }
}

fn recorded(record: &Record, tree: &Tree, owner: Owner) -> Vec<Finding> {
    let found = deviations(record, tree, owner);
    if found.is_empty() {
        let count = record.files.len();
        return vec![
            Finding::new(Family::Drift, "drift-files", "the files that Tenon wrote")
                .at(format!("generation {}", record.generation))
                .values("as written", format!("{count} files are")),
        ];
    }
    let finding = |deviation: Deviation| {
        let Deviation { path, kind, expected, actual } = deviation;
        Finding::new(Family::Drift, format!("drift-{}", kind.name()), kind.words())
            .state(State::Fail)
            .at(path)
            .values(expected, actual)
            .origin("the record of the last run")
            .remedy(REMEDY)
    };
    found.into_iter().map(finding).collect()
}

/// What the plan would change besides what differs from the record already.
fn planned(sight: &Sight, told: &[Finding]) -> Vec<Finding> {
    let blank = || Finding::new(Family::Drift, "drift-plan", "the plan of the recorded config");
    let changes = match &sight.changes {
        None => return Vec::new(),
        Some(Err(why)) => {
            let remedy = "name the config with -c, and the facts with --facts if they were given";
            return vec![blank().unknown(why.as_str()).remedy(remedy)];
        }
        Some(Ok(changes)) => changes,
    };
    let known: BTreeSet<&str> = told.iter().map(|finding| finding.place.as_str()).collect();
    let pending = pending(changes, &|path| !path.starts_with("/run/") && !known.contains(path));
    if pending.is_empty() {
        return vec![blank().values("nothing to change", "nothing to change")];
    }
    let finding = |(id, what, path, expected, actual): Pending<'_>| {
        Finding::new(Family::Drift, id, what)
            .state(State::Fail)
            .at(path)
            .values(expected, actual)
            .origin("the recorded config")
            .remedy(REMEDY)
    };
    pending.into_iter().map(finding).collect()
}

/// Id, words, path, expected and actual of something that the plan would change.
type Pending<'a> = (&'static str, &'static str, &'a str, String, String);

fn pending<'a>(changes: &'a Changes, counts: &dyn Fn(&str) -> bool) -> Vec<Pending<'a>> {
    let mut found: Vec<Pending<'_>> = Vec::new();
    for file in &changes.files {
        let held = file.previous.as_ref().map_or("nothing".into(), |held| veiled(&held.bytes));
        let what = "the plan has another content";
        found.push(("drift-pending", what, &file.path, veiled(&file.body), held));
    }
    for removal in &changes.removals {
        let what = "a file of an earlier config is still there";
        let held = veiled(&removal.previous.bytes);
        found.push(("drift-extra", what, &removal.path, "nothing".into(), held));
    }
    for directory in &changes.directories {
        let what = "a directory of the plan is missing or open to others";
        let mode = format!("{:04o}", directory.mode);
        let held = if directory.exists { "open to others" } else { "missing" };
        found.push(("drift-directory", what, &directory.path, mode, held.into()));
    }
    found.retain(|(_, _, path, _, _)| counts(path));
    found
}

/// Files of others in directories that our daemons read.
fn foreign(snapshot: &Snapshot, record: &Record, sight: &Sight) -> Vec<Finding> {
    let mut findings = Vec::new();
    for directory in watched(record) {
        for name in snapshot.list(&directory) {
            let path = format!("{directory}/{name}");
            let ours = record.files.contains_key(&path) || name == HARDEN_NAME;
            if ours || !name.ends_with(".conf") {
                continue;
            }
            let finding = Finding::new(Family::Drift, "drift-foreign", "a drop-in of someone else")
                .at(path.as_str())
                .values("Tenon's files only", "a file that Tenon did not write")
                .remedy("put its settings into the node's config, or remove it");
            let known = directory == CONFIG_DIR && sight.intended.contains(&name);
            findings.push(match known {
                true => finding.excused("it was there when the node was planned"),
                false => finding.state(State::Warn).severity(Severity::Low),
            });
        }
    }
    findings
}

/// The directories whose every file changes what a daemon of ours does.
fn watched(record: &Record) -> BTreeSet<String> {
    let fixed = [
        CONFIG_DIR,
        "/etc/systemd/system/kubelet.service.d",
        "/etc/systemd/system/containerd.service.d",
    ];
    let inputs = record.units.values().flat_map(|unit| &unit.inputs);
    let recorded = inputs.filter_map(|input| input.strip_suffix('/'));
    recorded.chain(fixed).map(str::to_owned).collect()
}

/// Daemons that were started before their files became what they are.
fn restarts(snapshot: &Snapshot, record: &Record, sight: &Sight) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (unit, mark) in &record.units {
        let name = unit.trim_end_matches(".service");
        let Some(process) = snapshot.process(name) else { continue };
        let Ok(tree) = &sight.tree else { continue };
        let inputs = tree.iter().filter(|(path, _)| diff::is_input(&mark.inputs, path));
        let newest = inputs.filter_map(|(path, found)| match found {
            Observed::File(held) => Some((held.modified_us, path)),
            _ => None,
        });
        let newer = newest.max().filter(|(modified_us, _)| process.is_older_than(*modified_us));
        // A file written anew with the same content changes nothing.
        let differs = diff::input_hash(&mark.inputs, tree) != mark.input_hash;
        let Some((_, path)) = newer.filter(|_| differs) else { continue };
        findings.push(
            Finding::new(Family::Drift, "drift-restart", "a daemon runs on older files")
                .state(State::Fail)
                .at(unit.as_str())
                .values("started after its files", format!("{path} is newer"))
                .origin(format!("process {}", process.pid))
                .remedy(format!("systemctl restart {unit}, or `tenon init`")),
        );
    }
    findings
}
