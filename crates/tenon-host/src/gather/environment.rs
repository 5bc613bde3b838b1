//! The environment of the process, read at one place and handed on as a value.

use std::collections::BTreeMap;
use std::fmt;

use tenon_core::config::Proxy;
use tenon_core::secret::Secret;

/// A copy of environment variables. Values may be secrets, so only names are ever printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The variables of this process. Names or values that are not UTF-8 are left out.
    pub fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Environment(std::env::vars_os().filter_map(text).collect())
    }

    /// Lays `environment.default` of the config over these variables, in memory only.
    pub fn overlay(mut self, variables: &BTreeMap<String, Secret>) -> Self {
        for (name, value) in variables {
            self.0.insert(name.clone(), value.expose().to_owned());
        }
        self
    }

    /// Lays the proxy of the config under these variables: an explicit variable wins.
    pub fn with_proxy(mut self, proxy: &Proxy) -> Self {
        let mut set = |name: &str, value: String| {
            self.0.entry(name.to_owned()).or_insert(value);
        };
        for (name, value) in [("HTTP_PROXY", &proxy.http), ("HTTPS_PROXY", &proxy.https)] {
            if let Some(value) = value {
                set(name, value.expose().to_owned());
            }
        }
        if !proxy.no_proxy.is_empty() {
            set("NO_PROXY", proxy.no_proxy.join(","));
        }
        self
    }

    /// Bounds the attempts of AWS calls, as `AWS_MAX_ATTEMPTS` does.
    pub fn with_attempts(mut self, attempts: Option<u32>) -> Self {
        if let Some(attempts) = attempts {
            self.0.insert("AWS_MAX_ATTEMPTS".into(), attempts.to_string());
        }
        self
    }

    /// The value of a variable; None when it is unset or empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The first of several variables that is set.
    pub fn first(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }

    /// True when the variable says `true`, as the AWS tools read their switches.
    pub fn on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Environment(pairs.map(|(name, value)| (name.into(), value.into())).into())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_never_printed_and_empty_means_unset() {
        let own = Environment::from([("AWS_SECRET_ACCESS_KEY", "canary"), ("EMPTY", "")]);
        assert_eq!(format!("{own:?}"), r#"{"AWS_SECRET_ACCESS_KEY", "EMPTY"}"#);
        assert_eq!(own.get("EMPTY"), None);
        let laid = own.overlay(&BTreeMap::from([("EMPTY".into(), Secret::new("TRUE"))]));
        assert!(laid.on("EMPTY"));
        assert_eq!(laid.first(&["NONE", "EMPTY"]), Some("TRUE"));
    }
}
