//! Staged first boots under a real systemd: Ignition writes the machine, systemd schedules the
//! stages, and a fault is put into every step. Whatever the fault, the machine must end as the
//! one without.
//!
//! A boot is a manager of its own (`e2e/manager.sh`) and a new boot id. The control plane's own
//! stages are stand-ins here; the cluster layers run them on real programs.

mod desk;
mod faults;
mod machine;
mod store;

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use super::{Lab, userdata};
use crate::lab::must;

/// What the cases share.
pub struct Workshop {
    /// The checkout.
    pub repository: PathBuf,
    /// A test build: it has failpoints.
    pub tenon: PathBuf,
    pub validate: PathBuf,
    pub ignition: PathBuf,
}

/// A case and its name.
type Case = (&'static str, fn(&Workshop) -> anyhow::Result<usize>);

const CASES: &[Case] = &[
    ("every role before Ignition and systemd-analyze", desk::roles),
    ("three boots without a fault", faults::clean),
    ("a kill after every step", faults::killed),
    ("a power cut after every step", faults::power_cuts),
    ("a store that answers late", faults::late_store),
    ("a bundle with a wrong digest", faults::wrong_digest),
    ("a reboot that is refused", faults::reboot_refused),
    ("a bootstrap that fails once", faults::bootstrap_fails_once),
    ("a bootstrap that fails for good", faults::bootstrap_fails),
    ("a trigger left over", faults::trigger_left),
    ("a copy that is not announced", faults::slow_copy),
    ("the gate alone holds the kubelet", faults::gate_alone),
];

pub fn run(lab: &Lab) -> anyhow::Result<usize> {
    must(
        Command::new(env!("CARGO"))
            .current_dir(&lab.repository)
            .args(["build", "-q", "-p", "tenon"]),
    )?;
    let (validate, ignition) = userdata::ignition_programs(lab)?;
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| lab.repository.join("target"), PathBuf::from);
    let workshop = Workshop {
        repository: lab.repository.clone(),
        tenon: target.join("debug/tenon"),
        validate,
        ignition,
    };
    let mut passed = 0;
    for (name, case) in CASES {
        let cases = case(&workshop).with_context(|| (*name).to_owned())?;
        println!("{name:<50} {cases:>4}");
        passed += cases;
    }
    Ok(passed)
}
