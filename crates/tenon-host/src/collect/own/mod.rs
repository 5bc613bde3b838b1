//! What Tenon finds out by itself, without the node's programs.
//!
//! ```text
//! files   from files: certificates, sysctl files, kubeconfig, user data, proxies, units
//! kernel  walks through /proc and /sys: processes, settings, throttling, mounts
//! sizes   what fills the disk
//! ```

mod files;
mod kernel;
mod sizes;

use serde_json::json;
use tenon_core::collect::catalogue::Entry;

use super::item::Job;
use super::journal::{Match, Query, Reader};
use super::run::Shared;
use super::sink::Sink;
use super::source::{self, Answer};

/// The one item that is a file of the node whose path must be found first.
const KUBECONFIG: &str = "kubeconfig.txt";

/// What came of it.
pub enum Own {
    Text(Vec<u8>),
    /// The sink has it already.
    Taken,
    Absent(String),
    NotApplicable(String),
    Error(String),
}

impl Own {
    fn json(value: &serde_json::Value) -> Own {
        Own::Text(format!("{value:#}\n").into_bytes())
    }

    /// Text, unless there is none.
    fn lines(text: String) -> Own {
        match text.is_empty() {
            true => Own::Absent("there is none".into()),
            false => Own::Text(text.into_bytes()),
        }
    }
}

/// Finds out what an entry of kind `facts` or `proc` asks for.
pub fn find_out(job: &Job<'_>, name: &str, sink: &mut Sink<'_>) -> Own {
    let shared = job.shared;
    if let Some(bytes) = shared.given.get(name) {
        return Own::Text(bytes.clone());
    }
    match name {
        "version.json" => Own::json(&json!({"version": env!("CARGO_PKG_VERSION")})),
        "run.json" => Own::json(&shared.options.to_json()),
        "user-data.txt" => files::user_data(shared),
        "user-data-parts.json" => files::user_data_parts(shared),
        KUBECONFIG => files::kubeconfig(shared),
        "certificates.json" => files::certificates(shared),
        "kubelet-state.txt" => files::listing(shared, "/var/lib/kubelet", 2),
        "cni-binaries.txt" => files::listing(shared, "/opt/cni/bin", 1),
        "proxy-settings.json" => files::proxies(shared),
        "sysctl-winners.json" => files::sysctl_winners(shared),
        "units.json" => files::units(shared),
        "time-zone.txt" => files::time_zone(shared),
        "slices.json" => kernel::slices(shared),
        "ethtool.txt" => ethtool(job, sink),
        "oom-kills.txt" => {
            kernel_lines(job, sink, &["Out of memory", "oom-kill", "oom_reaper", "Killed process"])
        }
        "denials.txt" => {
            kernel_lines(job, sink, &["avc:  denied", "avc: denied", "apparmor=\"DENIED\""])
        }
        "pod-overlays.json" => sizes::overlays(job),
        "large-files.txt" => sizes::large_files(job),
        "processes.txt" => kernel::processes(job, sink),
        "environment-counts.txt" => kernel::environments(job),
        "cpu-throttling.txt" => kernel::throttling(job),
        "sysctls.txt" => kernel::sysctls(job, sink),
        "df.json" => kernel::mounts(shared),
        _ => Own::NotApplicable("not asked for in this run".into()),
    }
}

/// The file of the node that such an entry shows, where it is one.
pub fn file_behind(shared: &Shared, name: &str) -> Option<String> {
    (name == KUBECONFIG).then(|| files::kubeconfig_path(shared)).flatten()
}

/// Why the condition of an entry does not hold; None if it does.
pub fn unmet(shared: &Shared, entry: &Entry) -> Option<String> {
    let condition = entry.when.as_deref()?;
    let (kind, value) = condition.split_once(':').unwrap_or((condition, ""));
    let holds = match kind {
        "path" => !matches!(shared.source.stat(value), Answer::Absent),
        "unit" => shared.root().ok().and_then(|root| source::unit_files(root, value)).is_some(),
        "program" => super::child::find(value).is_some(),
        "deep" => shared.options.deep,
        _ => false,
    };
    (!holds).then(|| format!("when {condition}"))
}

/// Lines of the kernel's messages that contain one of the texts.
fn kernel_lines(job: &Job<'_>, sink: &mut Sink<'_>, texts: &[&str]) -> Own {
    let query =
        Query { of: Match::Kernel, since_us: job.shared.options.since_us, most_bytes: 32 << 20 };
    let Some(mut reader) = job.shared.root().ok().and_then(|root| Reader::open(root, &query))
    else {
        return Own::Absent("there is no journal".into());
    };
    reader.rewind(&query, &|| !job.is_late());
    let mut writer = tenon_core::collect::journal::Writer::default();
    while let Some(entry) = reader.next_entry() {
        if texts.iter().any(|text| entry.message.contains(text)) {
            sink.take(writer.line(&entry).as_bytes());
        }
        if job.is_late() {
            break;
        }
    }
    match sink.bytes() {
        0 => Own::Absent("none in the kernel's messages".into()),
        _ => Own::Taken,
    }
}

/// The driver's own counters of each link.
fn ethtool(job: &Job<'_>, sink: &mut Sink<'_>) -> Own {
    if !job.shared.source.is_live() {
        return Own::NotApplicable("only a running node can tell".into());
    }
    if super::child::find("ethtool").is_none() {
        return Own::Absent("the program is not installed".into());
    }
    let links = job.shared.source.list("/sys/class/net").known().unwrap_or_default();
    for link in links.iter().filter(|link| *link != "lo") {
        sink.take(format!("== {link}\n").as_bytes());
        let argv = ["ethtool", "--statistics", link].map(String::from);
        // A link without counters is not worth a word.
        let _ = job.output_of(sink, &argv, 1 << 20);
    }
    Own::Taken
}
