//! When the manager did what: its own stamps, and when each unit came up.

use std::time::{Duration, Instant};

use tenon_core::problem::Problem;
use tenon_core::timeline::{Stamps, UnitTimes};
use zbus::{OwnedObjectPath, block_on};

use super::unit::{Properties, UNIT, number};
use super::{MANAGER, Manager, PATH, refused};
use crate::stop;

/// One row of `ListUnits`: the name first, the object's path seventh.
type Listed =
    (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

impl Manager {
    /// Reads the stamps of this boot.
    pub fn stamps(&self) -> Result<Stamps, Problem> {
        let read = block_on(self.properties(PATH, MANAGER));
        let found = read.map_err(|error| refused("reading the stamps of the manager", &error))?;
        Ok(Stamps {
            firmware_us: stamp(&found, "FirmwareTimestampMonotonic"),
            loader_us: stamp(&found, "LoaderTimestampMonotonic"),
            // The kernel began at 0, so only its wall clock says whether the manager saw it.
            own_kernel: number(&found, "KernelTimestamp") > 0,
            initrd_us: stamp(&found, "InitRDTimestampMonotonic"),
            userspace_us: stamp(&found, "UserspaceTimestampMonotonic"),
            units_loaded_us: stamp(&found, "UnitsLoadFinishTimestampMonotonic"),
            finish_us: stamp(&found, "FinishTimestampMonotonic"),
        })
    }

    /// Reads when each unit came up, for as long as the time lasts; then also how many were left.
    pub fn unit_times(&self, time: Duration) -> Result<(Vec<UnitTimes>, usize), Problem> {
        let end = Instant::now() + time;
        let reading = |error: &zbus::Error| refused("listing the units", error);
        let reply = self.call("ListUnits", &()).map_err(|error| reading(&error))?;
        let listed: Vec<Listed> = reply.body().deserialize().map_err(|error| reading(&error))?;
        let mut units = Vec::new();
        for (at, (name, .., path, _, _, _)) in listed.iter().enumerate() {
            stop::check()?;
            if Instant::now() >= end {
                return Ok((units, listed.len() - at));
            }
            // A unit may go between the list and the question.
            if let Ok(found) = block_on(self.properties(path, UNIT)) {
                units.push(times(name, found));
            }
        }
        Ok((units, 0))
    }
}

fn times(name: &str, mut found: Properties) -> UnitTimes {
    let begin_us = stamp(&found, "InactiveExitTimestampMonotonic");
    // A oneshot without RemainAfterExit goes from activating to inactive.
    let ends = ["ActiveEnter", "ActiveExit", "InactiveEnter"];
    let ends = ends.map(|name| stamp(&found, &format!("{name}TimestampMonotonic")));
    let end_us = ends.into_iter().find(|end| *end >= begin_us).unwrap_or(begin_us);
    let after = found.remove("After").and_then(|names| Vec::try_from(names).ok());
    UnitTimes { name: name.to_owned(), begin_us, end_us, after: after.unwrap_or_default() }
}

fn stamp(properties: &Properties, name: &str) -> i64 {
    i64::try_from(number(properties, name)).unwrap_or(0)
}
