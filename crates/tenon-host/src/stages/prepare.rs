//! `tenon stage prepare`: cluster version, OS update, runtime, reboot, and last the gate.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use tenon_core::bootstrap_token::Token;
use tenon_core::codes;
use tenon_core::codes::stages as pages;
use tenon_core::kube_version::Version;
use tenon_core::problem::Problem;
use tenon_core::stages::machine::Role;
use tenon_core::stages::state::Status;
use tenon_core::stages::{kubelet, paths};

use super::reboot::{self, Wish};
use super::runtime::{self, RUNTIME};
use super::{Check, Run, Step, bus, cluster_version, disk, kubelet_files};
use crate::cluster::discover;
use crate::command;
use crate::gather::environment::Environment;
use crate::root::Root;
use crate::stop;

const HOST_NAME: &str = "/proc/sys/kernel/hostname";
const FOREIGN: &str = "/etc/kubernetes/kubelet.env.foreign";
/// What a joining machine cannot do without.
const AUTHORITY: &str = "the cluster's CA (pki/ca.crt)";
/// Between two questions to the API server.
const API_PAUSE: Duration = Duration::from_secs(10);
const PROGRAM_BOUND: Duration = Duration::from_secs(60);
/// How much older than the API server a kubelet may be.
const OLDEST: u32 = 3;

/// When a reboot may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebootWhen {
    Needed,
    Never,
    Always,
}

/// The work of the stage.
#[derive(Debug)]
pub struct Prepare {
    pub environment: Environment,
    pub force_version: Option<String>,
    /// Node path of mappings that win over all others.
    pub mappings: Option<String>,
    /// Overrides the config's provider: Some(true) is update-engine.
    pub os_update: Option<bool>,
    pub reboot: RebootWhen,
    pub patience: bus::Patience,
    /// How long one run waits for files that somebody sends.
    pub input_wait: Duration,
    pub reboot_block: Duration,
    pub api_pause: Duration,
}

impl Prepare {
    pub fn new(environment: Environment) -> Self {
        Prepare {
            environment,
            force_version: None,
            mappings: None,
            os_update: None,
            reboot: RebootWhen::Needed,
            patience: bus::Patience::default(),
            input_wait: Duration::from_secs(15 * 60),
            reboot_block: reboot::BLOCK,
            api_pause: API_PAUSE,
        }
    }
}

