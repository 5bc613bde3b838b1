//! `max_pods.map`: one line for each instance type, name and pod limit.

use std::collections::BTreeMap;

use super::{Job, PodMap};
use crate::codes::userdata as pages;
use crate::config::MaxPods;
use crate::max_pods::{self, Table};
use crate::problem::{Finding, Problem};
use crate::userdata::group::MaxPodsPolicy;

/// The map's text; None when the limit is fixed or no map is wanted.
pub(super) fn text(job: &Job, findings: &mut Vec<Finding>) -> Option<String> {
    let group = job.group;
    let fixed = group.max_pods.is_some() && group.max_pods_policy == MaxPodsPolicy::Fixed;
    if fixed {
        return None;
    }
    let names: Vec<&str> = match job.options.self_contained.map {
        PodMap::None => {
            missing(job, "without a map the pod limit must be fixed", "maxPodsPerNode", findings);
            return None;
        }
        PodMap::Full => Table::embedded().rows().map(|row| row.name).collect(),
        PodMap::Group => group.instance_types.iter().map(String::as_str).collect(),
    };
    if names.is_empty() && job.options.self_contained.fallback.is_none() {
        missing(job, "the group names no instance type and no pod limit", "instanceType", findings);
    }
    let rows: BTreeMap<_, _> =
        names.iter().filter_map(|name| Some((*name, limit(name)?))).collect();
    if job.options.self_contained.map == PodMap::Group
        && job.options.self_contained.fallback.is_none()
    {
        for (index, _) in names.iter().enumerate().filter(|(_, name)| !rows.contains_key(**name)) {
            let what = "the instance type is not in the table of pod limits";
            let place = group.at(&format!("instanceTypes[{index}]"));
            findings
                .push(Finding::error(Problem::new(&pages::UNKNOWN_INSTANCE_TYPE, what).at(place)));
        }
    }
    Some(rows.iter().map(|(name, pods)| format!("{name} {pods}\n")).collect())
}

fn missing(job: &Job, what: &str, field: &str, findings: &mut Vec<Finding>) {
    let problem = Problem::new(&pages::UNKNOWN_INSTANCE_TYPE, what).at(job.group.at(field));
    findings.push(Finding::error(problem.fix("set maxPodsPerNode, or name the instance types")));
}

fn limit(name: &str) -> Option<u32> {
    max_pods::find(name)?;
    max_pods::resolve(&MaxPods::default(), name, None).ok().map(|resolved| resolved.pods)
}
