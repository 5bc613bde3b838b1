use std::collections::BTreeMap;

use super::*;
use crate::checks::State;
use crate::checks::mend::{self, HARDEN_NAME, Mend};
use crate::checks::snapshot::{Answer, Look, Process, Question, Seen, Stat};
use crate::hex::sha256;
use crate::plan::diff::parents;
use crate::plan::record::{FileMark, Record};

const ENVIRONMENT: &str = "/etc/eks/kubelet/environment";
const CONFIG: &str = "/etc/kubernetes/kubelet/config.json";
const KUBECONFIG: &str = "/var/lib/kubelet/kubeconfig";
const CA: &str = "/etc/kubernetes/pki/ca.crt";
const SERVICE: &str = "/etc/systemd/system/kubelet.service";
const PROXY: &str = "/var/lib/kube-proxy/kubeconfig";
const DROP_INS: &str = "/etc/kubernetes/kubelet/config.json.d";

macro_rules! golden {
    ($path:literal) => {
        include_str!(concat!("../../../../../golden/plain/expect/", $path))
    };
}
/// The golden node `plain` as it is after its first run, on an image with a kubelet unit.
fn fresh() -> Snapshot {
    let unit = "[Service]\nEnvironmentFile=/etc/eks/kubelet/environment\n\
                ExecStart=/usr/bin/kubelet $NODEADM_KUBELET_ARGS\n";
    let mut snapshot = Snapshot::default();
    for (path, mode, body) in [
        (ENVIRONMENT, 0o600, golden!("etc/eks/kubelet/environment")),
        (CONFIG, 0o600, golden!("etc/kubernetes/kubelet/config.json")),
        (KUBECONFIG, 0o600, golden!("var/lib/kubelet/kubeconfig")),
        (CA, 0o644, golden!("etc/kubernetes/pki/ca.crt")),
        (SERVICE, 0o600, unit),
    ] {
        put(&mut snapshot, path, mode, body);
    }
    let mut record = Record::default();
    let environment = golden!("etc/eks/kubelet/environment");
    let mark = FileMark { sha256: sha256(environment.as_bytes()), mode: 0o600 };
    record.files.insert(ENVIRONMENT.into(), mark);
    snapshot.record = Some(record);
    snapshot.kubelet_version = Some("v1.34.1".into());
    snapshot
}

fn put(snapshot: &mut Snapshot, path: &str, mode: u32, body: &str) {
    let stat = Some(Stat { mode, uid: 0, gid: 0 });
    let seen = Seen { stat, body: body.as_bytes().to_vec(), ..Seen::default() };
    snapshot.files.insert(path.to_owned(), Look::There(seen));
    let (directory, name) = path.rsplit_once('/').unwrap();
    snapshot.lists.entry(directory.to_owned()).or_default().push(name.to_owned());
}

/// What is not in the snapshot is absent, but for the directories of the node's own files.
fn answer(question: &Question) -> Answer {
    let (Question::List(path) | Question::File(path)) = question;
    let known = [KUBECONFIG, CONFIG].into_iter().flat_map(parents).any(|parent| parent == path);
    let stat = Some(Stat { mode: 0o755, uid: 0, gid: 0 });
    match (question, known) {
        (Question::List(_), _) => Answer::Names(Vec::new()),
        (Question::File(_), false) => Answer::Look(Look::Absent),
        (Question::File(_), true) => {
            Answer::Look(Look::There(Seen { stat, is_directory: true, ..Seen::default() }))
        }
    }
}

fn judge(snapshot: &mut Snapshot, profile: &str) -> Vec<Finding> {
    let profile = Profile::find(profile).unwrap();
    snapshot.settle(&answer, &|snapshot| profile.judge(snapshot))
}

fn plan(snapshot: &mut Snapshot, findings: &[Finding]) -> mend::Mending {
    snapshot.settle(&answer, &|snapshot| mend::plan(snapshot, findings))
}

fn states(findings: &[Finding]) -> BTreeMap<&str, State> {
    findings.iter().map(|finding| (finding.id.as_str(), finding.state)).collect()
}

#[test]
fn a_fresh_node_passes_but_for_the_documented_exceptions() {
    for (profile, expected) in
        [("eks-1.8", vec![]), ("k8s-1.11", vec!["k8s-4.2.13", "k8s-4.2.14", "k8s-4.2.7"])]
    {
        let findings = judge(&mut fresh(), profile);
        let by_state = states(&findings);
        let with = |state| {
            let found = by_state.iter().filter(|(_, found)| **found == state);
            found.map(|(id, _)| *id).collect::<Vec<_>>()
        };
        assert_eq!(with(State::Exception), expected, "{profile}");
        for bad in [State::Fail, State::Warn, State::Unknown] {
            assert_eq!(with(bad), Vec::<&str>::new(), "{profile}");
        }
        let excused = findings.iter().filter(|finding| finding.state == State::Exception);
        excused.for_each(|one| assert!(!one.exception.as_ref().unwrap().reason.is_empty()));
    }
}

