//! The pod limit in effect, and the memory that follows from it.

use serde_json::Value;

use super::{Draft, kubelet_args};
use crate::codes;
use crate::config::{Basis, Config};
use crate::facts::Facts;
use crate::problem::{Finding, Place, Problem};

/// The pod limit before and after the user's last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pods {
    /// What the mode gives; written to `config.json`.
    pub computed: u32,
    /// What the kubelet ends up with.
    pub effective: u32,
    /// The limit that the memory reservation is made for.
    pub reserved_for: u32,
}

/// Decides the pod limit: the mode's result, then `kubelet.config.maxPods`, then `--max-pods`.
pub(crate) fn resolve(
    config: &Config,
    facts: &Facts,
    arguments: &[String],
    draft: &mut Draft,
) -> Option<Pods> {
    let computed = computed(config, facts, draft)?;
    let effective = effective(config, arguments, computed, draft);
    let reserved_for = match config.kubelet.reserved.basis {
        Basis::Computed => computed,
        Basis::Effective => effective,
    };
    if computed != effective {
        let what = format!("the pod limit is {effective}, the rule alone gives {computed}");
        let basis = format!("kubeReserved.memory is computed for {reserved_for} pods");
        let problem = Problem::new(&codes::plan::POD_LIMITS_DIFFER, what).cause(basis);
        draft.findings.push(Finding::warning(problem));
    }
    check_memory(config, facts, reserved_for, draft);
    Some(Pods { computed, effective, reserved_for })
}

fn effective(config: &Config, arguments: &[String], computed: u32, draft: &mut Draft) -> u32 {
    let in_config = config.kubelet.config.get("maxPods").and_then(Value::as_u64);
    let in_config = in_config.and_then(|value| u32::try_from(value).ok());
    let in_flags = kubelet_args::value_of(arguments, "max-pods").and_then(|text| text.parse().ok());
    let shown = |value: Option<u32>| value.map_or("not set".to_owned(), |value| format!("{value}"));
    draft.reason("maxPods", "config", format!("kubelet.config.maxPods: {}", shown(in_config)));
    draft.reason("maxPods", "flags", format!("--max-pods: {}", shown(in_flags)));
    let effective = in_flags.or(in_config).unwrap_or(computed);
    draft.reason("maxPods", "effect", format!("the kubelet's limit is {effective}"));
    effective
}

/// Refuses a reservation that leaves the pods too little: above three quarters of the machine's
/// memory it is an error, above half a warning.
fn check_memory(config: &Config, facts: &Facts, pods: u32, draft: &mut Draft) {
    let total_mib = facts.machine.online_memory_bytes / MIB;
    let reserved_mib = wanted_memory_mib(config).unwrap_or_else(|| memory_mib(pods));
    let source = match wanted_memory_mib(config) {
        Some(mib) => format!("the config asks for {mib}Mi"),
        None => format!("11 * {pods} + 255 = {reserved_mib}Mi"),
    };
    draft.reason("kubeReserved.memory", "default", "11 MiB per pod and 255 MiB");
    draft.reason("kubeReserved.memory", "effect", source);
    if total_mib == 0 || reserved_mib * 2 <= total_mib {
        return;
    }
    let what = format!("the kubelet would keep {reserved_mib} of {total_mib} MiB of memory");
    let problem = Problem::new(&codes::plan::MEMORY_RESERVED, what)
        .at(Place::field("spec.kubelet.maxPods"))
        .fix(memory_fix(total_mib));
    let class = if reserved_mib * 4 > total_mib * 3 { Finding::error } else { Finding::warning };
    draft.findings.push(class(problem));
}

fn memory_fix(total_mib: u64) -> String {
    match (total_mib * 3 / 4).saturating_sub(255) / 11 {
        0 => "set spec.kubelet.reserved.kube.memory, or take a larger instance".into(),
        most => format!(
            "lower the pod limit to at most {most}, or set spec.kubelet.reserved.kube.memory"
        ),
    }
}

const MIB: u64 = 1024 * 1024;

/// The user's own figure, the drop-in's before ours.
fn wanted_memory_mib(config: &Config) -> Option<u64> {
    let kubelet = &config.kubelet;
    let in_drop_in = kubelet.config.get("kubeReserved").and_then(|map| map.get("memory"));
    let text = in_drop_in
        .and_then(Value::as_str)
        .or_else(|| kubelet.reserved.kube.get("memory").map(String::as_str))?;
    quantity_bytes(text).map(|bytes| bytes / MIB)
}

/// A Kubernetes quantity of bytes, for whole numbers with or without a suffix.
fn quantity_bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 9] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("", 1),
    ];
    let (suffix, unit) = UNITS.iter().find(|(suffix, _)| text.ends_with(suffix))?;
    text.strip_suffix(suffix)?.parse::<u64>().ok()?.checked_mul(*unit)
}

/// The kubelet's own share, with the user's figures in place of single ones.
pub(crate) fn kube_reserved(config: &Config, facts: &Facts, pods: Pods) -> Vec<(String, String)> {
    let ours = [
        ("cpu", format!("{}m", cpu_millis(facts.machine.online_cpus))),
        ("ephemeral-storage", "1Gi".to_owned()),
        ("memory", format!("{}Mi", memory_mib(pods.reserved_for))),
    ];
    let mut reserved: std::collections::BTreeMap<String, String> =
        ours.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    reserved.extend(config.kubelet.reserved.kube.clone());
    reserved.into_iter().collect()
}

// SEAM until the tables land
fn computed(_config: &Config, facts: &Facts, draft: &mut Draft) -> Option<u32> {
    let limits = facts.instance.limits?;
    let n = limits.default_enis * (limits.ipv4_per_eni - 1) + 2;
    draft.reason("maxPods", "facts", format!("{n}"));
    Some(n)
}
fn memory_mib(pods: u32) -> u64 {
    255 + 11 * u64::from(pods)
}
fn cpu_millis(cpus: u32) -> u32 {
    60 + 10 * cpus.min(2).saturating_sub(1)
        + 5 * cpus.min(4).saturating_sub(2)
        + (5 * cpus.saturating_sub(4)) / 2
}
