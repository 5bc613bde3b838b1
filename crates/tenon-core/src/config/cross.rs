//! Checks that need more than one field: what is missing, what contradicts, what is risky
//! together. They run on the merged tree and point at the value that won.

use super::build::View;
use super::flags;
use super::grammar::Fault;
use super::node::{Document, Node, Origin};
use super::schema::Kind;
use crate::codes::config as pages;
use crate::problem::Finding;
use crate::tree::Span;

/// The addresses of the metadata service, which no proxy can reach for us.
const METADATA: [&str; 2] = ["169.254.169.254", "fd00:ec2::254"];

/// Most entries of `node.labels` and `node.taints`.
const MOST_LABELS: usize = 256;

/// Checks the merged tree. `complete`: it must be enough to build a node. `found` holds what the
/// documents' own checks found: a value that they refused is not missing.
pub fn check(
    tree: &Node,
    documents: &[Document],
    complete: bool,
    found: &[Finding],
) -> Vec<Finding> {
    let mut cross = Cross { root: tree, documents, found, findings: Vec::new() };
    if complete {
        cross.required();
    }
    cross.counts();
    cross.outpost();
    cross.max_pods();
    cross.reserved_cpus();
    cross.environment_proxy();
    cross.node_name();
    cross.findings
}

struct Cross<'a> {
    root: &'a Node,
    documents: &'a [Document],
    found: &'a [Finding],
    findings: Vec<Finding>,
}

