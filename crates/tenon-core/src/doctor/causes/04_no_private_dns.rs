//! EC2 gives the machine no name.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 4,
    slug: "no-private-dns-name",
    title: "the machine has no private DNS name",
    step: Step::NodeName,
    alone: true,
    signals: &[Signal::confirmed(
        Log::Kubelet,
        &["node \"\" not found"],
        "kubernetes pkg/kubelet/kubelet_getters.go; awslabs/amazon-eks-ami issues",
    )],
    support: SYMPTOMS,
    checks: &[Check::proves("local-hostname", hostname), Check::supports("resolver", resolver)],
    why: "DNS support of the VPC is off, or its DHCP options name no domain, so the instance has no private DNS name for its Node object",
    fix: "switch on enableDnsSupport and enableDnsHostnames of the VPC, and let its DHCP options name AmazonProvidedDNS",
    command: "aws ec2 describe-vpc-attribute --attribute enableDnsHostnames --vpc-id VPC",
    ..Cause::BLANK
};

fn hostname(view: &View) -> Found {
    // A node that was given a name needs none from EC2.
    if view.flags.get("hostname-override").is_some_and(|name| !name.is_empty()) {
        return Found::NotApplicable;
    }
    let name = view.node.probes.metadata.as_ref().and_then(|metadata| metadata.local_hostname.as_ref());
    match name.map(String::as_str) {
        Some("") => Found::fail(Evidence::metadata("local-hostname is empty")),
        Some(_) => Found::Pass,
        None => Found::Unknown("the metadata service was not asked"),
    }
}

/// The servers that the VPC itself offers are its second address and a link-local one.
fn resolver(view: &View) -> Found {
    let Some((path, servers)) = nameservers(view) else {
        return Found::Unknown("the resolver's servers are not known");
    };
    let cidrs = view.node.probes.metadata.as_ref().map(|metadata| &metadata.vpc_cidrs[..]).unwrap_or_default();
    let second = |cidr: &String| {
        let network: ipnet::Ipv4Net = cidr.parse().ok()?;
        network.hosts().nth(1).map(|address| address.to_string())
    };
    let offered: Vec<_> = cidrs.iter().filter_map(second).collect();
    if offered.is_empty() {
        return Found::Unknown("the networks of the VPC are not known");
    }
    let ours = |server: &&str| {
        matches!(*server, "169.254.169.253" | "fd00:ec2::253") || offered.iter().any(|own| own == server)
    };
    match servers.iter().any(ours) {
        true => Found::Pass,
        false => Found::fail(Evidence::file(path, format!("nameserver {}", servers.join(", ")))),
    }
}

/// The servers behind the local stub, if there is one.
fn nameservers<'a>(view: &View<'a>) -> Option<(&'static str, Vec<&'a str>)> {
    let files = ["/run/systemd/resolve/resolv.conf", "/etc/resolv.conf"];
    files.into_iter().find_map(|path| {
        let servers = view.file(path)?.lines().filter_map(|line| line.trim().strip_prefix("nameserver "));
        let servers: Vec<_> = servers.map(str::trim).filter(|server| !server.starts_with("127.")).collect();
        (!servers.is_empty()).then_some((path, servers))
    })
}
