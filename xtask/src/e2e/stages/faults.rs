//! The cases: a story without a fault, and the same story with one.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};

use super::Workshop;
use super::machine::{CONFIG, Machine};
use super::store::Store;

/// Every point at which a run can end, in the order of the story.
const POINTS: &[&str] = &[
    "publish",
    "arm",
    "assets-state",
    "assets-marker",
    "cluster-version",
    "mappings",
    "os-update",
    "runtime-select",
    "runtime-install",
    "reboot-recorded",
    "reset-requested",
    "verify",
    "kubelet-files",
    "kubelet-env",
    "prepare-state",
    "prepare-marker",
    "forget",
    "cleanup-state",
    "cleanup-marker",
];

fn clean_machine(workshop: &Workshop) -> anyhow::Result<Machine<'_>> {
    let mut machine = Machine::new(workshop, CONFIG)?;
    machine.push()?;
    machine.live()?;
    machine.promises()?;
    Ok(machine)
}

fn reference(workshop: &Workshop) -> anyhow::Result<BTreeMap<String, String>> {
    clean_machine(workshop)?.snapshot()
}

/// Order, one reboot, nothing on later boots.
pub fn three_boots_without_a_fault(workshop: &Workshop) -> anyhow::Result<usize> {
    let machine = clean_machine(workshop)?;
    ensure!(machine.boots() == 3, "{} boots: {}", machine.boots(), machine.story());
    ensure!(machine.count(" reboot") == 1, "{}", machine.story());
    let seen = machine.events();
    let at = |words: &str| {
        seen.iter().position(|event| event.contains(words)).with_context(|| words.to_owned())
    };
    let order = [
        at("boot-1 tenon stage assets")?,
        at("boot-1 tenon stage prepare")?,
        at("boot-1 reboot")?,
        at("boot-2 tenon stage runtime-reset")?,
        at("boot-2 containerd start 2.1.9 state=empty")?,
        at("boot-2 tenon stage prepare")?,
        at("boot-2 kubelet start gate=open prepared=yes")?,
        at("boot-2 bootstrap run")?,
        at("boot-2 bootstrap done")?,
        at("boot-2 addons run")?,
        at("boot-2 addons done")?,
        at("boot-2 tenon stage assets --cleanup")?,
        at("boot-3 kubelet start gate=open")?,
    ];
    ensure!(order.is_sorted(), "{order:?}\n{}", machine.story());
    for path in ["tenon-assets.path", "tenon-bootstrap.path", "tenon-addons.path"] {
        let line = machine.unit(3, path)?;
        ensure!(line.contains("inactive dead"), "{line}");
    }
    ensure!(machine.restarts(2, "kubelet.service")? == 0, "the kubelet started more than once");
    let status = machine.tenon(&["stage", "status"])?;
    ensure!(status.status.success(), "status: {}", String::from_utf8_lossy(&status.stdout));
    // The seed's last line: for the journal, and for `systemctl status`.
    for file in ["prepare.log", "show-boot-2"] {
        let text = std::fs::read_to_string(machine.place().join(file))?;
        ensure!(text.contains("node components bootstrapped"), "not in {file}: {text}");
    }
    Ok(order.len())
}

/// The same end after a run was ended at a point, by exit, abort and kill in turn.
pub fn a_kill_after_every_step(workshop: &Workshop) -> anyhow::Result<usize> {
    at_every_point(workshop, false)
}

/// The same with the whole machine gone, and a new boot after it.
pub fn a_power_cut_after_every_step(workshop: &Workshop) -> anyhow::Result<usize> {
    at_every_point(workshop, true)
}

fn at_every_point(workshop: &Workshop, power: bool) -> anyhow::Result<usize> {
    let expected = reference(workshop)?;
    for (index, point) in POINTS.iter().enumerate() {
        let how = if power { "kill" } else { ["kill", "exit", "abort"][index % 3] };
        let mut machine = Machine::new(workshop, CONFIG)?;
        let fired = machine.place().join("fired");
        let text = format!(
            "export TENON_FAILPOINT=after:{point}:{how} TENON_FAILPOINT_ONCE={}\n",
            fired.display()
        );
        machine.put("environment", &text)?;
        if power {
            machine.put("power-cut", "")?;
        }
        machine.push()?;
        machine.live().with_context(|| format!("{how} after {point}"))?;
        ensure!(fired.exists(), "the point {point} was never reached");
        same(&expected, &machine, &format!("{how} after {point}"))?;
        machine.promises().with_context(|| format!("{how} after {point}"))?;
    }
    Ok(POINTS.len())
}

