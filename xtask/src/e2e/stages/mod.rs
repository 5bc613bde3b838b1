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
    ("every role before Ignition and systemd-analyze", desk::every_role_before_its_readers),
    ("three boots without a fault", faults::three_boots_without_a_fault),
    ("a kill after every step", faults::a_kill_after_every_step),
    ("a power cut after every step", faults::a_power_cut_after_every_step),
    ("a store that answers late", faults::a_store_that_answers_late),
    ("a bundle with a wrong digest", faults::a_wrong_digest_blocks),
    ("a reboot that is refused", faults::a_refused_reboot_is_asked_for_again),
    ("a bootstrap that fails once", faults::a_bootstrap_that_fails_once),
    ("a bootstrap that fails for good", faults::a_bootstrap_that_fails_for_good),
    ("a trigger left over", faults::a_trigger_that_is_left_over),
    ("a copy that is not announced", faults::a_copy_that_is_not_announced),
    ("the gate alone holds the kubelet", faults::the_gate_alone_holds_the_kubelet),
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
