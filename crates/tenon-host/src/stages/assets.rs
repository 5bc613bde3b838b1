//! `tenon stage assets`: the bundle arrives, is verified and published, and arms what follows.

use std::time::Duration;

use serde_json::Value;
use tenon_core::codes::stages as pages;
use tenon_core::problem::Problem;
use tenon_core::stages::bundle::{self, INDEX, Index};
use tenon_core::stages::machine::{Retire, Role};
use tenon_core::stages::paths;
use tenon_core::stages::state::Status;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::download::{self, Fetched};
use super::s3::Object;
use super::unpack::Source;
use super::{Check, Run, Step, disk};
use crate::apply;
use crate::gather::aws::transport::trusting_agent;
use crate::gather::environment::Environment;
use crate::root::Root;

const DOWNLOAD: &str = "/var/lib/tenon/download/bundle";
const TEMPORARY: &str = "/var/lib/tenon/assets.tmp";
const OLD: &str = "/var/lib/tenon/assets.old";
/// How long an object may be missing after the stage began.
const MISSING: Duration = Duration::from_secs(3600);
/// A tar is at most this much larger than its files.
const DOWNLOAD_CAP: u64 = bundle::LARGEST + (16 << 20);
/// Names under which a pushed tar is found.
const TARS: [&str; 5] = ["bundle.tar", "bundle.tar.gz", "bundle.tgz", "bundle.tar.zst", "bundle"];

/// The work of the stage.
#[derive(Debug)]
pub struct Assets {
    pub environment: Environment,
    /// Pauses between tries of a download, moved by tests.
    pub pause: Option<(Duration, Duration)>,
}

const STEPS: &[Step<Assets>] = &[
    Step { name: "fetch", check: fetched, apply: fetch, verify: Some(|_, _| Ok(())) },
    Step { name: "publish", check: published, apply: publish, verify: None },
    Step { name: "arm", check: |_, _| Ok(Check::Needed), apply: arm, verify: Some(|_, _| Ok(())) },
];

const CLEANUP: &[Step<Assets>] = &[
    Step { name: "forget", check: forgotten, apply: forget, verify: None },
    Step { name: "retire", check: retired, apply: retire, verify: None },
];

/// The names of the steps, of the stage and of its cleanup.
pub fn step_names(cleanup: bool) -> Vec<&'static str> {
    let steps = if cleanup { CLEANUP } else { STEPS };
    steps.iter().map(|step| step.name).collect()
}

/// Runs the stage to its end. What was sent goes last: until the marker is there, it is what
/// starts the stage again after a power cut.
pub fn run(mut run: Box<Run<'_>>, work: &mut Assets) -> Result<(), Problem> {
    let (root, source) = (run.root, run.machine.assets.source.clone());
    run.set_output("source", &source)?;
    run.steps(STEPS, work)?;
    run.finish(Status::Done, "the assets are published")?;
    disk::remove(root, DOWNLOAD)?;
    if source == "push" {
        apply::discard(root, paths::INCOMING)?;
    }
    Ok(())
}

/// Removes secrets after their use.
pub fn clean_up(mut run: Box<Run<'_>>, work: &mut Assets) -> Result<(), Problem> {
    run.steps(CLEANUP, work)?;
    run.finish(Status::Done, "no secret is left in the assets")
}

/// True when the source is on a network.
fn is_remote(source: &str) -> bool {
    ["https:", "http:", "s3:"].iter().any(|scheme| source.starts_with(scheme))
}

/// The bundle as it lies on the machine, if it does.
fn local(root: &Root, source: &str) -> Option<Source> {
    let at = |path: &str| match root.exists(&format!("{path}/{INDEX}")) {
        true => Some(Source::Directory(path.to_owned())),
        false => None,
    };
    match source {
        "push" => at(paths::INCOMING).or_else(|| {
            let tar = TARS.iter().map(|name| format!("{}/{name}", paths::INCOMING));
            tar.filter(|path| root.exists(path)).map(Source::Tar).next()
        }),
        source if source.starts_with("file:") => {
            let path = source.trim_start_matches("file:").trim_start_matches("//");
            let path = format!("/{}", path.trim_start_matches('/'));
            at(&path).or_else(|| root.exists(&path).then_some(Source::Tar(path)))
        }
        _ => root.exists(DOWNLOAD).then(|| Source::Tar(DOWNLOAD.to_owned())),
    }
}

fn fetched(_: &mut Assets, run: &mut Run<'_>) -> Result<Check, Problem> {
    let source = run.machine.assets.source.as_str();
    if run.output("digest").is_some() || source == "none" {
        return Ok(Check::Satisfied("nothing to fetch".into()));
    }
    Ok(match source {
        "push" if run.root.exists(paths::READY) => Check::Satisfied("the bundle was sent".into()),
        _ => Check::Needed,
    })
}