/// What a mutation does to the fresh node.
enum Break {
    Mode(&'static str, u32),
    Owner(&'static str),
    /// A drop-in that the kubelet reads.
    DropIn(&'static str),
    Flag(&'static str),
    /// Arguments without `--config`.
    NoConfig,
    File(&'static str, &'static str),
    Directory(&'static str),
    Proxy(&'static str),
    /// A kubelet that was started before its files were written.
    OldKubelet,
}

fn broken(change: &Break) -> Snapshot {
    let mut node = fresh();
    let arguments = golden!("etc/eks/kubelet/environment").trim_end();
    match change {
        Break::Mode(path, mode) => match path {
            &PROXY => put(&mut node, PROXY, *mode, "x"),
            _ => change_stat(&mut node, path, |stat| stat.mode = *mode),
        },
        Break::Owner(path) => {
            if *path == PROXY {
                put(&mut node, PROXY, 0o600, "x");
            }
            change_stat(&mut node, path, |stat| stat.uid = 1000);
        }
        Break::DropIn(json) => {
            let text = format!("{arguments} --config-dir={DROP_INS}\n");
            put(&mut node, ENVIRONMENT, 0o600, &text);
            put(&mut node, &format!("{DROP_INS}/10-site.conf"), 0o600, json);
        }
        Break::Flag(flag) => put(&mut node, ENVIRONMENT, 0o600, &format!("{arguments} {flag}\n")),
        Break::NoConfig => {
            let text = arguments.replace("--config=/etc/kubernetes/kubelet/config.json", "");
            put(&mut node, ENVIRONMENT, 0o600, &text);
        }
        Break::File(path, text) => put(&mut node, path, 0o600, text),
        Break::Directory(path) => {
            let stat = Some(Stat { mode: 0o777, uid: 0, gid: 0 });
            let seen = Seen { stat, is_directory: true, ..Seen::default() };
            node.files.insert((*path).to_owned(), Look::There(seen));
        }
        Break::OldKubelet => {
            let words = arguments.split_whitespace();
            let first = arguments.split_once('=').unwrap().1.split_whitespace().next();
            let arguments = first.into_iter().chain(words.skip(1)).map(str::to_owned).collect();
            let started_us = -3_000_000;
            let name = "kubelet".into();
            node.processes.push(Process { name, arguments, started_us, pid: 7 });
        }
        Break::Proxy(flag) => node.processes.push(Process {
            name: "kube-proxy".into(),
            arguments: vec![(*flag).to_owned()],
            ..Process::default()
        }),
    }
    node
}

fn change_stat(snapshot: &mut Snapshot, path: &str, change: impl Fn(&mut Stat)) {
    let Some(Look::There(seen)) = snapshot.files.get_mut(path) else { panic!("{path}") };
    change(seen.stat.as_mut().unwrap());
}

/// At least one way to break each item, by the ids that must be found.
fn mutations() -> Vec<(&'static [&'static str], Break)> {
    vec![
        (&["eks-3.1.1", "k8s-4.1.5"], Break::Mode(KUBECONFIG, 0o666)),
        (&["k8s-4.1.5"], Break::Mode(KUBECONFIG, 0o644)),
        (&["eks-3.1.2", "k8s-4.1.6"], Break::Owner(KUBECONFIG)),
        (&["eks-3.1.3", "k8s-4.1.9"], Break::Mode(CONFIG, 0o646)),
        (&["k8s-4.1.9"], Break::Mode(CONFIG, 0o640)),
        (&["eks-3.1.4", "k8s-4.1.10"], Break::Owner(CONFIG)),
        (&["k8s-4.1.1"], Break::Mode(SERVICE, 0o644)),
        (&["k8s-4.1.2"], Break::Owner(SERVICE)),
        (&["k8s-4.1.3"], Break::Mode(PROXY, 0o644)),
        (&["k8s-4.1.4"], Break::Owner(PROXY)),
        (&["k8s-4.1.7"], Break::Mode(CA, 0o664)),
        (&["k8s-4.1.8"], Break::Owner(CA)),
        (
            &["eks-3.2.1", "k8s-4.2.1"],
            Break::DropIn(r#"{"authentication": {"anonymous": {"enabled": true}}}"#),
        ),
        (&["eks-3.2.1", "k8s-4.2.1"], Break::Flag("--anonymous-auth")),
        (
            &["eks-3.2.2", "k8s-4.2.2"],
            Break::DropIn(r#"{"authorization": {"mode": "AlwaysAllow"}}"#),
        ),
        (&["eks-3.2.3", "k8s-4.2.3"], Break::File(CA, "no certificate\n")),
        (&["eks-3.2.3", "k8s-4.2.3"], Break::Flag("--client-ca-file=/none")),
        (&["eks-3.2.4", "k8s-4.2.4"], Break::DropIn(r#"{"readOnlyPort": 10255}"#)),
        (&["eks-3.2.5", "k8s-4.2.5"], Break::Flag("--streaming-connection-idle-timeout=0")),
        (&["eks-3.2.6", "k8s-4.2.6"], Break::DropIn(r#"{"makeIPTablesUtilChains": false}"#)),
        (&["eks-3.2.7", "k8s-4.2.8"], Break::DropIn(r#"{"eventRecordQPS": -1}"#)),
        (&["eks-3.2.8", "k8s-4.2.10"], Break::DropIn(r#"{"rotateCertificates": false}"#)),
        (
            &["eks-3.2.9", "k8s-4.2.11"],
            Break::Flag("--feature-gates=RotateKubeletServerCertificate=false"),
        ),
        (&["eks-3.2.9", "k8s-4.2.9"], Break::DropIn(r#"{"serverTLSBootstrap": false}"#)),
        (
            &["k8s-4.2.12"],
            Break::DropIn(r#"{"tlsCipherSuites": ["TLS_RSA_WITH_AES_128_CBC_SHA"]}"#),
        ),
        (&["k8s-4.2.12"], Break::DropIn(r#"{"tlsMinVersion": "VersionTLS10"}"#)),
        (&["k8s-4.2.7"], Break::Flag("--hostname-override=other")),
        (&["k8s-4.2.13"], Break::DropIn(r#"{"podPidsLimit": -1}"#)),
        (&["k8s-4.2.14"], Break::DropIn(r#"{"seccompDefault": false}"#)),
        (
            &["k8s-4.2.15"],
            Break::File(
                "/etc/systemd/system/kubelet.service.d/20-net.conf",
                "[Service]\nIPAddressAllow=10.0.0.0/8\n",
            ),
        ),
        (&["k8s-4.3.1"], Break::Proxy("--metrics-bind-address=0.0.0.0:10249")),
        (
            &["eks-3.2.1", "eks-3.2.2", "eks-3.2.4", "k8s-4.2.1", "k8s-4.2.2", "k8s-4.2.4"],
            Break::NoConfig,
        ),
        (
            &["extra-user-data"],
            Break::File("/var/lib/cloud/instance/user-data.txt", "KEY=AKIAIOSFODNN7EXAMPLE"),
        ),
        (&["extra-kernel-defaults"], Break::DropIn(r#"{"protectKernelDefaults": false}"#)),
        (
            &["extra-own-units"],
            Break::File("/etc/systemd/system/tenon-init.service", "[Service]\nExecStart=/x\n"),
        ),
        (&["extra-restart"], Break::OldKubelet),
        (&["extra-parents"], Break::Directory("/etc/kubernetes")),
    ]
}

#[test]
fn each_mutation_is_found_by_its_name_and_has_a_remedy() {
    for (ids, change) in mutations() {
        for profile in ["eks-1.8", "k8s-1.11"] {
            let prefix = Profile::find(profile).unwrap().prefix;
            let findings = judge(&mut broken(&change), profile);
            let own = ids.iter().filter(|id| id.starts_with(prefix) || id.starts_with("extra"));
            for id in own {
                let finding = findings.iter().find(|finding| finding.id == *id).unwrap();
                assert!(matches!(finding.state, State::Fail | State::Warn), "{id}: {finding:?}");
                assert!(!finding.remedy.is_empty() && !finding.place.is_empty(), "{finding:?}");
                assert!(!finding.expected.is_empty() && !finding.actual.is_empty(), "{id}");
            }
        }
    }
}

/// Without a mutation an item could pass whatever the node looks like.
#[test]
fn every_item_that_a_node_can_break_has_a_mutation() {
    let mutations = mutations();
    let covered: Vec<&str> = mutations.iter().flat_map(|(ids, _)| ids.iter().copied()).collect();
    let elsewhere = ["extra-metadata", "extra-ssh-keys"];
    for id in ids().filter(|id| !elsewhere.contains(&id.as_str())) {
        assert!(covered.contains(&id.as_str()), "{id}");
    }
}

#[test]
fn what_cannot_be_seen_is_unknown() {
    let mut node = fresh();
    node.files.insert(CONFIG.into(), Look::Hidden("permission denied".into()));
    node.files.insert(KUBECONFIG.into(), Look::Hidden("permission denied".into()));
    let found = judge(&mut node, "eks-1.8");
    let states = states(&found);
    for id in ["eks-3.1.1", "eks-3.1.3", "eks-3.2.1", "eks-3.2.4", "extra-kernel-defaults"] {
        assert_eq!(states[id], State::Unknown, "{id}");
    }
}

#[test]
fn a_redacted_copy_does_not_say_who_wrote_it() {
    let mut node = fresh();
    let text = golden!("etc/eks/kubelet/environment");
    let text = text.replace("ip-10-0-12-34.us-west-2.compute.internal", "<redacted:known-value:1>");
    put(&mut node, ENVIRONMENT, 0o600, &text);
    let found = judge(&mut node, "k8s-1.11");
    assert_eq!(states(&found)["k8s-4.2.7"], State::Unknown);
}

#[test]
fn a_process_with_other_flags_counts_against_good_files() {
    let mut node = fresh();
    let arguments = vec![format!("--config={CONFIG}"), "--read-only-port=10255".into()];
    let process = Process { name: "kubelet".into(), pid: 7, arguments, ..Process::default() };
    node.processes.push(process);
    let found = judge(&mut node, "eks-1.8");
    let port = found.iter().find(|finding| finding.id == "eks-3.2.4").unwrap();
    assert_eq!(port.state, State::Fail);
    assert!(port.origin.contains("process 7"), "{}", port.origin);
    assert_eq!(states(&found)["extra-restart"], State::Warn);
}

#[test]
fn a_profile_that_is_not_known_is_refused_with_the_known_names() {
    for name in ["stig", "eks-1.7", ""] {
        let problem = Profile::find(name).unwrap_err();
        assert_eq!(problem.exit(), 64);
        let fix = problem.fix_text();
        assert!(fix.contains("eks-1.8") && fix.contains("k8s-1.11"), "{fix}");
    }
}

/// Applies a mending to a snapshot as the host does to a node.
fn apply(node: &mut Snapshot, mending: &mend::Mending) {
    for (path, dress) in &mending.dresses {
        change_stat(node, path, |stat| {
            stat.mode = dress.mode.unwrap_or(stat.mode);
            if dress.to_root {
                (stat.uid, stat.gid) = (0, 0);
            }
        });
    }
    for write in &mending.writes {
        let text = String::from_utf8(write.body.clone()).unwrap();
        put(node, &write.path, 0o600, &text);
        if write.path == ENVIRONMENT {
            let mark = FileMark { sha256: sha256(&write.body), mode: 0o600 };
            node.record.as_mut().unwrap().files.insert(ENVIRONMENT.into(), mark);
        }
    }
}

#[test]
fn what_can_be_mended_is_mended_once() {
    for (ids, change) in mutations() {
        for profile in ["eks-1.8", "k8s-1.11"] {
            let mut node = broken(&change);
            let before = judge(&mut node, profile);
            let mending = plan(&mut node, &before);
            apply(&mut node, &mending);
            let after = judge(&mut node, profile);
            assert!(plan(&mut node, &after).is_empty(), "{ids:?}: mended twice");
            // A restart makes the process what its files say.
            node.processes.retain(|process| process.name != "kubelet");
            let after = judge(&mut node, profile);
            for finding in before.iter().filter(|finding| finding.mend.is_some()) {
                let id = finding.id.as_str();
                assert_eq!(states(&after)[id], State::Pass, "{id} {ids:?}: {mending:?}");
            }
        }
    }
}

#[test]
fn the_flag_goes_where_the_plan_would_put_it() {
    let mut node = fresh();
    let found = judge(&mut node, "k8s-1.11");
    let mending = plan(&mut node, &found);
    let paths: Vec<&str> = mending.writes.iter().map(|write| write.path.as_str()).collect();
    assert_eq!(paths, [format!("{DROP_INS}/{HARDEN_NAME}").as_str(), ENVIRONMENT]);
    let text = String::from_utf8(mending.writes[1].body.clone()).unwrap();
    let planned = format!(" --config={CONFIG} --config-dir={DROP_INS} --kubeconfig=");
    assert!(text.contains(&planned) && !text.contains("ALPHA"), "{text}");
    node.kubelet_version = Some("v1.29.4".into());
    let text = plan(&mut node, &found).writes[1].body.clone();
    assert!(text.starts_with(b"KUBELET_CONFIG_DROPIN_DIR_ALPHA=on\nNODEADM"));
    node.kubelet_version = None;
    let refused = plan(&mut node, &found);
    assert!(refused.is_empty() && refused.refused[0].contains("version is not known"));
}

#[test]
fn a_later_drop_in_of_someone_else_is_not_fought() {
    let mut node = broken(&Break::DropIn("{}"));
    put(&mut node, &format!("{DROP_INS}/zz.conf"), 0o600, r#"{"readOnlyPort": 1}"#);
    let found = judge(&mut node, "eks-1.8");
    let port = found.iter().find(|finding| finding.id == "eks-3.2.4").unwrap();
    assert_eq!((port.state, &port.mend), (State::Fail, &None::<Mend>));
    assert!(port.remedy.contains("zz.conf"), "{}", port.remedy);
}
