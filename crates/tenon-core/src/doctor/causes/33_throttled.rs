//! Too many nodes ask the cloud at once.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 33,
    slug: "throttled",
    title: "the cloud API throttles the bootstrap",
    step: Step::Platform,
    signals: &[
        Signal::confirmed(Log::Bootstrap, &["Too Many Requests"], "go src/net/http/status.go"),
        Signal::tentative(Log::Bootstrap, &["RequestLimitExceeded"]),
        Signal::tentative(Log::Bootstrap, &["ThrottlingException"]),
    ],
    support: &[
        Signal::confirmed(Log::Bootstrap, &["retrying request"], "aws-sdk-go-v2 aws/retry/middleware.go"),
        Signal::confirmed(Log::Bootstrap, &["exceeded maximum number of attempts"], "aws-sdk-go-v2 aws/retry/errors.go"),
    ],
    why: "many machines started at once, and each asks the cloud API for what its config leaves out",
    fix: "give apiServerEndpoint, certificateAuthority and cidr in the config: then no call is made",
    ..Cause::BLANK
};
