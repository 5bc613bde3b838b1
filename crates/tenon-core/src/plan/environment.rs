//! Variables for services: systemd drop-ins, and the proxy's own environment file.
//!
//! The proxy's values stand in a file of their own, because what `Environment=` holds shows up
//! in `systemctl show`.

use std::collections::{BTreeMap, BTreeSet};

use super::node::Node;
use super::step::FileBody;
use super::{Draft, Owner, soci};
use crate::config::Proxy;
use crate::secret::Secret;

pub(crate) const MANAGER_PATH: &str = "/etc/systemd/system.conf.d/environment.conf";
pub(crate) const PROXY_PATH: &str = "/etc/eks/proxy.env";
/// The key that stands for every service.
const EVERY_SERVICE: &str = "default";
/// The metadata service, which must never be asked through a proxy.
const METADATA: [&str; 2] = ["169.254.169.254", "fd00:ec2::254"];

type Variables = BTreeMap<String, Secret>;

/// Where a service's variables stand.
pub(crate) fn drop_in_path(service: &str) -> String {
    format!("/etc/systemd/system/{service}.service.d/environment.conf")
}

/// Plans the drop-ins and the proxy file.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    let environment = &node.config.instance.environment;
    if let Some(variables) = environment.get(EVERY_SERVICE).filter(|map| !map.is_empty()) {
        let body = unit_text("Manager", None, "DefaultEnvironment", variables);
        add(MANAGER_PATH.into(), body, "spec.instance.environment.default", draft);
    }
    let proxy = node.config.instance.proxy.as_ref().map(|proxy| proxy_variables(proxy, node));
    let proxied = if proxy.is_some() { proxied_services(node) } else { BTreeSet::new() };
    let own = environment.iter().filter(|(name, map)| *name != EVERY_SERVICE && !map.is_empty());
    let services: BTreeSet<&str> =
        own.map(|(name, _)| name.as_str()).chain(proxied.iter().copied()).collect();
    for service in services {
        let own = environment.get(service).cloned().unwrap_or_default();
        let block = proxy.as_ref().filter(|_| proxied.contains(service));
        let body = service_text(own, block);
        add(drop_in_path(service), body, "spec.instance.environment and proxy", draft);
    }
    if let Some(variables) = proxy {
        add(PROXY_PATH.into(), file_text(&variables), "spec.instance.proxy", draft);
    }
}

fn add(path: String, body: String, because: &str, draft: &mut Draft) {
    draft.file(Owner::Node, FileBody::new(path, 0o600, body).secret(), because);
}

fn proxied_services(node: &Node) -> BTreeSet<&'static str> {
    let soci = node.soci.then_some(soci::UNIT.trim_end_matches(".service"));
    ["containerd", "kubelet"].into_iter().chain(soci).collect()
}

/// systemd lets `EnvironmentFile=` win over `Environment=`. A service with a proxy variable of
/// its own therefore gets the rest of the block beside it instead of the file.
fn service_text(mut own: Variables, proxy: Option<&Variables>) -> String {
    let Some(proxy) = proxy else { return unit_text("Service", None, "Environment", &own) };
    let taken: BTreeSet<String> = own.keys().map(|key| key.to_ascii_uppercase()).collect();
    if proxy.keys().any(|key| taken.contains(&key.to_ascii_uppercase())) {
        let rest = proxy.iter().filter(|(key, _)| !taken.contains(&key.to_ascii_uppercase()));
        own.extend(rest.map(|(key, value)| (key.clone(), value.clone())));
        return unit_text("Service", None, "Environment", &own);
    }
    unit_text("Service", Some(PROXY_PATH), "Environment", &own)
}

fn unit_text(section: &str, file: Option<&str>, key: &str, variables: &Variables) -> String {
    let mut text = format!("[{section}]\n");
    if let Some(file) = file {
        text.push_str(&format!("EnvironmentFile=-{file}\n"));
    }
    for (name, value) in variables {
        text.push_str(&format!("{key}=\"{name}={}\"\n", unit_escaped(value.expose())));
    }
    text
}

