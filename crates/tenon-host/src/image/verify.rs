//! Checks a root against its plan: every item by the same look that apply takes, then what many
//! files together make of a value, then, when asked, the running kernel.

use std::collections::BTreeMap;

use serde_json::Value;
use tenon_core::codes::image::{BAD_PLAN, NO_PLAN_IN_ROOT};
use tenon_core::image::check::{Check, Half, State};
use tenon_core::image::effective::{self, SSHD, SUDO, SYSCTL_LAST, SYSCTL_PLACES, suits};
use tenon_core::image::item::{Act, Item};
use tenon_core::image::plan::ImagePlan;
use tenon_core::image::resource::Resource;
use tenon_core::problem::Problem;

use super::gap::{Gap, Mend};
use super::record::PLAN;
use super::running;
use super::site::{Site, matching};
use super::{facts, record};
use crate::apply::directories::unreadable;
use crate::root::Root;
use crate::stop;

const AGAIN: &str = "run `tenon image apply` with the same plan again";
const PLAN_CAP: u64 = 16 << 20;

/// The plan that apply left in a root.
pub fn plan_of(root: &Root) -> Result<ImagePlan, Vec<Problem>> {
    let bytes = root.read(PLAN, PLAN_CAP).map_err(|error| vec![unreadable(PLAN, error)])?;
    let Some(bytes) = bytes else {
        let what = format!("{} has no plan", root.path().display());
        return Err(vec![Problem::new(&NO_PLAN_IN_ROOT, what)]);
    };
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        vec![Problem::new(&BAD_PLAN, format!("{PLAN} is no JSON")).cause(error)]
    })?;
    ImagePlan::from_json(&value)
}

/// Checks everything. `kernel` is the running machine, if it is to be judged, too.
pub fn verify(plan: &ImagePlan, root: &Root, kernel: Option<&Root>) -> Result<Vec<Check>, Problem> {
    let facts = facts::gather(root)?;
    if let Some(problem) = facts.refuses(plan) {
        return Err(problem);
    }
    let site = Site::new(root, plan, facts, &|_| stop::check())?;
    let mut checks = Vec::new();
    for item in &plan.items {
        stop::check()?;
        checks.push(check(&site, item));
    }
    checks.extend(sysctls(&site)?);
    checks.extend(sshd(&site)?);
    checks.extend(sudo(&site)?);
    if let Some(kernel) = kernel {
        checks.extend(running::checks(plan, kernel));
    }
    for check in &mut checks {
        check.rules = rules(plan, &check.from);
    }
    Ok(checks)
}

/// True if a check belongs to a kind of act or resource, or to a feature.
pub fn concerns(plan: &ImagePlan, check: &Check, only: &str) -> bool {
    let of_feature = |one: &Resource| one.reasons.iter().any(|reason| reason.feature == only);
    let from = check.from.iter().filter_map(|name| plan.resource(name));
    check.act == only || from.into_iter().any(|one| one.kind.name == only || of_feature(one))
}

fn rules(plan: &ImagePlan, from: &[String]) -> Vec<String> {
    let resources = from.iter().filter_map(|name| plan.resource(name));
    let mut rules: Vec<String> = resources.flat_map(|one| one.rules.clone()).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

fn check(site: &Site<'_>, item: &Item) -> Check {
    let (act, key) = item.act.name();
    let mut check = Check {
        act: act.to_owned(),
        key: key.into_owned(),
        half: Half::Files,
        state: State::Pass,
        expected: String::new(),
        actual: String::new(),
        from: item.from.clone(),
        rules: Vec::new(),
        remedy: String::new(),
    };
    if let Act::Manual { text, .. } = &item.act {
        return Check { state: State::Manual, expected: text.clone(), ..check };
    }
    match site.gaps(item) {
        Ok(gaps) if gaps.is_empty() => {}
        Ok(gaps) => {
            let told = |words: fn(&Gap) -> &String| {
                gaps.iter().map(|gap| words(gap).as_str()).collect::<Vec<_>>().join("; ")
            };
            check.state = State::Fail;
            check.expected = told(|gap| &gap.expected);
            check.actual = told(|gap| &gap.actual);
            check.remedy = remedy(&gaps).to_owned();
        }
        Err(problem) => {
            check.state = State::Unknown;
            check.expected = record::name(item);
            check.actual = [vec![problem.what.clone()], problem.causes.clone()].concat().join(": ");
            check.remedy = problem.fix_text().to_owned();
        }
    }
    check
}

fn remedy(gaps: &[Gap]) -> &'static str {
    let refused = gaps.iter().find_map(|gap| match gap.mend {
        Mend::Refuse(page) => Some(page.fix),
        _ => None,
    });
    refused.unwrap_or(AGAIN)
}

