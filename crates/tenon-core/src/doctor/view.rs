//! A snapshot made ready for questions: the lines that count, and the documents parsed once.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::check::Evidence;
use super::documents::{
    KUBELET_CONFIG, cluster_of, document, endpoint_of, environment, flags, json, kubeconfig_path,
    kubelet_config, units,
};
use super::network;
use super::signal::{Log, Signal, Target};
use super::snapshot::{Line, Snapshot, Unit};
use super::step::Step;
use crate::kube_version::Version;
use crate::redact::{self, Book};

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

/// What a log says, as signals read it: once, however often it was said.
#[derive(Debug)]
pub struct Said<'a> {
    pub text: Cow<'a, str>,
    /// When it was said, oldest first; 0 in a log without times.
    times_us: Vec<u64>,
}

impl Said<'_> {
    /// How often it was said after a time, and when last; None if not.
    fn since(&self, time_us: Option<u64>) -> Option<(u32, u64)> {
        let fresh = |time: &&u64| **time == 0 || time_us.is_none_or(|since| **time > since);
        let count = self.times_us.iter().filter(fresh).count();
        let last = self.times_us.last().copied().filter(|_| count > 0)?;
        Some((u32::try_from(count).unwrap_or(u32::MAX), last))
    }
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
    logs: BTreeMap<Log, Vec<Said<'a>>>,
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
    /// Where that stands.
    pub kubeconfig_path: String,
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
        let kubeconfig_path = kubeconfig_path(node, &flags);
        let kubeconfig = node.files.get(&kubeconfig_path).map(|text| document(text));
        let kubeconfig = kubeconfig.unwrap_or_default();
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
            kubeconfig_path,
            api,
        };
        // A program in trouble says the same few things thousands of times.
        let mut known: BTreeMap<(Log, &str), usize> = BTreeMap::new();
        for line in lines {
            let Some(log) = Log::of(line) else { continue };
            let said = view.logs.entry(log).or_default();
            let index = *known.entry((log, body(&line.message))).or_insert(said.len());
            if index == said.len() {
                said.push(Said { text: unescaped(&line.message), times_us: Vec::new() });
            }
            said[index].times_us.push(line.time_us);
        }
        view.marks = view.find_marks();
        view
    }

    fn find_marks(&self) -> Vec<Mark> {
        let last = |signal: &Signal| {
            let said = self.log(signal.log).iter().filter(|said| signal.find(&said.text).is_some());
            said.filter_map(|said| Some(said.since(None)?.1)).max()
        };
        let lost = last(&LOST).unwrap_or_default();
        let marks = MARKS
            .iter()
            .filter_map(|(signal, step)| Some(Mark { step: *step, time_us: last(signal)? }));
        marks.filter(|mark| mark.step != Step::Ready || mark.time_us > lost).collect()
    }

    /// What a log says, as far as it counts.
    pub fn log(&self, log: Log) -> &[Said<'a>] {
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

    /// True when the kubelet's config or kubeconfig may not be read, so that nothing follows from
    /// what is not in them.
    pub fn hides_settings(&self) -> bool {
        let config = self.flags.get("config").map_or(KUBELET_CONFIG, String::as_str);
        self.node.denied.iter().any(|path| *path == self.kubeconfig_path || path == config)
    }

    /// Names in a directory; None if it was not found.
    pub fn names(&self, folder: &str) -> Option<&'a [String]> {
        self.node.folders.get(folder).map(Vec::as_slice)
    }

    /// Every unit whose state is known.
    pub fn units(&self) -> &BTreeMap<String, Unit> {
        &self.units
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
        let mut latest: Option<(u64, &Said)> = None;
        let mut count = 0_u32;
        for said in self.log(signal.log) {
            if signal.find(&said.text).is_none() || !self.is_about(signal.target, &said.text) {
                continue;
            }
            let Some((times, last)) = said.since(healed) else { continue };
            count = count.saturating_add(times);
            if latest.is_none_or(|(before, _)| last >= before) {
                latest = Some((last, said));
            }
        }
        let (time_us, said) = latest?;
        let safe = redact::text(&self.book, &said.text);
        let text = super::text::excerpt(&safe, signal.find(&safe).unwrap_or(0..safe.len()));
        Some(Evidence::journal(signal.log.title(), time_us, count, text))
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
        Some((self.kubeconfig_path.clone(), text.ok_or("is not base64 of text")))
    }

    /// True when the kubelet would ask a proxy for this host.
    pub fn uses_proxy(&self, host: &str) -> bool {
        network::proxy_for(self, host).is_some()
    }

    /// Files that the kubelet's flags and its kubeconfig name.
    pub fn named_files(&self) -> Vec<String> {
        let flags = ["kubeconfig", "bootstrap-kubeconfig", "config"];
        let flags = flags.iter().filter_map(|name| self.flags.get(*name));
        let user = &self.kubeconfig["users"][0]["user"];
        let cluster = cluster_of(&self.kubeconfig);
        let named = [&cluster["certificate-authority"], &user["client-certificate"]];
        let named = named.into_iter().filter_map(Value::as_str).map(str::to_owned);
        flags.cloned().chain(named).filter(|path| path.starts_with('/')).collect()
    }

    /// The name under which the kubelet registers.
    pub fn node_name(&self) -> Option<&str> {
        let flag = self.flags.get("hostname-override").map(String::as_str);
        flag.or_else(|| self.value("/etc/hostname")).filter(|name| !name.is_empty())
    }
}