/// Escapes a value for a quoted setting of a unit file.
fn unit_escaped(value: &str) -> String {
    let mut text = String::new();
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '%' => text.push_str("%%"),
            c => text.push(c),
        }
    }
    text
}

/// An environment file: every value in double quotes.
fn file_text(variables: &Variables) -> String {
    let line = |(name, value): (&String, &Secret)| {
        let mut text = String::new();
        for c in value.expose().chars() {
            if "\\\"$`".contains(c) {
                text.push('\\');
            }
            text.push(c);
        }
        format!("{name}=\"{text}\"\n")
    };
    variables.iter().map(line).collect()
}

/// The proxy block as variables, in both letter cases. What `environment.default` sets
/// explicitly is left out: the explicit value wins.
fn proxy_variables(proxy: &Proxy, node: &Node) -> Variables {
    let explicit = node.config.instance.environment.get(EVERY_SERVICE);
    let is_explicit = |name: &str| {
        explicit.is_some_and(|map| map.keys().any(|key| key.eq_ignore_ascii_case(name)))
    };
    let no_proxy = Some(Secret::new(no_proxy(proxy, node).join(",")));
    let values = [
        ("HTTP_PROXY", proxy.http.clone()),
        ("HTTPS_PROXY", proxy.https.clone()),
        ("NO_PROXY", no_proxy),
    ];
    let mut variables = Variables::new();
    for (name, value) in values {
        if let Some(value) = value.filter(|_| !is_explicit(name)) {
            variables.insert(name.to_ascii_lowercase(), value.clone());
            variables.insert(name.to_owned(), value);
        }
    }
    variables
}

/// The user's exceptions, then what must never leave the node or the network around it.
fn no_proxy(proxy: &Proxy, node: &Node) -> Vec<String> {
    let local = ["localhost", "127.0.0.1", "::1"];
    let ranges = std::iter::once(node.cluster.cidr).chain(node.facts.instance.vpc_cidrs.clone());
    let domains = [".svc", ".cluster.local", ".internal"];
    let ours = (local.iter().chain(&METADATA).map(|entry| (*entry).to_owned()))
        .chain(ranges.map(|range| range.to_string()))
        .chain(domains.map(str::to_owned));
    let mut entries: Vec<String> = Vec::new();
    for entry in proxy.no_proxy.iter().cloned().chain(ours) {
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What systemd makes of one quoted word of a setting: escapes, then specifiers.
    fn read_unit_word(text: &str) -> String {
        let mut chars = text.trim_matches('"').chars();
        let mut value = String::new();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next().unwrap() {
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    other => value.push(other),
                },
                '%' => value.extend(chars.next()),
                c => value.push(c),
            }
        }
        value
    }

    /// What systemd makes of a double-quoted value of an environment file.
    fn read_file_value(text: &str) -> String {
        let mut chars = text.chars();
        let mut value = String::new();
        while let Some(c) = chars.next() {
            match c {
                '\\' => value.extend(chars.next()),
                c => value.push(c),
            }
        }
        value
    }

    proptest! {
        #[test]
        fn unit_values_read_back(value in "([^\\p{Cc}]|\n|\t)*") {
            let written = unit_escaped(&value);
            prop_assert!(!written.contains(['\n', '\t']));
            // Trimming quotes would hide a lost one, so the word is framed by letters.
            prop_assert_eq!(read_unit_word(&format!("a{written}z")), format!("a{value}z"));
        }

        #[test]
        fn file_values_read_back(value in "[^\\p{Cc}]*") {
            let text = file_text(&[("K".to_owned(), Secret::new(value.clone()))].into());
            let inner = text.strip_prefix("K=\"").unwrap().strip_suffix("\"\n").unwrap();
            prop_assert_eq!(read_file_value(inner), value);
        }
    }
}
