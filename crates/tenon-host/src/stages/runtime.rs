//! The container runtime: the one of the OS, or one installed as a system extension.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};
use tenon_core::codes;
use tenon_core::codes::stages as pages;
use tenon_core::hex::hex;
use tenon_core::kube_version::Version;
use tenon_core::problem::Problem;
use tenon_core::stages::mappings::{self, Image, Os};
use tenon_core::stages::paths;

use super::download::{self, Fetched};
use super::prepare::{Prepare, add_reason, program_version};
use super::{Check, Run, cri, disk, reboot};
use crate::apply;
use crate::command;
use crate::root::Root;
use crate::systemd::{JobEnd, Manager, Verb};

pub const RUNTIME: &str = "containerd";
const PROGRAM: &str = "/usr/bin/containerd";
const UNIT: &str = "containerd.service";
const SOCKET: &str = "/run/containerd/containerd.sock";
const STATE: &str = "/var/lib/containerd";
const STORE: &str = "/opt/extensions";
const LINKS: &str = "/etc/extensions";
const CRI_BOUND: Duration = Duration::from_secs(10);
const JOB_BOUND: Duration = Duration::from_secs(120);

fn os_release(root: &Root) -> String {
    let paths = ["/etc/os-release", "/usr/lib/os-release"];
    paths.iter().find_map(|path| root.read_text(path).ok().flatten()).unwrap_or_default()
}

/// The operating system that runs now.
pub fn os(root: &Root) -> Os {
    let text = os_release(root);
    let value = |name: &str| mappings::release_value(&text, name);
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "x86-64",
        "aarch64" => "arm64",
        other => other,
    };
    Os { id: value("ID"), version: value("VERSION_ID"), architecture: architecture.into() }
}

/// The version of the runtime that would start now.
pub fn active_version(root: &Root) -> Option<String> {
    program_version(root, PROGRAM).ok().map(|(version, _)| version.to_string())
}

fn wanted(run: &Run<'_>) -> Vec<String> {
    let text = run.output("containerdWanted").unwrap_or_default();
    text.split(',').map(str::to_owned).collect()
}

pub fn selected(_: &mut Prepare, run: &mut Run<'_>) -> Result<Check, Problem> {
    Ok(match (run.machine.runtime.sysext, run.output("runtimeSelected")) {
        (false, _) => Check::Satisfied("the runtime of the OS is used".into()),
        (true, Some(version)) if !version.is_empty() => Check::Satisfied(version.to_owned()),
        _ => Check::Needed,
    })
}

fn catalogue(run: &Run<'_>) -> Result<Vec<Image>, Problem> {
    let path = &run.machine.runtime.catalogue;
    let bytes = disk::read(run.root, path, 4 << 20)?;
    let none = || Problem::new(&pages::BAD_MAPPINGS, format!("there is no catalogue at {path}"));
    mappings::catalogue(
        &String::from_utf8_lossy(&bytes.ok_or_else(none)?),
        &format!("file://{path}"),
    )
}

/// The operating system that the next boot runs.
fn next_os(run: &Run<'_>) -> Os {
    let now = os(run.root);
    let next = ["osExpected", "osPending"].iter().find_map(|key| run.output(key));
    let version = next.filter(|version| !version.is_empty()).unwrap_or(&now.version).to_owned();
    Os { version, ..now }
}

/// The images for the OS of the next boot, and for this one where they differ.
fn images(run: &Run<'_>) -> Result<(Image, Option<Image>), Problem> {
    let (now, next) = (os(run.root), next_os(run));
    let list = catalogue(run)?;
    let wanted = wanted(run);
    let for_next = mappings::select(&wanted, &list, RUNTIME, &next).cloned();
    let for_next = for_next.ok_or_else(|| {
        let what = format!(
            "no {RUNTIME} of the catalogue fits {} {} on {}",
            next.id, next.version, next.architecture
        );
        Problem::new(&pages::NO_RUNTIME, what).cause(format!("wanted: {}", wanted.join(", ")))
    })?;
    let for_now = mappings::select(&wanted, &list, RUNTIME, &now).cloned();
    let other = for_now.filter(|image| *image != for_next && next.version != now.version);
    Ok((for_next, other))
}

pub fn select(_: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    let (image, _) = images(run)?;
    run.set_output("runtimeSelected", &image.version)
}

pub fn installed(_: &mut Prepare, run: &mut Run<'_>) -> Result<Check, Problem> {
    Ok(match (run.machine.runtime.sysext, run.output("runtimeInstalled")) {
        (false, _) => Check::Satisfied("nothing to install".into()),
        (true, Some(version)) if !version.is_empty() => Check::Satisfied(version.to_owned()),
        _ => Check::Needed,
    })
}