/// The lines of this boot, after the last change of the configuration, oldest first. A change
/// that is newer than every line hides nothing: the node has said nothing since.
fn current(node: &Snapshot, since_us: Option<u64>, newest: u64) -> Vec<&Line> {
    let known = node.files.get("/proc/sys/kernel/random/boot_id").map(|id| id.trim());
    let last = node.journal.iter().max_by_key(|line| line.time_us);
    let boot = known.or_else(|| last.map(|line| line.boot.as_str())).unwrap_or_default();
    let digits = |id: &str| id.bytes().filter(|byte| *byte != b'-').collect::<Vec<_>>();
    let boot = digits(boot);
    let change = node.changed_us.filter(|change| *change < newest);
    let from = since_us.or(change).unwrap_or_default();
    let of_boot = |line: &&Line| {
        since_us.is_some()
            || line.boot.is_empty()
            || line.boot.bytes().filter(|byte| *byte != b'-').eq(boot.iter().copied())
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
    node.age_s.or(uptime).or_else(|| first.map(|first| now_us.saturating_sub(first) / 1_000_000))
}

/// A message without the time that its program writes in front.
fn body(message: &str) -> &str {
    let head = message.char_indices().take(80).last().map_or(0, |(end, _)| end);
    let klog = message[..head].find("] ").filter(|_| message.starts_with(['I', 'W', 'E', 'F']));
    let logfmt = message[..head].find(" level=").filter(|_| message.starts_with("time="));
    &message[klog.or(logfmt).unwrap_or(0)..]
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

    /// The work grows with what is said, not with how often.
    #[test]
    fn what_is_repeated_is_read_once() {
        let line = |second: u64| Line {
            time_us: second,
            unit: "kubelet.service".into(),
            identifier: "kubelet".into(),
            message: format!(
                "E0110 12:00:{:02}.000000 812 x.go:{}] \"No\" err=\"Unauthorized\"",
                second % 60,
                second % 7
            ),
            ..Line::default()
        };
        let node = Snapshot { journal: (1..=5000).map(line).collect(), ..Snapshot::default() };
        let view = View::new(&node, None);
        assert_eq!(view.log(Log::Kubelet).len(), 1);
        let signal = Signal::tentative(Log::Kubelet, &["Unauthorized"]);
        let seen = view.seen(&signal, Step::Authn, true).unwrap();
        assert_eq!((seen.count, seen.time_us), (5000, 5000));
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
