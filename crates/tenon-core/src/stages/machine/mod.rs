//! `kind: MachineConfig`: what one machine of a cluster shall become.

mod build;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value};

use super::fields;
use crate::bootstrap_token::discovery::CaHash;
use crate::codes::config as config_pages;
use crate::codes::stages as pages;
use crate::config::build::View;
use crate::config::grammar::Fault;
use crate::config::node::{Data, Document, Node as Tree};
use crate::config::read::read_as;
use crate::config::schema::Kind;
use crate::config::{Proxy, Taint};
use crate::problem::{Class, Finding, Place, Problem};
use crate::secret::Secret;
use crate::tree::{Span, Written};
use crate::yaml;

/// The kind that such a document names.
pub const KIND: &str = "MachineConfig";

/// What the machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one machine that starts the cluster.
    FirstMaster,
    Worker,
}

impl Role {
    pub fn word(self) -> &'static str {
        match self {
            Role::FirstMaster => "first-master",
            Role::Worker => "worker",
        }
    }

    /// True for machines that run an API server.
    pub fn is_control_plane(self) -> bool {
        self == Role::FirstMaster
    }
}

/// The checked config of one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    pub role: Role,
    pub cluster: Cluster,
    pub node: Node,
    pub kubelet: Kubelet,
    pub runtime: Runtime,
    pub token: Option<Token>,
    pub assets: Assets,
    pub os: Os,
    pub control_plane: ControlPlane,
    pub pki: Pki,
    /// `addons.force`
    pub force_addons: bool,
    pub proxy: Option<Proxy>,
    pub time_servers: Vec<String>,
    /// PEM.
    pub ca_certificates: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    pub name: String,
    pub id: String,
    /// Without a slash at its end.
    pub endpoint: String,
    /// PEM; empty when the bundle brings it or this machine makes it.
    pub certificate_authority: Vec<u8>,
    /// Pins the CA of a cluster that is found with the token.
    pub ca_hash: Option<CaHash>,
    pub service_cidrs: Vec<IpNet>,
    pub pod_cidrs: Vec<IpNet>,
    pub dns_domain: String,
    /// With a `v` in front.
    pub kubernetes_version: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node {
    pub name: Option<String>,
    pub ip: Option<IpAddr>,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Kubelet {
    pub config: Map<String, Value>,
    pub extra_args: Vec<String>,
    pub fail_cgroup_v1: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// True: installed as a system extension; false: the one of the OS is only checked.
    pub sysext: bool,
    pub mappings: String,
    pub catalogue: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub token: Secret,
    pub ttl_hours: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assets {
    /// `none`, `push`, or an address.
    pub source: String,
    pub digest: Option<String>,
    pub retire: Retire,
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub path_style: bool,
    pub credentials_file: Option<String>,
}

/// What the cleanup does with the remote object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retire {
    Keep,
    Truncate,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Os {
    pub update_engine: bool,
    /// Go on when the reboot did not lead into the update.
    pub proceed_on_mismatch: bool,
    /// Switch the OS's own reboots on again at the end.
    pub updates_after: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ControlPlane {
    pub advertise_address: Option<IpAddr>,
    pub extra_sans: Vec<String>,
    pub bootstrap_phase: BootstrapPhase,
    pub etcd_data_dir: String,
    pub etcd_extra_sans: Vec<String>,
    pub external_etcd: Option<ExternalEtcd>,
    pub encryption: Encryption,
    /// `none`, `metadata`, or the path of a policy.
    pub audit: String,
    pub images: Images,
    pub extra_args: ExtraArgs,
    pub authorization_config: Option<String>,
    pub patches: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootstrapPhase {
    /// Direct below 2 GiB of memory.
    Auto,
    Loopback,
    Direct,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalEtcd {
    pub endpoints: Vec<String>,
    pub ca_file: String,
    pub cert_file: String,
    pub key_file: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// `none`, `secretbox`, `aescbc` or `kms-v2`.
    pub provider: String,
    pub resources: Vec<String>,
    pub kms_endpoint: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    pub repository: String,
    pub etcd_tag: Option<String>,
    /// Component to `sha256:…`.
    pub digests: BTreeMap<String, String>,
}

/// Flags by component; an empty value removes the flag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExtraArgs {
    pub api_server: BTreeMap<String, String>,
    pub controller_manager: BTreeMap<String, String>,
    pub scheduler: BTreeMap<String, String>,
    pub etcd: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pki {
    /// `ecdsa-p256` or `ecdsa-p384`.
    pub algorithm: String,
    pub ca_days: u32,
    pub leaf_days: u32,
    pub service_account_key: Option<String>,
    pub csr_directory: Option<String>,
}

/// Reads a document: the machine, or every finding in the order of its lines. `source` is the
/// URI of the text, for messages.
pub fn load(text: &str, source: &str) -> Result<Machine, Vec<Finding>> {
    load_as(text, source, None).map(|(machine, _)| machine)
}

/// The same with a role of the command line, one of [`fields::ROLES`], in place of the
/// document's. The text that says the same as the result comes along.
pub fn load_as(
    text: &str,
    source: &str,
    role: Option<&str>,
) -> Result<(Machine, String), Vec<Finding>> {
    let place = Place { source: source.to_owned(), ..Place::default() };
    let document = parse(text, &place).map_err(|problem| vec![Finding::error(problem)])?;
    let (mut tree, mut findings) = read_as(&document, 0, fields::DOCUMENT);
    let changed = role.is_some_and(|role| set_role(&mut tree, role));
    let spec = View(Some(&tree)).at("spec");
    findings.extend(complete(spec, &document, &findings));
    findings.extend(supported(spec, &document));
    if findings.iter().any(|finding| finding.class != Class::Warning) {
        let place = |finding: &Finding| finding.problem.place.clone().unwrap_or_default();
        findings.sort_by_cached_key(|finding| (place(finding), finding.problem.page.code));
        return Err(findings);
    }
    let text = if changed { yaml::emit(&tree.to_value()) } else { text.to_owned() };
    Ok((build::build(spec), text))
}

/// Puts the role into the tree; false if it is there already.
fn set_role(tree: &mut Tree, role: &str) -> bool {
    let Data::Map(top) = &mut tree.data else { return false };
    let Some(spec) = top.get_mut("spec") else { return false };
    let origin = spec.origin;
    let Data::Map(fields) = &mut spec.data else { return false };
    let changed = fields.get("role").and_then(Tree::text) != Some(role);
    if changed {
        fields.insert("role".into(), Tree::new(Data::Text(role.into()), origin));
    }
    changed
}

/// True when a text is meant to be such a document, whatever else is wrong with it.
pub fn is_machine_config(text: &str) -> bool {
    text.lines().any(|line| {
        line.split_once(':').is_some_and(|(key, value)| {
            key.trim_matches('"') == "kind" && value.trim().trim_matches('"') == KIND
        })
    })
}

fn parse(text: &str, place: &Place) -> Result<Document, Problem> {
    let trees = yaml::parse(text).map_err(|syntax| syntax.problem(place, text))?;
    let mut trees = trees.into_iter();
    let tree = trees.next().filter(|tree| is_ours(&tree.value)).ok_or_else(|| {
        Problem::new(&config_pages::UNKNOWN_KIND, "the text is not a MachineConfig")
            .at(Span::start().in_part(place, "kind"))
            .fix("begin with `apiVersion: tenon.dev/v1alpha1` and `kind: MachineConfig`")
    })?;
    if let Some(second) = trees.next() {
        let what = "a second document begins here";
        let problem = Problem::new(&config_pages::SEVERAL_DOCUMENTS, what);
        return Err(problem.at(second.span.in_part(place, "")));
    }
    Ok(Document { place: place.clone(), kind: Kind::Tenon, text: text.to_owned(), tree })
}

fn is_ours(value: &Written) -> bool {
    let Written::Map(entries) = value else { return false };
    let head = |key: &str, wanted: &str| {
        entries.iter().any(|entry| {
            entry.key == key
                && matches!(&entry.value.value, Written::Scalar(scalar) if scalar.text == wanted)
        })
    };
    head("kind", KIND) && head("apiVersion", Kind::Tenon.api_version())
}

/// Fields that every machine needs, and those that its role needs.
fn complete(spec: View<'_>, document: &Document, found: &[Finding]) -> Vec<Finding> {
    let mut missing: Vec<(&str, &str)> = Vec::new();
    let mut need = |there: bool, path: &'static str, example: &'static str| {
        let refused = found
            .iter()
            .any(|finding| finding.problem.place.as_ref().is_some_and(|place| place.path == path));
        if !there && !refused {
            missing.push((path, example));
        }
    };
    let cluster = spec.at("cluster");
    need(!spec.at("role").text().is_empty(), "spec.role", "role: worker");
    for field in ["name", "endpoint", "kubernetesVersion"] {
        let (path, example) = match field {
            "name" => ("spec.cluster.name", "name: prod"),
            "endpoint" => ("spec.cluster.endpoint", "endpoint: https://api.example:6443"),
            _ => ("spec.cluster.kubernetesVersion", "kubernetesVersion: v1.34.2"),
        };
        need(!cluster.at(field).text().is_empty(), path, example);
    }
    let joins = spec.at("role").text() == Role::Worker.word();
    let assets = spec.at("assets");
    let source = assets.at("source").text();
    if joins && matches!(source, "" | "none") {
        let given = |name: &str| !cluster.at(name).text().is_empty();
        let authority = given("certificateAuthority") || given("caHash");
        need(authority, "spec.cluster.certificateAuthority", "certificateAuthority: LS0tLS1…");
    }
    if joins {
        let token = !spec.at("bootstrapToken").at("token").text().is_empty();
        need(token, "spec.bootstrapToken.token", "token: abcdef.0123456789abcdef");
    }
    if ["https:", "http:", "s3:"].iter().any(|scheme| source.starts_with(scheme)) {
        need(!assets.at("digest").text().is_empty(), "spec.assets.digest", "digest: \"sha256:…\"");
    }
    let finding = |(path, example): (&str, &str)| {
        let fault =
            Fault::error(&pages::MACHINE_INCOMPLETE, "is missing").fix(format!("add `{example}`"));
        document.finding(&fault, spec.0.map_or(document.tree.span, |node| node.origin.key), path)
    };
    missing.into_iter().map(finding).collect()
}

const FURTHER_MASTER: &str = "one machine is `first-master`, the others `worker`; the cluster's layout is kubeadm's, so `kubeadm join --control-plane` adds a master to it";

/// Settings that the table knows and this version does not carry out.
fn supported(spec: View<'_>, document: &Document) -> Vec<Finding> {
    let refused: [(View<'_>, &str, &str, &str); 6] = [
        (spec.at("role"), "master", "spec.role", FURTHER_MASTER),
        (spec.at("role"), "control-plane", "spec.role", FURTHER_MASTER),
        (
            spec.at("role"),
            "etcd",
            "spec.role",
            "run etcd by other means and name it in spec.controlPlane.etcd.external of the first master",
        ),
        (
            spec.at("controlPlane").at("form"),
            "self-hosted",
            "spec.controlPlane.form",
            "write `static-pods`: a self-hosted plane cannot come up again by itself after all masters were off",
        ),
        (
            spec.at("os").at("update").at("provider"),
            "rpm-ostree",
            "spec.os.update.provider",
            "write `none` and let zincati update the machine afterwards (os.updates.afterBootstrap: os-default)",
        ),
        (
            spec.at("assets").at("key"),
            "",
            "spec.assets.key",
            "pin the bundle with spec.assets.digest instead",
        ),
    ];
    let matches = |view: &View<'_>, word: &str| match word {
        "" => !view.text().is_empty(),
        word => view.text() == word,
    };
    refused
        .into_iter()
        .filter(|(view, word, ..)| matches(view, word))
        .map(|(view, _, path, fix)| {
            let fault =
                Fault::error(&pages::NOT_SUPPORTED, "has a value that is not supported yet")
                    .fix(fix);
            let span = view.0.map_or(document.tree.span, |node| node.origin.span);
            document.finding(&fault, span, path)
        })
        .collect()
}

impl Machine {
    /// The node's name, or the machine's own.
    pub fn node_name<'a>(&'a self, host_name: &'a str) -> &'a str {
        self.node.name.as_deref().unwrap_or(host_name)
    }

    /// True when assets are copied to the machine by an installer.
    pub fn is_push(&self) -> bool {
        self.assets.source == "push"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub const WORKER: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: worker
  cluster:
    name: prod
    endpoint: https://api.prod.example:6443/
    kubernetesVersion: 1.34.2
  bootstrapToken: {token: abcdef.0123456789abcdef, ttlHours: 8}
  assets: {source: push}
";

    fn codes(text: &str) -> Vec<&'static str> {
        load(text, "file:x").unwrap_err().iter().map(|finding| finding.problem.page.slug).collect()
    }

    #[test]
    fn a_small_worker_gets_its_defaults() {
        let machine = load(WORKER, "file:x").unwrap();
        assert_eq!(machine.role, Role::Worker);
        assert_eq!(machine.cluster.kubernetes_version, "v1.34.2");
        assert_eq!(machine.cluster.endpoint, "https://api.prod.example:6443");
        assert_eq!(machine.cluster.service_cidrs[0].to_string(), "10.96.0.0/12");
        assert_eq!(machine.control_plane.encryption.provider, "secretbox");
        assert!(machine.is_push() && !machine.runtime.sysext);
        assert_eq!(machine.token.unwrap().ttl_hours, 8);
    }

    #[test]
    fn all_findings_come_at_once_with_their_lines() {
        let text = WORKER
            .replace("role: worker", "role: wroker")
            .replace("endpoint: https", "endpiont: https")
            .replace("abcdef.0123456789abcdef", "SECRET");
        let findings = load(&text, "file:x").unwrap_err();
        let lines: Vec<_> = findings
            .iter()
            .map(|finding| {
                (finding.problem.place.as_ref().unwrap().line, finding.problem.page.slug)
            })
            .collect();
        assert_eq!(
            lines,
            [
                (3, "machine-incomplete"),
                (4, "unknown-word"),
                (7, "unknown-field"),
                (9, "bad-token-field")
            ]
        );
        assert!(findings.iter().all(|finding| !finding.problem.render("error").contains("SECRET")));
    }

    #[test]
    fn what_a_later_version_does_is_refused_with_the_alternative() {
        let text = format!(
            "{WORKER}  os: {{update: {{provider: rpm-ostree}}}}\n  controlPlane: {{form: self-hosted}}\n"
        );
        assert_eq!(codes(&text), ["not-supported-yet", "not-supported-yet"]);
        for role in ["master", "control-plane", "etcd"] {
            let written = load(&WORKER.replace("worker", role), "file:x").unwrap_err();
            let chosen = load_as(WORKER, "file:x", Some(role)).unwrap_err();
            for findings in [written, chosen] {
                assert_eq!(findings.len(), 1, "{role}");
                assert_eq!(findings[0].problem.page.slug, "not-supported-yet", "{role}");
                let fix = findings[0].problem.fix.as_deref().unwrap_or_default();
                assert!(fix.contains("first master") || fix.contains("kubeadm join"), "{role}");
            }
        }
    }

    #[test]
    fn a_network_source_needs_a_digest_and_a_joiner_a_ca() {
        let text = WORKER.replace("source: push", "source: \"https://a.example/b\"");
        assert_eq!(codes(&text), ["machine-incomplete"]);
        let text = WORKER.replace("  assets: {source: push}\n", "");
        assert_eq!(codes(&text), ["machine-incomplete"]);
    }

    #[test]
    fn only_a_machine_config_is_one() {
        assert!(is_machine_config(WORKER));
        let node = WORKER.replace("MachineConfig", "NodeConfig");
        assert!(!is_machine_config(&node));
        assert_eq!(codes(&node), ["unknown-kind"]);
        assert_eq!(codes("- 1\n"), ["unknown-kind"]);
    }
}
