//! What the formulas say of a fleet, without simulating it.

use super::{Fleet, MILLION, micros};

/// Requests with the priority of nodes that one join takes.
const REQUESTS_PER_JOIN: u128 = 6;
/// Seats that an API server keeps for them.
const SEATS: u128 = 98;
/// Above this share of the seats requests begin to queue.
const BUSY_PERCENT: u128 = 70;
/// Instances that EC2 starts at once, and how many more each second, at the default quota.
const LAUNCHES: (u64, u64) = (1000, 2);

/// Bounds that hold for every client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// More tokens are asked for than there are while the fleet starts.
    pub saturated: bool,
    /// Seconds until the last node can have its tokens; None: never.
    pub complete_s: Option<u64>,
    /// Thousandths of the nodes that cannot be served before they give up.
    pub failed_permille: u32,
    /// Share of the cluster's seats for nodes that joining takes.
    pub seats_percent: u64,
    /// Seconds over which joins must spread to leave the seats some room.
    pub spread_s: u64,
    /// Seconds that EC2 needs to start so many instances.
    pub launch_s: u64,
}

impl Bounds {
    pub fn of(fleet: &Fleet) -> Bounds {
        let demand = u64::from(fleet.nodes) * u64::from(fleet.calls);
        let rate = u64::from(fleet.refill.saturating_sub(fleet.background));
        let (ramp, timeout) = (micros(fleet.ramp), micros(fleet.timeout));
        let beyond = demand.saturating_sub(u64::from(fleet.bucket));
        let full = u64::from(fleet.bucket) * MILLION;
        let given = |time: u64| rate.saturating_mul(time).saturating_add(full);
        let unserved = (demand * MILLION).saturating_sub(given(ramp.saturating_add(timeout)));
        let failed = u128::from(unserved) * 1000 / u128::from(demand * MILLION).max(1);
        let latency = u128::from(micros(fleet.latency));
        let busy = u128::from(fleet.nodes) * REQUESTS_PER_JOIN * latency;
        let seats = SEATS * u128::from(fleet.servers.max(1));
        let narrow = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        Bounds {
            saturated: demand * MILLION > given(ramp),
            complete_s: match (beyond, rate) {
                (0, _) => Some(0),
                (_, 0) => None,
                _ => Some(beyond.div_ceil(rate)),
            },
            failed_permille: u32::try_from(failed).unwrap_or(1000),
            seats_percent: narrow(busy * 100 / (seats * u128::from(ramp.max(1)))),
            spread_s: narrow((busy * 100).div_ceil(seats * BUSY_PERCENT * u128::from(MILLION))),
            launch_s: u64::from(fleet.nodes).saturating_sub(LAUNCHES.0) / LAUNCHES.1,
        }
    }

    /// True when the API servers would make nodes wait.
    pub fn is_crowded(&self) -> bool {
        u128::from(self.seats_percent) > BUSY_PERCENT
    }
}
