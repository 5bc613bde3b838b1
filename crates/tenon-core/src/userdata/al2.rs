//! AL2 and Ubuntu: a cloud-config whose script calls the image's own bootstrap program.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::{CloudConfig, NodeFile};
use super::family::Family;
use super::mime_write::Part;
use super::{Cluster, Document, Draft, Group, Options, al2023, kubelet_args, quote, signal};
use crate::codes::userdata as pages;
use crate::problem::{Finding, Problem};

const EXTRA_CONFIG: &str = "/etc/eksctl/kubelet-extra.json";
const ENVIRONMENT: &str = "/etc/eksctl/kubelet.env";
const SCRIPTS: &str = "/var/lib/cloud/scripts/eksctl";
const POST: &str = "/var/lib/cloud/scripts/tenon/post.sh";
const SIGNAL: &str = "/var/lib/cloud/scripts/tenon/signal.sh";

const HELPER: &str = include_str!("scripts/helper.sh");
const JOIN_AL2: &str = include_str!("scripts/bootstrap.al2.sh");
const JOIN_UBUNTU: &str = include_str!("scripts/bootstrap.ubuntu.sh");

/// Runs its argument and records the status, for the sender of the signal.
const RECORDED: &str = "/bin/bash -c \"$1\"; status=$?; mkdir -p /run/tenon; \
    echo \"${status}\" > /run/tenon/join-status; exit \"${status}\"";

pub(crate) fn draft(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<Draft> {
    let mut files = join_files(cluster, group, options, findings)?;
    let mut commands: Vec<_> = group.pre_commands.iter().map(|text| shell(text)).collect();
    commands.push(join_command(group));
    if !group.post_commands.is_empty() {
        files.push(NodeFile::new(POST, 0o755, in_sequence(&group.post_commands)));
        commands.push(vec![POST.to_owned()]);
    }
    if let Some(wish) = &group.signal {
        files.push(NodeFile::new(SIGNAL, 0o755, signal::SCRIPT));
        let mut words = vec![SIGNAL.to_owned()];
        words.extend(signal::arguments(wish, signal::STATUS_FILE));
        commands.push(words);
    }
    files
        .extend(group.files.iter().map(|file| NodeFile::new(&file.path, file.mode, &file.content)));
    let mut draft =
        Draft::from(Document::CloudConfig(CloudConfig { files, commands, compress: false }));
    if group.ami.is_some() && group.override_command.is_none() {
        draft.notes.push("the image must contain /etc/eks/bootstrap.sh".into());
    }
    Some(draft)
}

/// The files of the join, in their fixed order.
pub(crate) fn join_files(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<Vec<NodeFile>> {
    let variables = variables(cluster, group, options, findings);
    let Ok(environment) = quote::env::file(&variables) else {
        let what = "a value for the environment file holds a control character";
        findings.push(Finding::error(Problem::new(&pages::BAD_TEXT, what).at(group.at(""))));
        return None;
    };
    let extra = Value::Object(group.kubelet_config.clone());
    let mut files = vec![
        NodeFile::new(EXTRA_CONFIG, 0o644, format!("{extra}\n")),
        NodeFile::new(ENVIRONMENT, 0o644, environment),
    ];
    if group.override_command.is_none() {
        let (name, text) = join_script(group.family);
        files.push(NodeFile::new(format!("{SCRIPTS}/{name}"), 0o755, text));
    }
    files.push(NodeFile::new(format!("{SCRIPTS}/bootstrap.helper.sh"), 0o755, HELPER));
    Some(files)
}

fn join_script(family: Family) -> (&'static str, &'static str) {
    match family {
        Family::Ubuntu { .. } => ("bootstrap.ubuntu.sh", JOIN_UBUNTU),
        _ => ("bootstrap.al2.sh", JOIN_AL2),
    }
}

/// The path of the join script.
pub(crate) fn join_path(family: Family) -> String {
    format!("{SCRIPTS}/{}", join_script(family).0)
}

/// What the helper exports; the names are a contract with override commands.
fn variables(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> BTreeMap<String, String> {
    let al2 = group.family == Family::AmazonLinux2;
    let yes = |condition: bool, text: &str| condition.then(|| text.to_owned());
    let flags = group.kubelet_flags.join(" ");
    let pairs = [
        ("API_SERVER_URL", cluster.endpoint.clone()),
        ("B64_CLUSTER_CA", cluster.certificate_authority.clone()),
        ("CLUSTER_DNS", al2023::dns(cluster, group, findings)),
        ("CLUSTER_ID", cluster.id.clone().filter(|_| cluster.outpost)),
        ("CLUSTER_NAME", cluster.name.clone()),
        ("CONTAINER_RUNTIME", yes(al2, "containerd")),
        ("ENABLE_LOCAL_OUTPOST", yes(cluster.outpost, "true")),
        ("KUBELET_FLAGS", yes(!flags.is_empty(), &flags)),
        ("LOCAL_DISKS", yes(group.instance_store.is_some(), "raid0")),
        ("MAX_PODS", group.max_pods.map(|pods| pods.to_string())),
        ("NODE_LABELS", Some(kubelet_args::labels(group))),
        ("NODE_TAINTS", Some(kubelet_args::taints(group))),
        ("PIN_ENDPOINT", yes(options.pin_endpoint && !al2, "true")),
        ("SERVICE_IPV6_CIDR", cluster.cidr_text().filter(|_| cluster.is_ipv6())),
    ];
    pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn join_command(group: &Group) -> Vec<String> {
    match (&group.override_command, &group.signal) {
        (None, _) => vec![join_path(group.family)],
        (Some(text), None) => shell(text),
        (Some(text), Some(_)) => {
            let words = ["/bin/bash", "-c", RECORDED, "bash", text];
            words.map(str::to_owned).to_vec()
        }
    }
}

/// A user's command as an argument vector: it is never spliced into another line.
pub(crate) fn shell(text: &str) -> Vec<String> {
    ["/bin/bash", "-c", text].map(str::to_owned).to_vec()
}

/// The commands one after the other, each in a shell of its own.
fn in_sequence(commands: &[String]) -> String {
    let lines: String = commands
        .iter()
        .map(|text| format!("/bin/bash -c {}\n", quote::shell::literal(text)))
        .collect();
    Part::script(&format!("#!/bin/bash\nset -o errexit\n{lines}"), "").body
}
