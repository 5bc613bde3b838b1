//! No packet gets through to the API server.

use super::*;

const DIAL: &str = "go src/net/dial.go";

pub(super) static CAUSE: Cause = Cause {
    number: 8,
    slug: "api-unreachable",
    title: "the API server cannot be reached",
    step: Step::Tcp,
    on_api: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["net/http: TLS handshake timeout"], "go src/net/http/transport.go").early(),
        Signal::confirmed(Log::Kubelet, &["dial tcp ", "i/o timeout"], DIAL).on_api().without("proxyconnect").early(),
        Signal::confirmed(Log::Kubelet, &["dial tcp ", "connect: connection refused"], DIAL).on_api().without("proxyconnect").early(),
        Signal::confirmed(Log::Kubelet, &["dial tcp ", "connect: no route to host"], DIAL).on_api().without("proxyconnect").early(),
        Signal::confirmed(Log::Kubelet, &["dial tcp ", "connect: network is unreachable"], DIAL).on_api().without("proxyconnect").early(),
    ],
    support: SYMPTOMS,
    checks: &[
        Check::proves("api-connects", connects),
        Check::supports("default-route", route),
        Check::supports("public-address", public),
    ],
    why: "a security group, a network ACL, a missing route or NAT, or an endpoint that is private or restricted to other addresses keeps the node from the API server",
    fix: "allow TCP to the API server's port from this node's security group, and see that the subnet has a route to it",
    ..Cause::BLANK
};

fn connects(view: &View) -> Found {
    if view.node.probes.uses_proxy {
        return Found::NotApplicable;
    }
    let Some(reach) = &view.node.probes.direct else {
        return Found::Unknown("no connection to the API server was tried");
    };
    let fix = match reach.tcp {
        Tcp::Timeout => "packets are dropped: allow the API server's port in the security groups of node and cluster, in the network ACL, and see that the subnet has a NAT gateway or the cluster a private endpoint",
        Tcp::Refused => "a machine answers and nothing listens there: check address and port of the endpoint, and that the API server runs",
        Tcp::Reset => "something on the way ends the connection: look for a firewall that inspects TLS",
        Tcp::Unreachable => "the kernel has no route: check the subnet's route table and the node's default route",
        _ if matches!(reach.tls, Some(super::super::snapshot::Tls::Timeout)) => {
            "the connection opens and then stalls: check the MTU on the way and firewalls that inspect TLS"
        }
        _ => return Found::Pass,
    };
    let host = view.api.as_ref().map_or("", |api| api.host.as_str());
    Found::fail(Evidence::probe("tcp", format!("{host}: {}", words(reach))).fix(fix))
}

fn route(view: &View) -> Found {
    match network::default_routes(view) {
        None => Found::Unknown("the routes are not known"),
        Some(routes) if routes.is_empty() => {
            Found::fail(Evidence::file("/proc/net/route", "there is no default route"))
        }
        Some(_) => Found::Pass,
    }
}

fn public(view: &View) -> Found {
    let (Some(lookup), Some(metadata)) = (&view.node.probes.lookup, &view.node.probes.metadata) else {
        return Found::Unknown("the resolver or the metadata service was not asked");
    };
    let private = |ip: &std::net::IpAddr| match ip {
        std::net::IpAddr::V4(ip) => ip.is_private() || ip.is_loopback() || ip.is_link_local(),
        std::net::IpAddr::V6(ip) => ip.is_unique_local() || ip.is_loopback(),
    };
    let public = !lookup.addresses.is_empty() && !lookup.addresses.iter().any(private);
    match public && !metadata.public_ipv4 && !api_connects(view) {
        true => Found::fail(Evidence::probe("dns", "the endpoint has a public address and this machine none")),
        false => Found::Pass,
    }
}
