//! The token service of the region is switched off for the account.

use super::*;

const CITATION: &str = "AWS IAM user guide, managing AWS STS in a Region";

pub(super) static CAUSE: Cause = Cause {
    number: 13,
    slug: "sts-region-disabled",
    title: "STS is not active in this region",
    step: Step::Authn,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["RegionDisabledException"], CITATION),
        Signal::confirmed(Log::Bootstrap, &["RegionDisabledException"], CITATION),
    ],
    support: SYMPTOMS,
    why: "the account has not activated the region for STS, so no token made there is accepted",
    fix: "activate the region for STS in the account's IAM settings, or let the authenticator use another STS endpoint",
    ..Cause::BLANK
};
