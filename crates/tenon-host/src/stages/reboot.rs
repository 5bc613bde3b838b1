//! The one step that ends the boot it runs in, and what the next boot makes of it.

use std::time::{Duration, Instant};

use serde_json::json;
use tenon_core::codes::host::UNIT_FAILED;
use tenon_core::codes::stages as pages;
use tenon_core::problem::Problem;
use tenon_core::stages::paths;
use tenon_core::stages::state::{Reboot, RebootFinding, Status};

use super::{Check, Run, bus, fail};
use crate::{apply, random, stop};

/// How long the stage waits for the machine to go down.
pub const BLOCK: Duration = Duration::from_secs(300);
/// What may be emptied on request.
pub const RUNTIME_DIRECTORIES: [&str; 2] = ["/var/lib/containerd", "/var/lib/docker"];
/// Output with the id that the next boot's requests carry.
pub const REBOOT_ID: &str = "rebootId";
/// Outputs of steps that a missed expectation runs again.
const CAUSES: [&str; 2] = ["osUpdate", "runtimeInstalled"];

/// What the next boot must show, and why there must be one.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    pub reasons: Vec<String>,
    pub expect: Vec<(String, String)>,
}

/// Accounts for a reboot of an earlier run. `found`: what this boot shows for an expectation.
pub fn account(
    run: &mut Run<'_>,
    found: impl Fn(&str) -> Option<String>,
) -> Result<Check, Problem> {
    let asked_in = run.output("reasonsBoot").filter(|boot| !boot.is_empty());
    if asked_in.unwrap_or(&run.boot_id) != run.boot_id && run.root.exists(paths::RUNTIME_RESET) {
        let what = "tenon-runtime-reset.service has not done its work in this boot";
        return Err(Problem::new(&UNIT_FAILED, what));
    }
    let Some(reboot) = run.state().reboot() else {
        return Ok(Check::Satisfied("no reboot is on record".into()));
    };
    let missed: Vec<&str> = reboot
        .expect
        .iter()
        .filter(|(name, wanted)| found(name).as_ref() != Some(wanted))
        .map(|(name, _)| name.as_str())
        .collect();
    let proceed = run.machine.os.proceed_on_mismatch;
    match run.state().judge_reboot(&run.boot_id, missed.is_empty()) {
        RebootFinding::None | RebootFinding::AskAgain | RebootFinding::Refused => {
            Ok(Check::Satisfied("the machine has not rebooted yet".into()))
        }
        RebootFinding::Held => {
            clear(run, false)?;
            Ok(Check::Satisfied("the machine rebooted into what was installed".into()))
        }
        RebootFinding::RunAgain | RebootFinding::Missed if proceed => {
            tracing::warn!(missed = missed.join(", "), "the reboot did not lead into the update");
            clear(run, false)?;
            Ok(Check::Satisfied("the update is not active; going on as the config says".into()))
        }
        RebootFinding::RunAgain => {
            clear(run, true)?;
            Ok(Check::Satisfied(format!("the boot lacks {}; done again", missed.join(", "))))
        }
        RebootFinding::Missed => {
            let what = format!("after the reboots the machine still lacks {}", missed.join(", "));
            Err(Problem::new(&pages::EXPECTATION_MISSED, what))
        }
    }
}

/// Asks the next boot to empty the runtime's directories, whatever causes that boot: a power cut
/// merges a new runtime as well as a reboot does. So this comes before the runtime is linked.
pub fn request_reset(run: &mut Run<'_>) -> Result<(), Problem> {
    let id = match run.output(REBOOT_ID).filter(|id| !id.is_empty()) {
        Some(id) => id.to_owned(),
        None => random::letters(16)?,
    };
    run.set_output(REBOOT_ID, &id)?;
    let request = json!({"reboot": id, "directories": RUNTIME_DIRECTORIES});
    let text = format!("{request}\n");
    apply::put(run.root, paths::RUNTIME_RESET, 0o600, text.as_bytes())?;
    fail::after("reset-requested");
    Ok(())
}

/// Takes the reboot off the record; `again` also forgets what its causes did.
pub fn clear(run: &mut Run<'_>, again: bool) -> Result<(), Problem> {
    let stage = run.stage();
    run.update(|state| {
        state.set_reboot(None);
        for key in ["reasons", "reasonsBoot", REBOOT_ID] {
            state.set_output(stage, key, "");
        }
        state.set_status(stage, Status::Running);
        for cause in CAUSES.into_iter().filter(|_| again) {
            state.set_output(stage, cause, "");
        }
    })
}

/// Records, requests and waits. It ends with an error in every case but a machine that goes down.
pub fn perform(run: &mut Run<'_>, wish: &Wish, block: Duration) -> Result<(), Problem> {
    let mut reboot = match run.state().reboot() {
        Some(reboot) => reboot,
        None => Reboot {
            id: match run.output(REBOOT_ID).filter(|id| !id.is_empty()) {
                Some(id) => id.to_owned(),
                None => random::letters(16)?,
            },
            requested_in: run.boot_id.clone(),
            reasons: wish.reasons.clone(),
            expect: wish.expect.clone(),
            attempt: 0,
        },
    };
    if run.state().judge_reboot(&run.boot_id, false) == RebootFinding::Refused {
        let what = format!("the machine did not reboot after {} requests", reboot.attempt);
        return Err(Problem::new(&pages::REBOOT_REFUSED, what));
    }
    let first = reboot.attempt == 0;
    reboot.attempt += 1;
    let stage = run.stage();
    run.update(|state| {
        state.set_reboot(Some(&reboot));
        state.set_status(stage, Status::Rebooting);
        if first {
            state.set_reboots(state.reboots() + 1);
        }
    })?;
    fail::after("reboot-recorded");
    tracing::info!(reasons = reboot.reasons.join(", "), "rebooting");
    // A refusal is counted with the requests, not with the step's attempts.
    bus::reboot(run.root).map_err(|problem| {
        Problem::new(&pages::REBOOT_PENDING, "the reboot could not be asked for").cause(problem)
    })?;
    wait(block)
}

fn wait(block: Duration) -> Result<(), Problem> {
    let end = Instant::now() + block;
    let pending = |what: &str| Err(Problem::new(&pages::REBOOT_PENDING, what));
    while Instant::now() < end {
        if stop::check().is_err() {
            return pending("the machine is going down for its reboot");
        }
        std::thread::sleep(stop::SLICE);
    }
    pending("the machine was asked to reboot and is still up")
}
