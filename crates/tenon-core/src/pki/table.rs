//! The table: one row per certificate and per kubeconfig of a control plane.
//!
//! Names, subjects and files are those of kubeadm, so that either tool can take over a node of
//! the other.

use std::net::Ipv4Addr;

use super::names::{Identity, San};

/// What a leaf may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    Server,
    Client,
}

impl Usage {
    /// The last number of its object identifier, 1.3.6.1.5.5.7.3.N.
    pub fn purpose(self) -> &'static str {
        match self {
            Usage::Server => "1.3.6.1.5.5.7.3.1",
            Usage::Client => "1.3.6.1.5.5.7.3.2",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Usage::Server => "server",
            Usage::Client => "client",
        }
    }
}

/// The common name of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Is(&'static str),
    NodeName,
    /// `system:node:NAME`
    NodeUser,
}

/// The alternative names of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    None,
    Is(&'static str),
    ApiServer,
    Etcd,
    Loopback,
}

/// One certificate of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The files below the directory, without their ending; for a kubeconfig, the whole name.
    pub name: &'static str,
    pub subject: Subject,
    pub organization: Option<&'static str>,
    /// Empty for an authority.
    pub usages: &'static [Usage],
    pub names: Names,
    /// The row that signs; None for itself.
    pub issuer: Option<&'static str>,
}

const fn authority(name: &'static str, common_name: &'static str) -> Row {
    Row {
        name,
        subject: Subject::Is(common_name),
        organization: None,
        usages: &[],
        names: Names::Is(common_name),
        issuer: None,
    }
}

const fn client(name: &'static str, common_name: &'static str, issuer: &'static str) -> Row {
    Row {
        name,
        subject: Subject::Is(common_name),
        organization: None,
        usages: &[Usage::Client],
        names: Names::None,
        issuer: Some(issuer),
    }
}

const fn etcd(name: &'static str) -> Row {
    Row {
        name,
        subject: Subject::NodeName,
        organization: None,
        usages: &[Usage::Server, Usage::Client],
        names: Names::Etcd,
        issuer: Some(ETCD_CA),
    }
}

pub const CA: &str = "ca";
pub const ETCD_CA: &str = "etcd/ca";
const FRONT_PROXY_CA: &str = "front-proxy-ca";

/// The certificates below `/etc/kubernetes/pki`, each after the one that signs it.
pub const CERTIFICATES: &[Row] = &[
    authority(CA, "kubernetes"),
    Row {
        name: "apiserver",
        subject: Subject::Is("kube-apiserver"),
        organization: None,
        usages: &[Usage::Server],
        names: Names::ApiServer,
        issuer: Some(CA),
    },
    client("apiserver-kubelet-client", "kube-apiserver-kubelet-client", CA),
    authority(FRONT_PROXY_CA, "front-proxy-ca"),
    client("front-proxy-client", "front-proxy-client", FRONT_PROXY_CA),
    authority(ETCD_CA, "etcd-ca"),
    etcd("etcd/server"),
    etcd("etcd/peer"),
    client("etcd/healthcheck-client", "kube-etcd-healthcheck-client", ETCD_CA),
    client("apiserver-etcd-client", "kube-apiserver-etcd-client", ETCD_CA),
];

/// The leaf of the API server that runs during bootstrap alone, in its own directory.
pub const BOOTSTRAP_API_SERVER: Row = Row {
    name: "apiserver",
    subject: Subject::Is("kube-apiserver"),
    organization: None,
    usages: &[Usage::Server],
    names: Names::Loopback,
    issuer: Some(CA),
};

/// Which address a kubeconfig has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    Endpoint,
    Local,
}

/// One kubeconfig of the table; the row is its client certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KubeconfigRow {
    pub row: Row,
    pub server: Server,
    /// Only the node that bootstraps the cluster holds it.
    pub first_master: bool,
}

const fn kubeconfig(name: &'static str, common_name: &'static str) -> KubeconfigRow {
    KubeconfigRow { row: client(name, common_name, CA), server: Server::Local, first_master: false }
}