/// Stores the image, checks it, and points the link at it.
pub fn install(work: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    let (image, for_now) = images(run)?;
    let before = active_version(run.root);
    if let Some(other) = &for_now {
        fetch(work, run, other)?;
    }
    let path = fetch(work, run, &image)?;
    check_release(run.root, &path, &image, &next_os(run))?;
    if before.as_deref() != Some(image.version.as_str()) {
        run.set_output("runtimeExpected", &image.version)?;
        let has_state = !run.root.list(STATE).unwrap_or_default().is_empty();
        if before.is_some() && has_state {
            add_reason(run, "runtime-changed")?;
            reboot::request_reset(run)?;
        }
    }
    disk::make(run.root, LINKS, 0o755)?;
    disk::link(run.root, &format!("{LINKS}/{RUNTIME}.raw"), &path)?;
    run.set_output("runtimeInstalled", &image.version)
}

/// Brings one image into the store; gives its node path.
fn fetch(work: &Prepare, run: &Run<'_>, image: &Image) -> Result<String, Problem> {
    let directory = format!("{STORE}/{}", image.name);
    let path = format!("{directory}/{}-{}-{}.raw", image.name, image.version, image.architecture);
    if digest(run.root, &path).as_deref() == Some(image.sha256.as_str()) {
        return Ok(path);
    }
    disk::make(run.root, &directory, 0o755)?;
    let temporary = format!("{path}.part");
    match image.url.strip_prefix("file:") {
        Some(local) => copy_local(run.root, local, &temporary)?,
        None => {
            let request = || {
                http::Request::get(&image.url).body(()).map_err(|error| {
                    Problem::new(&pages::BAD_MAPPINGS, "an image has no URL").cause(error)
                })
            };
            let source =
                download::Source::new(&work.environment, &run.machine.ca_certificates, &request);
            if download::fetch(run.root, &source, &temporary, image.size)? == Fetched::Absent {
                let what = format!("the store has no image of {} {}", image.name, image.version);
                return Err(Problem::new(&pages::EXTENSION_DOWNLOAD, what));
            }
        }
    }
    if digest(run.root, &temporary).as_deref() != Some(image.sha256.as_str()) {
        disk::remove(run.root, &temporary)?;
        let what = format!("the image of {} {} has another digest", image.name, image.version);
        return Err(Problem::new(&pages::WRONG_EXTENSION, what)
            .why("the image is damaged, outdated or exchanged; it was removed")
            .fix("correct the catalogue, then `tenon stage reset prepare`"));
    }
    disk::rename(run.root, &temporary, &path)?;
    Ok(path)
}

fn copy_local(root: &Root, from: &str, to: &str) -> Result<(), Problem> {
    let from = format!("/{}", from.trim_start_matches('/'));
    let copied = root.open_at(&from, OFlags::RDONLY, Mode::empty()).and_then(|file| {
        disk::remove(root, to).map_err(|problem| std::io::Error::other(problem.to_string()))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut target = File::from(root.open_at(to, flags, Mode::from_raw_mode(0o644))?);
        std::io::copy(&mut File::from(file), &mut target)?;
        target.sync_all()
    });
    copied.map_err(|error| {
        Problem::new(&codes::host::FILE_READ, format!("copying {from}")).cause(error)
    })
}

fn digest(root: &Root, path: &str) -> Option<String> {
    let mut file = File::from(root.open_at(path, OFlags::RDONLY, Mode::empty()).ok()?);
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer).ok()? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
    }
    Some(hex(&hash.finalize()))
}

/// Reads the release file inside the image, before anything points at it.
fn check_release(root: &Root, path: &str, image: &Image, next: &Os) -> Result<(), Problem> {
    let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let inner = format!("usr/lib/extension-release.d/extension-release.{}", image.name);
    let file = root.join(path).display().to_string();
    // Flatcar and Fedora CoreOS bring squashfs tools or not; systemd-dissect is always there.
    let programs = [
        argv(&["systemd-dissect", "--copy-from", &file, &format!("/{inner}"), "-"]),
        argv(&["unsquashfs", "-cat", &file, &inner]),
    ];
    let text = programs.iter().find_map(|argv| {
        let output = command::run(argv, Duration::from_secs(60), &[]).ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    });
    let Some(text) = text else {
        tracing::warn!(
            path,
            "the image cannot be opened here; systemd-sysext decides at its merge"
        );
        return Ok(());
    };
    let level = mappings::release_value(&os_release(root), "SYSEXT_LEVEL");
    let fits = mappings::release_fits(&text, next, &level);
    match fits {
        true => Ok(()),
        false => Err(Problem::new(
            &pages::WRONG_EXTENSION,
            format!("the image of {} {} is for another OS", image.name, image.version),
        )),
    }
}

