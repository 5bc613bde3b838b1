//! Instance store disks: an array with the node's big directories on it, or one mount each.
//!
//! File systems get UUIDs derived from the instance id, so that the mount units are exact before
//! anything is formatted, and so that a later run knows its own work: what bears such a UUID is
//! used as it is, whatever the rule for existing data.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::mounts::Mount;
use super::node::Node;
use super::step::{Action, Bind, Program, Step};
use super::{Draft, Owner, mounts};
use crate::codes;
use crate::config::{DisabledMount, DiskStrategy, ExistingData};
use crate::facts::{Array, Disk};
use crate::hex::hex;
use crate::problem::{Finding, Place, Problem};

const ARRAY_NAME: &str = "kubernetes";
const ARRAY_DEVICE: &str = "/dev/md/kubernetes";
const SCAN_PATH: &str = "/.aws/mdadm.conf";
const MDADM_BOUND: Duration = Duration::from_secs(60);
const MKFS_BOUND: Duration = Duration::from_secs(120);
const BECAUSE: &str = "spec.instance.localStorage";
const RAID10_LEAST_DISKS: usize = 4;

/// Directories that move onto the array: the name that disables it, the path, who uses it.
const BINDS: [(DisabledMount, &str, &str); 4] = [
    (DisabledMount::Kubelet, "/var/lib/kubelet", "kubelet.service"),
    (DisabledMount::Containerd, "/var/lib/containerd", "containerd.service"),
    (DisabledMount::Soci, "/var/lib/soci-snapshotter-grpc", "soci-snapshotter.service"),
    (DisabledMount::PodLogs, "/var/log/pods", "kubelet.service"),
];

/// Plans the disks, if the config asks for it and there are any.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    let mut disks: Vec<&Disk> = node.facts.machine.instance_store.iter().collect();
    disks.sort_by(|a, b| (&a.serial, &a.device).cmp(&(&b.serial, &b.device)));
    // One disk may have two names; two mounts of it would be one too many.
    disks.dedup_by_key(|disk| identity(disk));
    if disks.is_empty() {
        return;
    }
    match node.config.instance.local_storage.strategy {
        None => {}
        Some(DiskStrategy::Raid0) => plan_array(node, 0, &disks, draft),
        Some(DiskStrategy::Raid10) => plan_array(node, 10, &disks, draft),
        Some(DiskStrategy::Mount) => plan_each(node, &disks, draft),
    }
}

/// What a device bears before anything is done to it.
struct Found<'a> {
    device: &'a str,
    signature: Option<&'a str>,
    uuid: Option<&'a str>,
    /// Mounted somewhere: formatting it is out of the question.
    in_use: bool,
}

impl<'a> Found<'a> {
    fn on_disk(disk: &'a Disk) -> Self {
        Found {
            device: &disk.device,
            signature: disk.signature.as_deref(),
            uuid: disk.uuid.as_deref(),
            in_use: disk.mounted_at.is_some(),
        }
    }

    fn on_array(array: &'a Array) -> Self {
        Found {
            device: &array.device,
            signature: array.signature.as_deref(),
            uuid: array.uuid.as_deref(),
            in_use: array.mounted_at.is_some(),
        }
    }
}

/// What is done with a device that should carry an XFS of ours.
enum Verdict {
    /// Mounted as found.
    Use(String),
    /// Formatted; `force` overwrites what is there.
    Format { force: bool },
    /// Left alone.
    Skip,
}

/// Applies the rule for existing data to one device.
fn judge(found: &Found, ours: &str, rule: ExistingData, draft: &mut Draft) -> Verdict {
    match (found.signature, found.uuid) {
        (None, _) => Verdict::Format { force: false },
        (Some("xfs"), Some(uuid)) if same_uuid(uuid, ours) => Verdict::Use(uuid.to_owned()),
        _ if rule == ExistingData::Wipe && !found.in_use => Verdict::Format { force: true },
        (Some("xfs"), Some(uuid)) if rule == ExistingData::Keep => Verdict::Use(uuid.to_owned()),
        (Some(signature), _) => {
            report_foreign(found.device, signature, rule, draft);
            Verdict::Skip
        }
    }
}

fn report_foreign(device: &str, signature: &str, rule: ExistingData, draft: &mut Draft) {
    let place = Place::field("spec.instance.localStorage.existingData");
    let finding = match rule {
        ExistingData::Refuse => {
            let what = format!("{device} holds data ({signature})");
            Finding::error(Problem::new(&codes::plan::DISK_HAS_DATA, what).at(place))
        }
        _ => {
            let what = format!("{device} holds data ({signature}) and is left alone");
            Finding::warning(Problem::new(&codes::plan::DISK_SKIPPED, what).at(place))
        }
    };
    draft.findings.push(finding);
}

