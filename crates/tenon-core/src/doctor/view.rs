//! A snapshot made ready for questions: the lines that count, and the documents parsed once.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::check::Evidence;
use super::network;
use super::signal::{Log, Signal, Target};
use super::snapshot::{Line, Snapshot, Unit};
use super::step::Step;
use crate::kube_version::Version;
use crate::redact::{self, Book};
use crate::tree::Dialect;
use crate::{words, yaml};

/// Until then a node that is not Ready may simply be young.
const YOUNG_S: u64 = 300;

/// Texts that show that a step was passed when they were printed.
const MARKS: &[(Signal, Step)] = &[
    (
        Signal::confirmed(
            Log::Containerd,
            &["containerd successfully booted"],
            "containerd cmd/containerd/command/main.go",
        ),
        Step::Containerd,
    ),
    (
        Signal::confirmed(
            Log::Kubelet,
            &["Attempting to register node"],
            "kubernetes pkg/kubelet/kubelet_node_status.go",
        ),
        Step::Kubelet,
    ),
    (
        Signal::confirmed(
            Log::Kubelet,
            &["Successfully registered node"],
            "kubernetes pkg/kubelet/kubelet_node_status.go",
        ),
        Step::NodeObject,
    ),
    (
        Signal::confirmed(
            Log::Kubelet,
            &["Fast updating node status as it just became ready"],
            "kubernetes pkg/kubelet/kubelet_node_status.go",
        ),
        Step::Ready,
    ),
];

/// Printed when the node loses Ready.
const LOST: Signal = Signal::confirmed(
    Log::Kubelet,
    &["Node became not ready"],
    "kubernetes pkg/kubelet/nodestatus/setters.go",
);

/// A line that counts, as signals read it.
#[derive(Debug)]
pub struct Read<'a> {
    pub line: &'a Line,
    pub text: Cow<'a, str>,
}

/// Where the API server is said to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    pub host: String,
    pub port: u16,
}

/// A step that was passed, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub step: Step,
    pub time_us: u64,
}

/// A node, ready for questions.
#[derive(Debug)]
pub struct View<'a> {
    pub node: &'a Snapshot,
    logs: BTreeMap<Log, Vec<Read<'a>>>,
    pub now_us: u64,
    /// Seconds since the boot.
    pub age_s: Option<u64>,
    /// Flags of the kubelet by name, the last of each.
    pub flags: BTreeMap<String, String>,
    /// The kubelet's config, drop-ins merged over the file.
    pub kubelet: Value,
    /// The config of the node as its bootstrap kept it.
    pub spec: Value,
    /// What the bootstrap knew of the machine.
    pub status: Value,
    pub kubeconfig: Value,
    pub api: Option<Endpoint>,
    /// Environment of the kubelet's unit.
    pub environment: BTreeMap<String, String>,
    pub marks: Vec<Mark>,
    /// Secrets are taken out of a line before it is cut: half a secret is one, too.
    pub book: Book,
    units: BTreeMap<String, Unit>,
}

impl<'a> View<'a> {
    /// Reads a snapshot. `since_us` replaces the rule which lines count.
    pub fn new(node: &'a Snapshot, since_us: Option<u64>) -> Self {
        let newest = node.journal.iter().map(|line| line.time_us).max().unwrap_or_default();
        let lines = current(node, since_us, newest);
        let flags = flags(node);
        let cache = json(node, "/run/eks/nodeadm/config.json");
        let kubeconfig = kubeconfig(node, &flags);
        let spec = cache["spec"].clone();
        let server = cluster_of(&kubeconfig)["server"].as_str();
        let api = server.or(spec["cluster"]["apiServerEndpoint"].as_str()).and_then(endpoint_of);
        let now_us = node.now_us.unwrap_or(newest);
        let mut view = View {
            age_s: age(node, &lines, now_us),
            units: units(node, &lines),
            logs: BTreeMap::new(),
            now_us,
            kubelet: kubelet_config(node, &flags),
            status: cache["status"].clone(),
            environment: environment(node),
            marks: Vec::new(),
            book: Book::default(),
            node,
            flags,
            spec,
            kubeconfig,
            api,
        };
        for line in lines {
            if let Some(log) = Log::of(line) {
                let read = Read { line, text: unescaped(&line.message) };
                view.logs.entry(log).or_default().push(read);
            }
        }
        view.marks = view.find_marks();
        view
    }

