//! A script of the user data stands in the way of the bootstrap.

use serde_json::Value;

use super::*;

const STATUS: &str = "/run/cloud-init/status.json";
/// From then on a stage of the boot hangs rather than works.
const LONGEST_S: f64 = 600.0;

pub(super) static CAUSE: Cause = Cause {
    number: 19,
    slug: "boot-script",
    title: "a boot script hangs or failed before the bootstrap",
    step: Step::Units,
    vague: true,
    signals: &[
        Signal::confirmed(Log::CloudInit, &["Failed running /var/lib/cloud/instance/scripts/"], "cloud-init cloudinit/subp.py"),
        Signal::confirmed(Log::CloudInit, &["Failed to run module scripts"], "cloud-init cloudinit/config/cc_scripts_user.py"),
    ],
    checks: &[Check::proves("cloud-init-ends", ends), Check::supports("cloud-init-errors", errors)],
    why: "the run phase waits for cloud-init's last stage, and a script in it does not end or ended with an error",
    fix: "give the script a time limit, mend it, or move it behind the join with a postJoin hook",
    command: "cloud-init status --long",
    ..Cause::BLANK
};

fn stages(view: &View) -> Option<Value> {
    let status: Value = serde_json::from_str(view.file(STATUS)?).ok()?;
    Some(status["v1"].clone())
}

/// A stage that began long ago and has not ended, while the kubelet has nothing to start with.
fn ends(view: &View) -> Found {
    let Some(stages) = stages(view) else { return Found::Unknown("cloud-init left no status") };
    let now = view.now_us as f64 / 1e6;
    let running = stages.as_object().into_iter().flatten().find_map(|(name, stage)| {
        let start = stage["start"].as_f64()?;
        let open = stage["finished"].is_null() && now - start > LONGEST_S;
        open.then(|| (name.clone(), now - start))
    });
    match running {
        Some((name, seconds)) if view.passed_at(Step::Kubelet).is_none() => {
            Found::fail(Evidence::file(STATUS, format!("stage {name} runs since {seconds:.0} s")))
        }
        _ => Found::Pass,
    }
}

fn errors(view: &View) -> Found {
    let Some(stages) = stages(view) else { return Found::Unknown("cloud-init left no status") };
    let stages = stages.as_object().into_iter().flatten();
    let failed = stages.filter(|(_, stage)| stage["errors"].as_array().is_some_and(|list| !list.is_empty()));
    Found::of(failed.map(|(name, _)| Evidence::file(STATUS, format!("stage {name} has errors"))).collect())
}
