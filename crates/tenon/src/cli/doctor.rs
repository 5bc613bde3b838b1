//! `tenon doctor`: why this node is not Ready.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tenon_core::codes;
use tenon_core::collect::journal::unstamp;
use tenon_core::config::{self, SourceRead, dump_best};
use tenon_core::decode::Origin;
use tenon_core::doctor::{self, CAUSES, Report, Snapshot, Step, examine};
use tenon_core::nearest::nearest;
use tenon_core::problem::Problem;
use tenon_host::collect::Source;
use tenon_host::doctor::{self as host, gather};
use tenon_host::stop;

use super::{Global, node_args};
use crate::output::{self, Failure, Outcome};

/// Pause between two looks of `--watch`, and how many equal ones end it.
const PAUSE: Duration = Duration::from_secs(10);
const STABLE: u32 = 3;
/// A node that still changes its mind after this is told as it is.
const LONGEST_WATCH: Duration = Duration::from_secs(15 * 60);
/// For the probes of a look that a bundle takes along.
const BUNDLE_BUDGET: Duration = Duration::from_secs(20);

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Looks at this machine, at a dead node's volume (--root DIR) or at a bundle.
Exit: 0 healthy, 1 a cause was found, 5 the node could not be examined.
`tenon explain doctor-07` shows the page of a cause.

Examples:
  tenon doctor
  tenon doctor --root /mnt/volume --all
  tenon doctor --bundle tenon-logs_i-0abc.tar.gz --output json"
)]
pub struct Args {
    /// Look at a bundle of `tenon logs collect`
    #[arg(long, value_name = "FILE", conflicts_with = "root")]
    bundle: Option<PathBuf>,
    /// What the node was meant to be, when it has kept no config
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Run no network probe
    #[arg(long)]
    offline: bool,
    /// Read whole journals, not only their newest part
    #[arg(long)]
    deep: bool,
    /// Count log lines from here on: 2h, or 2026-11-15T22:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Look only for these causes: numbers, names or steps
    #[arg(long, value_name = "CHECK,..", value_delimiter = ',')]
    only: Vec<String>,
    /// For all probes together
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = node_args::duration)]
    time_budget: Duration,
    /// Show what follows from the causes, and every step
    #[arg(long)]
    all: bool,
    /// Look again until the node is Ready or the cause is stable
    #[arg(long, conflicts_with = "bundle")]
    watch: bool,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    stop::listen().map_err(|error| {
        Problem::new(&codes::usage::BUG, "installing signal handlers").cause(error)
    })?;
    check_names(&args.only)?;
    let source = match &args.bundle {
        Some(file) => Source::bundle(file)?,
        None => Source::root(&global.root).map_err(|problem| {
            let what = format!("there is no node at {}", global.root.display());
            Problem::new(&codes::doctor::NOT_EXAMINED, what).cause(problem.what.as_str())
        })?,
    };
    let since_us = args.since.as_deref().map(since).transpose()?;
    let spec = args.config.as_deref().map(read_spec).transpose()?;
    if args.watch && !source.is_live() {
        let what = "--watch is for a node that runs; a volume does not change";
        return Err(Problem::new(&codes::usage::BAD_USAGE, what).fix("leave --watch out").into());
    }
    let mut report = look(args, &source, since_us, spec.as_ref())?;
    if args.watch {
        report = watch(report, PAUSE, || look(args, &source, since_us, spec.as_ref()))?;
    }
    answer(&report, args, global)
}

fn look(
    args: &Args,
    source: &Source,
    since_us: Option<u64>,
    spec: Option<&Value>,
) -> Result<Report, Failure> {
    let begun = Instant::now();
    let (offline, deep, budget) = (args.offline, args.deep, args.time_budget);
    let options = host::Options { offline, deep, budget, since_us, spec: spec.cloned() };
    let node: Snapshot = gather(source, &options)?;
    let options = doctor::Options { since_us, only: args.only.clone() };
    let mut report = examine(&node, &options);
    report.elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(report)
}

/// Looks again until the answer is settled or has not changed for a while.
fn watch(
    mut report: Report,
    pause: Duration,
    mut again: impl FnMut() -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    let gist = |report: &Report| (report.state, report.findings.first().map(|f| f.cause.number));
    let mut equal = 1;
    let end = Instant::now() + LONGEST_WATCH;
    while !report.is_settled() && (equal < STABLE || report.young) && Instant::now() < end {
        stop::sleep(pause)?;
        let next = again()?;
        equal = if gist(&next) == gist(&report) { equal + 1 } else { 1 };
        if equal == 1 {
            tracing::info!(state = next.state.name(), "the node has changed");
        }
        report = next;
    }
    Ok(report)
}

