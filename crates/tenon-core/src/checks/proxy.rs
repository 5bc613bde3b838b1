//! A proxy in the environment of the kubelet that also catches the API server.
//!
//! `spec.instance.proxy` exempts the endpoint itself; variables of one's own do not.

use std::collections::BTreeMap;

use super::{Family, Finding, Severity, State};
use crate::config::Config;
use crate::plan::endpoint_host;
use crate::secret::Secret;

/// Whose variables the kubelet sees.
const SERVICES: [&str; 2] = ["default", "kubelet"];

/// Judges the environment of the config against the cluster's endpoint.
pub fn judge(config: &Config, endpoint: &str) -> Vec<Finding> {
    let Some(host) = endpoint_host(endpoint) else { return Vec::new() };
    let environment = config.instance.environment.iter();
    environment
        .filter(|(service, _)| SERVICES.contains(&service.as_str()))
        .filter(|(_, variables)| catches(variables, host))
        .map(|(service, _)| {
            Finding::new(Family::Config, "config-no-proxy", "NO_PROXY lacks the cluster's endpoint")
                .state(State::Warn)
                .severity(Severity::Medium)
                .at(format!("spec.instance.environment.{service}"))
                .values(format!("NO_PROXY with {host}"), "no entry that covers it")
                .remedy(format!("add {host} to NO_PROXY, or use spec.instance.proxy"))
        })
        .collect()
}

/// True when HTTPS goes through a proxy and no entry exempts the host.
fn catches(variables: &BTreeMap<String, Secret>, host: &str) -> bool {
    let values = |name: &str| {
        let name = name.to_owned();
        let same = move |key: &str| key.eq_ignore_ascii_case(&name);
        variables.iter().filter(move |(key, _)| same(key)).map(|(_, value)| value.expose())
    };
    let mut proxies = ["HTTPS_PROXY", "ALL_PROXY"].iter().flat_map(|name| values(name));
    let exempt =
        values("NO_PROXY").flat_map(|list| list.split(',')).any(|entry| covers(entry, host));
    proxies.any(|value| !value.is_empty()) && !exempt
}

fn covers(entry: &str, host: &str) -> bool {
    let entry = entry.trim().trim_start_matches("*.").trim_start_matches('.');
    entry == "*"
        || !entry.is_empty()
            && (host.eq_ignore_ascii_case(entry)
                || host.to_ascii_lowercase().ends_with(&format!(".{}", entry.to_ascii_lowercase())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_23_an_endpoint_that_no_entry_exempts_is_named() {
        let host = "ABC.gr7.us-west-2.eks.amazonaws.com";
        for (no_proxy, caught) in [
            ("", true),
            ("169.254.169.254", true),
            ("example.com,.internal", true),
            ("notamazonaws.com", true),
            (".eks.amazonaws.com", false),
            ("eks.amazonaws.com", false),
            ("abc.gr7.us-west-2.eks.amazonaws.com", false),
            ("10.0.0.1, *", false),
        ] {
            let secret = |text: &str| Secret::new(text.to_owned());
            let variables = [
                ("https_proxy".to_owned(), secret("http://u:p@proxy:3128")),
                ("NO_PROXY".to_owned(), secret(no_proxy)),
            ];
            assert_eq!(catches(&variables.into(), host), caught, "{no_proxy}");
        }
        assert!(!catches(&BTreeMap::new(), host));
    }
}
