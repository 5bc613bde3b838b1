//! A proxy stands in the way, or is missing.

use super::*;

const TRANSPORT: &str = "go src/net/http/transport.go";

pub(super) static CAUSE: Cause = Cause {
    number: 16,
    slug: "proxy",
    title: "the proxy is wrong, or takes what must go direct",
    step: Step::Tcp,
    alone: true,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["proxyconnect tcp"], TRANSPORT),
        Signal::confirmed(Log::Bootstrap, &["proxyconnect tcp"], TRANSPORT),
        Signal::confirmed(Log::Containerd, &["proxyconnect tcp"], TRANSPORT),
        Signal::confirmed(Log::Kubelet, &["Proxy Authentication Required"], "go src/net/http/status.go"),
    ],
    support: SYMPTOMS,
    checks: &[
        Check::proves("proxy-works", works),
        Check::proves("proxy-needed", needed),
        Check::supports("no-proxy-complete", complete),
    ],
    why: "the kubelet sends its requests where its unit's HTTPS_PROXY says; a proxy that does not answer, wants a password, or is used for addresses inside the VPC cuts the node off",
    fix: "set the proxy with `spec.instance.proxy`: it reaches every unit in time and fills NO_PROXY",
    ..Cause::BLANK
};

fn works(view: &View) -> Found {
    let probes = &view.node.probes;
    let Some(proxied) = probes.proxied.as_ref().filter(|_| probes.uses_proxy) else {
        return Found::NotApplicable;
    };
    if proxied.is_up() {
        return Found::Pass;
    }
    let direct = probes.direct.as_ref().is_some_and(|reach| reach.tcp == Tcp::Connected);
    let beside = if direct { "; without the proxy it connects" } else { "" };
    let evidence = Evidence::probe("tcp", format!("through the proxy: {}{beside}", words(proxied)));
    Found::fail(match direct {
        true => evidence.fix(format!("let the API server go direct: NO_PROXY={}", no_proxy(view))),
        false => evidence,
    })
}

/// The way without a proxy is closed, and the kubelet does not use the one that is there.
fn needed(view: &View) -> Found {
    let probes = &view.node.probes;
    let Some(proxied) = probes.proxied.as_ref().filter(|_| !probes.uses_proxy) else {
        return Found::NotApplicable;
    };
    let direct = probes.direct.as_ref().is_some_and(|reach| reach.tcp == Tcp::Connected);
    match proxied.is_up() && !direct {
        true => Found::fail(Evidence::probe("tcp", "only the way through the proxy works, and NO_PROXY forbids it")),
        false => Found::Pass,
    }
}

/// What must go direct, as far as this node shows.
fn wanted(view: &View) -> Vec<String> {
    let mut wanted: Vec<String> = vec!["169.254.169.254".into(), "fd00:ec2::254".into()];
    wanted.extend(view.spec["cluster"]["cidr"].as_str().map(str::to_owned));
    let metadata = view.node.probes.metadata.as_ref();
    wanted.extend(metadata.into_iter().flat_map(|metadata| metadata.vpc_cidrs.iter().cloned()));
    wanted
}

/// The list as it is, with what is missing.
fn no_proxy(view: &View) -> String {
    let held = view.environment.get("NO_PROXY").or_else(|| view.environment.get("no_proxy"));
    let mut entries: Vec<_> = held.map(String::as_str).unwrap_or_default().split(',').map(str::to_owned).collect();
    entries.extend(view.api.as_ref().map(|api| api.host.clone()));
    entries.extend(wanted(view));
    entries.retain(|entry| !entry.is_empty());
    let mut seen = std::collections::BTreeSet::new();
    entries.retain(|entry| seen.insert(entry.clone()));
    entries.join(",")
}

fn complete(view: &View) -> Found {
    let proxy = ["HTTPS_PROXY", "https_proxy"].iter().any(|name| view.environment.contains_key(*name));
    if !proxy {
        return Found::NotApplicable;
    }
    let held = view.environment.get("NO_PROXY").or_else(|| view.environment.get("no_proxy"));
    let held = held.map(String::as_str).unwrap_or_default();
    let has = |entry: &String| {
        held.split(',').any(|held| held.trim() == entry) || network::is_excepted(entry, held)
    };
    let missing: Vec<_> = wanted(view).into_iter().filter(|entry| !has(entry)).collect();
    match missing.is_empty() {
        true => Found::Pass,
        false => Found::fail(
            Evidence::unit("kubelet.service", format!("NO_PROXY lacks {}", missing.join(", ")))
                .fix(format!("set NO_PROXY={}", no_proxy(view))),
        ),
    }
}
