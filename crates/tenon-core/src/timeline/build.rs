//! From what was gathered on a node to its [`Boot`].

use std::collections::{BTreeMap, BTreeSet};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::journal::{self, Pull, Story};
use super::{Boot, ClockStep, Kind, PhaseRecord, SCHEMA, Span};

const MANAGER: &str = "service manager";
const KUBELET: &str = "kubelet.service";
const REGISTER: &str = "kubelet: register";
/// The phase of a run during which units are started.
const STARTING: &str = "start daemons";
/// A launch longer ago than this was not followed by this boot.
const LONGEST_LAUNCH_US: i64 = 30 * 60 * 1_000_000;

/// What the host read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources {
    pub stamps: Stamps,
    pub units: Vec<UnitTimes>,
    /// `journalctl -o json`, as far as it was asked for.
    pub journal: Vec<u8>,
    /// What could not be read, and why.
    pub notes: Vec<String>,
}

/// The stamps of the service manager, on the monotonic clock; 0 where it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamps {
    /// Before the kernel, so counted backwards from its start.
    pub firmware_us: i64,
    pub loader_us: i64,
    /// The kernel is this machine's own: in a container it is not.
    pub own_kernel: bool,
    pub initrd_us: i64,
    pub userspace_us: i64,
    pub units_loaded_us: i64,
    pub finish_us: i64,
}

/// When a unit came up, on the monotonic clock; 0 where it did not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnitTimes {
    pub name: String,
    pub begin_us: i64,
    pub end_us: i64,
    pub after: Vec<String>,
}

struct Builder {
    boot: Boot,
    /// Monotonic time of the origin.
    zero_us: i64,
}

pub(super) fn build(sources: &Sources) -> Boot {
    let stamps = sources.stamps;
    let story = journal::read(&sources.journal);
    let zero_us = if stamps.own_kernel { 0 } else { stamps.userspace_us };
    let origin = if stamps.own_kernel { "kernel" } else { "userspace" };
    let boot = Boot {
        schema: SCHEMA.to_owned(),
        origin: origin.to_owned(),
        notes: sources.notes.clone(),
        ..Boot::default()
    };
    let mut builder = Builder { boot, zero_us };
    builder.stages(&stamps, &story);
    builder.units(&sources.units, &story);
    builder.runs(&story);
    builder.kubelet(&story);
    builder.moments(&stamps, &story);
    let mut boot = builder.boot;
    boot.sort();
    boot
}

impl Builder {
    /// A span of the monotonic clock, put onto the axis.
    fn span(&self, kind: Kind, name: impl Into<String>, begin_us: i64, end_us: i64) -> Span {
        Span::new(kind, name, begin_us - self.zero_us, end_us - self.zero_us)
    }

    /// Everything before the first unit, one after another.
    fn stages(&mut self, stamps: &Stamps, story: &Story) {
        let userspace = stamps.userspace_us;
        let loaded = stamps.units_loaded_us.max(userspace);
        let kernel_ends = if stamps.initrd_us > 0 { stamps.initrd_us } else { userspace };
        let before_kernel = -stamps.firmware_us.max(stamps.loader_us);
        let launch = self.launch(stamps, story, before_kernel);
        let own = stamps.own_kernel;
        let stages = [
            ("launch", launch.unwrap_or(0), before_kernel, launch.is_some()),
            ("firmware", -stamps.firmware_us, -stamps.loader_us, own && stamps.firmware_us > 0),
            ("boot loader", -stamps.loader_us, 0, own && stamps.loader_us > 0),
            ("kernel", 0, kernel_ends, own),
            ("initrd", stamps.initrd_us, userspace, own && stamps.initrd_us > 0),
            (MANAGER, userspace, loaded, true),
        ];
        let mut before: Option<&str> = None;
        for (name, begin, end, _) in stages.into_iter().filter(|(.., known)| *known) {
            let mut span = self.span(Kind::Stage, name, begin, end);
            span.after = before.replace(name).into_iter().map(str::to_owned).collect();
            if name == "launch" {
                span.note = "by the wall clock, to the second".to_owned();
            }
            self.boot.spans.push(span);
        }
    }

    /// When the instance was launched, if that can be believed.
    fn launch(&mut self, stamps: &Stamps, story: &Story, before_kernel: i64) -> Option<i64> {
        let launched = story.runs.iter().find_map(|(_, run)| run.launched.as_deref())?;
        let launched = OffsetDateTime::parse(launched, &Rfc3339).ok()?;
        let launched = launched.unix_timestamp().checked_mul(1_000_000)?;
        let at = launched.checked_sub(story.wall_us?)?;
        if !stamps.own_kernel {
            return None;
        }
        let believed = (-LONGEST_LAUNCH_US..before_kernel).contains(&at);
        if !believed {
            let note = "the launch of the instance does not fit this boot: it was restarted \
                        since, or its wall clock is wrong";
            self.boot.notes.push(note.to_owned());
        }
        believed.then_some(at)
    }

    /// Units that came up on the way to the goal.
    fn units(&mut self, units: &[UnitTimes], story: &Story) {
        let goal = story.ready_us.unwrap_or(i64::MAX);
        // Slices and scopes are places, not work.
        let works = |name: &str| !name.ends_with(".slice") && !name.ends_with(".scope");
        let came_up =
            |unit: &&UnitTimes| unit.begin_us > 0 && unit.begin_us <= goal && works(&unit.name);
        let known: BTreeMap<&str, &UnitTimes> =
            units.iter().filter(came_up).map(|unit| (unit.name.as_str(), unit)).collect();
        for unit in known.values() {
            let mut span = self.span(Kind::Unit, &unit.name, unit.begin_us, unit.end_us);
            let waited = |name: &&String| {
                known.get(name.as_str()).is_some_and(|other| other.end_us <= unit.begin_us)
            };
            let mut after: Vec<_> = unit.after.iter().filter(waited).cloned().collect();
            after.sort_unstable();
            after.push(MANAGER.to_owned());
            span.after = after;
            self.boot.spans.push(span);
        }
    }