pub fn activated(_: &mut Prepare, run: &mut Run<'_>) -> Result<Check, Problem> {
    if !run.machine.runtime.sysext {
        return Ok(Check::Satisfied("the runtime of the OS is used".into()));
    }
    let reboots = run.output("reasons").is_some_and(|reasons| !reasons.is_empty());
    let selected = run.output("runtimeSelected").unwrap_or_default();
    Ok(match (reboots, active_version(run.root)) {
        (true, _) => Check::Satisfied("the reboot activates it".into()),
        (false, Some(version)) if version == selected => Check::Satisfied(version),
        _ => Check::Needed,
    })
}

/// Merges the extension through process 1: a merge inside this unit would stay in its namespace.
pub fn activate(_: &mut Prepare, run: &mut Run<'_>) -> Result<(), Problem> {
    let manager = Manager::connect(run.root).map_err(|problem| {
        Problem::new(&codes::host::UNIT_FAILED, "no service manager merges the extension")
            .cause(problem)
    })?;
    job(&manager, Verb::Restart, "systemd-sysext.service")?;
    manager.reload()?;
    job(&manager, Verb::Start, UNIT)
}

fn job(manager: &Manager, verb: Verb, unit: &str) -> Result<(), Problem> {
    match manager.job(verb, unit, JOB_BOUND)? {
        JobEnd::Result(word) if word == "done" => Ok(()),
        JobEnd::Result(word) => {
            let what = format!("{} of {unit} ended with {word}", verb.word());
            Err(Problem::new(&codes::host::UNIT_FAILED, what))
        }
        JobEnd::Deadline => {
            let what = format!("{} of {unit} did not end", verb.word());
            Err(Problem::new(&codes::host::UNIT_TIMEOUT, what))
        }
    }
}

/// The runtime that answers is one that the mappings allow.
pub fn verify(run: &mut Run<'_>) -> Result<(), Problem> {
    for directory in reboot::RUNTIME_DIRECTORIES {
        apply::discard(run.root, &aside(directory))?;
    }
    let (version, _) = program_version(run.root, PROGRAM)?;
    let version = version.to_string();
    if !mappings::is_wanted(&version, &wanted(run)) {
        let what = format!("{RUNTIME} {version} is not one of {}", wanted(run).join(", "));
        return Err(Problem::new(&pages::RUNTIME_MISMATCH, what));
    }
    if run.root.is_host() {
        answers(&run.root.join(SOCKET), &version)?;
    }
    run.set_output(RUNTIME, &version)
}

/// The daemon that runs is the program that is installed, and speaks CRI.
fn answers(socket: &Path, version: &str) -> Result<(), Problem> {
    let runtime = cri::version(socket, CRI_BOUND).map_err(|error| {
        Problem::new(&pages::RUNTIME_SILENT, format!("{SOCKET} does not answer over CRI"))
            .cause(error)
    })?;
    let told = Version::find(&runtime.version).map(|(version, _)| version.to_string());
    match told.as_deref() == Some(version) {
        true => Ok(()),
        false => Err(Problem::new(
            &pages::RUNTIME_SILENT,
            format!("the running {} is not the installed {version}", runtime.name),
        )
        .fix("restart containerd; the stage is repeated")),
    }
}

/// Where the runtime's old state waits for its removal.
fn aside(directory: &str) -> String {
    format!("{directory}.tenon-old")
}

/// `tenon stage runtime-reset`: empties the runtime's directories on the request of the last boot.
pub fn reset(root: &Root) -> Result<Vec<String>, Problem> {
    let Some(bytes) = disk::read(root, paths::RUNTIME_RESET, 64 << 10)? else {
        return Ok(Vec::new());
    };
    let request: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let id = request["reboot"].as_str().unwrap_or_default();
    let state = super::read_state(root)?;
    let current = state.output("prepare", reboot::REBOOT_ID).unwrap_or_default();
    if id.is_empty() || current != id {
        let what = "the request to empty the runtime's directory is not of this bootstrap";
        return Err(Problem::new(&pages::RESET_REFUSED, what));
    }
    let mut moved = Vec::new();
    for directory in reboot::RUNTIME_DIRECTORIES {
        if root.exists(directory) {
            apply::discard(root, &aside(directory))?;
            disk::rename(root, directory, &aside(directory))?;
            moved.push(directory.to_owned());
        }
    }
    disk::remove(root, paths::RUNTIME_RESET)?;
    for directory in &moved {
        apply::discard(root, &aside(directory))?;
    }
    Ok(moved)
}
