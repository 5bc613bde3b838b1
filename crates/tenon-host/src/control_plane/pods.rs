//! Static pods: written for the kubelet, waited for, taken away.

use std::time::Duration;

use serde_json::Value;
use tenon_core::codes::control_plane as pages;
use tenon_core::control_plane::{
    BOOTSTRAP_SECRETS, Component, MANIFEST_MARK, MANIFESTS, Manifest, Phase, encryption, pod,
    supports,
};
use tenon_core::problem::Problem;
use tenon_core::tree::Dialect;
use tenon_core::yaml;

use super::claim::ports_are_free;
use super::{Bootstrap, COMPONENT, keys, logs};
use crate::apply;
use crate::cluster::{ApiError, Auth, Client, Look, Trust, wait_until};
use crate::random;
use crate::root::Root;
use crate::stages::{Check, Run, Step, disk};

/// Where a manifest lies until it is whole: the kubelet reads every file of its directory.
const STAGING: &str = "/etc/kubernetes/.tenon-manifest";
/// The largest manifest that is read.
const MANIFEST_CAP: u64 = 1 << 20;
/// One question to a component.
pub(super) const QUESTION: Duration = Duration::from_secs(5);

pub(super) const KUBELET_HEALTH: Step<Bootstrap> = Step {
    name: "kubelet-health",
    check: |_, _| match kubelet_is_healthy() {
        true => Ok(Check::Satisfied("the kubelet answers".into())),
        false => Ok(Check::Needed),
    },
    apply: |bootstrap, _| {
        let waited = wait_until("the kubelet is healthy", bootstrap.patience(COMPONENT), || {
            Ok(match kubelet_is_healthy() {
                true => Look::Ready(()),
                false => Look::NotYet("nothing answers on 127.0.0.1:10248".into()),
            })
        });
        waited.map_err(|problem| deadline(problem, &pages::KUBELET_NOT_HEALTHY, Vec::new()))
    },
    verify: None,
};

pub(super) const BOOTSTRAP_PLANE: Step<Bootstrap> = Step {
    name: "bootstrap-plane",
    check: |bootstrap, run| {
        if bootstrap.direct {
            return Ok(Check::Satisfied("the final plane is started directly".into()));
        }
        Ok(match is_handed_over(bootstrap, run)? || super::objects::are_there(bootstrap, run) {
            true => Check::Satisfied("its work is done".into()),
            false => Check::Needed,
        })
    },
    apply: |bootstrap, run| {
        write_supports(bootstrap, run)?;
        keys::bootstrap_secrets(bootstrap, run)?;
        let components = [Component::ApiServer, Component::ControllerManager];
        write(bootstrap, run, Phase::Bootstrap, &components)?;
        for component in components {
            wait_for(bootstrap, run.root, component, Phase::Bootstrap)?;
        }
        let api = bootstrap.first_api(run.root)?;
        wait_until("the namespace kube-system is there", bootstrap.patience(COMPONENT), || {
            api.get("/api/v1/namespaces/kube-system").map(|_| Look::Ready(()))
        })
    },
    verify: Some(|_, _| Ok(())),
};

/// Everything but etcd, which runs already.
const FINAL: &[Component] =
    &[Component::ApiServer, Component::ControllerManager, Component::Scheduler];

pub(super) const FINAL_PLANE: Step<Bootstrap> = Step {
    name: "final-plane",
    check: |bootstrap, run| {
        let placed = place(bootstrap, run, Phase::Final, FINAL)? == Placed::All;
        let well = |component: &Component| is_well(bootstrap, run.root, *component, Phase::Final);
        let filled = !bootstrap.direct || super::objects::are_there(bootstrap, run);
        Ok(match placed && filled && FINAL.iter().all(|component| well(component).is_ok()) {
            true => Check::Satisfied("the final plane is healthy".into()),
            false => Check::Needed,
        })
    },
    apply: |bootstrap, run| {
        write_supports(bootstrap, run)?;
        write(bootstrap, run, Phase::Final, FINAL)?;
        for component in FINAL {
            wait_for(bootstrap, run.root, *component, Phase::Final)?;
        }
        match bootstrap.direct {
            // Without a temporary plane the final one fills the API.
            true => super::objects::apply_all(bootstrap, run),
            false => Ok(()),
        }
    },
    verify: None,
};

