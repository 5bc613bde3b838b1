//! Items that are made from files of the node.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tenon_core::collect::certificate;
use tenon_core::problem::Place;
use tenon_core::{decode, userdata};

use super::Own;
use crate::collect::collected;
use crate::collect::run::Shared;
use crate::collect::source::{self, Answer};
use crate::systemd::Manager;

const FILE_CAP: u64 = 1 << 20;
/// Base64 and gzip, twice each.
const MOST_LAYERS: usize = 4;
/// Where a kubelet's kubeconfig may lie, in the order in which it is looked for.
const KUBECONFIGS: [&str; 5] = [
    "/var/lib/kubelet/kubeconfig",
    "/etc/kubernetes/kubelet/kubeconfig",
    "/etc/kubernetes/kubelet.conf",
    "/etc/kubernetes/bootstrap-kubelet.conf",
    "/etc/eks/kubelet/kubeconfig",
];
/// Files that may name another one with `--kubeconfig`.
const KUBELET_ARGUMENTS: [&str; 4] = [
    "/etc/eks/kubelet/environment",
    "/etc/tenon/kubelet.env",
    "/etc/systemd/system/kubelet.service",
    "/usr/lib/systemd/system/kubelet.service",
];
const CERTIFICATE_PLACES: [&str; 3] =
    ["/var/lib/kubelet/pki", "/etc/kubernetes/pki", "/etc/kubernetes/pki/etcd"];
const SYSCTL_PLACES: [&str; 3] = ["/usr/lib/sysctl.d", "/run/sysctl.d", "/etc/sysctl.d"];
const USER_DATA: [&str; 2] = ["/var/lib/cloud/instance/user-data.txt", "/var/lib/tenon/user-data"];
const PROXY_PLACES: [&str; 3] = ["/etc/systemd/system", "/etc/eks", "/etc/tenon"];

/// User data as received, with its packing removed.
pub fn user_data(shared: &Shared) -> Own {
    let Some(bytes) = raw_user_data(shared) else { return Own::Absent("none was stored".into()) };
    let place = Place::default();
    let mut budget = decode::Budget::default();
    let mut text = bytes;
    for _ in 0..MOST_LAYERS {
        let Some((_, Ok(inner))) = decode::peel_one(&text, &place, &mut budget) else { break };
        text = inner;
    }
    Own::Text(text)
}

/// The parts of the user data and what is wrong with them.
pub fn user_data_parts(shared: &Shared) -> Own {
    let Some(bytes) = raw_user_data(shared) else { return Own::Absent("none was stored".into()) };
    let options = userdata::inspect::Options::default();
    match userdata::inspect::read("user-data", bytes, &options) {
        Ok(node) => Own::json(&userdata::inspect::report(&node).to_json(false)),
        Err(problem) => Own::json(&problem.to_json()),
    }
}

fn raw_user_data(shared: &Shared) -> Option<Vec<u8>> {
    let given = shared.given.get("user-data").cloned();
    given.or_else(|| USER_DATA.iter().find_map(|path| shared.source.read(path, FILE_CAP).known()))
}

/// The kubelet's kubeconfig, with its path before it.
pub fn kubeconfig(shared: &Shared) -> Own {
    let text = kubeconfig_path(shared)
        .and_then(|path| Some((shared.source.read_text(&path).known()?, path)));
    match text {
        Some((text, path)) => Own::Text(format!("# {path}\n{text}\n").into_bytes()),
        None => Own::Absent("no kubeconfig where one is looked for".into()),
    }
}

/// Where the kubelet's kubeconfig is: what its arguments name, else the known paths.
pub fn kubeconfig_path(shared: &Shared) -> Option<String> {
    let named = KUBELET_ARGUMENTS.iter().filter_map(|path| {
        let text = shared.source.read_text(path).known()?;
        let rest = text.split("--kubeconfig").nth(1)?;
        let path = rest.trim_start_matches(['=', ' ', '"']);
        let end = path.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\'));
        Some(path[..end.unwrap_or(path.len())].to_owned())
    });
    let mut paths = named.chain(KUBECONFIGS.map(str::to_owned));
    let readable = |path: &str| matches!(shared.source.read_text(path), Answer::Known(_));
    paths.find(|path| path.starts_with('/') && readable(path))
}

/// Subject, issuer and dates of the node's certificates, never keys.
pub fn certificates(shared: &Shared) -> Own {
    let mut found = Vec::new();
    for place in CERTIFICATE_PLACES {
        for name in shared.source.list(place).known().unwrap_or_default() {
            let path = format!("{place}/{name}");
            let fitting = [".pem", ".crt", ".cert"].iter().any(|end| name.ends_with(end));
            let Some(text) = fitting.then(|| shared.source.read_text(&path).known()).flatten()
            else {
                continue;
            };
            for mut certificate in certificate::describe_all(&text) {
                certificate["path"] = json!(path);
                found.push(certificate);
            }
        }
    }
    match found.is_empty() {
        true => Own::Absent("no certificate that may be read".into()),
        false => Own::json(&json!({"certificates": found})),
    }
}

