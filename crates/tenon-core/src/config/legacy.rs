//! Arguments of the old `bootstrap.sh` into a `tenon.dev/v1alpha1` document.
//!
//! [`convert`] reads the arguments alone. What needs the machine (its region, its VPC, the
//! content of a file) is named in [`Legacy`] and filled in by [`Legacy::finish`].

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};
use serde_json::{Map, Value, json};

use super::PAUSE_IMAGE;
use crate::codes::Page;
use crate::codes::decode::{
    BAD_OPTION, IGNORED_OPTION, NO_CLUSTER_NAME, NOT_EXPANDED, OPTIONS_DISAGREE, UNCLOSED_QUOTE,
    UNKNOWN_OPTION,
};
use crate::nearest::nearest;
use crate::problem::{Finding, Place, Problem};
use crate::words;

/// Every option; each takes one value.
const OPTIONS: [&str; 18] = [
    "--apiserver-endpoint",
    "--aws-api-retry-attempts",
    "--b64-cluster-ca",
    "--cluster-id",
    "--container-runtime",
    "--containerd-config-file",
    "--dns-cluster-ip",
    "--docker-config-json",
    "--enable-docker-bridge",
    "--enable-local-outpost",
    "--ip-family",
    "--kubelet-extra-args",
    "--local-disks",
    "--mount-bpf-fs",
    "--pause-container-account",
    "--pause-container-version",
    "--service-ipv6-cidr",
    "--use-max-pods",
];

/// The pod limit that `--use-max-pods false` leaves: the kubelet's own default.
const KUBELET_DEFAULT_PODS: u32 = 110;
/// The tag of the pause image when only its account is given; every EKS registry has it.
const PAUSE_VERSION: &str = "3.10";
/// Memory reserved by the interfaces' pods, where the pod limit itself is another number.
const RESERVED_BASE_MIB: u64 = 255;
const RESERVED_PER_POD_MIB: u64 = 11;
/// EKS gives IPv6 clusters a service range of this size.
const IPV6_SERVICE_PREFIX: u8 = 108;

/// Service ranges that EKS chooses, by whether the VPC uses 10.0.0.0/8.
const SERVICE_CIDR: &str = "10.100.0.0/16";
const SERVICE_CIDR_BESIDE_TEN: &str = "172.20.0.0/16";
const TEN: &str = "10.0.0.0/8";

/// The converted arguments, and what is still missing in the document.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Legacy {
    pub document: Value,
    /// A file whose content becomes `containerd.config`.
    pub containerd_config_file: Option<String>,
    pub pause: Option<Pause>,
    /// No service range is known and nobody will ask EKS for it: it follows from the VPC.
    pub needs_vpc_cidrs: bool,
    /// The memory reservation follows the pods of the interfaces, not the fixed limit.
    pub needs_eni_max_pods: bool,
    /// Upper bound on attempts of AWS API calls.
    pub api_attempts: Option<u32>,
    /// Whether `/sys/fs/bpf` is wanted mounted; None when not said.
    pub mount_bpf: Option<bool>,
    pub findings: Vec<Finding>,
}

/// A pause image in some account's registry of this region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    pub account: String,
    pub version: String,
}

/// What the machine adds.
#[derive(Debug, Clone, Default)]
pub struct Machine<'a> {
    pub region: &'a str,
    /// `amazonaws.com`, `amazonaws.com.cn`, …
    pub domain: &'a str,
    pub vpc_cidrs: &'a [IpNet],
    /// The environment's `SERVICE_IPV4_CIDR`.
    pub service_ipv4_cidr: Option<&'a str>,
    /// Content of [`Legacy::containerd_config_file`].
    pub containerd_config: Option<&'a str>,
    /// Pods by the plain formula of the instance type.
    pub eni_max_pods: Option<u32>,
}

