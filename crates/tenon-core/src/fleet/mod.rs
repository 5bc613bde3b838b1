//! What a cloud API does to a fleet that starts all at once: throttling, delay, nodes that give up.
//!
//! ```text
//! mod      the simulation: one queue of attempts, one bucket of tokens
//! bounds   what the formulas say without simulating
//! text     the answer in words and as JSON
//! picture  launched and joined nodes over time
//! ```
//!
//! Time is counted in whole microseconds and tokens in millionths, so that equal seeds give equal
//! bytes on every machine.

mod bounds;
mod picture;
mod text;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

pub use bounds::Bounds;
pub use picture::svg;
pub use text::{advice, text, to_json};

/// A token, and a second, in the units of the simulation.
const MILLION: u64 = 1_000_000;
/// One request and its answer.
const ROUND_TRIP: u64 = 50_000;
/// First and largest pause of a client between two attempts.
const PAUSE: (u64, u64) = (MILLION, 20 * MILLION);
/// Attempts before a client gives up for a while, and for how long, at first and at most.
const ATTEMPTS: u32 = 30;
const REST: (u64, u64) = (15 * MILLION, 120 * MILLION);

/// What is started, and against what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fleet {
    pub nodes: u32,
    /// The time over which they are launched, evenly by chance.
    pub ramp: Duration,
    /// Calls that each node makes, one after the other.
    pub calls: u32,
    /// Tokens of the API's bucket, and how many come back each second.
    pub bucket: u32,
    pub refill: u32,
    /// Tokens that others in the account use each second.
    pub background: u32,
    /// After this a node gives up.
    pub timeout: Duration,
    /// API servers of the cluster, and how long one request takes them.
    pub servers: u32,
    pub latency: Duration,
    pub seed: u64,
}

impl Default for Fleet {
    /// One `ec2:DescribeInstances` per node at the default quota.
    fn default() -> Self {
        Fleet {
            nodes: 1000,
            ramp: Duration::from_secs(60),
            calls: 1,
            bucket: 100,
            refill: 20,
            background: 0,
            timeout: Duration::from_secs(600),
            servers: 2,
            latency: Duration::from_millis(8),
            seed: 1,
        }
    }
}

/// How the nodes fared. Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// What each node lost that came through, sorted.
    pub delays: Vec<u64>,
    /// When each of them had its answers, counted from the first launch, sorted.
    pub joined: Vec<u64>,
    pub failed: u32,
    /// All attempts, and those that were refused.
    pub calls: u64,
    pub refused: u64,
}

impl Outcome {
    /// The delay that so many percent of the nodes stay below; None when none came through.
    pub fn delay(&self, percent: usize) -> Option<u64> {
        let last = self.delays.len().checked_sub(1)?;
        Some(self.delays[(self.delays.len() * percent / 100).min(last)])
    }
}

/// SplitMix64: small, seeded, the same everywhere.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        let width = u128::from(high - low) + 1;
        let part = (u128::from(self.next()) * width) >> 64;
        low + u64::try_from(part).unwrap_or(high - low)
    }
}

/// The API's tokens, in millionths.
struct Bucket {
    level: u64,
    most: u64,
    /// Tokens per second, which are millionths per microsecond.
    rate: u64,
    at: u64,
}

impl Bucket {
    fn take(&mut self, now: u64) -> bool {
        let come_back = (now - self.at).saturating_mul(self.rate);
        self.level = self.level.saturating_add(come_back).min(self.most);
        self.at = now;
        let enough = self.level >= MILLION;
        if enough {
            self.level -= MILLION;
        }
        enough
    }
}

/// A node on its way.
struct Node {
    arrived: u64,
    attempt: u32,
    round: u32,
    left: u32,
}

impl Node {
    /// How long it sleeps after a refusal: full jitter, and now and then a rest.
    fn pause(&mut self, chance: &mut Chance) -> u64 {
        let doubled = |first: u64, times: u32, most: u64| {
            first.checked_shl(times).filter(|pause| *pause >> times == first).unwrap_or(most)
        };
        if self.attempt < ATTEMPTS {
            let most = doubled(PAUSE.0, self.attempt - 1, PAUSE.1).min(PAUSE.1);
            return chance.between(0, most);
        }
        let most = doubled(REST.0, self.round - 1, REST.1).min(REST.1);
        (self.attempt, self.round) = (0, self.round + 1);
        chance.between(REST.0, most)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Lets the fleet start.
pub fn simulate(fleet: &Fleet) -> Outcome {
    let mut chance = Chance(fleet.seed);
    let (ramp, timeout) = (micros(fleet.ramp), micros(fleet.timeout));
    let arrive = |_| {
        let arrived = chance.between(0, ramp.saturating_sub(1));
        Node { arrived, attempt: 0, round: 1, left: fleet.calls }
    };
    let mut nodes: Vec<Node> = (0..fleet.nodes).map(arrive).collect();
    let most = u64::from(fleet.bucket) * MILLION;
    let rate = u64::from(fleet.refill.saturating_sub(fleet.background));
    let mut bucket = Bucket { level: most, most, rate, at: 0 };
    let mut waiting: BinaryHeap<_> =
        nodes.iter().enumerate().map(|(index, node)| Reverse((node.arrived, index))).collect();
    let mut outcome = Outcome::default();
    while let Some(Reverse((now, index))) = waiting.pop() {
        let node = &mut nodes[index];
        if node.left == 0 {
            outcome.delays.push(now - node.arrived);
            outcome.joined.push(now);
        } else if now - node.arrived > timeout {
            outcome.failed += 1;
        } else {
            outcome.calls += 1;
            node.attempt += 1;
            let mut next = now + ROUND_TRIP;
            if bucket.take(now) {
                (node.left, node.attempt, node.round) = (node.left - 1, 0, 1);
            } else {
                outcome.refused += 1;
                next += node.pause(&mut chance);
            }
            waiting.push(Reverse((next, index)));
        }
    }
    outcome.delays.sort_unstable();
    outcome
}

#[cfg(test)]
mod tests;
