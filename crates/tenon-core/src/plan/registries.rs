//! Registry mirrors: one `hosts.toml` per registry.

use super::node::Node;
use super::step::FileBody;
use super::{Draft, Owner};
use crate::codes;
use crate::config::{Mirror, Registry};
use crate::problem::{Finding, Place, Problem};
use crate::toml_text::basic;

const DIRECTORY: &str = "/etc/containerd/certs.d";

/// Plans one file per registry; a name that is no host is refused.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    for registry in &node.config.containerd.registries {
        if !is_host(&registry.host) {
            let what = "a registry's host is neither `name`, `name:port` nor `_default`";
            let problem = Problem::new(&codes::config::BAD_REGISTRY_HOST, what)
                .at(Place::field("spec.containerd.registries"));
            draft.findings.push(Finding::error(problem));
            continue;
        }
        let mut file = FileBody::new(path(registry), 0o644, text(registry));
        file.refuse_foreign = true;
        draft.file(Owner::Containerd, file, "spec.containerd.registries");
    }
}

/// Where containerd looks for the mirrors of a registry.
pub(crate) fn path(registry: &Registry) -> String {
    format!("{DIRECTORY}/{}/hosts.toml", registry.host)
}

/// The name becomes a directory, so the grammar is narrow: no `..`, no `/`.
fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let port_fits = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    host == "_default" || (super::node_name::is_dns_subdomain(name) && port_fits)
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    if let Some(server) = server(&registry.host) {
        text.push_str(&format!("server = {}\n", basic(&server)));
    }
    for mirror in &registry.mirrors {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}[host.{}]\n{}", basic(&mirror.url), keys(mirror)));
    }
    text
}

/// The upstream itself. Docker Hub's registry has another name than its images do.
fn server(host: &str) -> Option<String> {
    match host {
        "_default" => None,
        "docker.io" => Some("https://registry-1.docker.io".into()),
        host => Some(format!("https://{host}")),
    }
}

fn keys(mirror: &Mirror) -> String {
    let default = ["pull".to_owned(), "resolve".to_owned()];
    let wanted = if mirror.capabilities.is_empty() { &default[..] } else { &mirror.capabilities };
    let list: Vec<String> = wanted.iter().map(|capability| basic(capability)).collect();
    let mut text = format!("capabilities = [{}]\n", list.join(", "));
    if mirror.override_path {
        text.push_str("override_path = true\n");
    }
    if let Some(file) = &mirror.ca_file {
        text.push_str(&format!("ca = {}\n", basic(file)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_follow_the_grammar() {
        for good in ["docker.io", "_default", "mirror.corp:5000", "10.0.0.1:5000"] {
            assert!(is_host(good), "{good}");
        }
        for bad in ["", "..", "a/b", "a:b", "a:0", "a:1:2", "A.io", "a_b", "_other"] {
            assert!(!is_host(bad), "{bad}");
        }
    }

    #[test]
    fn mirrors_stand_in_the_given_order() {
        let mirror = |url: &str| Mirror {
            url: url.into(),
            capabilities: vec![],
            override_path: false,
            ca_file: None,
        };
        let mut first = mirror("https://z.corp/v2/hub");
        first.override_path = true;
        first.ca_file = Some("/etc/pki/m.pem".into());
        let registry =
            Registry { host: "docker.io".into(), mirrors: vec![first, mirror("https://a.corp")] };
        let expected = "server = \"https://registry-1.docker.io\"\n\n[host.\"https://z.corp/v2/hub\"]\ncapabilities = [\"pull\", \"resolve\"]\noverride_path = true\nca = \"/etc/pki/m.pem\"\n\n[host.\"https://a.corp\"]\ncapabilities = [\"pull\", \"resolve\"]\n";
        assert_eq!(text(&registry), expected);
        assert!(text(&registry).parse::<toml::Table>().is_ok());
    }
}