    /// The phases of each run of Tenon, and the units that it started.
    fn runs(&mut self, story: &Story) {
        for (unit, run) in &story.runs {
            let prefix = self.run_name(unit);
            let mut before: Option<String> = None;
            for phase in &run.spans {
                let begin = run.begin_us.saturating_add(phase.begin_us);
                let name = format!("{prefix}: {}", phase.name);
                let end = begin.saturating_add(phase.length_us);
                let mut span = self.span(Kind::Phase, &name, begin, end);
                span.note.clone_from(&phase.note);
                span.after.extend(before.replace(name.clone()));
                span.during = Some(unit.clone());
                self.host(unit, span.begin_us);
                self.boot.spans.push(span);
                if phase.name == STARTING {
                    self.started(&name, run);
                }
            }
        }
    }

    /// The manager stamps a unit a moment after it has started its process; but the unit came first.
    fn host(&mut self, unit: &str, begin_us: i64) {
        if let Some(host) = self.boot.spans.iter_mut().find(|span| span.name == unit) {
            host.begin_us = host.begin_us.min(begin_us - 1);
        }
    }

    /// `tenon-run`, and `tenon-run 2` for what the same unit ran again.
    fn run_name(&self, unit: &str) -> String {
        let stem = unit.strip_suffix(".service").unwrap_or(unit);
        let stem = if stem.is_empty() { "tenon" } else { stem };
        let taken = |name: &String| {
            let prefix = format!("{name}: ");
            self.boot.spans.iter().any(|span| span.name.starts_with(&prefix))
        };
        let names = (1..).map(|nth: u32| match nth {
            1 => stem.to_owned(),
            nth => format!("{stem} {nth}"),
        });
        names.into_iter().find(|name| !taken(name)).unwrap_or_default()
    }

    /// Ties the units that a phase started to it.
    fn started(&mut self, phase: &str, run: &PhaseRecord) {
        let names: BTreeSet<&str> = run.started.iter().map(String::as_str).collect();
        for span in &mut self.boot.spans {
            if span.kind == Kind::Unit && names.contains(span.name.as_str()) {
                span.during = Some(phase.to_owned());
            }
        }
    }

    /// From the kubelet's start to Ready, and the images that were pulled on the way.
    fn kubelet(&mut self, story: &Story) {
        let missing = match (story.kubelet_us, story.registered_us, story.ready_us) {
            (None, ..) => Some("the journal has no line of the kubelet"),
            (_, None, _) => Some("the kubelet has not registered the node"),
            (.., None) => Some("the kubelet has not reported Ready"),
            _ => None,
        };
        self.boot.notes.extend(missing.map(str::to_owned));
        let (Some(first), Some(registered)) = (story.kubelet_us, story.registered_us) else {
            return;
        };
        self.register(first, registered);
        if let Some(ready) = story.ready_us {
            self.become_ready(&story.pulls, registered, ready);
        }
    }

    /// From the unit's start, or from the first line where the unit was restarted since.
    fn register(&mut self, first: i64, registered: i64) {
        let unit = self.boot.spans.iter().find(|span| span.name == KUBELET);
        let up = unit.map(|span| span.end_us + self.zero_us).filter(|up| *up <= registered);
        let mut span = self.span(Kind::Kubelet, REGISTER, up.unwrap_or(first), registered);
        span.after.extend(up.map(|_| KUBELET.to_owned()));
        self.boot.spans.push(span);
    }

    /// What was pulled after registration was waited for.
    fn become_ready(&mut self, pulls: &[Pull], registered: i64, ready: i64) {
        let mut after = vec![REGISTER.to_owned()];
        let mut from = registered;
        let ended = pulls.iter().filter_map(|(image, begin, end)| Some((image, *begin, (*end)?)));
        for (image, begin, end) in ended.filter(|(.., end)| *end <= ready) {
            let mut span = self.span(Kind::Image, image, begin, end);
            if begin >= registered {
                span.after.push(REGISTER.to_owned());
                after.push(image.clone());
                from = from.max(end);
            }
            self.boot.spans.push(span);
        }
        let mut span = self.span(Kind::Kubelet, "kubelet: become Ready", from, ready);
        span.after = after;
        self.boot.spans.push(span);
    }

    fn moments(&mut self, stamps: &Stamps, story: &Story) {
        let at = |time: Option<i64>| time.map(|time| time - self.zero_us);
        let finish = (stamps.finish_us > 0).then_some(stamps.finish_us);
        let steps = story
            .steps
            .iter()
            .map(|step| ClockStep { at_us: step.at_us - self.zero_us, by_us: step.by_us });
        self.boot.clock_steps = steps.collect();
        self.boot.finished_us = at(finish);
        self.boot.registered_us = at(story.registered_us);
        self.boot.ready_us = at(story.ready_us);
        let run = story.runs.iter().map(|(_, run)| run).find(|run| !run.node.is_empty());
        if let Some(run) = run {
            self.boot.node.clone_from(&run.node);
            self.boot.instance_type.clone_from(&run.instance_type);
        }
        if !story.node.is_empty() {
            self.boot.node.clone_from(&story.node);
        }
        if story.runs.is_empty() {
            self.boot.notes.push("no run of Tenon told its phases to the journal".to_owned());
        }
    }
}
