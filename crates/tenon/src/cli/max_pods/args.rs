//! The arguments of `tenon max-pods`, and the question they ask.

use std::path::PathBuf;

use clap::ValueEnum;
use tenon_core::config::{MaxPodsMode, OnUnknown};
use tenon_core::max_pods::{
    CapRule, Cni, CniVersion, IpFamily, MetalPrefix, Network, Prefix, Question, Sort,
};

use crate::output::Format;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon max-pods m5.large
  tenon max-pods m5.large --prefix-delegation --explain
  tenon max-pods '{c,m}7g.*' --sort pods --output csv
  tenon max-pods --config node.yaml --facts facts.json")]
pub struct Args {
    /// Instance types or patterns: m5.large, 'm7i.*', '{c,m}7g.large'
    #[arg(value_name = "TYPE")]
    pub(super) types: Vec<String>,
    /// The same, several separated by commas
    #[arg(long, value_name = "TYPE,…")]
    pub(super) instance_type: Vec<String>,
    /// Ask about this machine
    #[arg(long, alias = "instance-type-from-imds")]
    #[arg(conflicts_with_all = ["types", "instance_type"])]
    pub(super) from_imds: bool,
    /// Answer what `plan` writes for this config on the machine asked about
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "types", "instance_type", "cni", "cni_version", "ip_family", "custom_networking",
        "prefix_delegation", "max_enis", "metal_prefix", "mode", "cap", "recommended",
        "show_max_allowed", "memory_share", "compat", "on_unknown", "table",
    ])]
    pub(super) config: Option<String>,

    /// Who hands out addresses: the VPC CNI or another one
    #[arg(long, value_enum, value_name = "vpc|none", default_value = "vpc")]
    cni: CniArg,
    /// Version of the VPC CNI; without it, a current one
    #[arg(long, value_name = "VERSION", value_parser = cni_version)]
    cni_version: Option<CniVersion>,
    /// Address family of the cluster
    #[arg(long, value_enum, value_name = "ipv4|ipv6", default_value = "ipv4")]
    ip_family: FamilyArg,
    /// Pods use other subnets than the node; costs one interface
    #[arg(long, alias = "cni-custom-networking-enabled")]
    custom_networking: bool,
    /// Give /28 prefixes to interfaces; `auto`: where it is possible
    #[arg(long, alias = "cni-prefix-delegation-enabled", value_enum, value_name = "auto")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    prefix_delegation: Option<PrefixArg>,
    /// Most interfaces that the CNI may use; 0 for no limit
    #[arg(long, aliases = ["cni-max-eni", "cni-max-enis"], value_name = "N", default_value_t = 0)]
    max_enis: u32,
    /// Prefix delegation on bare metal
    #[arg(long, value_enum, value_name = "allow|deny", default_value = "allow")]
    metal_prefix: MetalArg,

    /// What decides: addresses, a number, the smaller of both, an expression
    #[arg(long, value_enum, value_name = "MODE", default_value = "eni")]
    mode: ModeArg,
    /// The number of modes fixed and min
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(required_if_eq_any = [("mode", "fixed"), ("mode", "min")])]
    #[arg(conflicts_with = "expression")]
    value: Option<u32>,
    /// The text of mode expression
    #[arg(long, value_name = "TEXT", required_if_eq("mode", "expression"))]
    expression: Option<String>,
    /// auto, none or a number
    #[arg(long, value_name = "CAP", value_parser = cap, default_value = "auto")]
    #[arg(conflicts_with_all = ["recommended", "show_max_allowed", "compat"])]
    cap: CapRule,
    /// Cap at 110 or 250 in every mode
    #[arg(long, conflicts_with_all = ["show_max_allowed", "compat"])]
    recommended: bool,
    /// The same as --cap none
    #[arg(long)]
    show_max_allowed: bool,
    /// Advice: the largest limit whose reservation stays within this share
    #[arg(long, value_name = "SHARE", value_parser = share)]
    #[arg(conflicts_with_all = ["value", "expression"])]
    pub(super) memory_share: Option<f64>,
    /// Answer as an older tool does
    #[arg(long, value_enum, value_name = "TOOL")]
    compat: Option<CompatArg>,

    /// An unknown type: refuse, or 110 with a warning
    #[arg(long, value_enum, value_name = "refuse|default", default_value = "refuse")]
    on_unknown: UnknownArg,
    /// A table with further types
    #[arg(long, value_name = "FILE")]
    pub(super) table: Vec<PathBuf>,
    /// Ask EC2 about a type that no table knows
    #[arg(long, value_enum, value_name = "never|ifNeeded", default_value = "never")]
    pub(super) aws_api: AwsApiArg,

    /// Show the chain of the formula
    #[arg(long)]
    pub(super) explain: bool,
    /// How to print the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(super) output: Format,
    /// Order of a list
    #[arg(long, value_enum, value_name = "COLUMN", default_value = "name")]
    sort: SortArg,
    /// Only types with a GPU
    #[arg(long)]
    pub(super) gpu: bool,
    /// Only types of this architecture
    #[arg(long, value_enum, value_name = "x86_64|arm64")]
    pub(super) arch: Option<ArchArg>,
    /// Only types with local disks
    #[arg(long)]
    pub(super) local_disks: bool,
    /// Only types with EFA
    #[arg(long)]
    pub(super) efa: bool,
    /// Say where the embedded table comes from
    #[arg(long)]
    pub(super) table_info: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum CniArg {
    Vpc,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum FamilyArg {
    Ipv4,
    Ipv6,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum PrefixArg {
    #[value(aliases = ["true"])]
    On,
    Auto,
    #[value(aliases = ["false"])]
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum MetalArg {
    Allow,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum ModeArg {
    Eni,
    Fixed,
    Min,
    Expression,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum CompatArg {
    /// The retired max-pods-calculator.sh
    Calculator,
    Nodeadm,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum UnknownArg {
    Refuse,
    Default,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum AwsApiArg {
    Never,
    #[value(name = "ifNeeded")]
    IfNeeded,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum SortArg {
    Name,
    Pods,
    Vcpu,
    Memory,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub(super) enum ArchArg {
    #[value(name = "x86_64")]
    X86_64,
    Arm64,
}

impl Args {
    /// The question, or two flags that do not go together.
    pub(super) fn question(&self) -> Result<Question, String> {
        self.refuse_conflicts()?;
        Ok(Question {
            network: self.network(),
            mode: self.mode(),
            cap: self.cap_rule(),
            on_unknown: match self.on_unknown {
                UnknownArg::Refuse => OnUnknown::Refuse,
                UnknownArg::Default => OnUnknown::UseDefault,
            },
        })
    }

    /// Conflicts that depend on a flag's value, which the parser cannot say.
    fn refuse_conflicts(&self) -> Result<(), String> {
        let other_cni = self.cni == CniArg::None;
        let prefix = !matches!(self.prefix_delegation, None | Some(PrefixArg::Off));
        let number_mode = matches!(self.mode, ModeArg::Fixed | ModeArg::Min);
        let conflicts = [
            (other_cni && prefix, "--cni none", "--prefix-delegation"),
            (other_cni && self.custom_networking, "--cni none", "--custom-networking"),
            (other_cni && self.max_enis > 0, "--cni none", "--max-enis"),
            (other_cni && self.cni_version.is_some(), "--cni none", "--cni-version"),
            (self.value.is_some() && !number_mode, "--value", "a --mode other than fixed or min"),
            (
                self.expression.is_some() && self.mode != ModeArg::Expression,
                "--expression",
                "a --mode other than expression",
            ),
            (
                self.memory_share.is_some() && self.mode != ModeArg::Eni,
                "--memory-share",
                "a --mode other than eni",
            ),
            (
                self.show_max_allowed && self.compat == Some(CompatArg::Nodeadm),
                "--show-max-allowed",
                "--compat nodeadm",
            ),
        ];
        match conflicts.iter().find(|(conflict, ..)| *conflict) {
            Some((_, first, second)) => Err(format!("{first} does not go with {second}")),
            None => Ok(()),
        }
    }

    fn network(&self) -> Network {
        let calculator = self.compat == Some(CompatArg::Calculator);
        let prefix = match self.prefix_delegation {
            None | Some(PrefixArg::Off) => Prefix::Off,
            // The calculator went back to secondary addresses without a word.
            Some(PrefixArg::On) if calculator => Prefix::Auto,
            Some(PrefixArg::On) => Prefix::On,
            Some(PrefixArg::Auto) => Prefix::Auto,
        };
        let deny = calculator || self.metal_prefix == MetalArg::Deny;
        Network {
            cni: match self.cni {
                CniArg::Vpc => Cni::Vpc(self.cni_version),
                CniArg::None => Cni::Other,
            },
            ip_family: match self.ip_family {
                FamilyArg::Ipv4 => IpFamily::Ipv4,
                FamilyArg::Ipv6 => IpFamily::Ipv6,
            },
            custom_networking: self.custom_networking,
            prefix,
            max_enis: self.max_enis,
            metal: if deny { MetalPrefix::Deny } else { MetalPrefix::Allow },
        }
    }

    fn mode(&self) -> MaxPodsMode {
        let value = self.value.unwrap_or_default();
        match self.mode {
            ModeArg::Eni => MaxPodsMode::Eni,
            ModeArg::Fixed => MaxPodsMode::Fixed(value),
            ModeArg::Min => MaxPodsMode::Min(value),
            ModeArg::Expression => MaxPodsMode::Expression {
                text: self.expression.clone().unwrap_or_default(),
                lenient: false,
            },
        }
    }

    fn cap_rule(&self) -> CapRule {
        match (self.show_max_allowed, self.recommended, self.compat) {
            (true, _, _) | (_, _, Some(CompatArg::Nodeadm)) => CapRule::None,
            (_, true, _) | (_, _, Some(CompatArg::Calculator)) => CapRule::Always,
            _ => self.cap,
        }
    }

    pub(super) fn sort(&self) -> Sort {
        match self.sort {
            SortArg::Name => Sort::Name,
            SortArg::Pods => Sort::Pods,
            SortArg::Vcpu => Sort::Vcpu,
            SortArg::Memory => Sort::Memory,
        }
    }

    /// The names and patterns asked for, commas outside of braces taken apart.
    pub(super) fn wanted(&self) -> Vec<&str> {
        self.types.iter().chain(&self.instance_type).flat_map(|text| words(text)).collect()
    }
}

/// `m5.large,{c,m}7g.*` is two words.
fn words(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let separators = text.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    separators.map(str::trim).filter(|word| !word.is_empty()).collect()
}

fn cni_version(text: &str) -> Result<CniVersion, String> {
    CniVersion::parse(text).ok_or_else(|| "a version such as 1.19.0 was expected".to_owned())
}

fn cap(text: &str) -> Result<CapRule, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(CapRule::Auto),
        ("none", _) => Ok(CapRule::None),
        (_, Ok(limit)) if limit > 0 => Ok(CapRule::At(limit)),
        _ => Err("auto, none or a number from 1 was expected".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "a share above 0 and up to 1 was expected, such as 0.25".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_braces_belong_to_the_pattern() {
        assert_eq!(words("m5.large,{c,m}7g.*, t3.nano,"), ["m5.large", "{c,m}7g.*", "t3.nano"]);
    }

    #[test]
    fn caps_and_shares_have_bounds() {
        assert_eq!(cap("40"), Ok(CapRule::At(40)));
        assert!(cap("0").is_err() && cap("-1").is_err() && cap("some").is_err());
        assert_eq!(share("0.25"), Ok(0.25));
        assert!(share("0").is_err() && share("1.1").is_err() && share("NaN").is_err());
    }
}
