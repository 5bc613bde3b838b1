//! Finds a cluster with a token: reads `cluster-info` from whoever answers, believes it only
//! after signature and CA hash hold, and reads it again from a server that this CA vouches for.

use std::time::Duration;

use tenon_core::bootstrap_token::Token;
use tenon_core::bootstrap_token::discovery::{self, CaHash, ClusterInfo, PATH};
use tenon_core::codes::cluster::UNTRUSTED_CLUSTER;
use tenon_core::problem::Problem;

use super::{ApiError, Auth, Client, Look, Trust, wait_until};

/// For one request of discovery.
const REQUEST: Duration = Duration::from_secs(10);

/// Discovers the cluster at `https://HOST:PORT`. A token that the cluster has not signed with
/// yet, and an endpoint that does not answer yet, are waited for.
pub fn discover(
    endpoint: &str,
    token: &Token,
    pins: &[CaHash],
    patience: Duration,
) -> Result<ClusterInfo, Problem> {
    let anyone = Client::new(endpoint, &Trust::Anyone, &Auth::None)?.within(REQUEST);
    let info = wait_until("the cluster has signed its address with the token", patience, || {
        read(&anyone, token, pins)
    })?;
    let trust = Trust::Authority(info.authority.clone());
    let trusted = Client::new(endpoint, &trust, &Auth::None)?.within(REQUEST);
    let again = wait_until("the cluster says the same under its CA", patience, || {
        read(&trusted, token, pins)
    })?;
    match again == info {
        true => Ok(info),
        false => {
            let what = "the cluster says something else to those who check its certificate";
            Err(Problem::new(&UNTRUSTED_CLUSTER, what))
        }
    }
}

fn read(client: &Client, token: &Token, pins: &[CaHash]) -> Result<Look<ClusterInfo>, ApiError> {
    let Some(found) = client.find(PATH)? else {
        return Ok(Look::NotYet("there is no cluster-info".into()));
    };
    match discovery::signed(&found, token) {
        Some((text, signature)) => Ok(Look::Ready(discovery::check(text, signature, token, pins)?)),
        None => Ok(Look::NotYet(format!("cluster-info is not signed with token {}", token.id))),
    }
}