/// Converts the arguments of a `bootstrap.sh` call. Either all that is wrong with them, or a
/// document with the warnings.
pub fn convert(arguments: &[String]) -> Result<Legacy, Vec<Finding>> {
    let mut reader = Reader::default();
    reader.collect(arguments);
    let legacy = reader.legacy();
    if reader.findings.iter().any(|finding| finding.stops(false)) {
        return Err(reader.findings);
    }
    Ok(Legacy { findings: reader.findings, ..legacy })
}

#[derive(Default)]
struct Reader {
    names: Vec<String>,
    /// The last value of each option; an empty one is as good as none.
    values: BTreeMap<&'static str, String>,
    findings: Vec<Finding>,
}

impl Reader {
    fn collect(&mut self, arguments: &[String]) {
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                self.names.push(word.clone());
                continue;
            }
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (word.as_str(), None),
            };
            let Some(option) = OPTIONS.into_iter().find(|option| *option == name) else {
                self.unknown(name);
                continue;
            };
            match value.or_else(|| words.next().cloned()) {
                Some(value) => {
                    self.values.insert(option, value);
                }
                None => self.error(&BAD_OPTION, option, format!("`{option}` has no value")),
            }
        }
    }

    fn unknown(&mut self, name: &str) {
        let shown: String = name.chars().take(40).collect();
        let fix = match nearest(name, OPTIONS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "remove it, or quote it into --kubelet-extra-args if it is the kubelet's".into()
            }
        };
        let problem = Problem::new(&UNKNOWN_OPTION, format!("unknown option `{shown}`"));
        self.findings.push(Finding::error(problem.at(Place::field(shown)).fix(fix)));
    }

    fn error(&mut self, page: &'static Page, option: &str, what: String) {
        self.findings.push(Finding::error(Problem::new(page, what).at(Place::field(option))));
    }

    fn warn(&mut self, page: &'static Page, option: &str, what: String) {
        self.findings.push(Finding::warning(Problem::new(page, what).at(Place::field(option))));
    }

    fn value(&self, option: &str) -> Option<String> {
        self.values.get(option).filter(|value| !value.is_empty()).cloned()
    }

    /// The value of an option that has few, as what they stand for.
    fn choice<T: Copy>(&mut self, option: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let value = self.value(option)?;
        let found = choices.iter().find(|(name, _)| *name == value).map(|(_, meaning)| *meaning);
        if found.is_none() {
            let names: Vec<_> = choices.iter().map(|(name, _)| format!("`{name}`")).collect();
            self.error(&BAD_OPTION, option, format!("`{option}` takes {}", names.join(" or ")));
        }
        found
    }

    fn flag(&mut self, option: &'static str) -> Option<bool> {
        self.choice(option, &[("true", true), ("false", false)])
    }

    /// The value of an option in a type of its own.
    fn parsed<T: std::str::FromStr>(&mut self, option: &'static str, shape: &str) -> Option<T> {
        let parsed = self.value(option)?.parse().ok();
        if parsed.is_none() {
            self.error(&BAD_OPTION, option, format!("`{option}` takes {shape}"));
        }
        parsed
    }

    fn legacy(&mut self) -> Legacy {
        self.check_runtime();
        let dns = self.dns();
        let cluster = self.cluster(&dns);
        let keep_pods = self.flag("--use-max-pods").unwrap_or(true);
        let known = cluster.contains_key("apiServerEndpoint")
            && cluster.contains_key("certificateAuthority");
        let needs_vpc_cidrs = known && !cluster.contains_key("cidr");
        let mut spec = Map::new();
        spec.insert("cluster".into(), Value::Object(cluster));
        spec.insert("kubelet".into(), Value::Object(self.kubelet(&dns, keep_pods)));
        if let Some(strategy) = self.disks() {
            spec.insert("instance".into(), json!({"localStorage": {"strategy": strategy}}));
        }
        Legacy {
            document: json!({
                "apiVersion": "tenon.dev/v1alpha1", "kind": "NodeConfig", "spec": spec,
            }),
            containerd_config_file: self.value("--containerd-config-file"),
            pause: self.pause(),
            needs_vpc_cidrs,
            needs_eni_max_pods: !keep_pods,
            api_attempts: self.parsed("--aws-api-retry-attempts", "a number of attempts"),
            mount_bpf: self.flag("--mount-bpf-fs"),
            findings: Vec::new(),
        }
    }

    fn check_runtime(&mut self) {
        if self.value("--container-runtime").is_some_and(|runtime| runtime != "containerd") {
            let what = "`--container-runtime` takes `containerd`; dockerd runs no nodes any more";
            self.error(&BAD_OPTION, "--container-runtime", what.into());
        }
        for option in ["--enable-docker-bridge", "--docker-config-json"] {
            if self.values.contains_key(option) {
                self.warn(&IGNORED_OPTION, option, format!("`{option}` is ignored"));
            }
        }
    }

    fn cluster(&mut self, dns: &[IpAddr]) -> Map<String, Value> {
        let mut cluster = Map::new();
        match &self.names[..] {
            [name] => {
                cluster.insert("name".into(), json!(name));
            }
            [] => {
                let what = "the name of the cluster is missing";
                self.error(&NO_CLUSTER_NAME, "CLUSTER_NAME", what.into());
            }
            // The value of an option that is not known stands there as a word.
            _ if self.findings.iter().any(|finding| finding.problem.page == &UNKNOWN_OPTION) => {}
            more => {
                let what = format!("{} words stand beside the options", more.len());
                self.error(&NO_CLUSTER_NAME, "CLUSTER_NAME", what);
            }
        }
        for (option, field) in [
            ("--apiserver-endpoint", "apiServerEndpoint"),
            ("--b64-cluster-ca", "certificateAuthority"),
            ("--cluster-id", "id"),
        ] {
            cluster.extend(self.value(option).map(|value| (field.to_owned(), json!(value))));
        }
        let outpost = self.flag("--enable-local-outpost");
        cluster.extend(outpost.map(|outpost| ("enableOutpost".to_owned(), json!(outpost))));
        let cidr = self.cidr(dns);
        cluster.extend(cidr.map(|cidr| ("cidr".to_owned(), json!(cidr.to_string()))));
        cluster
    }

    /// The service range, where the arguments decide it: IPv6 only.
    fn cidr(&mut self, dns: &[IpAddr]) -> Option<IpNet> {
        let given: Option<IpNet> = self.parsed("--service-ipv6-cidr", "an IPv6 range");
        let family = self.choice("--ip-family", &[("ipv4", false), ("ipv6", true)]);
        let six = family.unwrap_or(given.is_some());
        match (six, given) {
            (true, Some(IpNet::V6(cidr))) => Some(IpNet::V6(cidr)),
            (_, Some(IpNet::V4(_))) => {
                let what = "`--service-ipv6-cidr` takes an IPv6 range";
                self.error(&BAD_OPTION, "--service-ipv6-cidr", what.into());
                None
            }
            (false, Some(_)) => {
                let what = "`--service-ipv6-cidr` does not go with `--ip-family ipv4`";
                self.error(&OPTIONS_DISAGREE, "--ip-family", what.into());
                None
            }
            (true, None) if self.values.contains_key("--service-ipv6-cidr") => None,
            (true, None) => self.cidr_around(dns),
            (false, None) => None,
        }
    }

    /// The IPv6 range that the DNS address lies in. The old script needed no range then.
    fn cidr_around(&mut self, dns: &[IpAddr]) -> Option<IpNet> {
        let Some(address) = dns.iter().find(|address| address.is_ipv6()) else {
            let what =
                "`--ip-family ipv6` needs `--service-ipv6-cidr` or an IPv6 `--dns-cluster-ip`";
            self.error(&OPTIONS_DISAGREE, "--ip-family", what.into());
            return None;
        };
        IpNet::new(*address, IPV6_SERVICE_PREFIX).ok().map(|range| range.trunc())
    }

    fn dns(&mut self) -> Vec<IpAddr> {
        let Some(text) = self.value("--dns-cluster-ip") else { return Vec::new() };
        let addresses: Result<Vec<IpAddr>, _> = text.split(',').map(|a| a.trim().parse()).collect();
        addresses.unwrap_or_else(|_| {
            let what = "`--dns-cluster-ip` takes IP addresses, separated by commas";
            self.error(&BAD_OPTION, "--dns-cluster-ip", what.into());
            Vec::new()
        })
    }

    fn kubelet(&mut self, dns: &[IpAddr], keep_pods: bool) -> Map<String, Value> {
        let mut kubelet = Map::new();
        if !dns.is_empty() {
            kubelet.insert("config".into(), json!({ "clusterDNS": dns }));
        }
        let flags = self.extra_args();
        if !flags.is_empty() {
            kubelet.insert("flags".into(), json!(flags));
        }
        if !keep_pods {
            let fixed = json!({"mode": "fixed", "value": KUBELET_DEFAULT_PODS});
            kubelet.insert("maxPods".into(), fixed);
        }
        // The old script reserved memory by the interfaces, whatever the flags said.
        kubelet.insert("reserved".into(), json!({"basis": "computed"}));
        kubelet
    }

    fn extra_args(&mut self) -> Vec<String> {
        const OPTION: &str = "--kubelet-extra-args";
        let Some(text) = self.value(OPTION) else { return Vec::new() };
        match words::split(&text) {
            Ok(split) => {
                if let Some(offset) = split.expansions.first() {
                    let what = format!("`{OPTION}` has a `$` or backtick at byte {offset}");
                    self.warn(&NOT_EXPANDED, OPTION, what);
                }
                split.words
            }
            Err(unclosed) => {
                let (sign, offset) = (unclosed.sign, unclosed.offset);
                let what = format!("`{OPTION}` has a {sign} at byte {offset} that is not closed");
                self.error(&UNCLOSED_QUOTE, OPTION, what);
                Vec::new()
            }
        }
    }

    fn disks(&mut self) -> Option<&'static str> {
        let choices = [
            ("raid0", Some("RAID0")),
            ("raid10", Some("RAID10")),
            ("mount", Some("Mount")),
            ("none", None),
        ];
        self.choice("--local-disks", &choices).flatten()
    }

    fn pause(&mut self) -> Option<Pause> {
        let version = self.value("--pause-container-version");
        let Some(account) = self.value("--pause-container-account") else {
            if version.is_some() {
                let what = "`--pause-container-version` needs `--pause-container-account`";
                self.error(&OPTIONS_DISAGREE, "--pause-container-version", what.into());
            }
            return None;
        };
        Some(Pause { account, version: version.unwrap_or_else(|| PAUSE_VERSION.into()) })
    }
}