    fn find_marks(&self) -> Vec<Mark> {
        let mark = |(signal, step): &(Signal, Step)| {
            let last =
                self.log(signal.log).iter().rev().find(|r| signal.find(&r.text).is_some())?;
            Some(Mark { step: *step, time_us: last.line.time_us })
        };
        let mut marks: Vec<_> = MARKS.iter().filter_map(mark).collect();
        let lost = self.log(LOST.log).iter().rev().find(|read| LOST.find(&read.text).is_some());
        let lost = lost.map_or(0, |read| read.line.time_us);
        marks.retain(|mark| mark.step != Step::Ready || mark.time_us > lost);
        marks
    }

    /// The lines of a log that count, oldest first.
    pub fn log(&self, log: Log) -> &[Read<'a>] {
        self.logs.get(&log).map_or(&[], Vec::as_slice)
    }

    pub fn has_lines(&self) -> bool {
        !self.logs.is_empty()
    }

    /// Text of a file.
    pub fn file(&self, path: &str) -> Option<&'a str> {
        self.node.files.get(path).map(String::as_str)
    }

    /// First word of a file, for the one-value files of the kernel.
    pub fn value(&self, path: &str) -> Option<&'a str> {
        self.file(path).and_then(|text| text.split_whitespace().next())
    }

    /// Files in a directory, by path.
    pub fn files_in(&self, folder: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let (node, prefix) = (self.node, format!("{folder}/"));
        let below = node
            .files
            .range(prefix.clone()..)
            .take_while(move |(path, _)| path.starts_with(&prefix));
        below.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Names in a directory; None if it was not found.
    pub fn names(&self, folder: &str) -> Option<&'a [String]> {
        self.node.folders.get(folder).map(Vec::as_slice)
    }

    pub fn unit(&self, name: &str) -> Option<&Unit> {
        self.units.get(name)
    }

    /// True while the node may simply not be there yet.
    pub fn is_young(&self) -> bool {
        self.age_s.is_some_and(|age| age < YOUNG_S)
    }

    /// When the deepest known step at or after `step` was last passed.
    pub fn passed_at(&self, step: Step) -> Option<u64> {
        self.marks.iter().filter(|mark| mark.step >= step).map(|mark| mark.time_us).max()
    }

    pub fn kubelet_version(&self) -> Option<Version> {
        let recorded = self.status["kubeletVersion"].as_str();
        self.file("/etc/eks/kubelet-version.txt").or(recorded).and_then(Version::parse)
    }

    fn version_for(&self, log: Log) -> Option<(u32, u32)> {
        let version = match log {
            Log::Kubelet => self.kubelet_version(),
            Log::Containerd => {
                self.file("/etc/eks/containerd-version.txt").and_then(Version::parse)
            }
            _ => None,
        };
        version.map(|version| (version.major, version.minor))
    }

    /// Looks for a text that is not healed: no later line and no probe shows that its step was
    /// passed since.
    pub fn seen(&self, signal: &Signal, step: Step, on_api: bool) -> Option<Evidence> {
        if !signal.fits(self.version_for(signal.log)) || (signal.early && self.is_young()) {
            return None;
        }
        let healed = self.passed_at(step);
        if on_api && network::passed(self).is_some_and(|passed| passed >= step) {
            return None;
        }
        let lines = self.log(signal.log).iter();
        let fresh =
            lines.filter(|r| r.line.time_us == 0 || healed.is_none_or(|t| r.line.time_us > t));
        let mut last = None;
        let mut count = 0;
        for read in fresh.filter(|read| self.is_about(signal.target, &read.text)) {
            if signal.find(&read.text).is_some() {
                last = Some(read);
                count += 1;
            }
        }
        let read = last?;
        let safe = redact::text(&self.book, &read.text);
        let text = super::text::excerpt(&safe, signal.find(&safe).unwrap_or(&safe));
        Some(Evidence::journal(signal.log.title(), read.line.time_us, count, text))
    }

    fn is_about(&self, target: Target, text: &str) -> bool {
        let api = || self.api.as_ref().is_some_and(|api| names(text, &api.host));
        match target {
            Target::Anything => true,
            Target::Api => api(),
            Target::Elsewhere => !api(),
        }
    }

    /// Name of the cluster that the kubelet asks tokens for.
    pub fn cluster_name(&self) -> Option<&str> {
        let user = &self.kubeconfig["users"][0]["user"]["exec"]["args"];
        let words: Vec<_> = user.as_array()?.iter().filter_map(Value::as_str).collect();
        let at =
            words.iter().position(|w| matches!(*w, "--cluster-name" | "-i" | "--cluster-id"))?;
        words.get(at + 1).copied()
    }

    /// PEM text of the CA that the kubelet trusts, with where it stands.
    pub fn authority(&self) -> Option<(String, Result<String, &'static str>)> {
        let cluster = cluster_of(&self.kubeconfig);
        if let Some(path) = cluster["certificate-authority"].as_str() {
            return Some((
                path.to_owned(),
                self.file(path).map(str::to_owned).ok_or("is not there"),
            ));
        }
        // A bundle shows certificates by their subject only.
        let data = cluster["certificate-authority-data"].as_str();
        let data = data.filter(|data| !data.starts_with("<certificate: CN"))?;
        let text =
            STANDARD.decode(data.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        Some((kubeconfig_path(&self.flags).to_owned(), text.ok_or("is not base64 of text")))
    }

    /// True when the kubelet would ask a proxy for this host.
    pub fn uses_proxy(&self, host: &str) -> bool {
        network::proxy_for(self, host).is_some()
    }

    /// Where the kubelet finds the API server.
    pub fn kubeconfig_path(&self) -> &str {
        kubeconfig_path(&self.flags)
    }

    /// The name under which the kubelet registers.
    pub fn node_name(&self) -> Option<&str> {
        let flag = self.flags.get("hostname-override").map(String::as_str);
        flag.or_else(|| self.value("/etc/hostname")).filter(|name| !name.is_empty())
    }
}

