//! The network is not up, or leads the wrong way.

use super::*;

const LINKS: &str = "/run/systemd/netif/links";

pub(super) static CAUSE: Cause = Cause {
    number: 35,
    slug: "links",
    title: "the network is not up, or a second interface took the default route",
    step: Step::Route,
    alone: true,
    signals: &[Signal::confirmed(Log::Bootstrap, &["TN09101"], "tenon-core/src/codes/facts.rs")],
    support: SYMPTOMS,
    checks: &[
        Check::proves("default-routes", routes),
        Check::proves("links-up", links),
        Check::supports("boot-hook", |view| restarts(view, "nodeadm-boot-hook.service")),
    ],
    why: "no link is configured, or two interfaces have default routes of the same metric and answers leave by the wrong one",
    fix: "let `tenon net udev` manage the links: each gets a metric of its own; interfaces added later belong to the CNI",
    command: "networkctl list; ip route",
    ..Cause::BLANK
};

/// The best routes of one family must not tie.
fn routes(view: &View) -> Found {
    let Some(routes) = network::default_routes(view) else {
        return Found::Unknown("the routes are not known");
    };
    for v6 in [false, true] {
        let family: Vec<_> = routes.iter().filter(|route| route.2 == v6).collect();
        let best = family.iter().map(|route| route.1).min();
        let mut tied: Vec<_> = family.iter().filter(|route| Some(route.1) == best).map(|route| route.0.as_str()).collect();
        tied.dedup();
        if tied.len() > 1 {
            let path = if v6 { "/proc/net/ipv6_route" } else { "/proc/net/route" };
            let text = format!("{} share the metric {}", tied.join(" and "), best.unwrap_or_default());
            return Found::fail(Evidence::file(path, text));
        }
    }
    Found::Pass
}

fn links(view: &View) -> Found {
    let state = |text: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix("ADMIN_STATE="))?;
        Some(value.trim().to_owned())
    };
    let states: Vec<_> = view.files_in(LINKS).filter_map(|(path, text)| Some((path, state(text)?))).collect();
    let none = network::default_routes(view).is_some_and(|routes| routes.is_empty());
    let managed: Vec<_> = states.iter().filter(|(_, state)| state != "unmanaged").collect();
    if managed.is_empty() {
        return Found::Unknown("no link's state is known");
    }
    match none && !managed.iter().any(|(_, state)| state == "configured") {
        true => Found::of(managed.iter().map(|(path, state)| Evidence::file(*path, format!("{state}, and there is no default route"))).collect()),
        false => Found::Pass,
    }
}
