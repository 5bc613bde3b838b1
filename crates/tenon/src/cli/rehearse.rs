//! `tenon rehearse`: the whole job in a sandbox.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tenon_core::codes;
use tenon_core::max_pods::{self, AcceleratorKind};
use tenon_core::problem::Problem;
use tenon_host::rehearsal::drill::{self, Verdict};
use tenon_host::rehearsal::{Act, SAMPLE, Stage};
use tenon_host::simulator::faults::Faults;
use tenon_host::simulator::machine::MachineProfile;
use tenon_host::simulator::profile::Profile;
use tenon_host::stop;

use super::{Global, node_args, plan};
use crate::output::{self, Failure, Format, Outcome};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon rehearse
  tenon rehearse -c node.yaml --instance-type p5.48xlarge --keep
  tenon rehearse -c node.yaml --faults")]
pub struct Args {
    /// Config to rehearse: it becomes the pretended user data (default: a sample)
    #[arg(short = 'c', long = "config-source", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Further sources, read after the user data
    #[arg(long = "also", value_name = "SOURCE")]
    also: Vec<String>,
    /// Instance type to pretend
    #[arg(long, value_name = "TYPE", default_value = "m6i.large")]
    instance_type: String,
    /// Region to pretend
    #[arg(long, default_value = "eu-west-1")]
    region: String,
    /// Kubelet version to pretend
    #[arg(long, value_name = "VERSION", default_value = "1.34.1")]
    kubelet: String,
    /// containerd version to pretend
    #[arg(long, value_name = "VERSION", default_value = "2.1.4")]
    containerd: String,
    /// Give the pretended instance IPv6 addresses
    #[arg(long)]
    ipv6: bool,
    /// Keep the sandbox and print where it is
    #[arg(long)]
    keep: bool,
    /// Run the fault drill: the same job with something wrong each time
    #[arg(long)]
    faults: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    if global.facts.is_some() {
        let what = "a rehearsal gathers its own facts";
        let fix = "leave --facts out, or use `tenon plan --facts FILE`";
        return Err(Problem::new(&codes::usage::BAD_USAGE, what).fix(fix).into());
    }
    stop::listen()
        .map_err(|error| Problem::new(&codes::usage::BUG, "listening for signals").cause(error))?;
    let sandbox = Sandbox::open(args, global)?;
    let stage = stage(args, &sandbox.path)?;
    let outcome = match args.faults {
        true => drill(&stage, global.output),
        false => perform(&stage, global.output),
    };
    if sandbox.kept {
        output::tell(&format!("the sandbox is {}\n", sandbox.path.display()));
    }
    outcome
}

/// The directory of the rehearsal. A temporary one goes when the rehearsal ends.
struct Sandbox {
    path: PathBuf,
    kept: bool,
}

