//! The kubelet does not accept what it is started with.

use super::*;
use crate::config::kubelet_table;

const SERVER: &str = "kubernetes cmd/kubelet/app/server.go";

pub(super) static CAUSE: Cause = Cause {
    number: 20,
    slug: "kubelet-config",
    title: "the kubelet ends at its start because of a flag or its config",
    step: Step::Kubelet,
    signals: &[
        Signal::confirmed(Log::Kubelet, &["unknown flag:"], "spf13/pflag flag.go"),
        Signal::confirmed(Log::Kubelet, &["failed to load kubelet config file"], SERVER),
        Signal::confirmed(Log::Kubelet, &["failed to validate kubelet configuration"], SERVER),
        Signal::confirmed(Log::Kubelet, &["invalid argument", "for \"--"], "spf13/pflag errors.go"),
    ],
    support: &[SYSTEMD_RESTART],
    checks: &[RESTARTS, Check::proves("kubelet-flags", flags), Check::proves("kubelet-fields", fields)],
    why: "a flag or a field of its config is not known to this version of the kubelet, or has a wrong type",
    fix: "take out the flag or field named in the evidence, or use the one that replaced it",
    command: "journalctl -b -u kubelet -n 50",
    ..Cause::BLANK
};

/// Only a kubelet that does not stay up can have been refused its flags.
fn version_of_dying(view: &View) -> Option<(u32, u32)> {
    let dying = matches!(restarts(view, "kubelet.service"), Found::Fail(_));
    let version = view.kubelet_version()?;
    dying.then_some((version.major, version.minor))
}

fn flags(view: &View) -> Found {
    let Some(version) = version_of_dying(view) else { return Found::NotApplicable };
    let refused = |name: &&String| {
        kubelet_table::flag(name).is_none_or(|flag| !flag.known_to(Some(version)))
    };
    let evidence = view.flags.keys().filter(refused).map(|name| {
        let field = kubelet_table::flag(name).and_then(|flag| flag.field);
        let text = format!("kubelet {}.{} has no flag --{name}", version.0, version.1);
        let fix = match field {
            Some(field) => format!("take out --{name}; the field `{field}` of the config does the same"),
            None => format!("take out --{name}"),
        };
        Evidence::file("/etc/eks/kubelet/environment", text).fix(fix)
    });
    Found::of(evidence.collect())
}

fn fields(view: &View) -> Found {
    let (Some(version), Some(config)) = (version_of_dying(view), view.kubelet.as_object()) else {
        return Found::NotApplicable;
    };
    let issues = kubelet_table::check_config(config, Some(version));
    let evidence = issues.iter().map(|issue| {
        let text = format!("`{}` {}", issue.path.join("."), issue.message);
        Evidence::file("/etc/kubernetes/kubelet/config.json", text)
    });
    Found::of(evidence.collect())
}
