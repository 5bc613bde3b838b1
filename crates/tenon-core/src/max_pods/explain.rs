//! An answer for people and for programs: the chain of the formula, as text and as JSON.

use serde::Serialize;

use super::{Addressing, CapRule, InstanceType, Resolved, Terms};
use crate::plan::reserved;

/// The JSON Schema of [`json`], version 1.
pub static SCHEMA: &str = include_str!("schema.json");

/// One answer as JSON, keys in the documented order, with a final newline.
pub fn json(resolved: &Resolved<'_>) -> String {
    pretty(&Document::of(resolved))
}

/// Several answers as a JSON list.
pub fn json_list(resolved: &[Resolved<'_>]) -> String {
    pretty(&resolved.iter().map(Document::of).collect::<Vec<_>>())
}

fn pretty(value: &impl Serialize) -> String {
    // Numbers, text and lists of them: nothing that JSON cannot say.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    r#type: &'a str,
    pods: u32,
    mode: &'a str,
    addressing: &'a str,
    terms: Option<TermsJson>,
    cap: CapJson<'a>,
    alternatives: Option<AlternativesJson>,
    reserved: ReservedJson,
    instance: Option<InstanceJson<'a>>,
    notes: Vec<String>,
    source: SourceJson<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TermsJson {
    enis: u32,
    enis_total: Option<u32>,
    cards: Option<u32>,
    ipv4_per_eni: u32,
    used_enis: u32,
    custom_networking: bool,
    max_enis: u32,
    cni_version: Option<String>,
}

#[derive(Serialize)]
struct CapJson<'a> {
    kind: &'a str,
    applied: bool,
    limit: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AlternativesJson {
    plain: u32,
    recommended: u32,
    prefix: Option<u32>,
    prefix_uncapped: Option<u32>,
    custom_networking: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReservedJson {
    /// None when the number of CPUs is not known.
    cpu_millis: Option<u32>,
    memory_mib: u64,
    ephemeral_storage: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InstanceJson<'a> {
    arch: &'a str,
    virt: &'a str,
    vcpu: u32,
    memory_mib: u64,
    ipv6_per_eni: u32,
    accelerators: Vec<AcceleratorJson<'a>>,
    disks: Vec<DiskJson<'a>>,
    efa: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AcceleratorJson<'a> {
    kind: &'a str,
    count: u32,
    cores: u32,
    model: &'a str,
    memory_mib: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiskJson<'a> {
    count: u32,
    size_gb: u64,
    kind: &'a str,
}

#[derive(Serialize)]
struct SourceJson<'a> {
    kind: &'a str,
    date: &'a str,
    version: &'a str,
}

impl<'a> Document<'a> {
    fn of(resolved: &Resolved<'a>) -> Self {
        let source = resolved.source;
        Document {
            r#type: resolved.instance_type,
            pods: resolved.pods,
            mode: resolved.mode,
            addressing: resolved.addressing.name(),
            terms: resolved.terms.as_ref().map(terms_json),
            cap: CapJson {
                kind: resolved.cap.rule.name(),
                applied: resolved.cap.applied,
                limit: resolved.cap.limit,
            },
            alternatives: resolved.alternatives.as_ref().map(|other| AlternativesJson {
                plain: other.plain,
                recommended: other.recommended,
                prefix: other.prefix,
                prefix_uncapped: other.prefix_uncapped,
                custom_networking: other.custom_networking,
            }),
            reserved: ReservedJson {
                cpu_millis: resolved.cpus().map(reserved::cpu_millis),
                memory_mib: reserved::memory_mib(resolved.pods),
                ephemeral_storage: reserved::EPHEMERAL_STORAGE,
            },
            instance: resolved.row.as_ref().map(instance_json),
            notes: all_notes(resolved),
            source: SourceJson { kind: source.kind, date: source.date, version: source.version },
        }
    }
}

fn terms_json(terms: &Terms) -> TermsJson {
    TermsJson {
        enis: terms.enis,
        enis_total: terms.enis_total,
        cards: terms.cards,
        ipv4_per_eni: terms.ipv4_per_eni,
        used_enis: terms.used_enis,
        custom_networking: terms.custom_networking,
        max_enis: terms.max_enis,
        cni_version: terms.cni_version.map(|version| version.to_string()),
    }
}

fn instance_json<'a>(row: &InstanceType<'a>) -> InstanceJson<'a> {
    let accelerators = row.accelerators().map(|accelerator| AcceleratorJson {
        kind: accelerator.kind.name(),
        count: accelerator.count,
        cores: accelerator.cores,
        model: accelerator.model,
        memory_mib: accelerator.memory_mib,
    });
    let disks = row.disks().map(|disks| DiskJson {
        count: disks.count,
        size_gb: disks.size_gb,
        kind: disks.kind.name(),
    });
    InstanceJson {
        arch: row.arch.name(),
        virt: row.virt.name(),
        vcpu: row.vcpu,
        memory_mib: row.memory_mib,
        ipv6_per_eni: row.ipv6_per_eni,
        accelerators: accelerators.collect(),
        disks: disks.collect(),
        efa: row.efa,
    }
}