fn fetch(work: &mut Assets, run: &mut Run<'_>) -> Result<(), Problem> {
    let source = run.machine.assets.source.clone();
    if !is_remote(&source) {
        return match source.starts_with("file:") && local(run.root, &source).is_some() {
            true => Ok(()),
            false => Err(Problem::new(&pages::WAITING_INPUTS, "the bundle has not arrived")),
        };
    }
    let object = match source.starts_with("s3:") {
        true => Some(Object::resolve(run.root, &run.machine.assets, &work.environment)?),
        false => None,
    };
    let request = || match &object {
        Some(object) => object.request("GET"),
        None => http::Request::get(&source).body(()).map_err(|error| {
            Problem::new(&pages::BAD_SOURCE, "the address of the bundle is no URL").cause(error)
        }),
    };
    let authorities = &run.machine.ca_certificates;
    let mut from = download::Source::new(&work.environment, authorities, &request);
    if let Some(pause) = work.pause {
        from.pause = pause;
    }
    match download::fetch(run.root, &from, DOWNLOAD, DOWNLOAD_CAP)? {
        Fetched::Bytes(0) => {
            disk::remove(run.root, DOWNLOAD)?;
            run.set_output("digest", "none: the object is empty")
        }
        Fetched::Bytes(count) => {
            tracing::info!(count, "bundle fetched");
            Ok(())
        }
        Fetched::Absent if waited(run) < MISSING => {
            let what = "the store has no such object yet";
            Err(Problem::new(&pages::WAITING_INPUTS, what))
        }
        Fetched::Absent => {
            let what = "the object did not appear within an hour";
            Err(Problem::new(&pages::ASSETS_REFUSED, what))
        }
    }
}

/// How long ago the stage began.
fn waited(run: &Run<'_>) -> Duration {
    let began = run.state().field(run.stage(), "startedAt").and_then(Value::as_str);
    let began = began.and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
    let passed = began.map(|began| OffsetDateTime::now_utc() - began);
    passed.and_then(|passed| passed.try_into().ok()).unwrap_or_default()
}

/// True when the object told that the cluster is there already.
fn is_empty(run: &Run<'_>) -> bool {
    run.output("digest").is_some_and(|digest| digest.starts_with("none"))
}

fn published(_: &mut Assets, run: &mut Run<'_>) -> Result<Check, Problem> {
    if run.machine.assets.source == "none" || is_empty(run) {
        return Ok(Check::Satisfied("no bundle".into()));
    }
    let index = disk::read(run.root, &format!("{}/{INDEX}", paths::ASSETS), 4 << 20)?;
    let there = index.map(|bytes| bundle::digest(&bytes));
    Ok(match (there.as_deref(), run.output("digest")) {
        (Some(there), Some(wanted)) if there == wanted => Check::Satisfied(wanted.to_owned()),
        _ => Check::Needed,
    })
}

fn publish(_: &mut Assets, run: &mut Run<'_>) -> Result<(), Problem> {
    let root = run.root;
    let source = run.machine.assets.source.clone();
    let from = local(root, &source)
        .ok_or_else(|| Problem::new(&pages::WAITING_INPUTS, "the bundle has not arrived"))?;
    let digest = match verified(run, &from) {
        Err(problem) if [&pages::BAD_BUNDLE, &pages::WRONG_DIGEST].contains(&problem.page) => {
            reject(root, &source)?;
            return Err(problem);
        }
        verified => verified?,
    };
    // A directory cannot be renamed over one that is not empty.
    apply::discard(root, OLD)?;
    if root.exists(paths::ASSETS) {
        disk::rename(root, paths::ASSETS, OLD)?;
    }
    disk::rename(root, TEMPORARY, paths::ASSETS)?;
    apply::discard(root, OLD)?;
    run.set_output("digest", &digest)
}

/// Unpacks into the temporary directory and gives the digest.
fn verified(run: &Run<'_>, from: &Source) -> Result<String, Problem> {
    let index = from.index(run.root)?;
    let digest = bundle::digest(&index);
    if run.machine.assets.digest.as_ref().is_some_and(|pinned| *pinned != digest) {
        let problem = Problem::new(&pages::WRONG_DIGEST, "the bundle has another digest");
        return Err(problem.cause(format!("the bundle has {digest}")));
    }
    let id = &run.machine.cluster.id;
    let list = Index::decode(&index)?;
    if !list.cluster.is_empty() && list.cluster != *id {
        let what = "the bundle belongs to another cluster";
        return Err(Problem::new(&pages::BAD_BUNDLE, what));
    }
    apply::discard(run.root, TEMPORARY)?;
    from.unpack(run.root, &index, TEMPORARY)?;
    Ok(digest)
}

/// Puts a bundle aside that was refused; one is kept.
fn reject(root: &Root, source: &str) -> Result<(), Problem> {
    apply::discard(root, paths::REJECTED)?;
    apply::discard(root, TEMPORARY)?;
    disk::make(root, paths::REJECTED, 0o700)?;
    let from = match source {
        "push" => paths::INCOMING,
        _ if root.exists(DOWNLOAD) => DOWNLOAD,
        _ => return Ok(()),
    };
    disk::rename(root, from, &format!("{}/bundle", paths::REJECTED))
}