fn plan_array(node: &Node, level: u32, disks: &[&Disk], draft: &mut Draft) {
    let found = node.facts.machine.arrays.iter().find(|array| array.name == ARRAY_NAME);
    let uuid = match found {
        Some(array) => use_array(node, array, draft),
        None => make_array(node, level, disks, draft),
    };
    let Some(uuid) = uuid else { return };
    let root = format!("{}/0", mount_root(node));
    let disk = disk_mount(&uuid, &root);
    let binds = wanted_binds(&node.config.instance.local_storage.disabled_mounts);
    let binds: Vec<(Mount, &str)> =
        binds.map(|(path, owner)| (bind_mount(&root, path), owner)).collect();
    let all: Vec<&Mount> = std::iter::once(&disk).chain(binds.iter().map(|(m, _)| m)).collect();
    mounts::add_unit_files(&all, BECAUSE, draft);
    mounts::start(&disk, BECAUSE, draft);
    for (mount, owner) in &binds {
        add_bind(mount, owner, draft);
    }
    // Last: a boot in the middle must not mount an empty directory over a full one.
    mounts::enable(&all, draft);
}

/// An array that is there: its file system is used or made.
fn use_array(node: &Node, array: &Array, draft: &mut Draft) -> Option<String> {
    let ours = derived_uuid(node, "filesystem", ARRAY_NAME);
    let rule = node.config.instance.local_storage.existing_data;
    let verdict = judge(&Found::on_array(array), &ours, rule, draft);
    if !matches!(verdict, Verdict::Skip) {
        add_scan(Some(SCAN_PATH.into()), draft);
    }
    match verdict {
        Verdict::Use(uuid) => Some(uuid),
        Verdict::Format { force } => {
            add_mkfs(&array.device, &ours, force, !force, draft);
            Some(ours)
        }
        Verdict::Skip => None,
    }
}

/// No array yet: put one together from disks that an interrupted run left, or create it.
fn make_array(node: &Node, level: u32, disks: &[&Disk], draft: &mut Draft) -> Option<String> {
    let rule = node.config.instance.local_storage.existing_data;
    let array_uuid = derived_uuid(node, "array", ARRAY_NAME);
    let is_member = |disk: &Disk| {
        disk.signature.as_deref() == Some("linux_raid_member")
            && disk.uuid.as_deref().is_some_and(|uuid| same_uuid(uuid, &array_uuid))
    };
    let whole = disks.iter().all(|disk| is_member(disk));
    let usable: Vec<&Disk> = disks
        .iter()
        .copied()
        .filter(|disk| is_member(disk) || is_usable(disk, rule, draft))
        .collect();
    if level == 10 && usable.len() < RAID10_LEAST_DISKS {
        let what = format!("RAID10 needs {RAID10_LEAST_DISKS} disks, {} can be used", usable.len());
        let problem = Problem::new(&codes::plan::TOO_FEW_DISKS, what)
            .at(Place::field("spec.instance.localStorage.strategy"));
        draft.findings.push(Finding::error(problem));
        return None;
    }
    if usable.is_empty() {
        return None;
    }
    let devices: Vec<&str> = usable.iter().map(|disk| disk.device.as_str()).collect();
    let argv = if whole { assemble(&devices) } else { create(level, &array_uuid, &devices) };
    add_program(argv, MDADM_BOUND, BECAUSE, draft);
    add_scan(None, draft);
    let uuid = derived_uuid(node, "filesystem", ARRAY_NAME);
    add_mkfs(ARRAY_DEVICE, &uuid, !whole, whole, draft);
    Some(uuid)
}

/// A disk joins a new array if it is blank, or may be wiped.
fn is_usable(disk: &Disk, rule: ExistingData, draft: &mut Draft) -> bool {
    let Some(signature) = &disk.signature else { return true };
    if rule == ExistingData::Wipe && disk.mounted_at.is_none() {
        return true;
    }
    report_foreign(&disk.device, signature, rule, draft);
    false
}

fn assemble(devices: &[&str]) -> Vec<String> {
    let head = ["mdadm", "--assemble", "--run", ARRAY_DEVICE];
    head.iter().chain(devices).map(|word| (*word).to_owned()).collect()
}

/// `--run` answers mdadm's questions, `--force` allows an array of one disk.
fn create(level: u32, uuid: &str, devices: &[&str]) -> Vec<String> {
    let head = format!(
        "mdadm --create --run --force --level={level} --name={ARRAY_NAME} --uuid={uuid} --raid-devices={} {ARRAY_DEVICE}",
        devices.len()
    );
    head.split(' ').chain(devices.iter().copied()).map(str::to_owned).collect()
}

fn plan_each(node: &Node, disks: &[&Disk], draft: &mut Draft) {
    let rule = node.config.instance.local_storage.existing_data;
    draft.disk_indexes = indexes(node, disks);
    let mut mounts = Vec::new();
    for disk in disks {
        let at = format!("{}/{}", mount_root(node), draft.disk_indexes[identity(disk)]);
        let ours = derived_uuid(node, "filesystem", identity(disk));
        match judge(&Found::on_disk(disk), &ours, rule, draft) {
            Verdict::Use(uuid) => mounts.push(disk_mount(&uuid, &at)),
            Verdict::Format { force } => {
                add_mkfs(&disk.device, &ours, force, !force, draft);
                mounts.push(disk_mount(&ours, &at));
            }
            Verdict::Skip => {}
        }
    }
    if mounts.is_empty() {
        return;
    }
    let all: Vec<&Mount> = mounts.iter().collect();
    mounts::add_unit_files(&all, BECAUSE, draft);
    for mount in &mounts {
        mounts::start(mount, BECAUSE, draft);
    }
    mounts::enable(&all, draft);
}

