//! The metadata service does not answer.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 14,
    slug: "metadata-unusable",
    title: "the instance metadata service gives no token",
    step: Step::Platform,
    alone: true,
    signals: &[
        Signal::confirmed(Log::Bootstrap, &["TN0500"], "tenon-core/src/codes/facts.rs"),
        Signal::tentative(Log::Bootstrap, &["failed to get IMDS"]),
        Signal::confirmed(Log::Bootstrap, &["EC2 IMDS", "canceled, context deadline exceeded"], "aws-sdk-go-v2 feature/ec2/imds"),
    ],
    support: &[Signal::confirmed(Log::Bootstrap, &["169.254.169.254"], "AWS EC2 user guide, instance metadata")],
    checks: &[Check::proves("metadata-token", token), Check::supports("metadata-proxied", proxied)],
    why: "metadata is switched off for the instance, its hop limit is 1 and a bridge stands in between, the link-local route is gone, or a proxy takes the request",
    fix: "switch the metadata service on and give it a hop limit of 2",
    command: "aws ec2 modify-instance-metadata-options --instance-id ID --http-endpoint enabled --http-put-response-hop-limit 2",
    ..Cause::BLANK
};

fn token(view: &View) -> Found {
    let Some(metadata) = &view.node.probes.metadata else {
        return Found::Unknown("the metadata service was not asked");
    };
    let text = match metadata.token_status {
        200 => return Found::Pass,
        0 if metadata.detail.is_empty() => "no answer to the request for a token".to_owned(),
        0 => format!("no answer to the request for a token: {}", metadata.detail),
        status => format!("the request for a token is answered with {status}"),
    };
    Found::fail(Evidence::metadata(text))
}

fn proxied(view: &View) -> Found {
    match network::proxy_for(view, "169.254.169.254") {
        Some(_) => Found::fail(Evidence::file("/etc/eks/proxy.env", "NO_PROXY lacks 169.254.169.254")),
        None => Found::Pass,
    }
}