/// The texts of all files that fit these patterns, by path.
fn texts(site: &Site<'_>, patterns: &[String]) -> Result<BTreeMap<String, String>, Problem> {
    let mut texts = BTreeMap::new();
    for pattern in patterns {
        for path in matching(site.root, pattern)? {
            if let Some(bytes) = site.bytes(&path)? {
                texts.insert(path, String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    Ok(texts)
}

/// The value that the kernel will get, over all files.
fn sysctls(site: &Site<'_>) -> Result<Vec<Check>, Problem> {
    let mut patterns: Vec<String> =
        SYSCTL_PLACES.iter().map(|place| format!("{place}/*.conf")).collect();
    patterns.push(SYSCTL_LAST.to_owned());
    let files = texts(site, &patterns)?;
    let wanted = site.plan.resources.iter().filter(|one| one.kind.name == "sysctl");
    Ok(wanted
        .map(|one| {
            effective_check(one, effective::sysctl(&files, &one.key), |actual| suits(one, actual))
        })
        .collect())
}

/// The value that sshd works with, over all included files.
fn sshd(site: &Site<'_>) -> Result<Vec<Check>, Problem> {
    // Without the daemon its settings mean nothing.
    if !site.root.exists(SSHD) && !site.root.exists("/usr/sbin/sshd") {
        return Ok(Vec::new());
    }
    let patterns = [SSHD, "/etc/ssh/sshd_config.d/*", "/usr/etc/ssh/sshd_config.d/*"];
    let files = texts(site, &patterns.map(str::to_owned))?;
    let wanted = site.plan.resources.iter().filter(|one| one.kind.name == "sshd");
    Ok(wanted
        .map(|one| {
            let value = one.text("value").unwrap_or_default();
            let same = |actual: &str| actual.split_whitespace().eq(value.split_whitespace());
            effective_check(one, effective::sshd(&files, &one.key), same)
        })
        .collect())
}

/// The value that sudo works with, over all included files.
fn sudo(site: &Site<'_>) -> Result<Vec<Check>, Problem> {
    if !site.root.exists(SUDO) {
        return Ok(Vec::new());
    }
    let files = texts(site, &[SUDO, "/etc/sudoers.d/*"].map(str::to_owned))?;
    let wanted = site.plan.resources.iter().filter(|one| one.kind.name == "sudo");
    Ok(wanted
        .map(|one| {
            let value = one.text("value").unwrap_or("on");
            let winner = effective::sudo(&files, &one.key);
            let check = effective_check(one, winner, |actual| actual == value);
            Check { expected: value.to_owned(), ..check }
        })
        .collect())
}

fn effective_check(
    one: &Resource,
    winner: Option<(&str, &str)>,
    holds: impl Fn(&str) -> bool,
) -> Check {
    let pass = winner.is_some_and(|(value, _)| holds(value));
    let (actual, remedy) = match winner {
        _ if pass => Default::default(),
        Some((value, path)) => {
            (format!("{value}, by {path}"), format!("take the line out of {path}"))
        }
        None => ("nothing".to_owned(), AGAIN.to_owned()),
    };
    Check {
        act: format!("effective-{}", one.kind.name),
        key: one.key.clone(),
        half: Half::Files,
        state: if pass { State::Pass } else { State::Fail },
        expected: effective::wanted_words(one),
        actual,
        from: vec![one.name()],
        rules: Vec::new(),
        remedy,
    }
}
