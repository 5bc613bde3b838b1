//! Mode `self-contained`: the user data carries every file, complete. The node needs systemd,
//! bash, curl, containerd, a kubelet and a credential helper, and asks the metadata service
//! alone.

mod files;
mod pod_map;
mod registry;
mod units;

pub use registry::account;
pub(crate) use units::pre_unit;

use super::document::{CloudConfig, Ignition, NodeFile};
use super::family::Family;
use super::{Cluster, Document, Draft, Group, Options, al2, al2023, signal};
use crate::codes::userdata as pages;
use crate::problem::{Finding, Problem};

const BOOTSTRAP: &str = include_str!("../scripts/bootstrap.sh");
const SNAP: &str = include_str!("../scripts/kubelet-snap.sh");
const BOOTSTRAP_PATH: &str = "/opt/tenon/bootstrap.sh";
const SNAP_PATH: &str = "/opt/tenon/kubelet-snap.sh";
const UNITS: &str = "/etc/systemd/system";

/// Choices of this mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Choices {
    /// Directory of the files: `/etc/tenon`, or `/etc/eksctl` as it was once.
    pub directory: String,
    /// None: the family's own.
    pub kubelet_unit: Option<KubeletUnit>,
    pub kubelet_path: Option<String>,
    /// Where the ECR credential provider lies on the image.
    pub ecr_provider_directory: Option<String>,
    pub name_by_instance_id: bool,
    pub map: PodMap,
    /// Pod limit of types without a row.
    pub fallback: Option<u32>,
    /// For clusters that are not EKS.
    pub bootstrap_token: Option<String>,
}

impl Default for Choices {
    fn default() -> Self {
        Choices {
            directory: "/etc/tenon".into(),
            kubelet_unit: None,
            kubelet_path: None,
            ecr_provider_directory: None,
            name_by_instance_id: false,
            map: PodMap::Group,
            fallback: None,
            bootstrap_token: None,
        }
    }
}

/// How the kubelet is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KubeletUnit {
    /// The image's unit with a drop-in.
    DropIn,
    /// A unit of ours too.
    Full,
    /// The snap of Ubuntu's EKS images.
    Snap,
}

/// Which types `max_pods.map` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodMap {
    Group,
    Full,
    None,
}

/// What the files are made of.
struct Job<'a> {
    cluster: &'a Cluster,
    group: &'a Group,
    options: &'a Options,
    unit: KubeletUnit,
}

impl Job<'_> {
    fn directory(&self) -> &str {
        &self.options.self_contained.directory
    }

    fn kubelet_path(&self) -> &str {
        let default = match self.group.family {
            Family::Flatcar => "/opt/bin/kubelet",
            Family::FedoraCoreOs => "/usr/local/bin/kubelet",
            _ => "/usr/bin/kubelet",
        };
        self.options.self_contained.kubelet_path.as_deref().unwrap_or(default)
    }
}

pub(crate) fn draft(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<Draft> {
    if cluster.placeholders {
        let what =
            "mode self-contained carries finished files, which stack parameters cannot reach";
        findings.push(Finding::error(Problem::new(&pages::NEEDS_BAKED, what).at(group.at(""))));
        return None;
    }
    check_paths(group, options, findings);
    let unit = options.self_contained.kubelet_unit.unwrap_or(match group.family {
        Family::Ubuntu { .. } => KubeletUnit::Snap,
        family if family.has_ignition() => KubeletUnit::Full,
        _ => KubeletUnit::DropIn,
    });
    let job = Job { cluster, group, options, unit };
    let mut files = files::all(&job, findings)?;
    files.push(NodeFile::new(BOOTSTRAP_PATH, 0o755, BOOTSTRAP));
    if unit == KubeletUnit::Snap {
        files.push(NodeFile::new(SNAP_PATH, 0o755, SNAP));
    }
    let document = match group.family.has_ignition() {
        true => ignition(&job, files),
        false => cloud_config(&job, files),
    };
    let mut draft = Draft::from(document);
    draft.notes.push(format!(
        "the image must contain systemd, bash, curl, containerd, a kubelet at {} and {}",
        job.kubelet_path(),
        files::helper_program(group.credential_helper),
    ));
    Some(draft)
}

/// Paths that stand in units and configs as they are.
fn check_paths(group: &Group, options: &Options, findings: &mut Vec<Finding>) {
    let choices = &options.self_contained;
    let plain = |path: &str| {
        path.starts_with('/')
            && path[1..].split('/').all(|part| !part.is_empty() && part != "." && part != "..")
            && path.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b))
    };
    let paths = [
        ("--config-dir", Some(choices.directory.as_str())),
        ("--kubelet-path", choices.kubelet_path.as_deref()),
        ("--ecr-provider-dir", choices.ecr_provider_directory.as_deref()),
    ];
    for (flag, path) in paths {
        if path.is_some_and(|path| !plain(path)) {
            let what =
                format!("{flag} is not an absolute path of letters, digits, `-`, `_` and `.`");
            findings.push(Finding::error(Problem::new(&pages::BAD_VALUE, what).at(group.at(""))));
        }
    }
}

