//! Names do not resolve.

use super::super::snapshot::Resolution;
use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 9,
    slug: "dns-fails",
    title: "the resolver does not give the API server's address",
    step: Step::Dns,
    on_api: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["dial tcp: lookup", "no such host"], GO_NET).on_api().early(),
        Signal::confirmed(Log::Kubelet, &["dial tcp: lookup", "i/o timeout"], GO_NET).on_api().early(),
        Signal::confirmed(Log::Kubelet, &["dial tcp: lookup", "connection refused"], GO_NET).on_api().early(),
        Signal::tentative(Log::Kubelet, &["dial tcp: lookup", "server misbehaving"]).on_api().early(),
    ],
    support: SYMPTOMS,
    checks: &[Check::proves("endpoint-resolves", resolves), Check::supports("nameserver", nameserver)],
    why: "the resolver gives no answer, or none for this name: its server is not reachable, or a private endpoint's name is asked of a server outside the VPC",
    fix: "check the servers in /etc/resolv.conf, that port 53 to them is open, and that DNS support of the VPC is on",
    command: "resolvectl status",
    ..Cause::BLANK
};

fn resolves(view: &View) -> Found {
    let Some(lookup) = &view.node.probes.lookup else {
        return Found::Unknown("the resolver was not asked");
    };
    let broken = match lookup.result {
        Resolution::Found => false,
        Resolution::Timeout | Resolution::Error => true,
        Resolution::NoSuchName => nothing_resolves(view),
    };
    if !broken {
        return Found::Pass;
    }
    let why = match (lookup.result, lookup.detail.as_str()) {
        (Resolution::Timeout, _) => "no answer from the resolver",
        (Resolution::NoSuchName, _) => "no name resolves",
        (_, detail) => detail,
    };
    Found::fail(Evidence::probe("dns", format!("{}: {why}", lookup.host)))
}

fn nameserver(view: &View) -> Found {
    match view.file("/etc/resolv.conf") {
        None => Found::Unknown("/etc/resolv.conf could not be read"),
        Some(text) if text.lines().any(|line| line.trim_start().starts_with("nameserver")) => Found::Pass,
        Some(_) => Found::fail(Evidence::file("/etc/resolv.conf", "names no server")),
    }
}
