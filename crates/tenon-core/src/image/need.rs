//! What Kubernetes needs of a machine, whoever hardens it: paths that must allow execution,
//! modules that must load, ports that must be open, settings with a floor. Each need is held
//! against every resource of another kind that could break it.

use serde_json::Value;

use super::exception::Exception;
use super::resource::{Reason, Resource, Scope};
use crate::codes::image::{BAD_RESOURCE, NEED_BROKEN};
use crate::problem::Problem;

/// One need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    pub what: What,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Programs are started below this path.
    Exec(String),
    /// This path is written to at boot.
    Write(String),
    /// The module can be loaded.
    Module(String),
    /// `tcp/10250`
    Port(String),
    /// The unit may start.
    Unit(String),
}

impl Need {
    /// Reads `{exec = "/opt/cni/bin", reason = "…"}`.
    pub fn read(value: &Value, feature: &str) -> Result<(Need, Scope), Problem> {
        type Make = fn(String) -> What;
        const KINDS: &[(&str, Make)] = &[
            ("exec", What::Exec),
            ("write", What::Write),
            ("module", What::Module),
            ("port", What::Port),
            ("unit", What::Unit),
        ];
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let found = KINDS.iter().find_map(|(name, make)| text(name).map(make));
        let Some(what) = found else {
            let what = "a need is one of exec, write, module, port and unit";
            return Err(Problem::new(&BAD_RESOURCE, what));
        };
        let why = text("reason").unwrap_or_default();
        let families = value.get("only").and_then(Value::as_array).into_iter().flatten();
        let families = families.filter_map(Value::as_str).map(str::to_owned).collect();
        let need = Need { what, reason: Reason { feature: feature.to_owned(), why } };
        Ok((need, Scope { families, ..Scope::default() }))
    }

    /// True if the resource, made true, would break the need.
    fn broken_by(&self, resource: &Resource) -> bool {
        let key = resource.key.as_str();
        match (&self.what, resource.kind.name) {
            (What::Exec(path), "mount") => {
                is_below(path, key) && resource.texts("options").contains(&"noexec")
            }
            (What::Write(path), "mount") => {
                is_below(path, key) && resource.texts("options").contains(&"ro")
            }
            (What::Module(name), "module") => {
                key == name && resource.text("state") == Some("denied")
            }
            (What::Unit(name), "mask") => key == name,
            (What::Unit(name), "unit") => key == name && resource.text("state") == Some("disabled"),
            (What::Port(_), "unit") => {
                is_firewall(key) && resource.text("state") == Some("enabled")
            }
            _ => false,
        }
    }

    /// True if what is needed lies at or below a directory.
    pub fn is_below(&self, directory: &str) -> bool {
        match &self.what {
            What::Exec(path) | What::Write(path) => is_below(path, directory),
            _ => false,
        }
    }

    fn says(&self) -> String {
        match &self.what {
            What::Exec(path) => format!("programs run below {path}"),
            What::Write(path) => format!("{path} is written at boot"),
            What::Module(name) => format!("module {name} is loaded"),
            What::Port(port) => format!("port {port} is reachable"),
            What::Unit(name) => format!("{name} runs"),
        }
    }
}

/// Managers of firewalls that close what they do not know.
fn is_firewall(unit: &str) -> bool {
    ["ufw.service", "firewalld.service"].contains(&unit)
}

fn is_below(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Ports of one protocol that must be open, as nftables writes a set.
pub fn ports(needs: &[Need], protocol: &str) -> String {
    let of_it = |need: &Need| match &need.what {
        What::Port(port) => port.strip_prefix(protocol)?.strip_prefix('/').map(str::to_owned),
        _ => None,
    };
    let mut ports: Vec<_> = needs.iter().filter_map(of_it).collect();
    ports.sort_by_key(|port| port.split('-').next().and_then(|first| first.parse::<u32>().ok()));
    ports.dedup();
    ports.join(", ")
}

/// Every resource that breaks a need, with the need.
pub fn breaches<'a>(
    needs: &'a [Need],
    resources: &'a [Resource],
) -> impl Iterator<Item = (&'a Resource, &'a Need)> {
    resources.iter().flat_map(move |resource| {
        let broken = needs.iter().filter(move |need| need.broken_by(resource));
        broken.map(move |need| (resource, need))
    })
}