/// True when an earlier run has begun to take the temporary plane away: the final static pods are
/// written and the temporary ones are not. Whether all is well is for the later steps to see.
pub(super) fn is_handed_over(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<bool, Problem> {
    let written = place(bootstrap, run, Phase::Final, FINAL)? == Placed::All;
    Ok(written && !bootstrap_is_written(bootstrap, run.root)?)
}

/// How many manifests lie where they belong, as they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    All,
    Not,
}

pub(super) fn place(
    bootstrap: &Bootstrap,
    run: &Run<'_>,
    phase: Phase,
    components: &[Component],
) -> Result<Placed, Problem> {
    for manifest in chosen(bootstrap, phase, components)? {
        if found(run.root, &manifest)? != Found::Same {
            return Ok(Placed::Not);
        }
    }
    Ok(Placed::All)
}

fn chosen(
    bootstrap: &Bootstrap,
    phase: Phase,
    components: &[Component],
) -> Result<Vec<Manifest>, Problem> {
    let mut manifests = bootstrap.manifests(phase)?;
    manifests.retain(|manifest| components.contains(&manifest.component));
    Ok(manifests)
}

/// What lies at the place of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Same,
    /// Ours, of another config.
    Older,
    Foreign,
}

fn found(root: &Root, manifest: &Manifest) -> Result<Found, Problem> {
    let file = manifest.file();
    let Some(bytes) = disk::read(root, &file.path, MANIFEST_CAP)? else {
        return Ok(Found::Nothing);
    };
    Ok(match bytes == file.body.as_bytes() {
        true => Found::Same,
        false if is_ours(&bytes) => Found::Older,
        false => Found::Foreign,
    })
}

/// True for a static pod that carries our mark.
fn is_ours(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Ok(trees) = yaml::parse(&text) else { return false };
    let marked = |pod: Value| pod["metadata"]["annotations"][MANIFEST_MARK].is_string();
    trees.iter().any(|tree| marked(tree.to_json(Dialect::Yaml12)))
}

/// Writes manifests that are not there; those of somebody else are not touched.
pub(super) fn write(
    bootstrap: &Bootstrap,
    run: &Run<'_>,
    phase: Phase,
    components: &[Component],
) -> Result<(), Problem> {
    let manifests = chosen(bootstrap, phase, components)?;
    for manifest in &manifests {
        match found(run.root, manifest)? {
            Found::Foreign => {
                let what = format!("{} was not written by Tenon", manifest.path());
                return Err(Problem::new(&pages::FOREIGN_MANIFEST, what));
            }
            Found::Nothing => ports_are_free(manifest.component, phase)?,
            Found::Same | Found::Older => {}
        }
    }
    disk::make(run.root, MANIFESTS, 0o755)?;
    for manifest in &manifests {
        if found(run.root, manifest)? != Found::Same {
            let file = manifest.file();
            apply::put(run.root, STAGING, file.mode, file.body.as_bytes())?;
            disk::rename(run.root, STAGING, &file.path)?;
            tracing::info!(path = file.path, "static pod written");
        }
    }
    Ok(())
}

/// The audit policy and the encryption config; the key in it is made once and kept.
fn write_supports(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    let encryption = &bootstrap.cluster.encryption;
    let makes_key = encryption.needs_key() && !run.root.exists(encryption::CONFIG);
    let key = if makes_key { Some(random::bytes::<32>()?) } else { None };
    for file in supports(&bootstrap.cluster, key.as_ref()) {
        run.write(&file.path, file.mode, file.body.as_bytes())?;
    }
    Ok(())
}

