//! AL2 in managed groups: a message of scripts, which EKS merges with its own where the image
//! is its own.

use super::document::NodeFile;
use super::mime_write::Part;
use super::{Cluster, Document, Draft, Group, Options, al2, al2023, signal};
use crate::problem::Finding;

const LIMIT_SCRIPT: &str = include_str!("scripts/max-pods.sh");
const LIMIT_PATH: &str = "/opt/tenon/max-pods.sh";
const LIMIT_DROP_IN: &str = "/etc/systemd/system/kubelet.service.d/90-tenon-max-pods.conf";

pub(crate) fn draft(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<Draft> {
    let mut parts = al2023::pre_parts(group);
    let mut notes = Vec::new();
    if group.joined_by_eks() {
        parts.extend(group.max_pods.map(limit_part));
    } else {
        let files = al2::join_files(cluster, group, options, findings)?;
        let join = match &group.override_command {
            Some(_) => String::new(),
            None => format!("{}\n", al2::join_path(group.family)),
        };
        let script = signal::install_script(&files, &join);
        let ours = Part::script(&script, "join script");
        match &group.override_command {
            // The files come first: an override may source the helper.
            Some(text) => parts.extend([ours, Part::script(text, "overrideBootstrapCommand")]),
            None => {
                notes.push("the image must contain /etc/eks/bootstrap.sh".into());
                parts.push(ours);
            }
        }
        let post = group.post_commands.iter().enumerate();
        parts.extend(
            post.map(|(index, text)| Part::script(text, format!("postBootstrapCommands[{index}]"))),
        );
    }
    let document = if parts.is_empty() { Document::Empty } else { Document::Mime(parts) };
    Some(Draft { document, notes })
}

/// The pod limit, added to the arguments that EKS sets without touching them.
fn limit_part(pods: u32) -> Part {
    let drop_in = format!(
        "[Service]\nExecStartPre={LIMIT_PATH} {pods}\nEnvironmentFile=-/run/tenon/kubelet-extra.env\n"
    );
    let files = [
        NodeFile::new(LIMIT_PATH, 0o755, LIMIT_SCRIPT),
        NodeFile::new(LIMIT_DROP_IN, 0o644, drop_in),
    ];
    Part::script(&signal::install_script(&files, "systemctl daemon-reload\n"), "maxPodsPerNode")
}
