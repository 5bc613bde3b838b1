//! The bootstrap did not run.

use super::*;

const UNITS: &[&str] = &[
    "nodeadm-boot-hook.service",
    "nodeadm-config.service",
    "nodeadm-run.service",
    "tenon-config.service",
    "tenon-run.service",
];
const WANTS: &str = "/etc/systemd/system/multi-user.target.wants";

pub(super) static CAUSE: Cause = Cause {
    number: 18,
    slug: "bootstrap-not-run",
    title: "a unit of the bootstrap, or the kubelet, failed or never ran",
    step: Step::Units,
    vague: true,
    checks: &[Check::proves("bootstrap-units", failed), Check::proves("bootstrap-enabled", enabled),
        Check::proves("kubelet-started", started),],
    why: "the units that make the machine a node ended with an error, or the image does not start them",
    fix: "read the unit's journal; in a custom image enable the units and check it with `tenon image verify`",
    command: "journalctl -b -u 'nodeadm-*' -u 'tenon-*'",
    ..Cause::BLANK
};

fn failed(view: &View) -> Found {
    let states = UNITS.iter().filter_map(|name| Some((name, view.unit(name)?)));
    let bad = states.filter(|(_, unit)| unit.active == "failed" || unit.load == "masked");
    let evidence = bad.map(|(name, unit)| {
        let words = if unit.load == "masked" { "masked".into() } else { format!("failed, result {}", unit.result) };
        Evidence::unit(*name, words)
    });
    Found::of(evidence.collect())
}

/// The node is configured, and nobody has started its kubelet.
fn started(view: &View) -> Found {
    let Some(unit) = view.unit("kubelet.service").filter(|_| !is_unconfigured(view)) else {
        return Found::NotApplicable;
    };
    let absent = matches!(unit.load.as_str(), "masked" | "not-found");
    match absent || unit.active == "inactive" {
        true if absent => Found::fail(Evidence::unit("kubelet.service", &unit.load)),
        true => Found::fail(Evidence::unit("kubelet.service", &unit.active)),
        false => Found::Pass,
    }
}

/// An image has the units, and nothing starts them.
fn enabled(view: &View) -> Found {
    if view.hides_settings() {
        return Found::Unknown("the kubelet's settings may not be read");
    }
    if !is_unconfigured(view) {
        return Found::NotApplicable;
    }
    let Some(wanted) = view.names(WANTS) else {
        return Found::Unknown("the enabled units are not known");
    };
    let ran = UNITS.iter().any(|name| view.unit(name).is_some_and(|unit| !unit.active.is_empty() && unit.active != "inactive"));
    match ran || wanted.iter().any(|name| UNITS.contains(&name.as_str())) {
        true => Found::Pass,
        false => Found::fail(Evidence::file(WANTS, "no bootstrap unit is enabled, and the kubelet has no flags")),
    }
}