impl Legacy {
    /// The whole document, with what the machine adds.
    pub fn finish(self, machine: &Machine) -> Value {
        let mut spec = self.document["spec"].clone();
        if self.needs_vpc_cidrs {
            let cidr = machine.service_ipv4_cidr.unwrap_or_else(|| service_cidr(machine.vpc_cidrs));
            spec["cluster"]["cidr"] = json!(cidr);
        }
        if let (true, Some(pods)) = (self.needs_eni_max_pods, machine.eni_max_pods) {
            let mib = RESERVED_BASE_MIB + RESERVED_PER_POD_MIB * u64::from(pods);
            let memory = format!("{mib}Mi");
            spec["kubelet"]["reserved"]["kube"] = json!({ "memory": memory });
        }
        let image = self.pause.as_ref().map(|pause| pause.image(machine));
        if let Some(config) = machine.containerd_config {
            let placeholder = image.as_deref().unwrap_or(PAUSE_IMAGE);
            spec["containerd"]["config"] = json!(config.replace("SANDBOX_IMAGE", placeholder));
        }
        if let Some(image) = image {
            spec["containerd"]["sandboxImage"] = json!(image);
        }
        let mut document = self.document;
        document["spec"] = spec;
        document
    }
}

impl Pause {
    fn image(&self, machine: &Machine) -> String {
        let Machine { region, domain, .. } = machine;
        format!("{}.dkr.ecr.{region}.{domain}/eks/pause:{}", self.account, self.version)
    }
}

