//! How many pods a machine may run, and why.
//!
//! ```text
//! question   network settings, mode, cap: from the config or from the command line
//! subject    an instance type and what is known about it (instances: the table)
//! addressing how pods get their addresses, or why they cannot
//! formula    the arithmetic
//! explain    the answer as text and as JSON (list: many answers as a table, CSV or map)
//! notes      what a reader should know about a row
//! names      patterns and nearest names
//! ```
//!
//! One function, [`answer`], serves the plan, `tenon max-pods` and the checks: two code paths
//! with two answers is the bug that this room removes.

mod addressing;
mod explain;
mod formula;
pub mod instances;
mod list;
mod names;
mod notes;
mod question;
mod subject;

pub use addressing::Addressing;
pub use explain::{SCHEMA, json, json_list, text};
pub use formula::{DEFAULT_PODS, plain};
pub use instances::{
    Accelerator, AcceleratorKind, Arch, DiskKind, Head, InstanceType, LocalDisks, Origin, Table,
    TableError, Virt, find,
};
pub use list::{Sort, csv, map, sort, table};
pub use names::{Pattern, is_pattern, nearest_types};
pub use question::{CapRule, Cni, CniVersion, IpFamily, MetalPrefix, Network, Prefix, Question};
pub use subject::{Limits, Source, Subject};

use crate::codes;
use crate::config::{self, MaxPodsMode, OnUnknown};
use crate::expression::{self, ExpressionError, Variables};
use crate::facts::InstanceLimits;
use crate::problem::{Place, Problem};

/// A pod limit with the chain that leads to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved<'a> {
    /// Empty without a platform.
    pub instance_type: &'a str,
    /// The mode's result.
    pub pods: u32,
    /// The plain formula; None when the type is not known.
    pub std: Option<u32>,
    /// False when the limit rests on the default of 110; the warning must stay visible.
    pub known: bool,
    /// `eni`, `fixed`, `min`, `expression`
    pub mode: &'static str,
    pub addressing: Addressing,
    pub terms: Option<Terms>,
    /// The addressing's result before the cap.
    pub uncapped: u32,
    pub cap: Capped,
    pub alternatives: Option<Alternatives>,
    /// Everything known about the type.
    pub row: Option<InstanceType<'a>>,
    /// What a real machine of the type has, when one was asked; it wins over the table.
    pub machine: Option<Machine>,
    pub notes: Vec<String>,
    pub warnings: Vec<Problem>,
    pub source: Source<'a>,
}

/// CPUs and memory of one machine. CPU options can switch threads off, and the kernel reports
/// less memory than the type promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub cpus: u32,
    pub memory_mib: u64,
}

impl Resolved<'_> {
    /// CPUs that the reservation is made for; None when nobody knows them.
    pub fn cpus(&self) -> Option<u32> {
        let by_type = self.terms.map(|terms| terms.vcpu);
        self.machine.map(|machine| machine.cpus).or(by_type)
    }

    /// Memory that the reservation is compared with; None when nobody knows it.
    pub fn memory_mib(&self) -> Option<u64> {
        let by_type = self.row.map(|row| row.memory_mib);
        self.machine.map(|machine| machine.memory_mib).or(by_type)
    }
}

/// The numbers of the formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub enis: u32,
    pub enis_total: Option<u32>,
    pub cards: Option<u32>,
    pub ipv4_per_eni: u32,
    pub used_enis: u32,
    pub vcpu: u32,
    pub custom_networking: bool,
    pub max_enis: u32,
    pub cni_version: Option<CniVersion>,
}

/// What the cap did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capped {
    pub rule: CapRule,
    pub applied: bool,
    /// The number that was compared with; None when the rule does not bind here.
    pub limit: Option<u32>,
}

/// What other settings would give for the same type and the same `max_enis`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alternatives {
    pub plain: u32,
    pub recommended: u32,
    /// None where prefix delegation is not possible.
    pub prefix: Option<u32>,
    pub prefix_uncapped: Option<u32>,
    pub custom_networking: u32,
}

/// Resolves the wish of a config on an instance type, as the plan does. `limits` come from the
/// facts and count for types that the table does not know.
pub fn resolve<'a>(
    wish: &config::MaxPods,
    instance_type: &'a str,
    limits: Option<InstanceLimits>,
) -> Result<Resolved<'a>, Problem> {
    answer(&Question::from(wish), &Subject::find(instance_type, &[], limits))
}

