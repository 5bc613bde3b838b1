//! Step `objects`: the API is filled through the temporary control plane, before any client
//! outside the node can reach one.

use std::time::Duration;

use serde_json::Value;
use tenon_core::control_plane::PKI;
use tenon_core::control_plane::addons::{self as documents, Addon};
use tenon_core::control_plane::objects::{self, BootstrapToken, CLAIM_NAME};
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;
use tenon_core::stages::paths;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Bootstrap;
use super::addons::{apply_one, read_directory};
use super::open::read_text;
use super::pods::is_handed_over;
use crate::cluster::{ApiError, Client, Look, wait_until};
use crate::stages::{Check, Run, Step};

/// Who owns the fields of a new cluster's own objects.
pub(super) const MANAGER: &str = "tenon";
const DEADLINE: Duration = Duration::from_secs(10 * 60);
const QUESTION: Duration = Duration::from_secs(5);

pub(super) const STEP: Step<Bootstrap> = Step {
    name: "objects",
    check: |bootstrap, run| {
        if bootstrap.direct {
            return Ok(Check::Satisfied("the final plane applies them".into()));
        }
        Ok(match is_handed_over(bootstrap, run)? || are_there(bootstrap, run) {
            true => Check::Satisfied("the API has them".into()),
            false => Check::Needed,
        })
    },
    apply: |bootstrap, run| apply_all(bootstrap, run),
    verify: None,
};

/// True when an API server gives the nonce of this claim back: it is written last.
pub(super) fn are_there(bootstrap: &Bootstrap, run: &Run<'_>) -> bool {
    let first = || bootstrap.first_api(run.root).is_ok_and(|api| has_nonce(&api, run));
    bootstrap.api(run.root).is_ok_and(|api| has_nonce(&api, run)) || first()
}

fn has_nonce(api: &Client, run: &Run<'_>) -> bool {
    let found = nonce(&api.within(QUESTION));
    found.is_ok_and(|found| found.is_some() && found.as_deref() == run.output("nonce"))
}

/// The nonce that a cluster was filled with.
pub(super) fn nonce(api: &Client) -> Result<Option<String>, ApiError> {
    let found = api.find(&format!("/api/v1/namespaces/kube-system/configmaps/{CLAIM_NAME}"))?;
    Ok(found.and_then(|object| object["data"]["nonce"].as_str().map(str::to_owned)))
}

/// Applies everything, the nonce last.
pub(super) fn apply_all(bootstrap: &Bootstrap, run: &Run<'_>) -> Result<(), Problem> {
    // All of the bundle is read before the first object is applied.
    let more = bundle(run)?;
    let api = bootstrap.first_api(run.root)?;
    let ca = read_text(run.root, &format!("{PKI}/ca.crt"))?;
    let token = token(run)?;
    for object in objects::objects(&bootstrap.cluster, &ca, token.as_ref()) {
        apply(bootstrap, &api, &object)?;
    }
    for addon in &more {
        apply_one(&api, addon, MANAGER, true, bootstrap.patience(DEADLINE))?;
    }
    apply(bootstrap, &api, &objects::claim(run.output("nonce").unwrap_or_default()))
}

/// Applies one object of ours. The server makes its namespaces and roles a moment after it is
/// ready, so an object may come too early.
fn apply(bootstrap: &Bootstrap, api: &Client, object: &Value) -> Result<(), Problem> {
    let title = format!("{} {}", word(&object["kind"]), word(&object["metadata"]["name"]));
    wait_until(&format!("{title} is applied"), bootstrap.patience(DEADLINE), || {
        match api.apply(object, MANAGER, true) {
            Ok(_) => Ok(Look::Ready(())),
            Err(error) if error.is_not_found() => Ok(Look::NotYet(error.summary())),
            Err(error) => Err(error),
        }
    })?;
    tracing::info!(object = title, "applied");
    Ok(())
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The manifests of the bundle, in order.
fn bundle(run: &Run<'_>) -> Result<Vec<Addon>, Problem> {
    let mut found = read_directory(run.root, &format!("{}/manifests", paths::ASSETS))?;
    documents::order(&mut found);
    Ok(found)
}

/// The bootstrap token of the config, with its end.
fn token(run: &Run<'_>) -> Result<Option<BootstrapToken>, Problem> {
    let Some(token) = &run.machine.token else { return Ok(None) };
    let Some((id, secret)) = token.token.expose().split_once('.') else { return Ok(None) };
    let end = OffsetDateTime::now_utc() + time::Duration::hours(i64::from(token.ttl_hours));
    let expiration = end.replace_nanosecond(0).ok().and_then(|end| end.format(&Rfc3339).ok());
    Ok(Some(BootstrapToken {
        id: id.to_owned(),
        secret: Secret::new(secret),
        expiration: expiration.unwrap_or_default(),
    }))
}
