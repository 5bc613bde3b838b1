//! The answer in words and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::{Bounds, Fleet, MILLION, Outcome, micros};

/// Name and version of the JSON answer.
const SCHEMA: &str = "tenon.fleet/1";

/// A time as a table shows it: tenths below ten seconds.
fn seconds(us: u64) -> String {
    let tenths = (us + MILLION / 20) / (MILLION / 10);
    match tenths < 100 {
        true => format!("{}.{} s", tenths / 10, tenths % 10),
        false => format!("{} s", (us + MILLION / 2) / MILLION),
    }
}

/// Tenths of a percent, or of a call.
fn tenths(number: u64) -> String {
    format!("{}.{}", number / 10, number % 10)
}

fn calls_per_node(fleet: &Fleet, outcome: &Outcome) -> u64 {
    let nodes = u64::from(fleet.nodes.max(1));
    (outcome.calls * 10 + nodes / 2) / nodes
}

fn failed_permille(fleet: &Fleet, outcome: &Outcome) -> u64 {
    let nodes = u64::from(fleet.nodes.max(1));
    (u64::from(outcome.failed) * 1000 + nodes / 2) / nodes
}

/// The answer for people.
pub fn text(fleet: &Fleet, outcome: &Outcome) -> String {
    let mut out = format!(
        "{} nodes in {}, {} {} each; a bucket of {}, {} back per second, others use {}\n",
        fleet.nodes,
        seconds(micros(fleet.ramp)),
        fleet.calls,
        if fleet.calls == 1 { "call" } else { "calls" },
        fleet.bucket,
        fleet.refill,
        fleet.background
    );
    let bounds = Bounds::of(fleet);
    let mut row = |name: &str, words: String| {
        // Writing into a text cannot fail.
        let _ = writeln!(out, "  {name:<13} {words}");
    };
    let delay = |percent| outcome.delay(percent).map_or_else(|| "-".to_owned(), seconds);
    row("added delay", format!("p50 {}, p90 {}, p99 {}", delay(50), delay(90), delay(99)));
    let share = tenths(failed_permille(fleet, outcome));
    row("gave up", format!("{} nodes ({share} %)", outcome.failed));
    if let Some(last) = outcome.joined.last() {
        row("last joined", format!("{} after the first launch", seconds(*last)));
    }
    let per_node = tenths(calls_per_node(fleet, outcome));
    row(
        "calls",
        format!("{per_node} per node, {} in all, {} refused", outcome.calls, outcome.refused),
    );
    row("API servers", format!("{} % of the seats for nodes are taken", bounds.seats_percent));
    for line in advice(fleet, outcome) {
        let _ = writeln!(out, "advice: {line}");
    }
    out
}

/// What to do about it, most useful first.
pub fn advice(fleet: &Fleet, outcome: &Outcome) -> Vec<String> {
    let bounds = Bounds::of(fleet);
    let mut list = Vec::new();
    if bounds.saturated {
        list.push(
            "let no node call: give endpoint, certificateAuthority and cidr of the cluster in its config, and aws.api: never"
                .to_owned(),
        );
        list.push(match bounds.complete_s {
            Some(time) => {
                format!("or launch over {time} s or more: the bucket lets no more through")
            }
            None => "or wait until others use less than comes back".to_owned(),
        });
    }
    if outcome.refused > u64::from(fleet.nodes) {
        list.push(format!(
            "{} refused calls also slow every other controller of the account",
            outcome.refused
        ));
    }
    if bounds.is_crowded() {
        list.push(format!("spread the joins over {} s, or run more API servers", bounds.spread_s));
    }
    if bounds.launch_s * MILLION > micros(fleet.ramp) {
        list.push(format!(
            "EC2 starts so many instances in {} s at the default quota: ask for a larger one",
            bounds.launch_s
        ));
    }
    list
}

/// The answer for programs.
pub fn to_json(fleet: &Fleet, outcome: &Outcome) -> Value {
    let bounds = Bounds::of(fleet);
    let ms = |us: u64| us / 1000;
    let delay = |percent| outcome.delay(percent).map(ms);
    json!({
        "schema": SCHEMA,
        "fleet": {
            "nodes": fleet.nodes, "rampMs": ms(micros(fleet.ramp)), "calls": fleet.calls,
            "bucket": fleet.bucket, "refill": fleet.refill, "background": fleet.background,
            "timeoutMs": ms(micros(fleet.timeout)), "servers": fleet.servers,
            "latencyMs": ms(micros(fleet.latency)), "seed": fleet.seed,
        },
        "delayMs": {"p50": delay(50), "p90": delay(90), "p99": delay(99)},
        "failed": outcome.failed,
        "failedPermille": failed_permille(fleet, outcome),
        "lastJoinedMs": outcome.joined.last().copied().map(ms),
        "calls": outcome.calls,
        "refused": outcome.refused,
        "bounds": {
            "saturated": bounds.saturated, "completeS": bounds.complete_s,
            "failedPermille": bounds.failed_permille, "seatsPercent": bounds.seats_percent,
            "spreadS": bounds.spread_s, "launchS": bounds.launch_s,
        },
        "advice": advice(fleet, outcome),
    })
}
