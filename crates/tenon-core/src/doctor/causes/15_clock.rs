//! The clock is wrong.

use super::*;

/// Signatures and certificates bear more, but a clock this far off is not kept at all.
const MOST_S: u64 = 60;
const SKEW: &str = "AWS general reference, signature version 4 troubleshooting";

pub(super) static CAUSE: Cause = Cause {
    number: 15,
    slug: "clock-wrong",
    title: "the clock of this machine is wrong",
    step: Step::Time,
    alone: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["Signature expired"], SKEW),
        Signal::confirmed(Log::Kubelet, &["Signature not yet current"], SKEW),
        Signal::confirmed(Log::Bootstrap, &["Signature expired"], SKEW),
        Signal::confirmed(Log::Bootstrap, &["Signature not yet current"], SKEW),
        Signal::confirmed(Log::Kubelet, &["certificate has expired or is not yet valid: current time"], GO_X509).on_api(),
        Signal::confirmed(Log::Bootstrap, &["certificate has expired or is not yet valid: current time"], GO_X509),
    ],
    checks: &[
        Check::proves("clock-offset", offset),
        Check::excludes("clock-agrees", agrees),
        Check::supports("clock-synchronised", synchronised),
        Check::supports("time-service", service),
    ],
    why: "signatures are valid for minutes and certificates between dates, so a wrong clock makes every proof of identity fail",
    fix: "start chronyd and let it reach 169.254.169.123 (UDP 123)",
    command: "chronyc tracking",
    ..Cause::BLANK
};

fn offset(view: &View) -> Found {
    match view.node.probes.clock_offset_s {
        None => Found::Unknown("no server told its time"),
        Some(offset) if offset.unsigned_abs() > MOST_S => {
            let side = if offset > 0 { "behind" } else { "ahead of" };
            let seconds = offset.unsigned_abs();
            let text = format!("the clock is {seconds} s {side} the API server's");
            Found::fail(Evidence::probe("time", text).field("offsetSeconds", offset))
        }
        Some(_) => Found::Pass,
    }
}

fn agrees(view: &View) -> Found {
    match view.node.probes.clock_offset_s {
        Some(offset) if offset.unsigned_abs() <= MOST_S => {
            Found::fail(Evidence::probe("time", format!("{offset} s from the API server's clock")))
        }
        _ => Found::Pass,
    }
}

fn synchronised(view: &View) -> Found {
    match &view.node.probes.clock {
        None => Found::Unknown("chrony was not asked"),
        Some(clock) if !clock.synchronised => Found::fail(Evidence::probe("time", "chrony has no reference")),
        Some(_) => Found::Pass,
    }
}

fn service(view: &View) -> Found {
    match view.unit("chronyd.service") {
        None => Found::Unknown("the state of chronyd is not known"),
        Some(unit) if matches!(unit.active.as_str(), "failed" | "inactive") => {
            Found::fail(Evidence::unit("chronyd.service", &unit.active))
        }
        Some(_) => Found::Pass,
    }
}