/// Takes the temporary static pods away; only ours.
pub(super) fn remove_bootstrap(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    for manifest in bootstrap.manifests(Phase::Bootstrap)? {
        let path = manifest.path();
        let bytes = disk::read(run.root, &path, MANIFEST_CAP)?;
        if bytes.is_some_and(|bytes| is_ours(&bytes)) {
            disk::remove(run.root, &path)?;
            tracing::info!(path, "static pod removed");
        }
    }
    Ok(())
}

/// True while a temporary static pod is still on disk.
pub(super) fn bootstrap_is_written(bootstrap: &Bootstrap, root: &Root) -> Result<bool, Problem> {
    let manifests = bootstrap.manifests(Phase::Bootstrap)?;
    Ok(manifests.iter().any(|manifest| root.exists(&manifest.path())))
}

/// Removes the credentials of the bootstrap phase.
pub(super) fn remove_secrets(root: &Root) -> Result<(), Problem> {
    if root.exists(BOOTSTRAP_SECRETS) {
        apply::discard(root, BOOTSTRAP_SECRETS)?;
    }
    Ok(())
}

fn kubelet_is_healthy() -> bool {
    plain("http://127.0.0.1:10248", "/healthz").is_ok()
}

/// Asks a component that speaks without TLS, on loopback.
fn plain(url: &str, path: &str) -> Result<String, ApiError> {
    Client::new(url, &Trust::Public, &Auth::None)?.within(QUESTION).text(path)
}

/// Waits for a component; when it does not come up, its own last words are the hint.
pub(super) fn wait_for(
    bootstrap: &Bootstrap,
    root: &Root,
    component: Component,
    phase: Phase,
) -> Result<(), Problem> {
    let name = pod::name(component, phase);
    let waited = wait_until(&format!("{name} is healthy"), bootstrap.patience(COMPONENT), || {
        is_well(bootstrap, root, component, phase).map(|()| Look::Ready(()))
    });
    waited.map_err(|problem| {
        let words = logs::last_words(root, &name, &bootstrap.cluster.node_name, component.name());
        deadline(problem, &pages::STEP_DEADLINE, words)
    })
}

/// The same problem under a page that says what to do here.
fn deadline(
    problem: Problem,
    page: &'static tenon_core::codes::Page,
    words: Vec<String>,
) -> Problem {
    if problem.exit() != 9 {
        return problem;
    }
    let mut renamed = Problem::new(page, problem.what.clone());
    renamed.causes.clone_from(&problem.causes);
    // The last line is what `stage status` shows as the hint.
    renamed.causes.extend(words.last().map(|line| format!("its last words: {line}")));
    renamed.details(words)
}

/// Asks a component whether it does its work.
pub(super) fn is_well(
    bootstrap: &Bootstrap,
    root: &Root,
    component: Component,
    phase: Phase,
) -> Result<(), ApiError> {
    // Their serving certificates are their own; that they listen on loopback is what counts.
    let loopback = |port: u16, path: &str| {
        let url = format!("https://127.0.0.1:{port}");
        Client::new(&url, &Trust::Anyone, &Auth::None)?.within(QUESTION).text(path).map(drop)
    };
    let port = pod::ports(component, phase)[0];
    match component {
        Component::Etcd => plain(&bootstrap.cluster.etcd_metrics_url(), "/readyz").map(drop),
        Component::ControllerManager => loopback(port, "/healthz"),
        Component::Scheduler => loopback(port, "/readyz"),
        Component::ApiServer => {
            let api = match phase {
                Phase::Bootstrap => bootstrap.first_api(root)?,
                Phase::Final => bootstrap.api(root)?,
            };
            let api = api.within(QUESTION);
            api.text("/livez").and_then(|_| api.text("/readyz")).map(drop)
        }
    }
}
