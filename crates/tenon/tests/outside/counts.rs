//! What a run costs, in counts: requests, processes, connections, system calls, writes. Counts
//! do not depend on how busy the machine is.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use tenon_host::rehearsal::SAMPLE;
use tenon_host::simulator::faults::{Faults, Rule};

use crate::desk::{Desk, code, furnish, json, profile, stderr};
use crate::trace::{self, Trace};

/// Requests of the config phase, its token's included.
const MOST_REQUESTS: usize = 8;
/// Answers that may have to be waited for one after the other.
const MOST_ROUNDS: u32 = 4;
/// System calls for ten files on tmpfs.
const MOST_CALLS: usize = 400;

/// The arguments that have a machine's files made and nothing else.
fn arguments(desk: &Desk) -> [String; 7] {
    ["init", "--root", desk.root(), "--skip", "run", "--output", "json"].map(str::to_owned)
}

fn traced(desk: &Desk) -> Option<Trace> {
    let arguments = arguments(desk);
    let trace = trace::tenon(desk, &arguments.each_ref().map(String::as_str))?;
    assert_eq!(code(&trace.output), 0, "{}", stderr(&trace.output));
    Some(trace)
}

/// A desk whose machine lies in memory, where there is such a place.
fn desk_in_memory() -> Desk {
    let mut desk = Desk::new();
    if Path::new("/dev/shm").is_dir() {
        desk.root = tempfile::tempdir_in("/dev/shm").unwrap();
        furnish(desk.root.path());
    }
    desk
}

#[test]
fn the_config_phase_asks_little() {
    for config in [SAMPLE.to_owned(), with_everything_asked()] {
        let desk = Desk::of(&profile().with_user_data(config.into_bytes()), Faults::default());
        let output = desk.init(&[]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let log = desk.simulator.log();
        assert!(log.len() <= MOST_REQUESTS, "{log:?}");
        assert_eq!(desk.simulator.count("/api/token"), 1);
        let connections: BTreeSet<_> = log.iter().map(|request| request.connection).collect();
        assert_eq!(connections.len(), 1, "{log:?}");
    }
}

/// A config that needs more facts than the sample: the addresses of the VPC for the proxy.
fn with_everything_asked() -> String {
    let sample = SAMPLE.replace("node.eks.aws/v1alpha1", "tenon.dev/v1alpha1");
    format!("{sample}  instance:\n    proxy: {{http: 'http://proxy.corp:3128'}}\n")
}

#[test]
fn the_first_run_touches_nothing_but_its_files_and_the_metadata_service() {
    let desk = desk_in_memory();
    let Some(trace) = traced(&desk) else { return };
    assert_eq!(trace.named("execve").len(), 1, "no program is run");
    let processes: Vec<_> = trace.calls.iter().filter(|call| call.begins_process()).collect();
    assert!(processes.is_empty(), "{processes:?}");
    let port = format!("htons({})", desk.simulator.address().port());
    let connects = trace.named("connect");
    assert!(!connects.is_empty());
    for call in connects {
        assert!(call.says(&port) && call.says("127.0.0.1"), "{}", call.line);
    }
    for call in trace.named("socket") {
        assert!(call.says("AF_INET") && call.says("SOCK_STREAM"), "{}", call.line);
    }
    for call in &trace.calls {
        assert!(!call.says("O_TRUNC"), "{}", call.line);
        assert!(!call.says("resolv.conf") && !call.says("nsswitch"), "{}", call.line);
    }
}

#[test]
fn each_changed_file_is_renamed_once_and_with_it_record_and_saved_generation() {
    let desk = desk_in_memory();
    let Some(first) = traced(&desk) else { return };
    assert_eq!(renames(&first), files(&first) + 2);
    let changed = SAMPLE.replace("team=web", "team=other");
    desk.simulator.set("user-data", &changed);
    let Some(second) = traced(&desk) else { return };
    assert_eq!(files(&second), 1, "{}", json(&second.output));
    assert_eq!(renames(&second), 3);
}

fn renames(trace: &Trace) -> usize {
    trace.calls.iter().filter(|call| call.name.starts_with("rename")).count()
}

/// Files that a run reported as changed.
fn files(trace: &Trace) -> usize {
    let answer = json(&trace.output);
    let changes = answer["changes"].as_array().unwrap();
    changes.iter().filter(|change| change["kind"] == "file").count()
}

#[test]
#[expect(clippy::print_stderr, reason = "the figure is worth reading")]
fn ten_files_cost_few_system_calls() {
    let desk = desk_in_memory();
    let Some(trace) = traced(&desk) else { return };
    // Eight files of the node, the record and the saved generation.
    assert_eq!(files(&trace) + 2, 10);
    let counts = trace.counts();
    let all: usize = counts.values().sum();
    eprintln!("{all} system calls for ten files: {counts:?}");
    assert!(all <= MOST_CALLS, "{all}: {counts:?}");
}

#[test]
fn row_42_the_second_run_writes_nothing() {
    let desk = Desk::new();
    assert_eq!(code(&desk.init(&[])), 0);
    let Some(trace) = traced(&desk) else { return };
    let answer = json(&trace.output);
    assert_eq!((&answer["result"], files(&trace)), (&"unchanged".into(), 0));
    let writes: Vec<_> = trace.calls.iter().filter(|call| call.changes_files()).collect();
    assert!(writes.is_empty(), "{writes:?}");
    for call in trace.named("write") {
        assert!(call.says("write(1<") || call.says("write(2<"), "{}", call.line);
    }
}

/// Makes a node while each answer of the metadata service takes this long.
fn time_with_delay(config: &str, delay: Duration) -> Duration {
    let delay_ms = u64::try_from(delay.as_millis()).unwrap();
    let rule = Rule { delay_ms, ..Rule::on("*") };
    let profile = profile().with_user_data(config.as_bytes().to_vec());
    let desk = Desk::of(&profile, Faults::of([rule]));
    let began = Instant::now();
    assert_eq!(code(&desk.init(&[])), 0);
    began.elapsed()
}

#[test]
fn answers_are_waited_for_in_few_rounds() {
    // Long enough that nothing else in the run comes near it.
    let delay = Duration::from_millis(400);
    for config in [SAMPLE.to_owned(), with_everything_asked()] {
        let taken = time_with_delay(&config, delay);
        assert!(taken >= delay * 2, "a token and its use cannot be had at once: {taken:?}");
        assert!(taken < delay * (MOST_ROUNDS + 1), "more than {MOST_ROUNDS} rounds: {taken:?}");
    }
}
