//! The image is locked down further than a node can bear.

use super::*;

/// Programs run from these, so their file system must let them.
const EXEC_PATHS: &[&str] = &["/usr/bin", "/opt/cni/bin", "/var/lib/containerd", "/var/lib/kubelet", "/etc/eks"];

pub(super) static CAUSE: Cause = Cause {
    number: 31,
    slug: "hardening",
    title: "hardening keeps the node's programs or traffic from working",
    step: Step::Image,
    alone: true,
    checks: &[
        Check::proves("exec-mounts", mounts),
        Check::supports("host-firewall", firewall),
        Check::supports("forward-policy", forward),
        Check::supports("kubelet-port", port),
    ],
    why: "a file system that programs run from is mounted noexec, or a host firewall drops what pods forward or what the API server sends to the kubelet",
    fix: "use the exception list of the image profile: exec on the paths named, no firewall manager on a node, forward policy accept",
    command: "findmnt -o TARGET,OPTIONS",
    ..Cause::BLANK
};

/// The options of the file system that a path lies on.
fn options<'a>(mounts: &'a str, path: &str) -> Option<(&'a str, &'a str)> {
    let holds = |target: &str| path == target || target == "/" || path.strip_prefix(target).is_some_and(|rest| rest.starts_with('/'));
    let rows = mounts.lines().filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, target, _, options, ..] = words[..] else { return None };
        holds(target).then_some((target, options))
    });
    rows.max_by_key(|(target, _)| target.len())
}

fn mounts(view: &View) -> Found {
    let Some(mounts) = view.file("/proc/mounts") else { return Found::Unknown("the mounts are not known") };
    let evidence = EXEC_PATHS.iter().filter_map(|path| {
        let (target, options) = options(mounts, path)?;
        let text = format!("{path} lies on {target}, which is mounted noexec");
        let fix = format!("mount {target} with exec: `mount -o remount,exec {target}`, and in /etc/fstab");
        options.split(',').any(|option| option == "noexec").then(|| Evidence::file("/proc/mounts", text).fix(fix))
    });
    Found::of(evidence.collect())
}

fn firewall(view: &View) -> Found {
    let active = ["firewalld.service", "ufw.service", "nftables.service"];
    let evidence = active.iter().filter_map(|name| {
        let unit = view.unit(name).filter(|unit| unit.active == "active")?;
        Some(Evidence::unit(*name, &unit.active))
    });
    let ufw = view.file("/etc/ufw/ufw.conf").is_some_and(|text| text.lines().any(|line| line.trim() == "ENABLED=yes"));
    let ufw = ufw.then(|| Evidence::file("/etc/ufw/ufw.conf", "ufw is enabled"));
    Found::of(evidence.chain(ufw).collect())
}

fn forward(view: &View) -> Found {
    let files = ["/etc/sysconfig/nftables.conf", "/etc/nftables.conf"];
    let drops = |text: &str| text.lines().any(|line| line.contains("hook forward") && line.contains("policy drop"));
    let bad = files.into_iter().find(|path| view.file(path).is_some_and(drops));
    Found::maybe(bad.map(|path| Evidence::file(path, "forwarded packets are dropped")))
}

fn port(view: &View) -> Found {
    match view.node.probes.ports.get(&10250) {
        None => Found::Unknown("the kubelet's port was not tried"),
        Some(true) => Found::Pass,
        Some(false) => Found::fail(Evidence::probe("kubelet", "nothing answers on port 10250")),
    }
}