fn same(
    expected: &BTreeMap<String, String>,
    machine: &Machine<'_>,
    name: &str,
) -> anyhow::Result<()> {
    let found = machine.snapshot()?;
    let paths = expected.keys().chain(found.keys());
    for path in paths {
        let (wanted, got) = (expected.get(path), found.get(path));
        ensure!(
            wanted == got,
            "{name}: {path} differs\nwanted {wanted:?}\nfound {got:?}\n{}",
            machine.story()
        );
    }
    Ok(())
}

/// 503 for more than one run of the stage, then the bundle.
pub fn a_store_that_answers_late(workshop: &Workshop) -> anyhow::Result<usize> {
    let draft = Machine::new(workshop, CONFIG)?;
    let body = std::fs::read(draft.bundle()?)?;
    let digest = draft.push()?;
    let store = Store::start(body, 6)?;
    let source = format!("source: \"{}/b.tar.gz\", digest: \"{digest}\"", store.url);
    let mut machine = Machine::new(workshop, &CONFIG.replace("source: push", &source))?;
    machine.put("patience", "600")?;
    machine.live()?;
    machine.promises()?;
    let runs = machine.count("tenon stage assets") - machine.count("--cleanup");
    ensure!(runs == 2, "the stage ran {runs} times: {}", machine.story());
    ensure!(store.requests() == 7, "{} requests", store.requests());
    Ok(1)
}

/// Blocked with one run; the path waits; after a reset the right bundle goes through.
pub fn a_wrong_digest_blocks(workshop: &Workshop) -> anyhow::Result<usize> {
    let other = format!("source: push, digest: \"sha256:{}\"", "0".repeat(64));
    let mut machine = Machine::new(workshop, &CONFIG.replace("source: push", &other))?;
    machine.push()?;
    machine.put("patience", "15")?;
    machine.boot()?;
    let runs = machine.count("tenon stage assets");
    ensure!(runs == 1, "the stage ran {runs} times: {}", machine.story());
    let (path, service) =
        (machine.unit(1, "tenon-assets.path")?, machine.unit(1, "tenon-assets.service")?);
    ensure!(path.contains("active waiting"), "{path}");
    ensure!(service.contains("failed failed"), "{service}");
    let status = machine.tenon(&["stage", "status"])?;
    let text = String::from_utf8_lossy(&status.stdout).into_owned();
    ensure!(status.status.code() == Some(1) && text.contains("blocked"), "{text}");
    ensure!(text.contains("tenon stage reset assets"), "no next step: {text}");
    ensure!(machine.has("etc/issue.d/90-tenon.issue"), "nothing on the console");
    ensure!(machine.has("var/lib/tenon/rejected/bundle"), "the bundle is gone");
    machine.put("root/etc/tenon/config.yaml", CONFIG)?;
    let reset = machine.tenon(&["stage", "reset", "assets", "--yes"])?;
    ensure!(reset.status.success(), "{}", String::from_utf8_lossy(&reset.stderr));
    machine.push()?;
    machine.goals(&["cleanup"])?;
    machine.live()?;
    ensure!(!machine.has("etc/issue.d/90-tenon.issue"), "the console still complains");
    Ok(1)
}