/// A disk keeps the index that the record has for it; a new one takes the lowest that is free.
fn indexes(node: &Node, disks: &[&Disk]) -> BTreeMap<String, u32> {
    let known = node.facts.last_run_here().map(|run| run.disk_indexes.clone()).unwrap_or_default();
    let mut chosen: BTreeMap<String, u32> = disks
        .iter()
        .filter_map(|disk| Some((identity(disk).to_owned(), *known.get(identity(disk))?)))
        .collect();
    let mut taken: BTreeSet<u32> = chosen.values().copied().collect();
    for disk in disks {
        if !chosen.contains_key(identity(disk)) {
            let free = (1..).find(|index| !taken.contains(index)).unwrap_or(u32::MAX);
            taken.insert(free);
            chosen.insert(identity(disk).to_owned(), free);
        }
    }
    chosen
}

/// What a disk is known by from run to run: device names change, serials do not.
fn identity(disk: &Disk) -> &str {
    if disk.serial.is_empty() { &disk.device } else { &disk.serial }
}

fn mount_root<'a>(node: &'a Node) -> &'a str {
    node.config.instance.local_storage.mount_path.trim_end_matches('/')
}

fn disk_mount(uuid: &str, at: &str) -> Mount {
    Mount {
        what: format!("/dev/disk/by-uuid/{uuid}"),
        at: at.to_owned(),
        kind: "xfs",
        options: "defaults,noatime",
        description: "Instance store of the node",
    }
}

fn bind_mount(root: &str, at: &str) -> Mount {
    let last = at.rsplit('/').next().unwrap_or_default();
    Mount {
        what: format!("{root}/{last}"),
        at: at.to_owned(),
        kind: "none",
        options: "bind",
        description: "Directory of the node on its instance store",
    }
}

fn wanted_binds(disabled: &[DisabledMount]) -> impl Iterator<Item = (&'static str, &'static str)> {
    let wanted =
        |name: &DisabledMount| !disabled.contains(&DisabledMount::All) && !disabled.contains(name);
    let kept: Vec<_> = BINDS.into_iter().filter(|(name, _, _)| wanted(name)).collect();
    kept.into_iter().map(|(_, path, owner)| (path, owner))
}

fn add(action: Action, because: &str, draft: &mut Draft) {
    draft.add(Owner::Node, Step::run(action, because));
}

fn add_program(argv: Vec<String>, timeout: Duration, because: &str, draft: &mut Draft) {
    add(Action::Program(Program { argv, timeout, ..Program::default() }), because, draft);
}

/// Saves the array's description, so that it has the same name after a reboot.
fn add_scan(unless_exists: Option<String>, draft: &mut Draft) {
    let program = Program {
        argv: ["mdadm", "--detail", "--scan"].map(str::to_owned).to_vec(),
        timeout: MDADM_BOUND,
        unless_exists,
        stdout_to: Some(SCAN_PATH.into()),
        ..Program::default()
    };
    add(Action::Program(program), "the array keeps its name", draft);
}

/// `-K` skips the discard of the whole disk, which takes minutes and gains nothing on a fresh
/// one; a log stripe of 8 blocks fits the array.
fn add_mkfs(device: &str, uuid: &str, force: bool, only_if_blank: bool, draft: &mut Draft) {
    let mut argv: Vec<String> = vec!["mkfs.xfs".into()];
    if force {
        argv.push("-f".into());
    }
    argv.extend(["-K", "-l", "su=8b", "-m"].map(str::to_owned));
    argv.extend([format!("uuid={uuid}"), device.to_owned()]);
    let program = Program {
        argv,
        timeout: MKFS_BOUND,
        unless_signature: only_if_blank.then(|| device.to_owned()),
        ..Program::default()
    };
    add(Action::Program(program), "the disk has no file system of ours yet", draft);
}

fn add_bind(mount: &Mount, owner: &str, draft: &mut Draft) {
    let bind = Bind {
        at: mount.at.clone(),
        source: mount.what.clone(),
        unit: mount.unit(),
        owners: vec![owner.to_owned()],
    };
    add(Action::Bind(bind), "moves onto the instance store", draft);
}

/// A UUID of version 8 that depends on the instance and the thing alone.
fn derived_uuid(node: &Node, what: &str, name: &str) -> String {
    let text = format!("tenon\0{}\0{what}\0{name}", node.facts.instance.id);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&Sha256::digest(text.as_bytes())[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Programs write UUIDs with `-`, `:` or nothing between the digits.
fn same_uuid(a: &str, b: &str) -> bool {
    let digits = |text: &str| -> String {
        text.chars().filter(char::is_ascii_hexdigit).map(|c| c.to_ascii_lowercase()).collect()
    };
    digits(a) == digits(b)
}
