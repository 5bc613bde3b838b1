//! Which Kubernetes this is, and which runtimes suit it. Every answer records its source.

use std::time::Duration;

use tenon_core::codes::stages as pages;
use tenon_core::kube_version::Version;
use tenon_core::problem::Problem;
use tenon_core::stages::machine::Role;
use tenon_core::stages::{mappings, paths};

use super::prepare::{Prepare, authority};
use super::runtime::RUNTIME;
use super::{Run, disk};
use crate::cluster::{Auth, Client, Trust};
use crate::stop;

/// How often the API server is asked, and how long it may take.
const API_TRIES: u32 = 3;
const API_BOUND: Duration = Duration::from_secs(10);
const MAPPINGS_OBJECT: &str = "/api/v1/namespaces/kube-system/configmaps/tenon-runtime-mappings";

/// Flag, else API server, else what the installer put there.
pub fn decide(work: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    let (version, source) = match &work.force_version {
        Some(version) => (version.clone(), "flag"),
        None => match api_version(work, run)? {
            Some(version) => (version, "api"),
            None => (default_version(run)?, "default"),
        },
    };
    let version = format!("v{}", version.trim_start_matches('v'));
    if Version::parse(&version).is_none() {
        return Err(Problem::new(&pages::BAD_VERSION, format!("the {source} gives no version")));
    }
    run.set_output("versionSource", source)?;
    run.set_output("kubernetesVersion", &version)
}

fn default_version(run: &Run<'_>) -> Result<String, Problem> {
    let text = disk::read(run.root, paths::DEFAULT_ENV, 64 << 10)?.unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("KUBERNETES_VERSION="));
    let given = line.map(|value| value.trim().trim_matches('"').to_owned());
    Ok(given.unwrap_or_else(|| run.machine.cluster.kubernetes_version.clone()))
}

fn client(run: &Run<'_>) -> Result<Option<Client>, Problem> {
    let Some(authority) = authority(run)? else { return Ok(None) };
    let token = run.machine.token.as_ref();
    let auth = token.map_or(Auth::None, |token| Auth::Bearer(token.token.clone()));
    let client = Client::new(&run.machine.cluster.endpoint, &Trust::Authority(authority), &auth)?;
    Ok(Some(client.within(API_BOUND)))
}

/// What the API server says, if there is one to ask. The first master never asks.
fn api_version(work: &Prepare, run: &Run<'_>) -> Result<Option<String>, Problem> {
    if run.machine.role == Role::FirstMaster {
        return Ok(None);
    }
    let Some(client) = client(run)? else { return Ok(None) };
    for attempt in 1..=API_TRIES {
        match client.get("/version") {
            Ok(value) => {
                let version = value["gitVersion"].as_str().map(str::to_owned);
                return Ok(version.filter(|text| Version::parse(text).is_some()));
            }
            Err(error) => {
                tracing::warn!(attempt, error = error.summary(), "the API server was not heard");
            }
        }
        if attempt < API_TRIES {
            stop::sleep(work.api_pause)?;
        }
    }
    Ok(None)
}

/// Records which runtimes suit this Kubernetes.
pub fn choose_mappings(work: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    let version = run.output("kubernetesVersion").unwrap_or_default().to_owned();
    let (text, source) = mappings_text(work, run)?;
    let wanted = mappings::wanted(&text, &source, &version)?;
    let list = wanted.get(RUNTIME).cloned().unwrap_or_default();
    if list.is_empty() {
        let what = format!("the mappings name no {RUNTIME} for {version}");
        return Err(Problem::new(&pages::NO_RUNTIME, what));
    }
    run.set_output("mappingsSource", &source)?;
    run.set_output("containerdWanted", &list.join(","))
}

fn mappings_text(work: &Prepare, run: &Run<'_>) -> Result<(String, String), Problem> {
    let read = |path: &str| -> Result<Option<(String, String)>, Problem> {
        let bytes = disk::read(run.root, path, 1 << 20)?;
        Ok(bytes
            .map(|bytes| (String::from_utf8_lossy(&bytes).into_owned(), format!("file://{path}"))))
    };
    if let Some(path) = &work.mappings {
        let none = || Problem::new(&pages::BAD_MAPPINGS, format!("there is no {path}"));
        return read(path)?.ok_or_else(none);
    }
    // Only a cluster that was heard just now is asked again.
    if run.output("versionSource") == Some("api")
        && let Some(client) = client(run)?
    {
        match client.find(MAPPINGS_OBJECT) {
            Ok(Some(object)) => {
                if let Some(text) = object["data"]["mappings.yaml"].as_str() {
                    return Ok((text.to_owned(), "the cluster's tenon-runtime-mappings".into()));
                }
            }
            Ok(None) => {}
            Err(error) => tracing::info!(error = error.summary(), "no mappings from the cluster"),
        }
    }
    let own = read(&run.machine.runtime.mappings)?;
    Ok(own.unwrap_or_else(|| (mappings::DEFAULT.to_owned(), "built in".to_owned())))
}
