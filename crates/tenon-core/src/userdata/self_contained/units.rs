//! The units of mode `self-contained`.

use super::{BOOTSTRAP_PATH, Job, KubeletUnit, SNAP_PATH};
use crate::userdata::Group;
use crate::userdata::document::IgnitionUnit;
use crate::userdata::signal::Sender;

pub(super) const BOOTSTRAP_UNIT: &str = "tenon-bootstrap.service";
pub(super) const LOCAL_ENVIRONMENT: &str = "/run/tenon/kubelet.local.env";
pub(super) const SENDER: Sender = Sender { source: BOOTSTRAP_UNIT, after: "kubelet.service" };

/// An enabled unit with this content.
pub(super) fn whole(name: &str, contents: String) -> IgnitionUnit {
    IgnitionUnit {
        name: name.to_owned(),
        enabled: true,
        contents: Some(contents),
        drop_ins: Vec::new(),
    }
}

/// Bootstrap first, then the kubelet in one of its three forms.
pub(super) fn all(job: &Job) -> Vec<IgnitionUnit> {
    let mut units = vec![whole(BOOTSTRAP_UNIT, bootstrap(job))];
    units.push(match job.unit {
        KubeletUnit::Snap => whole("tenon-kubelet.service", snap(job)),
        KubeletUnit::DropIn => with_drop_in(job, None),
        KubeletUnit::Full => with_drop_in(job, Some(kubelet(job))),
    });
    units
}

fn with_drop_in(job: &Job, contents: Option<String>) -> IgnitionUnit {
    IgnitionUnit {
        name: "kubelet.service".into(),
        enabled: true,
        contents,
        drop_ins: vec![("10-tenon.conf".into(), drop_in(job))],
    }
}

fn bootstrap(job: &Job) -> String {
    let choices = &job.options.self_contained;
    let directory = job.directory();
    let family = if job.cluster.is_ipv6() { "ipv6" } else { "ipv4" };
    let name = if choices.name_by_instance_id { "instance-id" } else { "hostname" };
    let fallback = choices.fallback.map(|pods| format!(" {pods}")).unwrap_or_default();
    let kubelet = match job.unit {
        KubeletUnit::Snap => "tenon-kubelet.service",
        _ => "kubelet.service",
    };
    // No Restart=: systemd before 244 refuses it on a oneshot. The script itself retries.
    format!(
        "[Unit]\nDescription=Values of this machine for the kubelet\nWants=network-online.target\n\
         After=network-online.target\nBefore={kubelet}\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nEnvironmentFile={directory}/kubelet.env\n\
         ExecStart={BOOTSTRAP_PATH} {directory} {family} {name}{fallback}\n\n\
         [Install]\nRequiredBy={kubelet}\n"
    )
}

fn environment_files(job: &Job) -> String {
    let directory = job.directory();
    format!(
        "EnvironmentFile={directory}/metadata.env\nEnvironmentFile={directory}/kubelet.env\n\
         EnvironmentFile={LOCAL_ENVIRONMENT}\n"
    )
}

fn drop_in(job: &Job) -> String {
    let arguments: String = arguments(job).iter().map(|word| format!(" \\\n  {word}")).collect();
    format!(
        "[Unit]\nAfter={BOOTSTRAP_UNIT}\n\n[Service]\n{}ExecStart=\nExecStart={}{arguments}\n",
        environment_files(job),
        job.kubelet_path(),
    )
}

/// What no config file can say.
fn arguments(job: &Job) -> Vec<String> {
    let directory = job.directory();
    let labels = match job.group.labels.is_empty() {
        true => "",
        false => "${NODE_LABELS},",
    };
    let mut words = vec![
        format!("--config={directory}/kubelet.yaml"),
        "--node-ip=${NODE_IP}".to_owned(),
        "--hostname-override=${NODE_NAME}".to_owned(),
        format!(
            "--node-labels={labels}alpha.eksctl.io/instance-id=${{INSTANCE_ID}},node-lifecycle=${{INSTANCE_LIFECYCLE}}"
        ),
        "--max-pods=${MAX_PODS}".to_owned(),
        "--cloud-provider=external".to_owned(),
        "--provider-id=${PROVIDER_ID}".to_owned(),
    ];
    words.extend(options(job).into_iter().map(|option| format!("--{option}")));
    words.extend(job.group.kubelet_flags.iter().map(|flag| flag.replace('%', "%%")));
    words
}

/// Options that do not depend on the machine.
fn options(job: &Job) -> Vec<String> {
    let directory = job.directory();
    let choices = &job.options.self_contained;
    let mut options = match choices.bootstrap_token {
        None => vec![format!("kubeconfig={directory}/kubeconfig.yaml")],
        Some(_) => vec![
            format!("bootstrap-kubeconfig={directory}/bootstrap-kubeconfig.yaml"),
            "kubeconfig=/var/lib/kubelet/kubeconfig".to_owned(),
        ],
    };
    if let Some(provider) = &choices.ecr_provider_directory {
        options.push(format!("image-credential-provider-bin-dir={provider}"));
        options
            .push(format!("image-credential-provider-config={directory}/credential-provider.json"));
    }
    options
}

fn kubelet(job: &Job) -> String {
    format!(
        "[Unit]\nDescription=Kubernetes node agent\nWants=network-online.target containerd.service\n\
         After=network-online.target containerd.service\n\n\
         [Service]\nExecStart={}\nRestart=always\nRestartSec=5\nKillMode=process\n\
         CPUAccounting=true\nMemoryAccounting=true\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        job.kubelet_path()
    )
}

fn snap(job: &Job) -> String {
    let flags =
        job.group.kubelet_flags.iter().map(|flag| flag.trim_start_matches('-').replace('%', "%%"));
    let words: String =
        options(job).into_iter().chain(flags).map(|option| format!(" {option}")).collect();
    format!(
        "[Unit]\nDescription=Options of the kubelet snap\nAfter={BOOTSTRAP_UNIT}\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\n{}ExecStart={SNAP_PATH} {}{words}\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        environment_files(job),
        job.directory(),
    )
}

/// The commands before the join, as a unit that the join waits for.
pub(crate) fn pre_unit(group: &Group, before: &str) -> IgnitionUnit {
    let starts: String = (0..group.pre_commands.len())
        .map(|index| format!("ExecStart=/opt/tenon/pre-{index:02}.sh\n"))
        .collect();
    whole(
        "tenon-pre.service",
        format!(
            "[Unit]\nDescription=Commands before the node joins\nWants=network-online.target\n\
             After=network-online.target\nBefore={before}\n\n\
             [Service]\nType=oneshot\nRemainAfterExit=yes\n{starts}\n\
             [Install]\nRequiredBy={before}\n"
        ),
    )
}
