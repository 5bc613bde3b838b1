//! Makes a plan true on a root: packages, then every item in order, then the record. An item
//! that holds already is not touched, so running again is the cure for whatever stopped a run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Seek;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tenon_core::codes::image::{
    BAD_ARCHIVE, LIVE_NEEDS_HOST, NOT_CACHED, PACKAGES_MISSING, WRONG_CONTENT,
};
use tenon_core::image::cached;
use tenon_core::image::item::{Act, Item};
use tenon_core::image::plan::ImagePlan;
use tenon_core::problem::Problem;

use super::cache::{self, Cache};
use super::gap::{Gap, Mend};
use super::place::{Pinned, wrong_content};
use super::program::{Program, RUNNING};
use super::record::{self, Entry, Record};
use super::site::{Dress, Found, Site, hash};
use super::unpack::{Wish, holds_image, unpack};
use super::{facts, inside, live, packages};
use crate::apply::directories::unreadable;
use crate::apply::{Lock, Probe};
use crate::root::Root;

/// The schema of the answer.
pub const SCHEMA: &str = "tenon.image-apply/1";
const COMMAND_TIME: Duration = Duration::from_secs(3600);
/// For programs that a killed run left behind to end.
const LEFT_BEHIND: Duration = Duration::from_secs(5);
/// For a fetch that fills the cache.
const CACHE_TIME: Duration = Duration::from_secs(3600);

/// How a plan is made true.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    pub cache: Option<&'a Cache>,
    /// Change the running kernel, too.
    pub live: bool,
    /// Leave out packages and commands, which need programs of the root.
    pub files_only: bool,
    /// Called by name before each step; production looks for a stop here.
    pub probe: Probe<'a>,
}

/// What an apply did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    pub plan_hash: String,
    /// Names of the items that were made true.
    pub changed: Vec<String>,
    pub unchanged: usize,
    pub skipped: usize,
    pub live: Vec<live::Effect>,
}

impl Report {
    pub fn to_json(&self) -> Value {
        json!({
            "schema": SCHEMA,
            "planHash": self.plan_hash,
            "changed": !self.changed.is_empty() || !self.live.is_empty(),
            "items": self.changed,
            "unchanged": self.unchanged,
            "skipped": self.skipped,
            "live": self.live.iter().map(live::Effect::to_json).collect::<Vec<_>>(),
        })
    }
}

/// Makes the plan true; Tenon in the root is the running program.
pub fn apply(plan: &ImagePlan, root: &Root, options: Options<'_>) -> Result<Report, Problem> {
    apply_with(plan, root, options, Path::new(RUNNING))
}

/// Makes the plan true; Tenon in the root is the program of this file.
pub fn apply_with(
    plan: &ImagePlan,
    root: &Root,
    options: Options<'_>,
    tenon: &Path,
) -> Result<Report, Problem> {
    if options.live && !root.is_host() {
        let what = format!("--live with --root {}", root.path().display());
        return Err(Problem::new(&LIVE_NEEDS_HOST, what));
    }
    let facts = facts::gather(root)?;
    if let Some(problem) = facts.refuses(plan) {
        return Err(problem);
    }
    let tenon = match plan.items.iter().any(|item| matches!(item.act, Act::Tenon { .. })) {
        true => Some(Program::open(tenon, &plan.architecture)?),
        false => None,
    };
    let _lock = Lock::take(root, LEFT_BEHIND)?.with_children()?;
    let site = Site::new(root, plan, facts, options.probe)?;
    let _reading = options.cache.map(|cache| cache.reading(CACHE_TIME)).transpose()?;
    cache::check(&site, options.cache)?;
    let mut run = Run::new(site, options, tenon);
    // Packages may come from repositories that the plan itself makes known.
    let (sources, rest): (Vec<&Item>, Vec<&Item>) =
        plan.items.iter().partition(|item| item.is_source());
    run.make_all(&sources)?;
    if !options.files_only && packages::change(&mut run.site, options.cache)? {
        run.report.changed.push("packages".to_owned());
    }
    run.make_all(&rest)?;
    run.finish(root)
}

/// An apply under way.
struct Run<'a> {
    site: Site<'a>,
    options: Options<'a>,
    tenon: Option<Program>,
    report: Report,
    /// What will be recorded.
    record: Record,
}

impl<'a> Run<'a> {
    fn new(site: Site<'a>, options: Options<'a>, tenon: Option<Program>) -> Run<'a> {
        let report = Report { plan_hash: site.plan.hash(), ..Report::default() };
        let before_live = site.record.before_live.clone();
        let plan_hash = report.plan_hash.clone();
        let record = Record { plan_hash, before_live, ..Record::default() };
        Run { site, options, tenon, report, record }
    }

    fn make_all(&mut self, items: &[&Item]) -> Result<(), Problem> {
        for item in items {
            if self.options.files_only && needs_programs(&item.act) {
                self.report.skipped += 1;
                // What an earlier run made is still there.
                let name = record::name(item);
                let held = self.site.record.items.get(&name).cloned();
                self.record.items.extend(held.map(|entry| (name, entry)));
                continue;
            }
            (self.options.probe)("item")?;
            let from = Sources { cache: self.options.cache, tenon: self.tenon.as_ref() };
            let entry = make(&self.site, item, from, &mut self.report)?;
            self.record.items.insert(record::name(item), entry);
        }
        Ok(())
    }

    /// Leaves the plan and, last of all files, the record; then changes the kernel, if asked.
    fn finish(mut self, root: &Root) -> Result<Report, Problem> {
        if self.options.live {
            self.report.live = live::effects(self.site.plan, root);
        }
        for effect in &self.report.live {
            // What was there before the first change is what an undo goes back to.
            let before = || effect.before.clone();
            self.record.before_live.entry(effect.name.clone()).or_insert_with(before);
        }
        store(&self.site, record::PLAN, &self.site.plan.to_json())?;
        store(&self.site, record::PATH, &self.record.to_json())?;
        live::change(&self.report.live, root)?;
        Ok(self.report)
    }
}