impl Sandbox {
    fn open(args: &Args, global: &Global) -> Result<Self, Problem> {
        let given = global.root != Path::new("/");
        let path = match given {
            true => global.root.clone(),
            false => std::env::temp_dir().join(format!("tenon-rehearsal-{}", std::process::id())),
        };
        let made = match given {
            true => std::fs::create_dir_all(&path),
            // In a directory that others write to: ours alone, or an error.
            false => std::fs::DirBuilder::new().mode(0o700).create(&path),
        };
        made.map_err(|error| {
            Problem::new(&codes::host::FILE_WRITE, format!("creating {}", path.display()))
                .cause(error)
        })?;
        Ok(Sandbox { path, kept: given || args.keep })
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.kept {
            // A temporary directory that stays behind is no reason to fail.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn stage(args: &Args, directory: &Path) -> Result<Stage, Failure> {
    let user_data = match &args.config {
        None => SAMPLE.as_bytes().to_vec(),
        Some(path) => node_args::read_file(path)?,
    };
    let mut profile =
        Profile::new(&args.instance_type).in_region(&args.region).with_user_data(user_data);
    if args.ipv6 {
        profile = profile.with_ipv6();
    }
    Ok(Stage {
        directory: directory.to_owned(),
        machine: machine(args, &profile),
        profile,
        sources: args.also.clone(),
        file_mode_compat: false,
        imds_timeout: Duration::from_secs(10),
    })
}

/// A machine of the size that the table has for the type; a small one for an unknown type.
fn machine(args: &Args, profile: &Profile) -> MachineProfile {
    let known = max_pods::find(&args.instance_type);
    MachineProfile {
        cpus: known.as_ref().map_or(2, |row| row.vcpu),
        memory_mib: known.as_ref().map_or(8192, |row| row.memory_mib),
        kubelet_version: version(&args.kubelet),
        containerd_version: args.containerd.clone(),
        hostname: profile.hostname.clone(),
        mac: profile.mac.clone(),
        nvidia: known.is_some_and(|row| {
            row.accelerators().any(|device| device.kind == AcceleratorKind::Nvidia)
        }),
    }
}

fn version(text: &str) -> String {
    if text.starts_with('v') { text.to_owned() } else { format!("v{text}") }
}

/// Two runs: the first builds the node's files, the second must find nothing to do.
fn perform(stage: &Stage, format: Format) -> Outcome {
    stage.set()?;
    let first = stage.perform(Faults::default())?;
    let second = stage.perform(Faults::default())?;
    if format == Format::Json {
        output::answer_json(&to_json(&first, &second))?;
    } else {
        node_args::tell_warnings(&first.prepared);
        output::tell_findings(&first.report.warnings, true);
        output::answer(&text(&first, &second))?;
    }
    match second.report.changed() {
        true => Err(Failure::Answer(1)),
        false => Ok(()),
    }
}

fn text(first: &Act, second: &Act) -> String {
    let plan = &first.prepared.plan;
    let mut text = plan::head(plan);
    for change in &first.report.changes {
        text.push_str(&format!("  {} {}\n", mark(change.action), change.path));
    }
    text.push_str(&format!(
        "\nnode name {}, address {}, {} pods\n",
        plan.summary.node_name, plan.summary.node_ip, plan.summary.max_pods
    ));
    text.push_str(&format!("{} metadata requests with {} token\n", first.requests, first.tokens));
    text.push_str(&timeline(first));
    text.push_str(&match second.report.changed() {
        false => format!("second run: 0 changes, {} files as planned\n", second.report.unchanged),
        true => format!("second run: {} CHANGES\n", second.report.changes.len()),
    });
    text
}

fn mark(action: &str) -> char {
    match action {
        "create" => '+',
        "remove" => '-',
        _ => '~',
    }
}

/// One bar per part of the run, to scale.
fn timeline(act: &Act) -> String {
    const WIDTH: u128 = 40;
    let total = act.timeline.total().as_micros().max(1);
    let mut text = format!("\ntimeline, {:.1} ms\n", total as f64 / 1000.0);
    for span in act.timeline.spans() {
        let column =
            |time: Duration| usize::try_from(time.as_micros() * WIDTH / total).unwrap_or(0);
        let (start, length) = (column(span.begin), column(span.length).max(1));
        let bar = format!("{}{}", " ".repeat(start), "#".repeat(length));
        let ms = span.length.as_micros() as f64 / 1000.0;
        let line = format!("  {:<14} {bar:<41} {ms:>7.2} ms  {}", span.name, span.note);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push('\n');
    text
}

fn to_json(first: &Act, second: &Act) -> Value {
    let files: Vec<_> = first.report.changes.iter().map(|change| json!(change.path)).collect();
    json!({
        "schema": "tenon.rehearsal/1",
        "node": first.prepared.plan.summary,
        "planHash": first.report.plan_hash,
        "files": files,
        "metadataRequests": first.requests,
        "tokens": first.tokens,
        "timeline": first.timeline.to_json(),
        "secondRun": {"changes": second.report.changes.len(), "unchanged": second.report.unchanged},
        "findings": first.prepared.findings().map(|f| f.to_json(true)).collect::<Vec<_>>(),
    })
}

fn drill(stage: &Stage, format: Format) -> Outcome {
    let show = |verdict: &Verdict| {
        if format == Format::Text {
            let word = if verdict.passed() { "ok  " } else { "BAD " };
            let cured = match (verdict.felt, verdict.cured) {
                (false, _) => "NOT FELT",
                (true, true) => "cured",
                (true, false) => "NOT CURED",
            };
            let line = format!(
                "{word} exit {} (expected {}), {cured}: {}\n       {}\n",
                verdict.exit, verdict.expected, verdict.name, verdict.words
            );
            // A closed pipe shows again at the end, where it is reported.
            let _ = output::answer(&line);
        }
    };
    let verdicts = drill::run(stage, show)?;
    let bad = verdicts.iter().filter(|verdict| !verdict.passed()).count();
    if format == Format::Json {
        let rows: Vec<_> = verdicts
            .iter()
            .map(|verdict| {
                json!({
                    "fault": verdict.name,
                    "expected": verdict.expected,
                    "exit": verdict.exit,
                    "cured": verdict.cured,
                    "felt": verdict.felt,
                    "what": verdict.words,
                })
            })
            .collect();
        output::answer_json(&json!({"schema": "tenon.drill/1", "cases": rows}))?;
    } else {
        output::answer(&format!("{} passed, {bad} failed\n", verdicts.len() - bad))?;
    }
    if bad > 0 { Err(Failure::Answer(1)) } else { Ok(()) }
}
