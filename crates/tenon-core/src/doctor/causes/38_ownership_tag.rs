//! The instance is not tagged as the cluster's.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 38,
    slug: "ownership-tag",
    title: "the instance has no cluster ownership tag",
    step: Step::Platform,
    vague: true,
    checks: &[Check::proves("ownership-tag", tag)],
    why: "controllers of the cluster leave machines alone that are not tagged kubernetes.io/cluster/NAME",
    fix: "tag the instance, and its group, with kubernetes.io/cluster/NAME = owned",
    command: "aws ec2 create-tags --resources ID --tags Key=kubernetes.io/cluster/NAME,Value=owned",
    ..Cause::BLANK
};

fn tag(view: &View) -> Found {
    let tags = view.node.probes.metadata.as_ref().and_then(|metadata| metadata.tags.as_ref());
    match tags {
        None => Found::Unknown("tags are not offered by the metadata service"),
        Some(tags) if tags.iter().any(|tag| tag.starts_with("kubernetes.io/cluster/")) => Found::Pass,
        Some(_) => Found::fail(Evidence::metadata("no tag kubernetes.io/cluster/…")),
    }
}