/// Notes about the row, then what the warnings say.
pub(super) fn all_notes(resolved: &Resolved<'_>) -> Vec<String> {
    let warnings = resolved.warnings.iter().map(|warning| warning.what.clone());
    resolved.notes.iter().cloned().chain(warnings).collect()
}

/// The chain as lines of text, with a final newline.
pub fn text(resolved: &Resolved<'_>) -> String {
    let name =
        if resolved.instance_type.is_empty() { "this machine" } else { resolved.instance_type };
    let mut lines = vec![format!("{name}   {} pods", resolved.pods)];
    match &resolved.terms {
        Some(terms) => lines.extend(term_lines(resolved, terms)),
        None => lines.push(line("mode", "default", "the instance type is not known")),
    }
    if resolved.mode != "eni" {
        lines.push(line("result", resolved.mode, &format!("{} pods", resolved.pods)));
    }
    lines.push(reserved_line(resolved));
    lines.extend(otherwise_line(resolved));
    lines.push(source_line(resolved));
    lines.extend(all_notes(resolved).iter().map(|note| format!("  {:<15}{note}", "note")));
    lines.join("\n") + "\n"
}

fn line(label: &str, value: &str, why: &str) -> String {
    format!("  {label:<15}{value:<22}{why}").trim_end().to_owned()
}

fn number_line(label: &str, number: u32, why: &str) -> String {
    format!("  {label:<13}{number:>3}      {why}")
}

fn term_lines(resolved: &Resolved<'_>, terms: &Terms) -> Vec<String> {
    let mut lines = vec![number_line("interfaces", terms.enis, &cards(terms))];
    if terms.used_enis != terms.enis {
        lines.push(number_line("in use", terms.used_enis, &why_fewer(terms)));
    }
    let usable = terms.ipv4_per_eni.saturating_sub(1);
    let addresses = format!("IPv4 per interface, {usable} usable for pods");
    lines.push(number_line("addresses", terms.ipv4_per_eni, &addresses));
    let (addressing, formula) = (resolved.addressing, formula(resolved, terms));
    lines.push(line("mode", addressing.name(), &formula));
    lines.push(line("cap", &cap_name(resolved.cap.rule), &cap_effect(resolved, terms)));
    lines
}

fn cards(terms: &Terms) -> String {
    match (terms.cards, terms.enis_total) {
        (Some(cards), Some(total)) if cards > 1 => format!(
            "default network card ({total} over {cards} cards; other cards do not carry pods)"
        ),
        _ => "default network card".to_owned(),
    }
}

