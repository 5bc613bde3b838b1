//! The last look at values before they enter line-based files.
//!
//! The config's own validation has better messages and positions. This one holds for every
//! config and every facts file, wherever they came from: no value may begin a second line or
//! leave its directory.

use super::Draft;
use crate::codes;
use crate::config::Config;
use crate::facts::Facts;
use crate::problem::{Finding, Place, Problem};

/// Refuses values that could not be written as one line, and names that are no names.
pub(crate) fn check(config: &Config, facts: &Facts, draft: &mut Draft) {
    for (place, value) in one_line_values(config, facts) {
        if value.chars().any(char::is_control) {
            let what = "a control character in a value that must fit on one line";
            let problem = Problem::new(&codes::config::CONTROL_CHARACTER, what);
            draft.findings.push(Finding::error(problem.at(Place::field(place))));
        }
    }
    if !is_plain_path(&config.instance.local_storage.mount_path) {
        let problem = Problem::new(&codes::config::BAD_PATH, "the mount path is not a plain path");
        let place = Place::field("spec.instance.localStorage.mountPath");
        draft.findings.push(Finding::error(problem.at(place)));
    }
    for (service, variables) in &config.instance.environment {
        check_service(service, draft);
        for (name, value) in variables {
            let place = format!("spec.instance.environment.{service}");
            let fits = is_variable(name) && value.expose().chars().all(is_unit_character);
            if !fits {
                let what = "a variable's name or value cannot stand in a unit file";
                let problem = Problem::new(&codes::config::CONTROL_CHARACTER, what);
                draft.findings.push(Finding::error(problem.at(Place::field(place))));
            }
        }
    }
}

/// Everything that ends up as a part of a line, with the field it came from.
fn one_line_values<'a>(config: &'a Config, facts: &'a Facts) -> Vec<(&'static str, &'a str)> {
    let instance = &config.instance;
    let mut values = vec![
        ("spec.cluster.name", config.cluster.name.as_str()),
        ("spec.cluster.id", config.cluster.id.as_str()),
        ("spec.cluster.apiServerEndpoint", config.cluster.api_server_endpoint.as_str()),
        ("spec.instance.localStorage.mountPath", instance.local_storage.mount_path.as_str()),
        ("facts.instance.id", facts.instance.id.as_str()),
        ("facts.instance.region", facts.instance.region.as_str()),
        ("facts.instance.availabilityZone", facts.instance.availability_zone.as_str()),
    ];
    values.extend(config.kubelet.flags.iter().map(|f| ("spec.kubelet.flags", f.text.as_str())));
    let labels = config.node.labels.iter().flat_map(|(key, value)| [key, value]);
    values.extend(labels.map(|text| ("spec.node.labels", text.as_str())));
    let network = instance.nameservers.iter().chain(&instance.domains);
    values.extend(network.map(|text| ("spec.instance.network", text.as_str())));
    if let Some(proxy) = &instance.proxy {
        let urls = [&proxy.http, &proxy.https].into_iter().flatten().map(|url| url.expose());
        let exceptions = proxy.no_proxy.iter().map(String::as_str);
        values.extend(urls.chain(exceptions).map(|text| ("spec.instance.proxy", text)));
    }
    let provider = facts.machine.credential_provider.as_deref();
    values.extend(provider.map(|path| ("facts.machine.credentialProvider", path)));
    values
}

fn check_service(service: &str, draft: &mut Draft) {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_-.@:\\".contains(&b);
    let is_name = (1..=200).contains(&service.len())
        && service.bytes().all(allowed)
        && !service.starts_with('.');
    if !is_name {
        let what = "a service's name is not the name of a unit";
        let problem = Problem::new(&codes::config::BAD_SERVICE_NAME, what);
        draft.findings.push(Finding::error(problem.at(Place::field("spec.instance.environment"))));
    }
}

/// Absolute, and no part of it means another place.
fn is_plain_path(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|rest| {
        rest.trim_end_matches('/').split('/').all(|part| !["", ".", ".."].contains(&part))
    })
}

fn is_variable(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    name.bytes().all(allowed) && name.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

/// Newline and tab have an escape in unit files; other control characters have no business there.
fn is_unit_character(c: char) -> bool {
    !c.is_control() || c == '\n' || c == '\t'
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;
    use crate::config::Flag;
    use crate::secret::Secret;

    fn codes_of(change: impl FnOnce(&mut Config)) -> Vec<&'static str> {
        let mut config = fixture::config();
        change(&mut config);
        let mut draft = Draft::default();
        check(&config, &fixture::facts(), &mut draft);
        draft.findings.iter().map(|finding| finding.problem.page.slug).collect()
    }

    fn with_variable(service: &str, name: &str, value: &str) -> Vec<&'static str> {
        codes_of(|config| {
            let map = [(name.to_owned(), Secret::new(value))].into();
            config.instance.environment.insert(service.into(), map);
        })
    }

    #[test]
    fn fault_61_63_66_no_value_begins_a_second_line() {
        assert!(codes_of(|_| ()).is_empty());
        let flag = |text: &str| Flag { text: text.into(), verbatim: true };
        let bad = ["control-character-in-value"];
        assert_eq!(codes_of(|c| c.kubelet.flags.push(flag("--v=2\nX=1"))), bad);
        assert_eq!(codes_of(|c| c.cluster.name = "a\0b".into()), bad);
        assert_eq!(codes_of(|c| c.cluster.api_server_endpoint.push('\r')), bad);
        assert_eq!(codes_of(|c| drop(c.node.labels.insert("k".into(), "v\n".into()))), bad);
        assert_eq!(codes_of(|c| c.instance.nameservers.push("1.1.1.1\nDNSSEC=no".into())), bad);
    }

    #[test]
    fn fault_65_the_mount_path_is_where_it_says() {
        let found = |path: &str| codes_of(|c| c.instance.local_storage.mount_path = path.into());
        for good in ["/mnt/k8s-disks", "/data/local disks/"] {
            assert_eq!(found(good), Vec::<&str>::new(), "{good}");
        }
        for bad in ["", "/", "mnt", "/mnt/../etc", "/mnt//x", "/./mnt"] {
            assert_eq!(found(bad), ["bad-path"], "{bad}");
        }
    }

    #[test]
    fn fault_102_services_stay_in_their_directory() {
        assert!(with_variable("kubelet", "A", "x\ny\tz").is_empty());
        for service in ["../x", "a/b", "", ".hidden", "a b"] {
            assert_eq!(with_variable(service, "A", "x"), ["bad-service-key"], "{service}");
        }
        assert_eq!(with_variable("kubelet", "A-B", "x"), ["control-character-in-value"]);
        assert_eq!(with_variable("kubelet", "A", "\u{1b}[0m"), ["control-character-in-value"]);
    }
}
