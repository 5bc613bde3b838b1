//! Another program listens where the kubelet must.

use super::*;

pub(super) static CAUSE: Cause = Cause {
    number: 43,
    slug: "port-taken",
    title: "another program has a port that the kubelet needs",
    step: Step::Kubelet,
    signals: &[Signal::confirmed(
        Log::Kubelet,
        &["listen tcp", "bind: address already in use"],
        "go src/net/sock_posix.go",
    )],
    support: &[SYSTEMD_RESTART],
    checks: &[RESTARTS],
    why: "the kubelet listens on 10250, and on 10248 for its own health; a second kubelet or another agent was there first",
    fix: "stop the program that listens on the port in the evidence, or move it to another one",
    command: "ss -ltnp",
    ..Cause::BLANK
};