/// Asked for twice in one boot; the second request is heard.
pub fn a_refused_reboot_is_asked_for_again(workshop: &Workshop) -> anyhow::Result<usize> {
    let mut machine = Machine::new(workshop, CONFIG)?;
    machine.push()?;
    let units = machine.place().join("root/etc/systemd/system");
    std::fs::rename(units.join("reboot.target"), machine.place().join("reboot.target"))?;
    let state = machine.place().join("root/var/lib/tenon/state.json");
    machine.program(
        "during",
        &format!(
            "[ -e {0}/reboot.target ] || exit 0\ngrep -q '\"attempt\": 2' {1} || exit 0\n\
             mv {0}/reboot.target {2}/ && systemctl --user daemon-reload",
            machine.place().display(),
            state.display(),
            units.display()
        ),
    )?;
    machine.live()?;
    machine.promises()?;
    let asked = machine.count("boot-1 tenon stage prepare");
    ensure!(asked == 3, "prepare ran {asked} times in the first boot: {}", machine.story());
    ensure!(machine.count(" reboot") == 1, "{}", machine.story());
    Ok(1)
}

pub fn a_bootstrap_that_fails_once(workshop: &Workshop) -> anyhow::Result<usize> {
    let mut machine = Machine::new(workshop, CONFIG)?;
    machine.put("bootstrap.fails-once", "")?;
    machine.push()?;
    machine.live()?;
    machine.promises()?;
    ensure!(machine.count("bootstrap fails") == 1, "{}", machine.story());
    let events = machine.events();
    let first = |words: &str| events.iter().position(|event| event.contains(words));
    ensure!(first("bootstrap done") < first("addons run"), "{}", machine.story());
    Ok(1)
}

/// One run, the service failed, its path waiting, add-ons never.
pub fn a_bootstrap_that_fails_for_good(workshop: &Workshop) -> anyhow::Result<usize> {
    let mut machine = Machine::new(workshop, CONFIG)?;
    machine.put("bootstrap.fails", "")?;
    machine.push()?;
    machine.boot()?;
    machine.put("patience", "25")?;
    machine.boot()?;
    ensure!(machine.count("bootstrap run") == 1, "{}", machine.story());
    ensure!(machine.count("addons done") == 0, "{}", machine.story());
    let (path, service) =
        (machine.unit(2, "tenon-bootstrap.path")?, machine.unit(2, "tenon-bootstrap.service")?);
    ensure!(path.contains("active waiting"), "{path}");
    ensure!(service.contains("failed failed"), "{service}");
    Ok(1)
}

/// A trigger that is there again after the end starts nothing and fails nothing.
pub fn a_trigger_that_is_left_over(workshop: &Workshop) -> anyhow::Result<usize> {
    let mut machine = clean_machine(workshop)?;
    machine.put("root/var/lib/tenon/trigger/bootstrap", "")?;
    machine.put("root/var/lib/tenon/trigger/addons", "")?;
    machine.boot()?;
    machine.promises()?;
    ensure!(machine.count("bootstrap run") == 1, "{}", machine.story());
    Ok(1)
}

/// Files without the announcement are a copy that is still going on.
pub fn a_copy_that_is_not_announced(workshop: &Workshop) -> anyhow::Result<usize> {
    let mut machine = Machine::new(workshop, CONFIG)?;
    machine.push()?;
    std::fs::remove_file(machine.place().join("root/var/lib/tenon/incoming/ready"))?;
    machine.put("patience", "15")?;
    machine.boot()?;
    ensure!(machine.count("tenon stage assets") == 0, "{}", machine.story());
    ensure!(machine.count("kubelet start") == 0, "{}", machine.story());
    machine.put("root/var/lib/tenon/incoming/ready", "")?;
    machine.goals(&["cleanup"])?;
    machine.live()?;
    Ok(1)
}

/// Without the unit in front of it the kubelet still waits for the file.
pub fn the_gate_alone_holds_the_kubelet(workshop: &Workshop) -> anyhow::Result<usize> {
    let mut machine = Machine::new(workshop, CONFIG)?;
    let unit = machine.place().join("root/etc/systemd/system/k8s-node-bootstrap.service");
    std::fs::remove_file(&unit)?;
    std::os::unix::fs::symlink("/dev/null", &unit)?;
    machine.put("patience", "15")?;
    machine.boot()?;
    ensure!(machine.count("kubelet start") == 0, "{}", machine.story());
    let restarts = machine.restarts(1, "kubelet.service")?;
    ensure!(restarts >= 2, "the kubelet was tried {restarts} times");
    Ok(1)
}