fn cloud_config(job: &Job, mut files: Vec<NodeFile>) -> Document {
    let group = job.group;
    let units = units::all(job);
    for unit in &units {
        if let Some(contents) = &unit.contents {
            files.push(NodeFile::new(format!("{UNITS}/{}", unit.name), 0o644, contents));
        }
        for (name, contents) in &unit.drop_ins {
            files.push(NodeFile::new(format!("{UNITS}/{}.d/{name}", unit.name), 0o644, contents));
        }
    }
    files
        .extend(group.files.iter().map(|file| NodeFile::new(&file.path, file.mode, &file.content)));
    let mut commands: Vec<_> = group.pre_commands.iter().map(|text| al2::shell(text)).collect();
    commands.push(words(&["systemctl", "daemon-reload"]));
    let mut names: Vec<_> =
        units.iter().filter(|unit| unit.enabled).map(|unit| unit.name.as_str()).collect();
    if group.reboot_before_join {
        names.extend(later_units(job, &mut files));
        commands.push([words(&["systemctl", "enable"]), words(&names)].concat());
        commands.push(words(&["systemctl", "reboot"]));
    } else {
        match &group.override_command {
            Some(text) => commands.push(al2::shell(text)),
            None => {
                commands.push([words(&["systemctl", "enable", "--now"]), words(&names)].concat())
            }
        }
        commands.extend(group.post_commands.iter().map(|text| al2::shell(text)));
        if let Some(wish) = &group.signal {
            files.push(NodeFile::new(signal::SCRIPT_PATH, 0o755, signal::SCRIPT));
            let arguments = signal::arguments(wish, units::BOOTSTRAP_UNIT);
            commands.push([vec![signal::SCRIPT_PATH.to_owned()], arguments].concat());
        }
    }
    Document::CloudConfig(CloudConfig { files, commands, compress: true })
}

/// After a reboot cloud-init runs no commands again: what comes later is put into units.
fn later_units(job: &Job, files: &mut Vec<NodeFile>) -> Vec<&'static str> {
    let mut names = Vec::new();
    if !job.group.post_commands.is_empty() {
        files.extend(al2023::post_files(job.group));
        let unit = al2023::post_unit(job.group, "kubelet.service");
        files.push(NodeFile::new(format!("{UNITS}/tenon-post.service"), 0o644, unit));
        names.push("tenon-post.service");
    }
    if let Some(wish) = &job.group.signal {
        files.push(NodeFile::new(signal::SCRIPT_PATH, 0o755, signal::SCRIPT));
        let unit = signal::unit(wish, &units::SENDER);
        files.push(NodeFile::new(format!("{UNITS}/tenon-signal.service"), 0o644, unit));
        names.push("tenon-signal.service");
    }
    names
}

fn ignition(job: &Job, mut files: Vec<NodeFile>) -> Document {
    let group = job.group;
    let mut units = units::all(job);
    if !group.pre_commands.is_empty() {
        files.extend(al2023::script_files("pre", &group.pre_commands));
        units.insert(0, pre_unit(group, units::BOOTSTRAP_UNIT));
    }
    if !group.post_commands.is_empty() {
        files.extend(al2023::post_files(group));
        units.push(units::whole("tenon-post.service", al2023::post_unit(group, "kubelet.service")));
    }
    if let Some(wish) = &group.signal {
        files.push(NodeFile::new(signal::SCRIPT_PATH, 0o755, signal::SCRIPT));
        units.push(units::whole("tenon-signal.service", signal::unit(wish, &units::SENDER)));
    }
    files
        .extend(group.files.iter().map(|file| NodeFile::new(&file.path, file.mode, &file.content)));
    Document::Ignition(Ignition { files, units })
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}
