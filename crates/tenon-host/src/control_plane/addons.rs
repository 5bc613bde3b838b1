//! Stage `addons`: the user's objects in the new cluster.
//!
//! Every file is read before the first object is applied. Namespaces and custom resource
//! definitions come first; then each file's objects are applied and waited for. Applying is
//! server-side and idempotent, so a repeat after any crash converges.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tenon_core::codes::control_plane as pages;
use tenon_core::control_plane::addons::{self, Addon, Readiness};
use tenon_core::problem::Problem;
use tenon_core::stages::paths;
use tenon_core::stages::state::Status;

use super::claim::stage_is_done;
use super::open::read_text;
use super::settle::node_verdict;
use crate::cluster::{ApiError, Client, Look, wait_until};
use crate::root::Root;
use crate::stages::prepare::lift_update_hold;
use crate::stages::{Check, Run, Step, disk};

pub const STAGE: &str = "addons";
/// Who owns the fields of add-ons.
const MANAGER: &str = "tenon-addons";
const ADMIN: &str = "/etc/kubernetes/admin.conf";
/// For the cluster to answer.
const CLUSTER: Duration = Duration::from_secs(5 * 60);
/// For a definition to be served.
const DEFINITION: Duration = Duration::from_secs(2 * 60);
/// For the objects of one file, and for all of them.
const FILE: Duration = Duration::from_secs(10 * 60);
const ALL: Duration = Duration::from_secs(30 * 60);

/// What one run of the stage works on.
#[derive(Debug)]
pub struct Addons {
    api: Client,
    objects: Vec<Addon>,
    force: bool,
    wait: bool,
    end: Instant,
}

/// The choices of the command line.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// In place of the bundle's own directory.
    pub directory: Option<String>,
    pub force: bool,
    pub no_wait: bool,
}

const STEPS: &[Step<Addons>] = &[
    Step {
        name: "wait",
        check: |_, _| Ok(Check::Needed),
        apply: wait,
        verify: Some(|_, _| Ok(())),
    },
    Step { name: "apply", check: |_, _| Ok(Check::Needed), apply, verify: Some(|_, _| Ok(())) },
    Step {
        name: "ready",
        check: |stage, _| match stage.wait {
            true => Ok(Check::Needed),
            false => Ok(Check::Satisfied("nobody waits for the objects".into())),
        },
        apply: |stage, _| stage.wait_for_files(),
        verify: Some(|_, _| Ok(())),
    },
];

/// Runs the stage to its end and gives the number of objects.
pub fn run(mut run: Box<Run<'_>>, options: &Options) -> Result<usize, Problem> {
    let directory = options.directory.clone();
    let directory = directory.unwrap_or_else(|| format!("{}/addons", paths::ASSETS));
    // A file that cannot be read blocks the stage as any step would.
    let mut read = Reading { directory, objects: Vec::new() };
    run.steps(READ, &mut read)?;
    let count = read.objects.len();
    let mut stage = Addons {
        api: Client::open(run.root, ADMIN)?,
        objects: read.objects,
        force: options.force || run.machine.force_addons,
        wait: !options.no_wait,
        end: Instant::now() + ALL,
    };
    run.steps(STEPS, &mut stage)?;
    if run.machine.os.updates_after {
        lift_update_hold(run.root)?;
    }
    run.finish(Status::Done, &format!("{count} objects applied"))?;
    Ok(count)
}

/// The files before they are objects.
struct Reading {
    directory: String,
    objects: Vec<Addon>,
}

const READ: &[Step<Reading>] = &[
    Step {
        name: "bootstrap",
        check: |_, run| {
            stage_is_done(run.root, "bootstrap")?;
            Ok(Check::Satisfied("the control plane is up".into()))
        },
        apply: |_, _| Ok(()),
        verify: None,
    },
    Step {
        name: "parse",
        check: |_, _| Ok(Check::Needed),
        apply: |reading, run| {
            reading.objects = read_directory(run.root, &reading.directory)?;
            addons::order(&mut reading.objects);
            Ok(())
        },
        verify: Some(|_, _| Ok(())),
    },
];

/// Reads every manifest of a directory, in the order of their names; none if it is not there.
pub(super) fn read_directory(root: &Root, directory: &str) -> Result<Vec<Addon>, Problem> {
    let names = root.list(directory).map_err(|error| {
        let what = format!("reading {directory}");
        Problem::new(&tenon_core::codes::host::FILE_READ, what).cause(error)
    })?;
    let is_manifest = |name: &&String| {
        !name.starts_with('.') && [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end))
    };
    // Files below would be left out in silence.
    let below = |name: &&String| {
        !name.starts_with('.') && disk::directory(root, &format!("{directory}/{name}")).is_ok()
    };
    if let Some(name) = names.iter().find(below) {
        let what = format!("{directory}/{name} is a directory");
        return Err(Problem::new(&pages::BAD_MANIFEST, what)
            .why("manifests lie directly in their directory; those below are not applied")
            .fix("move the files up; their order is the order of their names"));
    }
    let mut objects = Vec::new();
    for name in names.iter().filter(is_manifest) {
        objects.extend(addons::read(name, &read_text(root, &format!("{directory}/{name}"))?)?);
    }
    Ok(objects)
}

