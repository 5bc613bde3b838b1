//! What commands share that talk to the API server or look at its certificates.

use std::time::SystemTime;

use tenon_core::problem::Problem;
use tenon_host::cluster::{self, Client};

use super::Global;
use super::node_args::{node_path, open_root};

/// Where the administrator's kubeconfig is on a control-plane node.
const ADMIN: &str = "/etc/kubernetes/admin.conf";

#[derive(Debug, clap::Args)]
pub struct ClusterArgs {
    /// Kubeconfig [default: KUBECONFIG, else /etc/kubernetes/admin.conf]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<String>,
}

impl ClusterArgs {
    /// A client for the kubeconfig.
    pub fn client(&self, global: &Global) -> Result<Client, Problem> {
        Client::open(&open_root(global)?, &self.path(global))
    }

    /// The server of the kubeconfig, and the PEM of its CA.
    pub fn endpoint(&self, global: &Global) -> Result<(String, Vec<u8>), Problem> {
        cluster::endpoint(&open_root(global)?, &self.path(global))
    }

    fn path(&self, global: &Global) -> String {
        let from_variable = || std::env::var("KUBECONFIG").ok().filter(|path| !path.is_empty());
        match self.kubeconfig.clone().or_else(from_variable) {
            Some(path) => node_path(&path, global),
            None => ADMIN.to_owned(),
        }
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