/// The lines of this boot, after the last change of the configuration, oldest first. A change
/// that is newer than every line hides nothing: the node has said nothing since.
fn current<'a>(node: &'a Snapshot, since_us: Option<u64>, newest: u64) -> Vec<&'a Line> {
    let known = node.files.get("/proc/sys/kernel/random/boot_id");
    let known = known.map(|id| id.trim().replace('-', ""));
    let last = node.journal.iter().max_by_key(|line| line.time_us);
    let boot = known.or_else(|| last.map(|line| line.boot.replace('-', ""))).unwrap_or_default();
    let change = node.changed_us.filter(|change| *change < newest);
    let from = since_us.or(change).unwrap_or_default();
    let of_boot = |line: &&Line| {
        since_us.is_some() || line.boot.is_empty() || line.boot.replace('-', "") == boot
    };
    let fresh = |line: &&Line| line.time_us == 0 || line.time_us >= from;
    let mut lines: Vec<_> = node.journal.iter().filter(of_boot).filter(fresh).collect();
    lines.sort_by_key(|line| line.time_us);
    lines
}

fn age(node: &Snapshot, lines: &[&Line], now_us: u64) -> Option<u64> {
    let uptime =
        node.files.get("/proc/uptime").and_then(|text| text.split('.').next()?.parse().ok());
    let first = lines.iter().map(|line| line.time_us).find(|time| *time > 0);
    uptime.or_else(|| first.map(|first| now_us.saturating_sub(first) / 1_000_000))
}

