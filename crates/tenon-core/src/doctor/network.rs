//! What the probes say about the chain to the API server.

use super::snapshot::{Reach, Resolution, Tcp, Trust};
use super::step::Step;
use super::view::View;

/// The connection that the kubelet would make.
pub(super) fn reach<'a>(view: &'a View) -> Option<&'a Reach> {
    let probes = &view.node.probes;
    if probes.uses_proxy { probes.proxied.as_ref() } else { probes.direct.as_ref() }
}

/// The deepest step of the chain that a probe saw working just now.
pub(super) fn passed(view: &View) -> Option<Step> {
    let probes = &view.node.probes;
    // Who may read its object has its name; whether it may write is not proven by that.
    if probes.node.as_ref().is_some_and(|node| node.status == 200) {
        return Some(Step::NodeName);
    }
    if probes.authenticated.as_ref().is_some_and(|access| matches!(access.status, 200..=299 | 403))
    {
        return Some(Step::Authn);
    }
    if let Some(reach) = reach(view) {
        if reach.trust == Some(Trust::Good) {
            return Some(Step::Ca);
        }
        if reach.is_up() {
            return Some(Step::Tls);
        }
        if reach.tcp == Tcp::Connected {
            return Some(Step::Tcp);
        }
    }
    let found = probes.lookup.as_ref().is_some_and(|lookup| lookup.result == Resolution::Found);
    found.then_some(Step::Dns)
}

/// Default routes in the main table: interface and metric, IPv4 then IPv6. None: not readable.
pub(super) fn default_routes(view: &View) -> Option<Vec<(String, u32, bool)>> {
    let v4 = view.file("/proc/net/route");
    let v6 = view.file("/proc/net/ipv6_route");
    if v4.is_none() && v6.is_none() {
        return None;
    }
    let mut routes = Vec::new();
    for line in v4.unwrap_or_default().lines().skip(1) {
        let words: Vec<_> = line.split_whitespace().collect();
        // Destination and mask all zero, and the route is up.
        if let [link, "00000000", _, flags, _, _, metric, "00000000", ..] = words[..]
            && u32::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1)
        {
            routes.push((link.to_owned(), metric.parse().unwrap_or_default(), false));
        }
    }
    for line in v6.unwrap_or_default().lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let [destination, "00", _, _, _, metric, _, _, _, link] = words[..] else { continue };
        if destination.bytes().all(|b| b == b'0') && link != "lo" {
            let metric = u32::from_str_radix(metric, 16).unwrap_or_default();
            routes.push((link.to_owned(), metric, true));
        }
    }
    Some(routes)
}

/// The proxy that the kubelet would use for a host, by its environment.
pub(super) fn proxy_for<'a>(view: &'a View, host: &str) -> Option<&'a str> {
    let get = |names: [&str; 2]| names.iter().find_map(|name| view.environment.get(*name));
    let proxy = get(["HTTPS_PROXY", "https_proxy"]).filter(|proxy| !proxy.is_empty())?;
    let exceptions = get(["NO_PROXY", "no_proxy"]).map(String::as_str).unwrap_or_default();
    (!is_excepted(host, exceptions)).then_some(proxy)
}

/// True when a `NO_PROXY` list names a host, as Go reads it: exact, suffix, address or network.
pub(super) fn is_excepted(host: &str, list: &str) -> bool {
    let host = host.to_ascii_lowercase();
    if host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()) {
        return true;
    }
    list.split(',').map(|entry| entry.trim().to_ascii_lowercase()).any(|entry| {
        let name = entry.trim_start_matches('*').trim_start_matches('.');
        if entry.is_empty() || entry == "*" {
            return entry == "*";
        }
        if let (Ok(address), Ok(network)) = (host.parse(), entry.parse::<ipnet::IpNet>()) {
            return network.contains::<&std::net::IpAddr>(&address);
        }
        // A name with a leading dot matches only below it; a plain one matches itself, too.
        host == entry || host.strip_suffix(name).is_some_and(|head| head.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_as_go_reads_them() {
        let list = "localhost,.svc, internal.example,10.0.0.0/8,169.254.169.254";
        for (host, expected) in [
            ("a.svc", true),
            ("svc", false),
            ("internal.example", true),
            ("x.internal.example", true),
            ("notinternal.example", false),
            ("10.2.3.4", true),
            ("11.2.3.4", false),
            ("169.254.169.254", true),
            ("127.0.0.1", true),
            ("ABC.gr7.eu-west-1.eks.amazonaws.com", false),
        ] {
            assert_eq!(is_excepted(host, list), expected, "{host}");
        }
        assert!(is_excepted("anything", "*"));
    }
}