/// A step whose effect its own check sees.
const fn step(
    name: &'static str,
    check: fn(&mut Prepare, &mut Run<'_>) -> Result<Check, Problem>,
    apply: fn(&mut Prepare, &mut Run<'_>) -> Result<(), Problem>,
) -> Step<Prepare> {
    Step { name, check, apply, verify: None }
}

pub const STEPS: &[Step<Prepare>] = &[
    step(
        "after-reboot",
        |_, run| {
            let root = run.root;
            reboot::account(run, |name| shown(root, name))
        },
        |_, _| Ok(()),
    ),
    step("inputs", inputs, wait_for_inputs),
    step("cluster-version", |_, run| recorded(run, "kubernetesVersion"), cluster_version::decide),
    step("mappings", |_, run| recorded(run, "containerdWanted"), cluster_version::choose_mappings),
    step("os-update", os_updated, os_update),
    step("runtime-select", runtime::selected, runtime::select),
    step("runtime-install", runtime::installed, runtime::install),
    step("runtime-activate", runtime::activated, runtime::activate),
    Step { name: "reboot", check: reboot_needed, apply: do_reboot, verify: None },
    Step {
        name: "verify",
        check: |_, _| Ok(Check::Needed),
        apply: verify,
        verify: Some(|_, _| Ok(())),
    },
    Step {
        name: "kubelet-files",
        check: |_, _| Ok(Check::Needed),
        apply: kubelet_files::write,
        verify: Some(kubelet_files::verify),
    },
    step("kubelet-env", env_written, write_env),
];

/// The names of the steps, for `--only`.
pub fn step_names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// Runs the stage to its end.
pub fn run(mut run: Box<Run<'_>>, work: &mut Prepare) -> Result<(), Problem> {
    run.steps(STEPS, work)?;
    let version = run.output("kubernetesVersion").unwrap_or_default();
    let source = run.output("versionSource").unwrap_or_default();
    let words = format!("node components bootstrapped: {version} (from {source})");
    if run.machine.role == Role::Worker && run.machine.os.updates_after {
        lift_update_hold(run.root)?;
    }
    run.finish(Status::Done, &words)
}

/// What this boot shows for an expectation of the last.
fn shown(root: &Root, name: &str) -> Option<String> {
    match name {
        "osVersion" => Some(runtime::os(root).version),
        "containerd" => runtime::active_version(root),
        _ => None,
    }
}

fn recorded(run: &Run<'_>, key: &str) -> Result<Check, Problem> {
    Ok(match run.output(key).filter(|value| !value.is_empty()) {
        Some(value) => Check::Satisfied(value.to_owned()),
        None => Check::Needed,
    })
}

/// The cluster's CA: of the config, else of the bundle, else as it was found with the token.
pub fn authority(run: &Run<'_>) -> Result<Option<Vec<u8>>, Problem> {
    let given = &run.machine.cluster.certificate_authority;
    if !given.is_empty() {
        return Ok(Some(given.clone()));
    }
    match disk::read(run.root, &format!("{}/pki/ca.crt", paths::ASSETS), 1 << 20)? {
        None if run.machine.cluster.ca_hash.is_some() => {
            disk::read(run.root, paths::DISCOVERED_CA, 1 << 20)
        }
        bundled => Ok(bundled),
    }
}

/// Finds the cluster with the token and keeps its CA. Nothing is believed that the hash in the
/// config does not vouch for.
fn find_cluster(work: &Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    let cluster = &run.machine.cluster;
    let (Some(pin), Some(token)) = (&cluster.ca_hash, &run.machine.token) else { return Ok(()) };
    let token = Token::parse(token.token.expose())?;
    let pins = std::slice::from_ref(pin);
    let found = discover(&cluster.endpoint, &token, pins, work.input_wait)?;
    run.write(paths::DISCOVERED_CA, 0o644, &found.authority)
}

/// What this role still waits for.
fn missing(run: &Run<'_>) -> Result<Option<&'static str>, Problem> {
    let assets = run.machine.assets.source != "none";
    let joins = run.machine.role != Role::FirstMaster;
    Ok(match () {
        () if assets && !run.root.exists(&paths::done("assets")) => Some("the asset bundle"),
        () if joins && authority(run)?.is_none() => Some(AUTHORITY),
        () => None,
    })
}

fn inputs(_: &mut Prepare, run: &mut Run<'_>) -> Result<Check, Problem> {
    set_foreign_aside(run.root)?;
    Ok(match missing(run)? {
        None => Check::Satisfied("all inputs are here".into()),
        Some(_) => Check::Needed,
    })
}

fn wait_for_inputs(work: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    let end = Instant::now() + work.input_wait;
    while let Some(what) = missing(run)? {
        if what == AUTHORITY && run.machine.cluster.ca_hash.is_some() {
            find_cluster(work, run)?;
            continue;
        }
        if Instant::now() >= end {
            let what = format!("{what} has not arrived");
            return Err(Problem::new(&pages::WAITING_INPUTS, what));
        }
        stop::sleep(Duration::from_millis(500))?;
    }
    Ok(())
}

/// A gate that Tenon did not open is closed again.
fn set_foreign_aside(root: &Root) -> Result<(), Problem> {
    let text = disk::read(root, paths::KUBELET_ENV, 1 << 20)?;
    let ours = text.as_ref().is_none_or(|bytes| kubelet::is_ours(&String::from_utf8_lossy(bytes)));
    if !ours {
        tracing::warn!(
            path = paths::KUBELET_ENV,
            aside = FOREIGN,
            "a foreign file was moved aside"
        );
        disk::rename(root, paths::KUBELET_ENV, FOREIGN)?;
    }
    Ok(())
}

fn os_updated(_: &mut Prepare, run: &mut Run<'_>) -> Result<Check, Problem> {
    recorded(run, "osUpdate")
}

/// Brings the OS up to date, or only looks what the next boot will run.
fn os_update(work: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    let now = runtime::os(run.root).version;
    let provider = work.os_update.unwrap_or(run.machine.os.update_engine);
    let next = match provider {
        true => bus::update(run.root, work.patience)?,
        false => bus::pending_update(run.root),
    };
    match (&next, provider) {
        (Some(version), true) => {
            add_reason(run, "os-update")?;
            run.set_output("osExpected", version)?;
        }
        (Some(version), false) => run.set_output("osPending", version)?,
        (None, _) => {}
    }
    let words = next.map_or(format!("{now}: nothing newer"), |next| format!("{now} to {next}"));
    run.set_output("osUpdate", &words)
}

/// Adds to the reasons for a reboot.
pub fn add_reason(run: &mut Run<'_>, reason: &str) -> Result<(), Problem> {
    let mut list: Vec<String> = reasons(run);
    if !list.iter().any(|known| known == reason) {
        list.push(reason.to_owned());
    }
    let boot = run.boot_id.clone();
    run.set_output("reasonsBoot", &boot)?;
    run.set_output("reasons", &list.join(","))
}

fn reasons(run: &Run<'_>) -> Vec<String> {
    let text = run.output("reasons").unwrap_or_default();
    text.split(',').filter(|reason| !reason.is_empty()).map(str::to_owned).collect()
}

fn reboot_needed(work: &mut Prepare, run: &mut Run<'_>) -> Result<Check, Problem> {
    if work.reboot == RebootWhen::Always && run.state().reboots() == 0 {
        add_reason(run, "forced")?;
    }
    let reasons = reasons(run);
    if !reasons.is_empty() && rebooted_by_others(run) {
        reboot::clear(run, false)?;
        return Ok(Check::Satisfied("the machine has rebooted into what was installed".into()));
    }
    Ok(match (reasons.is_empty(), work.reboot) {
        (true, _) => Check::Satisfied("no reboot is needed".into()),
        (false, RebootWhen::Never) => {
            let words = format!("left out by --reboot never: {}", reasons.join(", "));
            tracing::warn!("{words}");
            Check::Satisfied(words)
        }
        (false, _) => Check::Needed,
    })
}

/// True when a power cut or a person came first: another boot that shows all that was wanted.
fn rebooted_by_others(run: &Run<'_>) -> bool {
    run.state().reboot().is_none()
        && run.output("reasonsBoot").is_some_and(|boot| !boot.is_empty() && boot != run.boot_id)
        && expectations(run)
            .iter()
            .all(|(name, wanted)| shown(run.root, name).as_ref() == Some(wanted))
}

/// What the next boot must show.
fn expectations(run: &Run<'_>) -> Vec<(String, String)> {
    let pairs = [("osVersion", "osExpected"), (RUNTIME, "runtimeExpected")];
    let wanted = |key: &str| run.output(key).filter(|value| !value.is_empty());
    pairs
        .into_iter()
        .filter_map(|(name, key)| Some((name.to_owned(), wanted(key)?.to_owned())))
        .collect()
}

fn do_reboot(work: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    let wish = Wish { reasons: reasons(run), expect: expectations(run) };
    reboot::perform(run, &wish, work.reboot_block)
}

/// The version that a program of the machine says it is.
pub fn program_version(root: &Root, path: &str) -> Result<(Version, String), Problem> {
    if !root.exists(path) {
        let what = format!("{path} is not on this machine");
        return Err(Problem::new(&codes::host::PROGRAM_MISSING, what));
    }
    let argv = [root.join(path).display().to_string(), "--version".to_owned()];
    let output = command::must(&argv, PROGRAM_BOUND, &[])?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let found = Version::find(&text).map(|(version, word)| (version, word.to_owned()));
    found.ok_or_else(|| {
        Problem::new(&codes::facts::VERSION_UNKNOWN, format!("{path} does not say its version"))
    })
}

/// Asks the machine whether all of it came true.
fn verify(_: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    runtime::verify(run)?;
    let (version, word) = program_version(run.root, "/usr/bin/kubelet")?;
    let cluster = run.output("kubernetesVersion").and_then(Version::parse);
    let cluster = cluster.unwrap_or(version);
    let fits = version.major == cluster.major
        && version.minor <= cluster.minor
        && version.minor + OLDEST >= cluster.minor;
    if !fits {
        let what = format!("kubelet {word} does not go with Kubernetes {cluster}");
        return Err(Problem::new(&pages::VERSION_SKEW, what));
    }
    let unified = run.root.exists("/sys/fs/cgroup/cgroup.controllers");
    let refuses = run.machine.kubelet.fail_cgroup_v1.unwrap_or(version >= Version::new(1, 35, 0));
    if !unified && refuses {
        return Err(Problem::new(&pages::NOT_CGROUP_V2, "the machine runs with cgroup v1"));
    }
    run.set_output("kubelet", &word)?;
    let name = run.root.read_text(HOST_NAME).ok().flatten().unwrap_or_default();
    let name = run.machine.node_name(&name).to_lowercase();
    run.set_output("nodeName", &name)?;
    if let Some(ip) = run.machine.node.ip.or_else(own_address) {
        run.set_output("nodeIp", &ip.to_string())?;
    }
    Ok(())
}

/// The address that packets to elsewhere would carry. Nothing is sent.
fn own_address() -> Option<IpAddr> {
    let ask = |own: SocketAddr, other: SocketAddr| {
        let socket = UdpSocket::bind(own).ok()?;
        socket.connect(other).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    };
    let documentation = Ipv4Addr::new(192, 0, 2, 1);
    let documentation_v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    ask((Ipv4Addr::UNSPECIFIED, 0).into(), (documentation, 9).into())
        .or_else(|| ask((Ipv6Addr::UNSPECIFIED, 0).into(), (documentation_v6, 9).into()))
}

fn environment_text(run: &Run<'_>) -> Result<String, Problem> {
    let host = kubelet::Host {
        node_ip: run.output("nodeIp").and_then(|text| text.parse().ok()),
        boot_id: run.boot_id.clone(),
        ..kubelet::Host::default()
    };
    let version = run.output("kubernetesVersion").unwrap_or_default();
    kubelet::environment(&run.machine, &host, version)
}

fn env_written(_: &mut Prepare, run: &mut Run<'_>) -> Result<Check, Problem> {
    let there = disk::read(run.root, paths::KUBELET_ENV, 1 << 20)?;
    Ok(match there.as_deref() == Some(environment_text(run)?.as_bytes()) {
        true => Check::Satisfied("the gate is open".into()),
        false => Check::Needed,
    })
}

fn write_env(_: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    run.write(paths::KUBELET_ENV, 0o600, environment_text(run)?.as_bytes())
}

/// Lets the OS reboot by itself again: takes away what the Ignition config put in its way.
pub fn lift_update_hold(root: &Root) -> Result<(), Problem> {
    let unit = "/etc/systemd/system/locksmithd.service";
    if disk::read_link(root, unit).as_deref() == Some("/dev/null") {
        disk::remove(root, unit)?;
    }
    disk::remove(root, "/etc/zincati/config.d/90-tenon.toml")
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
