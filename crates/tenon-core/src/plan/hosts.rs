//! `/etc/hosts`: on Outposts the API server's name is pinned, so that a node cut off from the
//! Region's DNS still finds it.

use super::node::Node;
use super::step::{Action, Block, Step};
use super::{Draft, Owner};
use crate::codes;
use crate::problem::{Finding, Problem};

const PATH: &str = "/etc/hosts";
const BLOCK: &str = "api-server";

/// Plans the block, or its removal where nothing is to be pinned.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    let pinned = node.cluster.outpost.as_ref().is_some_and(|outpost| outpost.pin_endpoint);
    let host = host(&node.cluster.endpoint).filter(|_| pinned);
    let lines = host.map(|host| lines(host, node)).unwrap_or_default();
    if host.is_some() && lines.is_empty() {
        // An address that cannot be resolved today may still be the right one from yesterday.
        let what = "the API server's name has no address now; /etc/hosts is left as it is";
        let problem = Problem::new(&codes::plan::ENDPOINT_NOT_PINNED, what);
        draft.findings.push(Finding::warning(problem));
        return;
    }
    let because = if lines.is_empty() { "nothing to pin" } else { "spec.cluster.outpost" };
    let block = Block { path: PATH.into(), name: BLOCK.into(), lines };
    draft.add(Owner::Kubelet, Step::config(Action::Block(block), because));
}

fn lines(host: &str, node: &Node) -> Vec<String> {
    let mut addresses = node.facts.endpoint_addresses.clone();
    addresses.sort();
    addresses.dedup();
    addresses.iter().map(|address| format!("{address}\t{host}")).collect()
}

/// The host name of a URL: no scheme, user, port or path. None for an address, which needs no
/// entry.
pub fn host(url: &str) -> Option<&str> {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next()?;
    let host_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host_port.split(':').next().filter(|_| !host_port.starts_with('['))?;
    let is_name = !host.is_empty() && host.parse::<std::net::IpAddr>().is_err();
    is_name.then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_name_out_of_a_url() {
        let cases = [
            (
                "https://abc.gr7.eu-west-1.eks.amazonaws.com",
                Some("abc.gr7.eu-west-1.eks.amazonaws.com"),
            ),
            ("https://abc.example:6443/path", Some("abc.example")),
            ("https://10.0.0.1:443", None),
            ("https://[fd00::1]:443", None),
            ("abc.example", Some("abc.example")),
            ("https://", None),
        ];
        for (url, expected) in cases {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}