/// Names, modes, owners and sizes below a directory.
pub fn listing(shared: &Shared, top: &str, depth: usize) -> Own {
    let mut text = String::new();
    let mut waiting = vec![(top.to_owned(), 0)];
    while let Some((directory, level)) = waiting.pop() {
        for name in shared.source.list(&directory).known().unwrap_or_default() {
            let path = format!("{directory}/{name}");
            let Answer::Known(node) = shared.source.stat(&path) else { continue };
            let target = node.target.map(|target| format!(" -> {target}")).unwrap_or_default();
            text.push_str(&format!(
                "{:04o} {:>5} {:>5} {:>12} {:<9} {path}{target}\n",
                node.mode, node.uid, node.gid, node.size, node.kind
            ));
            // Pods have directories of their own by the hundred.
            if node.kind == "directory" && level + 1 < depth && name != "pods" {
                waiting.push((path, level + 1));
            }
        }
    }
    Own::lines(text)
}

/// Lines about proxies in the files that units read.
pub fn proxies(shared: &Shared) -> Own {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut files = vec!["/etc/environment".to_owned(), "/etc/profile.d/proxy.sh".to_owned()];
    let mut waiting: Vec<(String, usize)> = PROXY_PLACES.map(|place| (place.to_owned(), 0)).into();
    while let Some((directory, level)) = waiting.pop() {
        for name in shared.source.list(&directory).known().unwrap_or_default() {
            let path = format!("{directory}/{name}");
            match shared.source.stat(&path).known().map(|node| node.kind) {
                Some(kind) if kind == "directory" && level < 2 => waiting.push((path, level + 1)),
                Some(kind) if kind == "file" => files.push(path),
                _ => {}
            }
        }
    }
    for path in files {
        let Answer::Known(text) = shared.source.read_text(&path) else { continue };
        let lines = text.lines().filter(|line| line.to_ascii_lowercase().contains("_proxy"));
        let lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
        if !lines.is_empty() {
            found.insert(path, lines);
        }
    }
    Own::json(&json!({"files": found}))
}

/// Which file sets each kernel setting last, and what the kernel has.
pub fn sysctl_winners(shared: &Shared) -> Own {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for place in SYSCTL_PLACES {
        let names = shared.source.list(place).known().unwrap_or_default();
        // A later place replaces a file of the same name.
        files.extend(names.into_iter().map(|name| (name.clone(), format!("{place}/{name}"))));
    }
    let paths = files.into_values().chain(["/etc/sysctl.conf".to_owned()]);
    let mut winners: BTreeMap<String, Value> = BTreeMap::new();
    for path in paths {
        let Answer::Known(text) = shared.source.read_text(&path) else { continue };
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            let Some((key, value)) = line.split_once('=') else { continue };
            let key = key.trim().trim_start_matches('-').replace('/', ".");
            let effective =
                shared.source.read_text(&format!("/proc/sys/{}", key.replace('.', "/")));
            let setting =
                json!({"file": path, "value": value.trim(), "effective": effective.known()});
            winners.insert(key, setting);
        }
    }
    Own::json(&json!({"settings": winners}))
}

/// The state of every unit: the manager's words where one runs, else the files.
pub fn units(shared: &Shared) -> Own {
    let Ok(root) = shared.root() else { return Own::Error("no root".into()) };
    let mut names = source::unit_names(root);
    let mut complete = true;
    let manager = shared.source.is_live().then(|| Manager::connect(root)).transpose();
    let manager = match manager {
        Ok(manager) => manager,
        Err(problem) => {
            complete = false;
            tracing::debug!(%problem, "units are told by their files");
            None
        }
    };
    if let Some(loaded) = manager.as_ref().and_then(|manager| manager.loaded().ok()) {
        names.extend(loaded);
    }
    let units: Vec<Value> = names
        .into_iter()
        .map(|name| {
            let mut unit = source::unit_files(root, &name).unwrap_or_default();
            let state = manager.as_ref().and_then(|manager| manager.state(&name).ok());
            unit.state = state;
            collected::unit_to_json(&name, &unit)
        })
        .collect();
    Own::json(&json!({"complete": complete, "units": units}))
}

/// The time zone: the link, and the file of Debian.
pub fn time_zone(shared: &Shared) -> Own {
    let link = shared.source.stat("/etc/localtime").known().and_then(|node| node.target);
    let file = shared.source.read_text("/etc/timezone").known();
    let lines: Vec<String> = link.into_iter().chain(file).collect();
    Own::lines(lines.iter().map(|line| format!("{line}\n")).collect())
}
