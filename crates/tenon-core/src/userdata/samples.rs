//! A cluster and groups for tests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Cluster, Family, Group, Kind};
use crate::config::Taint;

pub const CA: &str = include_str!("samples-ca.pem");

pub fn cluster() -> Cluster {
    Cluster {
        name: Some("ironman-2022".into()),
        endpoint: Some("https://ABCDEF0123456789.gr7.eu-west-1.eks.amazonaws.com".into()),
        certificate_authority: Some(STANDARD.encode(CA)),
        service_cidr: "10.100.0.0/16".parse().ok(),
        version: Some((1, 32)),
        region: Some("eu-west-1".into()),
        ..Cluster::default()
    }
}

pub fn group(family: &str, kind: Kind) -> Group {
    let ami = (kind == Kind::ManagedCustom).then(|| "ami-0123456789abcdef0".to_owned());
    Group {
        name: "demo-self-ng".into(),
        path: "nodeGroups[0]".into(),
        family: Family::parse(family).unwrap_or_default(),
        kind,
        ami,
        instance_types: vec!["m5.large".into()],
        ..Group::default()
    }
}

/// A group with a label, a taint, a fixed pod limit.
pub fn labelled(family: &str, kind: Kind) -> Group {
    let taint = Taint { key: "special".into(), value: "true".into(), effect: "NoSchedule".into() };
    Group {
        labels: [("team".to_owned(), "web".to_owned())].into(),
        taints: vec![taint],
        max_pods: Some(58),
        ..group(family, kind)
    }
}