/// Every breach, unless an exception for the resource says why that is right.
pub fn broken(needs: &[Need], resources: &[Resource], exceptions: &[Exception]) -> Vec<Problem> {
    let open = breaches(needs, resources).filter(|(resource, need)| {
        !exceptions.iter().any(|exception| exception.sets_aside(resource, need))
    });
    let problem = |(resource, need): (&Resource, &Need)| {
        let what = format!("{} breaks what Kubernetes needs: {}", resource.name(), need.says());
        let sides = resource.reasons.iter().chain([&need.reason]);
        let sides = sides.map(|reason| format!("{}: {}", reason.feature, reason.why));
        Problem::new(&NEED_BROKEN, what).details(sides.collect::<Vec<_>>())
    };
    open.map(problem).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::problem::Place;

    fn resource(kind: &str, table: Value) -> Resource {
        let table = table.as_object().unwrap().clone();
        Resource::read(kind, &table, "cis", &Place::default()).unwrap().0
    }

    fn need(value: Value) -> Need {
        Need::read(&value, "base").unwrap().0
    }

    #[test]
    fn each_kind_of_need_is_held_against_what_breaks_it() {
        let mount = |path: &str, option: &str| json!({"path": path, "source": "s", "type": "ext4", "options": [option]});
        let cases = [
            (json!({"exec": "/opt/cni/bin"}), "mount", mount("/opt", "noexec"), true),
            (json!({"exec": "/opt/cni/bin"}), "mount", mount("/opt", "nodev"), false),
            (json!({"exec": "/opt/cni/bin"}), "mount", mount("/tmp", "noexec"), false),
            (json!({"exec": "/option"}), "mount", mount("/opt", "noexec"), false),
            (json!({"write": "/etc/kubernetes"}), "mount", mount("/etc", "ro"), true),
            (
                json!({"module": "overlay"}),
                "module",
                json!({"name": "overlay", "state": "denied"}),
                true,
            ),
            (
                json!({"module": "overlay"}),
                "module",
                json!({"name": "overlay", "state": "loaded"}),
                false,
            ),
            (
                json!({"unit": "containerd.service"}),
                "mask",
                json!({"unit": "containerd.service"}),
                true,
            ),
            (
                json!({"port": "tcp/10250"}),
                "unit",
                json!({"name": "ufw.service", "state": "enabled"}),
                true,
            ),
        ];
        for (wanted, kind, table, breaks) in cases {
            let found = broken(&[need(wanted.clone())], &[resource(kind, table)], &[]);
            assert_eq!(!found.is_empty(), breaks, "{wanted} {kind}");
        }
    }

    /// `noexec` on /opt breaks two needs; the exception reaches as far as its paths.
    #[test]
    fn an_exception_is_limited_to_its_paths() {
        let needs = ["/opt/cni/bin", "/opt/nvidia"].map(|path| need(json!({"exec": path})));
        let mount = resource(
            "mount",
            json!({"path": "/opt", "source": "s", "type": "ext4", "options": ["noexec"]}),
        );
        for (paths, left) in
            [(vec![], 0), (vec!["/opt/cni"], 1), (vec!["/opt"], 0), (vec!["/op"], 2)]
        {
            let exception = Exception {
                resource: Some("mount//opt".into()),
                paths: paths.iter().map(|path| (*path).to_owned()).collect(),
                ..Exception::default()
            };
            let found = broken(&needs, std::slice::from_ref(&mount), &[exception]);
            assert_eq!(found.len(), left, "{paths:?}");
        }
    }

    #[test]
    fn ports_are_a_sorted_set() {
        let needs = ["tcp/10250", "tcp/22", "udp/8472", "tcp/30000-32767", "tcp/22"]
            .map(|port| need(json!({"port": port})));
        assert_eq!(ports(&needs, "tcp"), "22, 10250, 30000-32767");
        assert_eq!(ports(&needs, "udp"), "8472");
    }
}
