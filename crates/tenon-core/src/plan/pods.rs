//! The pod limit in effect, and the memory that follows from it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Draft, kubelet_args, reserved};
use crate::codes;
use crate::config::{Basis, Config};
use crate::facts::Facts;
use crate::max_pods::{self, Resolved};
use crate::problem::{Finding, Place, Problem};

const MIB: u64 = 1 << 20;

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

fn computed(config: &Config, facts: &Facts, draft: &mut Draft) -> Option<u32> {
    let place = Place::field("spec.kubelet.maxPods");
    let instance = &facts.instance;
    let wish = &config.kubelet.max_pods;
    let resolved = max_pods::resolve(wish, &instance.instance_type, instance.limits);
    let resolved = draft.keep(resolved.map_err(|problem| problem.at(place.clone())))?;
    let warnings = resolved.warnings.iter().cloned();
    draft.findings.extend(warnings.map(|problem| Finding::warning(problem.at(place.clone()))));
    explain(&resolved, draft);
    Some(resolved.pods)
}

fn explain(resolved: &Resolved, draft: &mut Draft) {
    draft.reason("maxPods", "default", "formula interfaces * (addresses - 1) + 2");
    let found = match resolved.terms {
        Some(terms) => format!(
            "{}: {} interfaces, {} addresses, {} -> {}",
            resolved.instance_type,
            terms.used_enis,
            terms.ipv4_per_eni,
            resolved.addressing.name(),
            resolved.uncapped
        ),
        None => format!("instance type not known -> {}", resolved.uncapped),
    };
    draft.reason("maxPods", "facts", found);
    if let Some(limit) = resolved.cap.limit.filter(|_| resolved.cap.applied) {
        draft.reason("maxPods", "config", format!("cap {limit}"));
    }
    draft.reason("maxPods", "config", format!("mode {} -> {}", resolved.mode, resolved.pods));
}

fn effective(config: &Config, arguments: &[String], computed: u32, draft: &mut Draft) -> u32 {
    let in_config = config.kubelet.config.get("maxPods").and_then(Value::as_u64);
    let in_config = in_config.and_then(|value| u32::try_from(value).ok());
    let in_flags = kubelet_args::value_of(arguments, "max-pods").and_then(|text| text.parse().ok());
    let shown = |value: Option<u32>| value.map_or("not set".to_owned(), |value| value.to_string());
    draft.reason("maxPods", "config", format!("kubelet.config.maxPods: {}", shown(in_config)));
    draft.reason("maxPods", "flags", format!("--max-pods: {}", shown(in_flags)));
    let effective = in_flags.or(in_config).unwrap_or(computed);
    draft.reason("maxPods", "effect", format!("the kubelet's limit is {effective}"));
    effective
}

/// Refuses a reservation that leaves the pods too little.
fn check_memory(config: &Config, facts: &Facts, pods: u32, draft: &mut Draft) {
    let wanted = wanted_memory_mib(config);
    let mib = wanted.unwrap_or_else(|| reserved::memory_mib(pods));
    let source = match wanted {
        Some(_) => format!("the config asks for {mib}Mi"),
        None => format!("11 * {pods} + 255 = {mib}Mi"),
    };
    draft.reason("kubeReserved.memory", "default", "11 MiB per pod and 255 MiB");
    draft.reason("kubeReserved.memory", "effect", source);
    let machine_mib = facts.machine.online_memory_bytes / MIB;
    draft.findings.extend(reserved::check_memory(mib, machine_mib).map(|mut finding| {
        finding.problem.place = Some(Place::field("spec.kubelet.maxPods"));
        finding
    }));
}

/// The user's own figure, the drop-in's before ours.
fn wanted_memory_mib(config: &Config) -> Option<u64> {
    let kubelet = &config.kubelet;
    let in_drop_in = kubelet.config.get("kubeReserved").and_then(|map| map.get("memory"));
    let text = in_drop_in
        .and_then(Value::as_str)
        .or_else(|| kubelet.reserved.kube.get("memory").map(String::as_str))?;
    quantity_bytes(text).map(|bytes| bytes / MIB)
}

/// A Kubernetes quantity of bytes: a decimal number with or without a suffix.
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
    let number = text.strip_suffix(suffix)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits =
        |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?;
    let (whole, parts): (u64, u64) = (digits(whole)?, digits(fraction)?);
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let rest = u128::from(parts) * u128::from(*unit) / u128::from(scale);
    whole.checked_mul(*unit)?.checked_add(u64::try_from(rest).ok()?)
}