/// Waits for the API, and for one node that is there.
fn wait(stage: &mut Addons, _run: &mut Run<'_>) -> Result<(), Problem> {
    wait_until("the API is ready and has a node", CLUSTER, || {
        stage.api.text("/readyz")?;
        let nodes = stage.api.list("/api/v1/nodes")?;
        Ok(match nodes.iter().any(|node| node_verdict(node).is_ok()) {
            true => Look::Ready(()),
            false => Look::NotYet(format!("none of {} nodes is ready", nodes.len())),
        })
    })
}

fn apply(stage: &mut Addons, _run: &mut Run<'_>) -> Result<(), Problem> {
    for addon in &stage.objects {
        apply_one(&stage.api, addon, MANAGER, stage.force, DEFINITION)?;
    }
    Ok(())
}

/// Applies one object. A definition is waited for until the API serves its kind, so that the
/// objects after it find it.
pub(super) fn apply_one(
    api: &Client,
    addon: &Addon,
    manager: &str,
    force: bool,
    patience: Duration,
) -> Result<(), Problem> {
    wait_until(&format!("{} is applied", addon.title()), patience, || {
        match api.apply(&addon.object, manager, force) {
            // Kinds that came with a definition a moment ago are asked for anew.
            Err(error @ ApiError::UnknownKind { .. }) => {
                api.refresh_resources();
                Err(error)
            }
            // Its namespace may be on its way; an object that will never fit is refused otherwise.
            Err(error) if error.is_not_found() => Ok(Look::NotYet(error.summary())),
            Err(error) => match refusal(addon, &error) {
                Some(problem) => Err(problem.into()),
                None => Err(error),
            },
            Ok(_) => Ok(Look::Ready(())),
        }
    })?;
    tracing::info!(object = addon.title(), "applied");
    match addon.is_crd() {
        true => wait_for_definition(api, addon, patience),
        false => Ok(()),
    }
}

/// The problem of an answer that no repeat changes.
fn refusal(addon: &Addon, error: &ApiError) -> Option<Problem> {
    let ApiError::Refused(refused) = error else { return None };
    let (page, what) = match refused.code {
        409 if refused.reason == "Conflict" => {
            (&pages::ADDON_CONFLICT, format!("{} has fields of another manager", addon.title()))
        }
        400 | 403 | 405 | 413 | 415 | 422 => {
            (&pages::OBJECT_REFUSED, format!("the API server refused {}", addon.title()))
        }
        _ => return None,
    };
    Some(Problem::new(page, what).cause(&refused.message).details(refused.causes.clone()))
}

fn wait_for_definition(api: &Client, addon: &Addon, patience: Duration) -> Result<(), Problem> {
    let path = api.path_of(&addon.object)?;
    wait_until(&format!("{} is established", addon.title()), patience, || look(api, &path))?;
    let group = addon.object["spec"]["group"].as_str().unwrap_or_default();
    wait_until(&format!("the API serves the group {group}"), patience, || {
        api.get(&format!("/apis/{group}")).map(|_| Look::Ready(()))
    })?;
    api.refresh_resources();
    Ok(())
}

/// Whether the object at a path is ready.
fn look(api: &Client, path: &str) -> Result<Look<()>, ApiError> {
    Ok(match addons::readiness(&api.get(path)?) {
        Readiness::Ready => Look::Ready(()),
        Readiness::Waiting(why) => Look::NotYet(why),
        Readiness::Broken(why) => {
            return Err(Problem::new(&pages::JOB_BROKEN, why).into());
        }
    })
}

impl Addons {
    /// Waits for the objects of each file, in the order of files.
    fn wait_for_files(&self) -> Result<(), Problem> {
        let mut files: BTreeMap<&str, Vec<&Addon>> = BTreeMap::new();
        for addon in self.objects.iter().filter(|addon| addon.is_waited_for()) {
            files.entry(&addon.file).or_default().push(addon);
        }
        for objects in files.values() {
            let end = self.end.min(Instant::now() + FILE);
            for addon in objects {
                self.wait_for_object(addon, end.saturating_duration_since(Instant::now()))?;
            }
        }
        Ok(())
    }

    fn wait_for_object(&self, addon: &Addon, patience: Duration) -> Result<(), Problem> {
        let path = self.api.path_of(&addon.object)?;
        let what = format!("{} is ready", addon.title());
        wait_until(&what, patience, || look(&self.api, &path)).map_err(|problem| {
            match problem.exit() {
                9 => Problem::new(&pages::ADDON_NOT_READY, problem.what.clone())
                    .cause(problem.causes.join("; ")),
                _ => problem,
            }
        })
    }
}