/// Structured logs quote the quotes of the errors in them.
fn unescaped(message: &str) -> Cow<'_, str> {
    match message.contains("\\\"") {
        true => message.replace("\\\"", "\"").into(),
        false => message.into(),
    }
}

/// True when a text names a host, whatever the letter case.
fn names(text: &str, host: &str) -> bool {
    let (text, host) = (text.as_bytes(), host.as_bytes());
    text.windows(host.len()).any(|part| part.eq_ignore_ascii_case(host))
}

/// States of units: the manager's own, else what it wrote into the journal.
fn units(node: &Snapshot, lines: &[&Line]) -> BTreeMap<String, Unit> {
    let mut units = node.units.clone();
    if !units.is_empty() {
        return units;
    }
    for line in lines.iter().filter(|line| line.identifier == "systemd" && !line.unit.is_empty()) {
        let unit = units.entry(line.unit.clone()).or_default();
        let message = line.message.as_str();
        if let Some((_, count)) = message.split_once("restart counter is at ") {
            unit.restarts = count.trim_end_matches('.').parse().unwrap_or(unit.restarts);
        } else if let Some((_, result)) = message.split_once("Failed with result '") {
            unit.active = "failed".into();
            unit.result = result.trim_end_matches("'.").trim_end_matches('\'').into();
        } else if message.starts_with("Started ") || message.starts_with("Finished ") {
            unit.active = "active".into();
        } else if message.starts_with("Starting ") {
            unit.active = "activating".into();
        } else if message.starts_with("Stopped ") || message.starts_with("Deactivated ") {
            unit.active = "inactive".into();
        }
    }
    units
}

fn json(node: &Snapshot, path: &str) -> Value {
    let text = node.files.get(path);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// A JSON or YAML document.
fn document(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let trees = yaml::parse(text).unwrap_or_default();
    trees.first().map(|tree| tree.to_json(Dialect::Yaml12)).unwrap_or_default()
}

/// The flags of the kubelet from its environment file and its unit.
fn flags(node: &Snapshot) -> BTreeMap<String, String> {
    let mut flags = BTreeMap::new();
    let mut texts = Vec::new();
    for (path, text) in &node.files {
        let unit = path.contains("/kubelet.service");
        let environment =
            path.ends_with("/kubelet/environment") || path.ends_with("kubeadm-flags.env");
        if !unit && !environment {
            continue;
        }
        let argument = |line: &str| {
            let (key, value) = line.split_once('=')?;
            let key = key.trim();
            let wanted = key == "ExecStart" || key.ends_with("_ARGS") && !unit;
            wanted.then(|| value.replace("\\\\", "\\"))
        };
        let joined = text.replace("\\\n", " ");
        // What the unit says comes before what its variables add.
        let found: Vec<_> = joined.lines().filter_map(argument).collect();
        texts.splice(if unit { 0..0 } else { texts.len()..texts.len() }, found);
    }
    for text in texts {
        let words = words::split(text.trim_matches('"')).unwrap_or_default().words;
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--") else { continue };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => {
                    let next =
                        words.next_if(|next| !next.starts_with('-') && !next.starts_with('$'));
                    (flag, next.cloned().unwrap_or_else(|| "true".into()))
                }
            };
            flags.insert(name.to_owned(), value);
        }
    }
    flags
}

fn kubelet_config(node: &Snapshot, flags: &BTreeMap<String, String>) -> Value {
    let path = flags.get("config").map_or("/etc/kubernetes/kubelet/config.json", String::as_str);
    let mut config = node.files.get(path).map(|text| document(text)).unwrap_or_default();
    if let Some(folder) = flags.get("config-dir") {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        let drop_ins = node.files.iter().filter(|(path, _)| path.starts_with(&prefix));
        for (_, text) in drop_ins {
            merge(&mut config, document(text));
        }
    }
    config
}

fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

const KUBECONFIGS: &[&str] = &[
    "/var/lib/kubelet/kubeconfig",
    "/etc/kubernetes/kubelet.conf",
    "/var/lib/kubelet/bootstrap-kubeconfig",
];

