//! `tenon explain`: a field of the config, an error code, or a cause of the doctor.

use serde_json::json;
use tenon_core::codes::{self, Page};
use tenon_core::config::reference::{self, Explained};
use tenon_core::doctor;
use tenon_core::problem::Problem;

use super::node_args::NodeArgs;
use super::{Global, why};
use crate::output::{self, Outcome};

/// Explain a field (spec.kubelet.maxPods), an error code or a cause
///
/// Examples:
///   tenon explain spec.kubelet.maxPods
///   tenon explain doctor-07
///   tenon explain spec.kubelet.maxPods --why -c node.yaml --facts facts.json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Path of a field, an error code or its name, a cause (doctor-07)
    #[arg(value_name = "FIELD|CODE")]
    subject: String,
    /// Show the chain of reasons behind the value on this node
    #[arg(long)]
    why: bool,
    #[command(flatten)]
    node: NodeArgs,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    if args.why {
        return why::run(&args.subject, &args.node, global);
    }
    if let Some(page) = codes::find(&args.subject) {
        return code(page, global);
    }
    if let Some(cause) = doctor::find(&args.subject) {
        let (text, json) = doctor::page(cause);
        return if global.json() { output::answer_json(&json) } else { output::answer(&text) };
    }
    match reference::explain(&args.subject) {
        Ok(explained) => field(&explained, global),
        Err(near) => Err(unknown(near.as_deref()).into()),
    }
}

fn code(page: &Page, global: &Global) -> Outcome {
    match global.json() {
        false => output::answer(&format!(
            "{} {}\n\n  why   {}\n  fix   {}\n  exit  {}\n",
            page.code,
            page.slug,
            page.why,
            page.fix,
            page.exit()
        )),
        true => output::answer_json(&json!({
            "schema": "tenon.explain/1",
            "code": page.code,
            "slug": page.slug,
            "why": page.why,
            "fix": page.fix,
            "exit": page.exit(),
        })),
    }
}

fn field(explained: &Explained, global: &Global) -> Outcome {
    match global.json() {
        false => output::answer(&explained.text()),
        true => output::answer_json(&explained.to_json()),
    }
}

fn unknown(near: Option<&str>) -> Problem {
    let problem = Problem::new(&codes::usage::BAD_USAGE, "no such field or code");
    match near {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem.fix("`tenon explain spec` lists the fields; codes look like TN03001"),
    }
}