/// The kubeconfigs below `/etc/kubernetes`.
pub const KUBECONFIGS: &[KubeconfigRow] = &[
    KubeconfigRow {
        row: Row {
            organization: Some("kubeadm:cluster-admins"),
            ..client("admin.conf", "kubernetes-admin", CA)
        },
        server: Server::Endpoint,
        first_master: false,
    },
    KubeconfigRow {
        row: Row {
            organization: Some("system:masters"),
            ..client("super-admin.conf", "kubernetes-super-admin", CA)
        },
        server: Server::Local,
        first_master: true,
    },
    kubeconfig("controller-manager.conf", "system:kube-controller-manager"),
    kubeconfig("scheduler.conf", "system:kube-scheduler"),
    KubeconfigRow {
        row: Row {
            subject: Subject::NodeUser,
            organization: Some("system:nodes"),
            ..client("kubelet.conf", "", CA)
        },
        server: Server::Local,
        first_master: true,
    },
];

/// What a row means for one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub common_name: String,
    pub organization: Option<&'static str>,
    pub usages: &'static [Usage],
    pub names: Vec<San>,
}

impl Row {
    pub fn is_authority(&self) -> bool {
        self.usages.is_empty()
    }

    /// True for what an etcd member on this node needs.
    pub fn is_etcd(&self) -> bool {
        self.name == ETCD_CA || self.issuer == Some(ETCD_CA)
    }

    pub fn wanted(&self, identity: &Identity) -> Wanted {
        let node = &identity.node_name;
        Wanted {
            common_name: match self.subject {
                Subject::Is(name) => name.to_owned(),
                Subject::NodeName => node.clone(),
                Subject::NodeUser => format!("system:node:{node}"),
            },
            organization: self.organization,
            usages: self.usages,
            names: match self.names {
                Names::None => Vec::new(),
                Names::Is(name) => vec![San::Dns(name.to_owned())],
                Names::ApiServer => identity.api_server_names(),
                Names::Etcd => identity.etcd_names(),
                Names::Loopback => loopback(),
            },
        }
    }

    /// What can be expected without knowing the node: names and a node's own subject are left
    /// to whatever is there.
    pub fn wanted_of_any(&self, found: &super::Certificate) -> Wanted {
        Wanted {
            common_name: match self.subject {
                Subject::Is(name) => name.to_owned(),
                Subject::NodeName | Subject::NodeUser => found.common_name.clone(),
            },
            organization: self.organization,
            usages: self.usages,
            names: Vec::new(),
        }
    }
}

fn loopback() -> Vec<San> {
    vec![San::Dns("localhost".into()), San::Ip(Ipv4Addr::LOCALHOST.into())]
}

/// The row of a certificate.
pub fn find(name: &str) -> Option<&'static Row> {
    CERTIFICATES.iter().find(|row| row.name == name)
}

/// The row of a kubeconfig.
pub fn find_kubeconfig(name: &str) -> Option<&'static KubeconfigRow> {
    KUBECONFIGS.iter().find(|entry| entry.row.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::names::tests::identity;
    use super::*;

    #[test]
    fn every_row_comes_after_its_issuer_and_has_a_use() {
        for (index, row) in CERTIFICATES.iter().enumerate() {
            match row.issuer {
                Some(issuer) => {
                    let before = CERTIFICATES[..index].iter().find(|row| row.name == issuer);
                    assert!(before.unwrap().is_authority(), "{}", row.name);
                    assert!(!row.usages.is_empty(), "{}", row.name);
                }
                None => assert!(row.is_authority(), "{}", row.name),
            }
        }
        assert!(KUBECONFIGS.iter().all(|entry| entry.row.usages == [Usage::Client]));
    }

    #[test]
    fn subjects_follow_the_node() {
        let wanted = |name: &str| find(name).unwrap().wanted(&identity());
        assert_eq!(wanted("etcd/peer").common_name, "cp-1");
        assert_eq!(wanted("front-proxy-ca").names, [San::Dns("front-proxy-ca".into())]);
        let kubelet = find_kubeconfig("kubelet.conf").unwrap().row.wanted(&identity());
        assert_eq!(kubelet.common_name, "system:node:cp-1");
        assert_eq!(kubelet.organization, Some("system:nodes"));
    }

    #[test]
    fn only_the_first_master_is_given_the_key_to_everything() {
        let masters = KUBECONFIGS.iter().filter(|it| it.row.organization == Some("system:masters"));
        assert!(masters.into_iter().all(|entry| entry.first_master));
    }
}