fn needs_programs(act: &Act) -> bool {
    matches!(
        act,
        Act::Package { .. }
            | Act::NoPackage { .. }
            | Act::Set { .. }
            | Act::Stamp { .. }
            | Act::Command { .. }
    )
}

fn store(site: &Site<'_>, path: &str, value: &Value) -> Result<(), Problem> {
    let body = format!("{value:#}\n").into_bytes();
    let dress = Dress { mode: record::MODE, owner: site.keeper };
    match site.bytes(path)? {
        Some(held) if held == body && site.found(path)? == Found::File(dress) => Ok(()),
        _ => site.write_file(path, &body, dress),
    }
}

/// Where content comes from that no plan holds.
#[derive(Clone, Copy)]
struct Sources<'a> {
    cache: Option<&'a Cache>,
    tenon: Option<&'a Program>,
}

/// Makes one item true and says what is to be recorded of it.
fn make(
    site: &Site<'_>,
    item: &Item,
    from: Sources<'_>,
    report: &mut Report,
) -> Result<Entry, Problem> {
    let mut gaps = site.gaps(item)?;
    let held = site.record.of(item).cloned().unwrap_or_default();
    if let (Act::Tenon { path }, Some(tenon)) = (&item.act, from.tenon) {
        gaps.extend(tenon.newer_than(path, &held));
    }
    let mut entry = Entry { hash: record::item_hash(item), ..held };
    if gaps.is_empty() {
        report.unchanged += 1;
        return Ok(entry);
    }
    let name = record::name(item);
    tracing::debug!(item = name, "making true");
    if gaps.iter().any(|gap| gap.mend == Mend::Own) {
        own(site, item, from, &gaps, &mut entry)?;
    }
    for gap in &gaps {
        site.close(gap, &name)?;
    }
    report.changed.push(name);
    Ok(entry)
}

/// The kinds that are made true by more than a small file.
fn own(
    site: &Site<'_>,
    item: &Item,
    from: Sources<'_>,
    gaps: &[Gap],
    entry: &mut Entry,
) -> Result<(), Problem> {
    let cached = || {
        let lacking = || Problem::new(&NOT_CACHED, format!("{} needs a cache", record::name(item)));
        from.cache.ok_or_else(lacking)?.open_entry(&item.act)
    };
    match &item.act {
        Act::Tenon { path } => {
            if let Some(tenon) = from.tenon {
                let sha256 = site.place(path, &mut tenon.content()?, 0o755, None)?;
                entry.files = BTreeMap::from([(path.clone(), sha256)]);
            }
        }
        Act::Download { path, url, sha256, members, mode } => {
            // The server may be as right as ever: what is wrong is the file that lies here.
            let name = format!("the cached copy of {url}");
            let (mut file, pinned) = (cached()?, Pinned { sha256, name: &name });
            if members.is_empty() {
                site.place(path, &mut file, *mode, Some(pinned))?;
                return Ok(());
            }
            let wish = Wish { name: url, path, members, mode: *mode };
            entry.files = unpack(site, checked(file, pinned)?, wish)?;
        }
        Act::CachedImage { reference, digest, .. } => {
            entry.files = image(site, cached()?, reference, digest)?;
        }
        Act::Command { words, inputs, outputs, .. } => {
            tracing::info!(command = words.join(" "), "running inside the root");
            entry.inputs = Some(site.inputs(inputs)?);
            (site.probe)("command")?;
            inside::run(site.root, from.cache.map(Cache::directory), words, COMMAND_TIME)?;
            entry.files.clear();
            for path in outputs {
                let hash = site.hash(path)?.unwrap_or_else(|| "nothing".to_owned());
                entry.files.insert(path.clone(), hash);
            }
        }
        _ => {
            let gap = gaps.first().map(|gap| format!("{}, not {}", gap.actual, gap.expected));
            let what = format!("{} is {}", record::name(item), gap.unwrap_or_default());
            return Err(Problem::new(&PACKAGES_MISSING, what));
        }
    }
    Ok(())
}

/// The file again from its start, if its content is the pinned one.
fn checked(mut file: File, pinned: Pinned<'_>) -> Result<File, Problem> {
    let told = |error| unreadable(pinned.name, error);
    let actual = hash(file.try_clone().map_err(told)?.into()).map_err(told)?;
    if actual != pinned.sha256 {
        return Err(wrong_content(pinned, &actual));
    }
    file.rewind().map_err(told)?;
    Ok(file)
}

fn image(
    site: &Site<'_>,
    mut archive: File,
    reference: &str,
    digest: &str,
) -> Result<BTreeMap<String, String>, Problem> {
    let told = |error| {
        Problem::new(&BAD_ARCHIVE, format!("the archive of {reference} is broken")).cause(error)
    };
    let copy = archive.try_clone().map_err(told)?;
    if !holds_image(copy, cached::digits(digest).unwrap_or_default()).map_err(told)? {
        let what = format!("the archive of {reference} does not hold {digest}");
        return Err(Problem::new(&WRONG_CONTENT, what));
    }
    archive.rewind().map_err(told)?;
    let path = cached::archive(digest);
    let sha256 = site.place(&path, &mut archive, 0o644, None)?;
    Ok(BTreeMap::from([(path, sha256)]))
}
