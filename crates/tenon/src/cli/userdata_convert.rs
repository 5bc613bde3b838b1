//! `tenon userdata convert`: user data of one family for another.

use std::path::PathBuf;

use serde_json::json;
use tenon_core::codes::inspect::CONVERT_LOSS;
use tenon_core::problem::Problem;
use tenon_core::userdata::inspect::convert::{Converted, Entry, Fate, Target, convert};

use super::Global;
use super::userdata::print;
use super::userdata_source::{DocumentArgs, cluster};
use crate::output::{self, Failure, Outcome};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: DocumentArgs,
    /// FAMILY[/KIND][:MODE], such as AmazonLinux2023/custom
    #[arg(long, value_name = "TARGET")]
    to: String,
    /// Print the result even when something is lost
    #[arg(long)]
    allow_loss: bool,
    /// Answer of DescribeCluster, for what the user data leaves out
    #[arg(long, value_name = "FILE")]
    cluster_json: Option<PathBuf>,
    /// Range of service addresses, if the user data does not say
    #[arg(long, value_name = "CIDR")]
    service_cidr: Option<ipnet::IpNet>,
    /// Region of the cluster, if the user data does not say
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let target = Target::parse(&args.to)?;
    let node = args.source.read()?;
    let mut facts = cluster(args.cluster_json.as_deref())?.unwrap_or_default();
    facts.service_cidr = args.service_cidr.or(facts.service_cidr);
    facts.region = args.region.clone().or(facts.region);
    let converted = convert(&node, target, &facts)
        .map_err(|findings| Failure::Findings { findings, lenient: false })?;
    let refused = !converted.is_lossless() && !args.allow_loss;
    if global.json() {
        output::answer_json(&answer(&converted, refused))?;
        return if refused { Err(Failure::Answer(1)) } else { Ok(()) };
    }
    output::tell(&account(&converted.account));
    if refused {
        let lost = converted.account.iter().filter(|entry| entry.fate == Fate::Lost).count();
        let what = format!("{lost} settings would be lost; nothing is printed");
        return Err(Problem::new(&CONVERT_LOSS, what).into());
    }
    output::tell_findings(&converted.rendered.findings, false);
    print(&converted.rendered.bytes)
}

fn answer(converted: &Converted, refused: bool) -> serde_json::Value {
    let of = |fate: Option<Fate>| -> Vec<_> {
        let entries = converted.account.iter();
        entries
            .filter(|entry| fate.is_none_or(|fate| entry.fate == fate))
            .map(Entry::to_json)
            .collect()
    };
    let text = String::from_utf8(converted.rendered.bytes.clone()).ok();
    json!({
        "result": if refused { "lossy" } else { "converted" },
        "settings": of(None),
        "losses": of(Some(Fate::Lost)),
        "userData": text.filter(|_| !refused),
        "sha256": converted.rendered.sha256(),
        "encoding": converted.rendered.encoding.name(),
    })
}

fn account(entries: &[Entry]) -> String {
    let line = |entry: &Entry| {
        let reason = if entry.reason.is_empty() { "" } else { ": " };
        let text = format!("{:<12} {}{reason}{}", entry.fate.name(), entry.setting, entry.reason);
        tenon_core::problem::visible(&text) + "\n"
    };
    entries.iter().map(line).collect()
}