fn service_cidr(vpc: &[IpNet]) -> &'static str {
    let ten: Ipv4Net = TEN.parse().expect("a constant range");
    if vpc.iter().any(|cidr| IpNet::V4(ten).contains(cidr)) {
        SERVICE_CIDR_BESIDE_TEN
    } else {
        SERVICE_CIDR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<String> {
        words::split(line).unwrap().words
    }

    fn converted(line: &str) -> Legacy {
        convert(&arguments(line)).unwrap()
    }

    fn codes(line: &str) -> Vec<&'static str> {
        let findings = convert(&arguments(line)).unwrap_err();
        findings.iter().map(|finding| finding.problem.page.slug).collect()
    }

    #[test]
    fn options_become_fields() {
        for (line, pointer, expected) in [
            ("web", "/spec/cluster/name", json!("web")),
            ("--cluster-id c1 web", "/spec/cluster/id", json!("c1")),
            (
                "web --apiserver-endpoint=https://x",
                "/spec/cluster/apiServerEndpoint",
                json!("https://x"),
            ),
            ("web --b64-cluster-ca QQ==", "/spec/cluster/certificateAuthority", json!("QQ==")),
            (
                "web --dns-cluster-ip 10.0.0.10,fd00::a",
                "/spec/kubelet/config/clusterDNS",
                json!(["10.0.0.10", "fd00::a"]),
            ),
            ("web --service-ipv6-cidr fd00::/108", "/spec/cluster/cidr", json!("fd00::/108")),
            (
                "web --ip-family ipv6 --dns-cluster-ip fd00:1::a",
                "/spec/cluster/cidr",
                json!("fd00:1::/108"),
            ),
            (
                "web --kubelet-extra-args '--v=2 --node-labels=\"a=b c\"'",
                "/spec/kubelet/flags",
                json!(["--v=2", "--node-labels=a=b c"]),
            ),
            (
                "web --use-max-pods false",
                "/spec/kubelet/maxPods",
                json!({"mode": "fixed", "value": 110}),
            ),
            ("web --local-disks raid10", "/spec/instance/localStorage/strategy", json!("RAID10")),
            (
                "web --enable-local-outpost true --cluster-id i",
                "/spec/cluster/enableOutpost",
                json!(true),
            ),
            ("web --cluster-id a --cluster-id=b", "/spec/cluster/id", json!("b")),
        ] {
            let legacy = converted(line);
            assert_eq!(legacy.document.pointer(pointer), Some(&expected), "{line}");
            assert_eq!(legacy.document["apiVersion"], "tenon.dev/v1alpha1");
        }
    }

    #[test]
    fn absent_options_leave_no_fields() {
        for line in ["web", "web --local-disks none --use-max-pods true --apiserver-endpoint ''"] {
            let spec = converted(line).document["spec"].clone();
            let expected =
                json!({"cluster": {"name": "web"}, "kubelet": {"reserved": {"basis": "computed"}}});
            assert_eq!(spec, expected, "{line}");
        }
    }

    #[test]
    fn mistakes_are_named_all_at_once() {
        for (line, slugs) in [
            ("", vec!["no-cluster-name"]),
            ("a b", vec!["no-cluster-name"]),
            ("web --api-server-endpoint x", vec!["unknown-bootstrap-option"]),
            ("web --ip-family", vec!["bad-bootstrap-option"]),
            ("web --ip-family ipv5", vec!["bad-bootstrap-option"]),
            ("web --ip-family ipv6", vec!["options-disagree"]),
            ("web --ip-family ipv6 --dns-cluster-ip 10.0.0.10", vec!["options-disagree"]),
            ("web --ip-family ipv4 --service-ipv6-cidr fd00::/108", vec!["options-disagree"]),
            ("web --service-ipv6-cidr 10.0.0.0/16", vec!["bad-bootstrap-option"]),
            ("web --service-ipv6-cidr nonsense", vec!["bad-bootstrap-option"]),
            ("web --dns-cluster-ip x", vec!["bad-bootstrap-option"]),
            ("web --container-runtime dockerd", vec!["bad-bootstrap-option"]),
            ("web --pause-container-version 3.5", vec!["options-disagree"]),
            ("web --use-max-pods no --mount-bpf-fs maybe", vec!["bad-bootstrap-option"; 2]),
            ("web --kubelet-extra-args \"'--v\"", vec!["unclosed-quote"]),
            ("web --aws-api-retry-attempts many", vec!["bad-bootstrap-option"]),
        ] {
            assert_eq!(codes(line), slugs, "{line}");
        }
    }

    #[test]
    fn unknown_options_get_a_suggestion_and_no_value() {
        let findings = convert(&arguments("web --use-maxpods=hunter2")).unwrap_err();
        assert_eq!(findings[0].problem.fix_text(), "did you mean `--use-max-pods`?");
        assert!(!findings[0].problem.render("error").contains("hunter2"));
    }

    #[test]
    fn docker_options_and_expansions_warn() {
        let legacy = converted("web --enable-docker-bridge true --kubelet-extra-args '--v=$V'");
        let slugs: Vec<_> = legacy.findings.iter().map(|found| found.problem.page.slug).collect();
        assert_eq!(slugs, ["ignored-bootstrap-option", "not-expanded"]);
    }

    #[test]
    fn the_machine_fills_the_rest() {
        let ten: IpNet = "10.3.0.0/16".parse().unwrap();
        let other: IpNet = "192.168.0.0/16".parse().unwrap();
        let known = "web --apiserver-endpoint https://x --b64-cluster-ca QQ==";
        for (vpc, env, cidr) in [
            (vec![other, ten], None, "172.20.0.0/16"),
            (vec![other], None, "10.100.0.0/16"),
            (vec![], None, "10.100.0.0/16"),
            (vec![ten], Some("10.9.0.0/16"), "10.9.0.0/16"),
        ] {
            let machine = Machine { vpc_cidrs: &vpc, service_ipv4_cidr: env, ..Machine::default() };
            let document = converted(known).finish(&machine);
            assert_eq!(document["spec"]["cluster"]["cidr"], cidr, "{vpc:?}");
        }
        assert!(!converted("web").needs_vpc_cidrs, "EKS is asked for the endpoint anyway");
    }

    #[test]
    fn pause_image_and_containerd_config_are_filled() {
        let machine = Machine {
            region: "eu-west-1",
            domain: "amazonaws.com",
            containerd_config: Some("sandbox_image = \"SANDBOX_IMAGE\"\n"),
            eni_max_pods: Some(29),
            ..Machine::default()
        };
        let line = "web --pause-container-account 1234 --pause-container-version 3.5 \
            --containerd-config-file /etc/c.toml --use-max-pods false";
        let legacy = converted(line);
        assert_eq!(legacy.containerd_config_file.as_deref(), Some("/etc/c.toml"));
        let document = legacy.finish(&machine);
        let image = "1234.dkr.ecr.eu-west-1.amazonaws.com/eks/pause:3.5";
        let containerd = &document["spec"]["containerd"];
        assert_eq!(containerd["sandboxImage"], image);
        assert_eq!(containerd["config"], format!("sandbox_image = \"{image}\"\n"));
        let cached = converted("web").finish(&machine)["spec"]["containerd"].clone();
        let expected = "sandbox_image = \"localhost/kubernetes/pause:latest\"\n";
        assert_eq!(cached, json!({ "config": expected }));
        assert_eq!(document["spec"]["kubelet"]["reserved"]["kube"]["memory"], "574Mi");
        assert_eq!(document["spec"]["kubelet"]["maxPods"]["value"], 110);
    }

    #[test]
    fn attempts_and_bpf_go_to_the_caller() {
        let legacy = converted("web --aws-api-retry-attempts 5 --mount-bpf-fs false");
        assert_eq!((legacy.api_attempts, legacy.mount_bpf), (Some(5), Some(false)));
    }
}
