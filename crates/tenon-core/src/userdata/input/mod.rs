//! From what people have to [`Group`](super::Group) and [`Cluster`](super::Cluster): eksctl's
//! ClusterConfig, a node config, flags; the answer of DescribeCluster, a kubeconfig.

pub mod cluster_json;
pub mod eksctl;
mod eksctl_fields;
pub mod flags;
pub mod kubeconfig;
pub mod node_config;
pub mod overlay;
pub(crate) mod reader;

use std::fmt::Debug;

use super::Cluster;
use crate::codes::userdata as pages;
use crate::problem::{Finding, Place, Problem};

/// A cluster source with the name that messages use: `--cluster-json`, `metadata`.
pub type Named = (String, Cluster);

/// One cluster out of several sources. A value given twice must be the same in both.
pub fn combine(sources: &[Named]) -> Result<Cluster, Vec<Finding>> {
    let mut whole = Cluster::default();
    let mut findings = Vec::new();
    for (index, (name, cluster)) in sources.iter().enumerate() {
        let mut step = Step { earlier: &sources[..index], name, findings: &mut findings };
        step.take("name", &mut whole.name, &cluster.name, |c| c.name.is_some());
        step.take("endpoint", &mut whole.endpoint, &cluster.endpoint, |c| c.endpoint.is_some());
        step.take(
            "certificateAuthority",
            &mut whole.certificate_authority,
            &cluster.certificate_authority,
            |c| c.certificate_authority.is_some(),
        );
        step.take("serviceCidr", &mut whole.service_cidr, &cluster.service_cidr, |c| {
            c.service_cidr.is_some()
        });
        step.take("version", &mut whole.version, &cluster.version, |c| c.version.is_some());
        step.take("id", &mut whole.id, &cluster.id, |c| c.id.is_some());
        step.take("ipFamily", &mut whole.ip_family, &cluster.ip_family, |c| c.ip_family.is_some());
        step.take("region", &mut whole.region, &cluster.region, |c| c.region.is_some());
        step.take("authMode", &mut whole.auth_mode, &cluster.auth_mode, |c| c.auth_mode.is_some());
        step.take("securityGroup", &mut whole.security_group, &cluster.security_group, |c| {
            c.security_group.is_some()
        });
        step.take("vpc", &mut whole.vpc, &cluster.vpc, |c| c.vpc.is_some());
        step.take("status", &mut whole.status, &cluster.status, |c| c.status.is_some());
        whole.outpost |= cluster.outpost;
        whole.tags.extend(cluster.tags.clone());
    }
    if findings.is_empty() { Ok(whole) } else { Err(findings) }
}

struct Step<'a> {
    earlier: &'a [Named],
    name: &'a str,
    findings: &'a mut Vec<Finding>,
}

impl Step<'_> {
    fn take<T: Clone + PartialEq + Debug>(
        &mut self,
        field: &str,
        whole: &mut Option<T>,
        given: &Option<T>,
        has: fn(&Cluster) -> bool,
    ) {
        match (&*whole, given) {
            (Some(old), Some(new)) if old != new => {
                let first = self.earlier.iter().find(|(_, cluster)| has(cluster));
                let first = first.map_or("an earlier source", |(name, _)| name.as_str());
                let what =
                    format!("the cluster's {field} differs between {first} and {}", self.name);
                let problem = Problem::new(&pages::TWO_VALUES, what)
                    .at(Place::field(format!("cluster.{field}")));
                self.findings.push(Finding::error(problem));
            }
            (None, Some(new)) => *whole = Some(new.clone()),
            _ => {}
        }
    }
}

/// `1.33` as numbers.
pub fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (digits(major) && digits(minor)).then(|| Some((major.parse().ok()?, minor.parse().ok()?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_given_twice_must_agree() {
        let named = |name: &str, endpoint: &str| {
            (name.to_owned(), Cluster { endpoint: Some(endpoint.to_owned()), ..Cluster::default() })
        };
        let same = combine(&[named("a", "https://x"), named("b", "https://x")]).unwrap();
        assert_eq!(same.endpoint.as_deref(), Some("https://x"));
        let findings =
            combine(&[named("--endpoint", "https://x"), named("--cluster-json", "https://y")])
                .unwrap_err();
        assert_eq!(findings[0].problem.page.code, "TN03414");
        assert!(findings[0].problem.what.contains("--endpoint and --cluster-json"));
        assert!(!findings[0].problem.what.contains("https://x"));
    }

    #[test]
    fn versions_are_two_numbers() {
        assert_eq!(version("1.33"), Some((1, 33)));
        for text in ["1", "1.", "v1.33", "1.33.1", "1.+3", ""] {
            assert_eq!(version(text), None, "{text}");
        }
    }
}