/// Answers a question about a subject.
pub fn answer<'a>(question: &Question, subject: &Subject<'a>) -> Result<Resolved<'a>, Problem> {
    match subject {
        Subject::Known(limits) => known(question, limits),
        Subject::Unknown(name) => unknown(question, name),
        Subject::NoPlatform => Ok(without_type(question, "")),
    }
}

fn known<'a>(question: &Question, limits: &Limits<'a>) -> Result<Resolved<'a>, Problem> {
    let network = &question.network;
    let mut notes = notes::about(limits);
    let addressing = addressing::choose(network, limits, &mut notes)?;
    let used_enis = formula::used_enis(limits.enis, network);
    let uncapped = uncapped(addressing, used_enis, limits);
    let cap = cap(question.cap, addressing, limits.vcpu, uncapped);
    let eni = cap.limit.map_or(uncapped, |limit| match addressing {
        // One prefix holds more addresses than any node has pods: the cap decides alone.
        Addressing::Ipv6Prefix => limit,
        _ => uncapped.min(limit),
    });
    let std = formula::plain(limits.enis, limits.ipv4_per_eni);
    let mut warnings = Vec::new();
    let pods = by_mode(&question.mode, eni, std, limits, &mut warnings)?;
    if addressing != Addressing::Other && used_enis == 0 {
        let what = format!("no address is left for ordinary pods on {}", limits.name);
        warnings.push(Problem::new(&codes::max_pods::NO_POD_ADDRESSES, what));
    }
    Ok(Resolved {
        instance_type: limits.name,
        pods,
        std: Some(std),
        known: true,
        mode: mode_name(&question.mode),
        addressing,
        terms: Some(terms(network, limits, used_enis)),
        uncapped,
        cap,
        alternatives: Some(alternatives(network, limits)),
        row: limits.row,
        machine: None,
        notes,
        warnings,
        source: limits.source,
    })
}

/// What the mode makes of the addressing's result.
fn by_mode(
    mode: &MaxPodsMode,
    eni: u32,
    std: u32,
    limits: &Limits<'_>,
    warnings: &mut Vec<Problem>,
) -> Result<u32, Problem> {
    match mode {
        MaxPodsMode::Eni => Ok(eni),
        MaxPodsMode::Fixed(value) => Ok(*value),
        MaxPodsMode::Min(value) => Ok(eni.min(*value)),
        MaxPodsMode::Expression { text, lenient } => match compute(text, *lenient, std, limits) {
            Ok(pods) => Ok(pods),
            Err(error) if *lenient => {
                warnings.push(bad_expression(&error).cause(format!("{std} pods are used instead")));
                Ok(std)
            }
            Err(error) => Err(bad_expression(&error)),
        },
    }
}

/// `min` and `max` are ours, so a document of the compatibility kind may not use them.
fn compute(
    text: &str,
    lenient: bool,
    std: u32,
    limits: &Limits<'_>,
) -> Result<u32, ExpressionError> {
    let variables = Variables {
        default_enis: limits.enis.into(),
        ips_per_eni: limits.ipv4_per_eni.into(),
        max_pods: std.into(),
    };
    let parsed = expression::parse(text, !lenient)?;
    let pods = expression::eval(&parsed, &variables)?;
    // The evaluator's range fits.
    Ok(u32::try_from(pods).unwrap_or(u32::MAX))
}

/// The problem with an expression, wherever it is found.
pub fn bad_expression(error: &ExpressionError) -> Problem {
    Problem::new(&codes::max_pods::BAD_EXPRESSION, "the pod limit's expression does not work out")
        .at(Place::field("spec.kubelet.maxPods.expression"))
        .cause(error)
}

fn mode_name(mode: &MaxPodsMode) -> &'static str {
    match mode {
        MaxPodsMode::Eni => "eni",
        MaxPodsMode::Fixed(_) => "fixed",
        MaxPodsMode::Min(_) => "min",
        MaxPodsMode::Expression { .. } => "expression",
    }
}

fn uncapped(addressing: Addressing, used_enis: u32, limits: &Limits<'_>) -> u32 {
    match addressing {
        Addressing::Prefix | Addressing::Ipv6Prefix => {
            formula::prefix(used_enis, limits.ipv4_per_eni)
        }
        Addressing::Other => formula::cap_by_vcpu(limits.vcpu),
        Addressing::Secondary | Addressing::Unknown => {
            formula::secondary(used_enis, limits.ipv4_per_eni)
        }
    }
}

