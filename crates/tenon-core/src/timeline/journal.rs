//! What the journal tells about a boot. Each line is one entry of `journalctl -o json`; lines
//! that cannot be read, or mean nothing here, are passed over.

use serde::Deserialize;
use serde_json::Value;

use super::{ClockStep, PHASES, PhaseRecord};

/// A wall clock that differs by less was not set, but is being steered.
const STEP_US: i64 = 50_000;

/// An image, and when its pull began and ended.
pub(super) type Pull = (String, i64, Option<i64>);

/// Everything of interest, on the machine's monotonic clock.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// Runs of Tenon, with the unit that each ran in.
    pub runs: Vec<(String, PhaseRecord)>,
    /// First line of the kubelet.
    pub kubelet_us: Option<i64>,
    pub registered_us: Option<i64>,
    pub ready_us: Option<i64>,
    /// Name under which the node registered.
    pub node: String,
    pub pulls: Vec<Pull>,
    pub steps: Vec<ClockStep>,
    /// Wall clock at 0 of the monotonic one, by the last line.
    pub wall_us: Option<i64>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "__MONOTONIC_TIMESTAMP")]
    monotonic: String,
    #[serde(rename = "__REALTIME_TIMESTAMP")]
    realtime: String,
    #[serde(rename = "_SYSTEMD_UNIT", default)]
    unit: String,
    /// Not text when it is not UTF-8.
    #[serde(rename = "MESSAGE", default)]
    message: Value,
}

/// Reads the lines in their order.
pub(super) fn read(lines: &[u8]) -> Story {
    let mut story = Story::default();
    for line in lines.split(|byte| *byte == b'\n') {
        let Ok(entry) = serde_json::from_slice::<Entry>(line) else { continue };
        let (Ok(at), Ok(wall)) = (entry.monotonic.parse(), entry.realtime.parse::<i64>()) else {
            continue;
        };
        story.clock(at, wall.saturating_sub(at));
        let Some(message) = entry.message.as_str() else { continue };
        story.hear(at, &entry.unit, message);
    }
    story
}

impl Story {
    /// Notes a step of the wall clock since the last line.
    fn clock(&mut self, at_us: i64, wall_us: i64) {
        let before = self.wall_us.replace(wall_us).unwrap_or(wall_us);
        let by_us = wall_us.saturating_sub(before);
        if by_us.abs() >= STEP_US {
            self.steps.push(ClockStep { at_us, by_us });
        }
    }

    fn hear(&mut self, at: i64, unit: &str, message: &str) {
        if let Some((_, record)) = message.split_once(PHASES) {
            if let Ok(record) = serde_json::from_str(record.trim()) {
                self.runs.push((unit.to_owned(), record));
            }
        } else if unit == "kubelet.service" {
            self.hear_kubelet(at, message);
        } else if let Some((_, pull)) = message.split_once("PullImage \\\"") {
            self.hear_pull(at, pull);
        }
    }

    fn hear_kubelet(&mut self, at: i64, message: &str) {
        self.kubelet_us.get_or_insert(at);
        let registered = ["Successfully registered node", "Node was previously registered"];
        if registered.iter().any(|words| message.contains(words)) && self.registered_us.is_none() {
            self.registered_us = Some(at);
            let name = message.split_once(" node=\"").and_then(|(_, rest)| rest.split_once('"'));
            self.node = name.map(|(name, _)| name.to_owned()).unwrap_or_default();
        }
        let ready = ["just became ready", "event=\"NodeReady\""];
        if ready.iter().any(|words| message.contains(words)) && self.registered_us.is_some() {
            self.ready_us.get_or_insert(at);
        }
    }

    /// `IMAGE\""` begins a pull, `IMAGE\" returns image reference …` ends it.
    fn hear_pull(&mut self, at: i64, words: &str) {
        let Some((image, rest)) = words.split_once("\\\"") else { return };
        let open = self.pulls.iter_mut().rfind(|(name, _, end)| name == image && end.is_none());
        match open {
            Some((_, _, end)) if rest.contains("returns image reference") => *end = Some(at),
            None if !rest.contains("returns") => self.pulls.push((image.to_owned(), at, None)),
            _ => {}
        }
    }
}