/// The kubelet's own share, with the user's figures in place of single ones.
pub(crate) fn kube_reserved(
    config: &Config,
    facts: &Facts,
    pods: Pods,
) -> BTreeMap<String, String> {
    let ours = [
        ("cpu", format!("{}m", reserved::cpu_millis(facts.machine.online_cpus))),
        ("ephemeral-storage", reserved::EPHEMERAL_STORAGE.to_owned()),
        ("memory", format!("{}Mi", reserved::memory_mib(pods.reserved_for))),
    ];
    let ours = ours.into_iter().map(|(key, value)| (key.to_owned(), value));
    ours.chain(config.kubelet.reserved.kube.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use crate::config::{Flag, MaxPodsMode};
    use serde_json::json;

    fn resolved(change: impl FnOnce(&mut Config, &mut Facts)) -> (Option<Pods>, Draft) {
        let (mut config, mut facts) = (fixture::config(), fixture::facts());
        change(&mut config, &mut facts);
        let arguments = kubelet_args::seen(&config.kubelet.flags);
        let mut draft = Draft::default();
        (resolve(&config, &facts, &arguments, &mut draft), draft)
    }

    fn slugs(draft: &Draft) -> Vec<&'static str> {
        draft.findings.iter().map(|finding| finding.problem.page.slug).collect()
    }

    #[test]
    fn the_last_word_is_the_flag() {
        let flag = Flag { text: "--max-pods=17".into(), verbatim: false };
        let in_config = |config: &mut Config| {
            config.kubelet.config.insert("maxPods".into(), json!(20));
        };
        let (pods, draft) = resolved(|config, _| in_config(config));
        assert_eq!(pods, Some(Pods { computed: 29, effective: 20, reserved_for: 20 }));
        assert_eq!(slugs(&draft), ["pod-limits-differ"]);
        let (pods, _) = resolved(|config, _| {
            in_config(config);
            config.kubelet.flags.push(flag);
            config.kubelet.reserved.basis = Basis::Computed;
        });
        assert_eq!(pods, Some(Pods { computed: 29, effective: 17, reserved_for: 29 }));
    }

    #[test]
    fn every_link_of_the_chain_is_told() {
        let (_, draft) = resolved(|_, _| ());
        let told: Vec<String> = draft.reasons["maxPods"]
            .iter()
            .map(|reason| format!("{}: {}", reason.rank, reason.text))
            .collect();
        let expected = [
            "default: formula interfaces * (addresses - 1) + 2",
            "facts: m5.large: 3 interfaces, 10 addresses, secondary addresses -> 29",
            "config: mode eni -> 29",
            "config: kubelet.config.maxPods: not set",
            "flags: --max-pods: not set",
            "effect: the kubelet's limit is 29",
        ];
        assert_eq!(told, expected);
        let memory = draft.reasons["kubeReserved.memory"].last().unwrap();
        assert_eq!(memory.text, "11 * 29 + 255 = 574Mi");
    }

    #[test]
    fn fault_81_memory_decides() {
        // 8192 MiB: half is 4096 (349 pods), three quarters 6144 (535 pods).
        let cases = [(349, None), (350, Some(false)), (535, Some(false)), (536, Some(true))];
        for (pods, expected) in cases {
            let (_, draft) = resolved(|config, _| {
                config.kubelet.max_pods.mode = MaxPodsMode::Fixed(pods);
            });
            let found = draft.findings.first().map(|finding| finding.stops(true));
            assert_eq!(found, expected, "{pods} pods");
        }
        let (_, draft) = resolved(|config, _| {
            config.kubelet.max_pods.mode = MaxPodsMode::Fixed(700);
            config.kubelet.reserved.kube.insert("memory".into(), "1Gi".into());
        });
        assert_eq!(slugs(&draft), Vec::<&str>::new(), "the user's figure counts");
    }

    #[test]
    fn fault_80_an_unknown_type_has_a_lasting_warning() {
        let (pods, draft) = resolved(|_, facts| {
            facts.instance.instance_type = "zz9.large".into();
            facts.instance.limits = None;
        });
        assert_eq!(pods.unwrap().computed, 110);
        assert_eq!(slugs(&draft), ["unknown-instance-type"]);
    }

    #[test]
    fn quantities_have_their_units() {
        let cases = [
            ("200Mi", Some(200 << 20)),
            ("1Gi", Some(1 << 30)),
            ("5k", Some(5000)),
            ("7", Some(7)),
            ("1.5Gi", Some(3 << 29)),
            ("0.25Gi", Some(1 << 28)),
            ("1.2.3Gi", None),
            ("-1Gi", None),
            (".Gi", None),
            ("", None),
            ("99999999999Ti", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(quantity_bytes(text), bytes, "{text}");
        }
    }
}