fn cap(rule: CapRule, addressing: Addressing, vcpu: u32, uncapped: u32) -> Capped {
    let prefixes = matches!(addressing, Addressing::Prefix | Addressing::Ipv6Prefix);
    let limit = match rule {
        CapRule::None => None,
        CapRule::At(limit) => Some(limit),
        CapRule::Always => Some(formula::cap_by_vcpu(vcpu)),
        CapRule::Auto => prefixes.then(|| formula::cap_by_vcpu(vcpu)),
    };
    let applied = limit.is_some_and(|limit| limit < uncapped);
    Capped { rule, applied, limit }
}

fn terms(network: &Network, limits: &Limits<'_>, used_enis: u32) -> Terms {
    let cni_version = match network.cni {
        Cni::Vpc(version) => version,
        Cni::Other => None,
    };
    Terms {
        enis: limits.enis,
        enis_total: limits.row.map(|row| row.enis_total),
        cards: limits.row.map(|row| row.cards),
        ipv4_per_eni: limits.ipv4_per_eni,
        used_enis,
        vcpu: limits.vcpu,
        custom_networking: network.custom_networking,
        max_enis: network.max_enis,
        cni_version,
    }
}

fn alternatives(network: &Network, limits: &Limits<'_>) -> Alternatives {
    let used = |custom_networking| {
        formula::used_enis(limits.enis, &Network { custom_networking, ..*network })
    };
    let plain = formula::secondary(used(false), limits.ipv4_per_eni);
    let limit = formula::cap_by_vcpu(limits.vcpu);
    let possible = addressing::prefix_obstacle(None, network.metal, limits).is_none();
    let prefix = possible.then(|| formula::prefix(used(false), limits.ipv4_per_eni));
    Alternatives {
        plain,
        recommended: plain.min(limit),
        prefix: prefix.map(|pods| pods.min(limit)),
        prefix_uncapped: prefix,
        custom_networking: formula::secondary(used(true), limits.ipv4_per_eni),
    }
}

/// A type that nobody knows: refused, or the default with a warning that stays.
fn unknown<'a>(question: &Question, name: &'a str) -> Result<Resolved<'a>, Problem> {
    if let MaxPodsMode::Fixed(_) = question.mode {
        return Ok(without_type(question, name));
    }
    let near = nearest_types(name, Table::embedded()).join(", ");
    let what = format!("unknown instance type {name}");
    let problem = Problem::new(&codes::max_pods::UNKNOWN_INSTANCE_TYPE, what)
        .details([format!("the nearest known types: {near}")]);
    if question.on_unknown == OnUnknown::Refuse {
        return Err(problem);
    }
    let mut resolved = without_type(question, name);
    resolved.known = false;
    let cause = format!("{} pods are used instead", resolved.pods);
    resolved.warnings.insert(0, problem.cause(cause));
    Ok(resolved)
}

/// The default, bent by what the mode and the cap say without a type.
fn without_type<'a>(question: &Question, name: &'a str) -> Resolved<'a> {
    let limit = match question.cap {
        CapRule::At(limit) => Some(limit),
        CapRule::Auto | CapRule::None | CapRule::Always => None,
    };
    let eni = limit.map_or(DEFAULT_PODS, |limit| limit.min(DEFAULT_PODS));
    let pods = match question.mode {
        MaxPodsMode::Fixed(value) => value,
        MaxPodsMode::Min(value) => eni.min(value),
        MaxPodsMode::Eni | MaxPodsMode::Expression { .. } => eni,
    };
    let mut warnings = Vec::new();
    if let MaxPodsMode::Expression { .. } = question.mode {
        let what = "the pod limit's expression was not computed";
        let problem = Problem::new(&codes::max_pods::EXPRESSION_UNUSED, what)
            .cause(format!("{pods} pods are used instead"));
        warnings.push(problem);
    }
    Resolved {
        instance_type: name,
        pods,
        std: None,
        known: true,
        mode: mode_name(&question.mode),
        addressing: Addressing::Unknown,
        terms: None,
        uncapped: DEFAULT_PODS,
        cap: Capped { rule: question.cap, applied: eni < DEFAULT_PODS, limit },
        alternatives: None,
        row: None,
        machine: None,
        notes: Vec::new(),
        warnings,
        source: Source::DEFAULT,
    }
}

#[cfg(test)]
mod tests;
