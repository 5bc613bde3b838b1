//! Whole plans, looked at from outside.

mod daemons;
mod disks;
mod files;
mod kubelet;
mod random;
mod secrets;

use super::fixture;
use super::step::*;
use super::*;

fn built(config: &Config, facts: &Facts) -> Plan {
    build(config, facts, &Options::default()).unwrap_or_else(|findings| panic!("{findings:#?}"))
}

/// The slugs of the findings of a config that is refused.
fn refused(config: &Config, facts: &Facts) -> Vec<&'static str> {
    let findings = build(config, facts, &Options::default()).expect_err("refused");
    findings.iter().map(|finding| finding.problem.page.slug).collect()
}

fn slugs(plan: &Plan) -> Vec<&'static str> {
    plan.findings.iter().map(|finding| finding.problem.page.slug).collect()
}

fn file<'a>(plan: &'a Plan, path: &str) -> Option<&'a FileBody> {
    plan.steps.iter().find_map(|step| match &step.action {
        Action::File(file) if file.path == path => Some(file),
        _ => None,
    })
}

fn text(plan: &Plan, path: &str) -> String {
    let body = &file(plan, path).unwrap_or_else(|| panic!("{path} is planned")).body;
    String::from_utf8(body.clone()).unwrap()
}

#[test]
fn a_plain_node_has_its_files() {
    let plan = built(&fixture::config(), &fixture::facts());
    let files: Vec<(&str, u32)> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::File(file) => Some((file.path.as_str(), file.mode)),
            _ => None,
        })
        .collect();
    let expected = [
        ("/etc/kubernetes/pki/ca.crt", 0o644),
        ("/etc/kubernetes/kubelet/config.json", 0o600),
        ("/etc/eks/kubelet/environment", 0o600),
        ("/var/lib/kubelet/kubeconfig", 0o600),
        ("/etc/eks/image-credential-provider/config.json", 0o644),
        ("/etc/containerd/config.toml", 0o644),
        ("/etc/containerd/base-runtime-spec.json", 0o644),
        ("/run/nodeadm/init", 0o644),
    ];
    assert_eq!(files, expected);
    assert_eq!(plan.findings, []);
    assert!(text(&plan, super::kubelet::CONFIG_PATH).ends_with("v1beta1\"\n}\n"));
}

#[test]
fn fault_80_what_stays_visible_is_what_a_node_should_not_run_with() {
    let (config, mut facts) = (fixture::config(), fixture::facts());
    assert_eq!(built(&config, &facts).lasting_warnings(), []);
    facts.instance.instance_type = "zz9.large".into();
    facts.instance.limits = None;
    facts.machine.kubelet_version = "v1.99.0".into();
    let plan = built(&config, &facts);
    assert_eq!(slugs(&plan), ["untested-version", "unknown-instance-type"]);
    let lasting = plan.lasting_warnings();
    assert_eq!(lasting.len(), 1, "an untested version is told once");
    assert!(lasting[0].what.contains("zz9.large") && !lasting[0].fix.is_empty());
}

#[test]
fn a_migrated_config_must_be_loadable() {
    let table = "plugins.'io.containerd.cri.v1.runtime'.containerd";
    let config = |name: &str| {
        format!(
            "version = 3\n[{table}]\ndefault_runtime_name = '{name}'\n[{table}.runtimes.runc]\n"
        )
    };
    let check = |bytes: &[u8]| Output::ContainerdConfig.check(bytes);
    assert!(check(config("runc").as_bytes()).is_ok());
    for bad in [config("kata").as_bytes(), b"", b"version = ", b"\xff"] {
        assert_eq!(check(bad).unwrap_err().page.slug, "migration-unusable");
    }
    assert!(Output::Anything.check(b"\xff").is_ok());
}