impl Cross<'_> {
    /// True when nothing usable was written at the path, and nothing unusable either.
    fn is_missing(&self, path: &str) -> bool {
        let place = |finding: &Finding| finding.problem.place.clone().unwrap_or_default();
        let refused = self.found.iter().any(|finding| place(finding).path == path);
        !refused && self.root.find(path).is_none_or(|node| node.text() == Some(""))
    }

    fn at(&self, path: &str) -> View<'_> {
        View(self.root.find(path))
    }

    /// Records a fault at a path, placed at the nearest value that exists.
    fn report(&mut self, fault: Fault, path: &str) {
        let origin = self.nearest_origin(path);
        let document = &self.documents[origin.document];
        self.findings.push(document.finding(&fault, origin.span, path));
    }

    fn nearest_origin(&self, path: &str) -> Origin {
        let mut path = path;
        loop {
            if let Some(node) = self.root.find(path) {
                let exact = node.text().is_some() || path.is_empty();
                let span: Span = if exact { node.origin.span } else { node.origin.key };
                return Origin { span, ..node.origin };
            }
            path = path.rsplit_once('.').map_or("", |(parent, _)| parent);
        }
    }

    /// The name always; the rest unless EKS may be asked for it.
    fn required(&mut self) {
        if self.is_missing("spec.cluster.name") {
            let fault = Fault::error(&pages::MISSING_FIELD, "is not set");
            self.report(fault.fix("add `name` under `spec.cluster`"), "spec.cluster.name");
        }
        let never = self.at("spec.aws.api").text() == "never";
        let only_eks = self.documents.iter().all(|document| document.kind == Kind::Eks);
        for field in ["apiServerEndpoint", "certificateAuthority", "cidr"] {
            let path = format!("spec.cluster.{field}");
            if !self.is_missing(&path) {
                continue;
            }
            if never {
                let what = "is not set, and `spec.aws.api: never` forbids asking EKS for it";
                self.report(Fault::error(&pages::MISSING_FIELD, what), &path);
            } else if only_eks {
                self.report(Fault::warning(&pages::DISCOVERY, "is not set"), &path);
            }
        }
    }

    fn counts(&mut self) {
        for path in ["spec.node.labels", "spec.node.taints"] {
            let size = self.root.find(path).map_or(0, Node::len);
            if size > MOST_LABELS {
                let what = format!("has {size} entries; {MOST_LABELS} are allowed");
                self.report(Fault::error(&pages::TOO_MANY, what), path);
            }
        }
    }

    fn outpost(&mut self) {
        let on = self.at("spec.cluster.enableOutpost").bool_or(false);
        if on && self.is_missing("spec.cluster.id") {
            let fault = Fault::error(&pages::OUTPOST_NEEDS_ID, "is true and `id` is not set");
            self.report(fault, "spec.cluster.enableOutpost");
        }
    }

    fn max_pods(&mut self) {
        let path = "spec.kubelet.maxPods";
        let view = self.at(path);
        let (mode, inner) = (view.at("mode"), view.at("expression"));
        let outer = self.at("spec.kubelet.maxPodsExpression");
        let asked_twice = !outer.text().is_empty()
            && (!inner.text().is_empty() || !["", "expression"].contains(&mode.text()));
        let lacks = match mode.text() {
            "fixed" | "min" => Some("value"),
            "expression" => Some("expression"),
            _ => None,
        };
        let lacks = lacks.filter(|name| self.is_missing(&format!("{path}.{name}")));
        let idle = mode.text() != "expression" && !inner.text().is_empty();
        if asked_twice {
            let what = "and `spec.kubelet.maxPodsExpression` both set the pod limit";
            let fix =
                "keep one; `maxPodsExpression: null` in a tenon.dev document clears the other";
            self.report(Fault::error(&pages::MAX_PODS_CONFLICT, what).fix(fix), path);
        } else if let Some(missing) = lacks {
            let what = format!("needs `{missing}` in this mode");
            self.report(Fault::error(&pages::MAX_PODS_CONFLICT, what), &format!("{path}.mode"));
        } else if idle {
            let what = "is set, and the mode does not use it";
            let fault = Fault::error(&pages::MAX_PODS_CONFLICT, what).fix("add `mode: expression`");
            self.report(fault, &format!("{path}.expression"));
        }
    }

    /// The kubelet refuses a reserved CPU set together with both reserved cgroups.
    fn reserved_cpus(&mut self) {
        let config = "spec.kubelet.config";
        let set = |name: &str| {
            let value = View(self.root.find(&format!("{config}.{name}")));
            !value.text().is_empty()
        };
        let by_flag = self.flag_names().any(|name| name == "reserved-cpus");
        let cpus = !self.at("spec.kubelet.reserved.systemCPUs").text().is_empty()
            || set("reservedSystemCPUs")
            || by_flag;
        if cpus && set("systemReservedCgroup") && set("kubeReservedCgroup") {
            let what = "is set together with kubeReservedCgroup and reserved CPUs";
            let fault = Fault::error(&pages::RESERVED_CPUS_CONFLICT, what);
            self.report(fault, &format!("{config}.systemReservedCgroup"));
        }
    }

    /// The names of all user flags.
    fn flag_names(&self) -> impl Iterator<Item = String> {
        let entries = self.root.find("spec.kubelet.flags").map(Node::list).unwrap_or_default();
        entries.iter().flat_map(|entry| {
            let kind = self.documents[entry.origin.document].kind;
            let words = flags::arguments(entry.text().unwrap_or_default(), kind);
            words
                .unwrap_or_default()
                .iter()
                .filter_map(|word| flags::name(word).map(str::to_owned))
                .collect::<Vec<_>>()
        })
    }

    /// A proxy in the environment that also catches the metadata service.
    fn environment_proxy(&mut self) {
        let environment = self.at("spec.instance.environment");
        let careless: Vec<String> = environment
            .entries()
            .filter(|(_, variables)| catches_metadata(*variables))
            .map(|(service, _)| format!("spec.instance.environment.{service}"))
            .collect();
        for path in careless {
            let what = "sets a proxy, and NO_PROXY lacks the metadata service";
            self.report(Fault::warning(&pages::PROXY_WITHOUT_METADATA, what), &path);
        }
    }

    fn node_name(&mut self) {
        let gate = "spec.featureGates.InstanceIdNodeName";
        let name = "spec.node.name";
        let path = match (self.at(name).text(), self.at(gate).bool_or(false)) {
            ("instance-id", _) => name,
            ("", true) => gate,
            _ => return,
        };
        self.report(
            Fault::warning(&pages::INSTANCE_ID_NAME, "names the node by its instance id"),
            path,
        );
    }
}

fn catches_metadata(variables: View<'_>) -> bool {
    // Either spelling counts: programs differ in which one they read.
    let values = |name: &str| -> Vec<&str> {
        let same = |key: &str| key == name || key == name.to_lowercase();
        variables.entries().filter(|(key, _)| same(key)).map(|(_, value)| value.text()).collect()
    };
    let proxied = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
        .iter()
        .any(|name| values(name).iter().any(|value| !value.is_empty()));
    let exempt = |address: &str| {
        let lists = values("NO_PROXY");
        lists
            .iter()
            .any(|list| list.split(',').any(|entry| entry.trim() == address || entry.trim() == "*"))
    };
    proxied && !METADATA.iter().all(|address| exempt(address))
}