/// Starts what comes next on the one machine that starts the cluster.
fn arm(_: &mut Assets, run: &mut Run<'_>) -> Result<(), Problem> {
    if run.machine.role != Role::FirstMaster {
        return Ok(());
    }
    if is_empty(run) {
        return run.update(|state| {
            for stage in ["bootstrap", "addons", "cleanup"] {
                state.set_status(stage, Status::Skipped);
                state.set_output(stage, "why", "the store says that the cluster is bootstrapped");
            }
        });
    }
    for stage in ["bootstrap", "addons"] {
        if !run.state().status(stage).is_final() {
            apply::put(run.root, &paths::trigger(stage), 0o600, b"")?;
        }
    }
    Ok(())
}

fn forgotten(_: &mut Assets, run: &mut Run<'_>) -> Result<Check, Problem> {
    for stage in ["bootstrap", "addons"] {
        if !run.state().status(stage).is_final() {
            let what = format!("stage {stage} still needs the assets");
            return Err(Problem::new(&pages::WAITING_INPUTS, what));
        }
    }
    let names = run.root.list(paths::ASSETS).unwrap_or_default();
    let left = names.iter().any(|name| name != INDEX)
        || [paths::INCOMING, DOWNLOAD, TEMPORARY, OLD].iter().any(|path| run.root.exists(path));
    Ok(if left { Check::Needed } else { Check::Satisfied("no secret is left".into()) })
}

fn forget(_: &mut Assets, run: &mut Run<'_>) -> Result<(), Problem> {
    for name in run.root.list(paths::ASSETS).unwrap_or_default() {
        if name != INDEX {
            apply::discard(run.root, &format!("{}/{name}", paths::ASSETS))?;
        }
    }
    for path in [paths::INCOMING, DOWNLOAD, TEMPORARY, OLD, paths::REJECTED] {
        apply::discard(run.root, path)?;
    }
    Ok(())
}

fn retired(_: &mut Assets, run: &mut Run<'_>) -> Result<Check, Problem> {
    let s3 = run.machine.assets.source.starts_with("s3:");
    Ok(match (run.machine.assets.retire, run.output("retired")) {
        (Retire::Keep, _) => Check::Satisfied("the object is kept".into()),
        (_, Some(_)) => Check::Satisfied("done before".into()),
        _ if !s3 => Check::Satisfied("only objects of a store can be retired".into()),
        _ => Check::Needed,
    })
}

/// Empties or deletes the remote object, so that no other machine starts the cluster again.
fn retire(work: &mut Assets, run: &mut Run<'_>) -> Result<(), Problem> {
    let object = Object::resolve(run.root, &run.machine.assets, &work.environment)?;
    let method = if run.machine.assets.retire == Retire::Delete { "DELETE" } else { "PUT" };
    let request = object.request(method)?;
    let url = request.uri().to_string();
    let roots = download::roots(&run.machine.ca_certificates);
    let agent = trusting_agent(&work.environment, &url, Duration::from_secs(60), roots);
    // An object is replaced by nothing, and says so: a body of unknown length is refused.
    let answer = match method {
        "PUT" => agent.run(request.map(|()| Vec::<u8>::new())),
        _ => agent.run(request),
    };
    match answer.map(|response| response.status().as_u16()) {
        Ok(200..=299) => run.set_output("retired", method),
        Ok(status @ (400..=407 | 409..=428)) => {
            let what = format!("the store refused to retire the object with status {status}");
            Err(Problem::new(&pages::ASSETS_REFUSED, what))
        }
        Ok(status) => Err(Problem::new(
            &pages::ASSETS_UNREACHABLE,
            format!("the store answered with status {status}"),
        )),
        Err(error) => {
            Err(Problem::new(&pages::ASSETS_UNREACHABLE, "the store does not answer").cause(error))
        }
    }
}

const SENDING: &str = "/var/lib/tenon/incoming.tmp";

/// Puts a bundle into the drop zone: copied whole, then announced. Of one that is refused nothing
/// stays: it may hold keys, and nobody would look for them there.
pub fn import(root: &Root, from: &Root, source: &Source) -> Result<String, Problem> {
    let sent = send(root, from, source);
    if sent.is_err() {
        apply::discard(root, SENDING)?;
    }
    sent.map_err(|problem| match problem.page == &pages::BAD_BUNDLE {
        true => problem
            .why("a bundle is taken whole or not at all; nothing of this one was sent")
            .fix("build the bundle again with `tenon stage assets --build DIR`"),
        false => problem,
    })
}

fn send(root: &Root, from: &Root, source: &Source) -> Result<String, Problem> {
    let index = source.index(from)?;
    apply::discard(root, SENDING)?;
    source.unpack_into(from, &index, root, SENDING)?;
    apply::discard(root, paths::INCOMING)?;
    disk::rename(root, SENDING, paths::INCOMING)?;
    apply::put(root, paths::READY, 0o600, b"")?;
    Ok(bundle::digest(&index))
}

#[cfg(test)]
#[path = "assets_tests.rs"]
mod tests;