fn kubeconfig_path(flags: &BTreeMap<String, String>) -> &str {
    flags.get("kubeconfig").map_or(KUBECONFIGS[0], String::as_str)
}

fn kubeconfig(node: &Snapshot, flags: &BTreeMap<String, String>) -> Value {
    let paths = std::iter::once(kubeconfig_path(flags)).chain(KUBECONFIGS.iter().copied());
    let mut texts = paths.filter_map(|path| node.files.get(path));
    texts.next().map(|text| document(text)).unwrap_or_default()
}

fn cluster_of(kubeconfig: &Value) -> &Value {
    &kubeconfig["clusters"][0]["cluster"]
}

/// The parts of an API server's address.
pub fn endpoint_of(url: &str) -> Option<Endpoint> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split('/').next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (authority, if url.starts_with("https") { 443 } else { 80 }),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    (!host.is_empty()).then(|| Endpoint { url: url.to_owned(), host, port })
}

/// Variables of the kubelet's unit: the manager's defaults, its drop-ins, the proxy file.
fn environment(node: &Snapshot) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    let unit = |path: &str| path.contains("/kubelet.service") || path.contains("/system.conf.d/");
    for (_, text) in node.files.iter().filter(|(path, _)| unit(path)) {
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            if !matches!(key.trim(), "Environment" | "DefaultEnvironment") {
                continue;
            }
            let words = words::split(&value.replace("%%", "%")).unwrap_or_default().words;
            let pairs = words.iter().filter_map(|word| word.split_once('='));
            variables.extend(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())));
        }
    }
    let proxy = node.files.get("/etc/eks/proxy.env").map(String::as_str).unwrap_or_default();
    let pairs = proxy.lines().filter_map(|line| line.split_once('='));
    let pairs = pairs
        .map(|(key, value)| (key.trim().to_owned(), value.trim().trim_matches('"').to_owned()));
    for (key, value) in pairs {
        variables.entry(key).or_insert(value);
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_api_servers() {
        for (url, host, port) in [
            ("https://a.example.com", "a.example.com", 443),
            ("https://a:6443/x", "a", 6443),
            ("https://[fd00::1]:6443", "fd00::1", 6443),
            ("https://[fd00::1]", "fd00::1", 443),
        ] {
            let endpoint = endpoint_of(url).unwrap();
            assert_eq!((endpoint.host.as_str(), endpoint.port), (host, port), "{url}");
        }
        assert_eq!(endpoint_of("a.example.com"), None);
    }

    #[test]
    fn flags_come_from_the_unit_and_its_environment() {
        let mut node = Snapshot::default();
        node.files.insert(
            "/etc/systemd/system/kubelet.service".into(),
            "[Service]\nExecStart=/usr/bin/kubelet --v 2 \\\n  $NODEADM_KUBELET_ARGS\n".into(),
        );
        node.files.insert(
            "/etc/eks/kubelet/environment".into(),
            "NODEADM_KUBELET_ARGS=--v=4 --fail-swap-on=false --hostname-override=a.b\n".into(),
        );
        let view = View::new(&node, None);
        assert_eq!(view.flags["v"], "4");
        assert_eq!(view.node_name(), Some("a.b"));
    }

    #[test]
    fn variables_of_the_unit() {
        let mut node = Snapshot::default();
        node.files.insert(
            "/etc/systemd/system/kubelet.service.d/environment.conf".into(),
            "[Service]\nEnvironment=\"HTTPS_PROXY=http://p:3128\" \"A=100%%\"\n".into(),
        );
        node.files
            .insert("/etc/eks/proxy.env".into(), "HTTPS_PROXY=http://q\nNO_PROXY=a,b\n".into());
        let view = View::new(&node, None);
        assert_eq!(view.environment["HTTPS_PROXY"], "http://p:3128");
        assert_eq!(view.environment["A"], "100%");
        assert_eq!(view.environment["NO_PROXY"], "a,b");
    }
}