fn why_fewer(terms: &Terms) -> String {
    let mut reasons = Vec::new();
    if terms.max_enis > 0 && terms.max_enis < terms.enis {
        reasons.push(format!("at most {} by max ENIs", terms.max_enis));
    }
    if terms.custom_networking {
        reasons.push("one less for custom networking".to_owned());
    }
    reasons.join(", ")
}

fn formula(resolved: &Resolved<'_>, terms: &Terms) -> String {
    let (enis, ips, pods) = (terms.used_enis, terms.ipv4_per_eni, resolved.uncapped);
    match resolved.addressing {
        Addressing::Secondary => format!("{enis} * ({ips} - 1) + 2 = {pods}"),
        Addressing::Prefix => format!("{enis} * ({ips} - 1) * 16 + 2 = {pods}"),
        Addressing::Ipv6Prefix => {
            format!("{enis} * ({ips} - 1) * 16 + 2 = {pods}; one /80 prefix exceeds any node")
        }
        Addressing::Other => format!("addresses are not counted, {pods} by vCPU"),
        Addressing::Unknown => String::new(),
    }
}

fn cap_name(rule: CapRule) -> String {
    match rule {
        CapRule::At(limit) => limit.to_string(),
        other => other.name().to_owned(),
    }
}

fn cap_effect(resolved: &Resolved<'_>, terms: &Terms) -> String {
    let sign = if terms.vcpu > 30 { "> 30" } else { "<= 30" };
    let by = match resolved.cap.rule {
        CapRule::At(_) => String::new(),
        _ => format!("{} vCPU {sign}, ", terms.vcpu),
    };
    match (resolved.cap.limit, resolved.cap.applied) {
        (Some(limit), true) => format!("{by}cap {limit} applies (was {})", resolved.uncapped),
        (Some(limit), false) => format!("{by}cap {limit} is not reached"),
        (None, _) if resolved.cap.rule == CapRule::Auto => {
            "no cap without prefix delegation".to_owned()
        }
        (None, _) => "no cap".to_owned(),
    }
}

fn reserved_line(resolved: &Resolved<'_>) -> String {
    let pods = resolved.pods;
    let mib = reserved::memory_mib(pods);
    let cpu = resolved.cpus().map(|cpus| format!("cpu {}m, ", reserved::cpu_millis(cpus)));
    let share = resolved.memory_mib().filter(|memory| *memory > 0).map(|memory| {
        let permille = u128::from(mib) * 1000 / u128::from(memory);
        format!(", {}.{} % of {memory} MiB", permille / 10, permille % 10)
    });
    let machine = resolved.machine.map(|machine| format!(" ({} CPUs online)", machine.cpus));
    let (cpu, share) = (cpu.unwrap_or_default(), share.unwrap_or_default());
    let machine = machine.unwrap_or_default();
    format!("  {:<15}{cpu}memory {mib}Mi (255 + 11 * {pods}){share}{machine}", "reserved")
}

fn otherwise_line(resolved: &Resolved<'_>) -> Option<String> {
    let other = resolved.alternatives?;
    let mut parts = vec![format!("cap auto {}", other.plain)];
    if resolved.cap.rule != CapRule::Always {
        parts.push(format!("recommended {}", other.recommended));
    }
    parts.push(match (other.prefix, other.prefix_uncapped) {
        (Some(capped), Some(uncapped)) => {
            format!("prefix delegation {capped} (uncapped {uncapped})")
        }
        _ => "prefix delegation not possible".to_owned(),
    });
    parts.push(format!("custom networking {}", other.custom_networking));
    Some(format!("  {:<15}{}", "otherwise", parts.join(" | ")))
}

fn source_line(resolved: &Resolved<'_>) -> String {
    let source = resolved.source;
    let words: Vec<&str> =
        [source.date, source.version].into_iter().filter(|word| !word.is_empty()).collect();
    format!("  {:<15}{} {}", "source", source.kind, words.join(", ")).trim_end().to_owned()
}