fn answer(report: &Report, args: &Args, global: &Global) -> Outcome {
    if !report.examined {
        let what = "no journal of a node could be read, and nothing else tells how it fared";
        return Err(Problem::new(&codes::doctor::NOT_EXAMINED, what).into());
    }
    match global.json() {
        true => {
            let mut answer = report.to_json();
            let path = args.bundle.as_ref().unwrap_or(&global.root);
            answer["source"]["path"] = json!(path);
            output::answer_json(&answer)?;
        }
        false => output::answer(&report.text(args.all))?,
    }
    match report.exit() {
        0 => Ok(()),
        code => Err(Failure::Answer(code)),
    }
}

/// The verdict and what it rests on, as `tenon logs collect` packs them.
pub fn for_bundle(source: &Source) -> Result<BTreeMap<String, Vec<u8>>, Problem> {
    let budget = BUNDLE_BUDGET;
    let options = host::Options { offline: false, deep: false, budget, since_us: None, spec: None };
    let node = gather(source, &options)?;
    let verdict = format!("{:#}\n", examine(&node, &doctor::Options::default()).to_json());
    Ok(BTreeMap::from([
        ("doctor.json".to_owned(), verdict.into_bytes()),
        ("probes.json".to_owned(), host::recorded(&node)),
    ]))
}

/// A misspelt name would make every node look healthy.
fn check_names(only: &[String]) -> Result<(), Problem> {
    let steps = Step::all().map(Step::name);
    let known: Vec<_> = CAUSES.iter().map(|cause| cause.slug).chain(steps).collect();
    let fits = |name: &String| {
        known.contains(&name.as_str())
            || CAUSES.iter().any(|cause| cause.id() == *name || name.parse() == Ok(cause.number))
    };
    let Some(wrong) = only.iter().find(|name| !fits(name)) else { return Ok(()) };
    let problem = Problem::new(&codes::usage::BAD_USAGE, "--only names no cause and no step");
    Err(match nearest(wrong, known.iter().copied()) {
        Some(near) => problem.fix(format!("did you mean `{near}`?")),
        None => problem.fix("a number (7), a name (wrong-ca) or a step (dns)"),
    })
}

/// A time, or how long ago.
fn since(text: &str) -> Result<u64, Problem> {
    let wrong = || {
        Problem::new(&codes::usage::BAD_USAGE, "--since is not a time")
            .fix("give 30m, 2h, 1d or 2026-11-15T22:00:00Z")
    };
    if let Some(time) = unstamp(text) {
        return Ok(time);
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return Err(wrong()),
    };
    let ago = Duration::from_secs(number.saturating_mul(seconds));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.saturating_sub(ago).as_micros()).map_err(|_| wrong())
}

/// The config that the node was meant to have, in the form of the kept one.
fn read_spec(path: &std::path::Path) -> Result<Value, Failure> {
    let uri = format!("file://{}", path.display());
    let bytes = Some(node_args::read_file(path)?);
    let source = SourceRead { uri, origin: Origin::File, bytes };
    let options = config::Options { cached: None, partial: true };
    let loaded = config::load(&[source], options);
    let loaded = loaded.map_err(|findings| Failure::Findings { findings, lenient: true })?;
    Ok(dump_best(&loaded.config).document["spec"].clone())
}

#[cfg(test)]
mod tests {
    use tenon_core::doctor::State;

    use super::*;

    /// A look that found the node in this state.
    fn seen(state: State, young: bool) -> Report {
        let report = examine(&Snapshot::default(), &doctor::Options::default());
        Report { state, young, findings: Vec::new(), ..report }
    }

    /// Watches nodes that change as told; gives the last state and how many were not looked at.
    fn watched(looks: &[(State, bool)]) -> (State, usize) {
        let mut next = looks.iter().map(|(state, young)| seen(*state, *young));
        let first = next.next().unwrap();
        let last = watch(first, Duration::ZERO, || Ok(next.next().unwrap())).unwrap();
        (last.state, next.count())
    }

    #[test]
    fn watching_ends_with_ready_or_with_an_answer_that_stays() {
        use State::{JoinedNotReady, NotJoined, Ready};
        for (looks, expected) in [
            (&[(Ready, false)][..], (Ready, 0)),
            (&[(NotJoined, false), (Ready, false), (Ready, false)], (Ready, 1)),
            (&[(NotJoined, false); 5], (NotJoined, 2)),
            // A change begins the count anew, and a young node may still come.
            (
                &[(NotJoined, false), (NotJoined, false), (JoinedNotReady, false), (Ready, false)],
                (Ready, 0),
            ),
            (
                &[(NotJoined, true), (NotJoined, true), (NotJoined, true), (NotJoined, false)],
                (NotJoined, 0),
            ),
        ] {
            assert_eq!(watched(looks), expected, "{looks:?}");
        }
    }

    #[test]
    fn a_look_that_fails_ends_the_watch() {
        let lost = || Err(Problem::new(&codes::doctor::NOT_EXAMINED, "gone").into());
        assert!(watch(seen(State::NotJoined, false), Duration::ZERO, lost).is_err());
    }
}
