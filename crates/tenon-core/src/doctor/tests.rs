//! The mechanism, on nodes made up here. Whole nodes are in `fixtures/doctor`.

use super::snapshot::{Line, Snapshot};
use super::*;

const SECOND: u64 = 1_000_000;
const START: u64 = 1_800_000_000 * SECOND;

fn kubelet(at_s: u64, message: &str) -> Line {
    Line {
        time_us: START + at_s * SECOND,
        boot: "b".into(),
        unit: "kubelet.service".into(),
        identifier: "kubelet".into(),
        message: message.into(),
    }
}

/// A node that is old enough to be judged and says these things.
fn node(lines: &[(u64, &str)]) -> Snapshot {
    let mut journal = vec![kubelet(0, "hello")];
    journal.extend(lines.iter().map(|(at, message)| kubelet(*at, message)));
    journal.push(kubelet(1000, "bye"));
    Snapshot { journal, ..Snapshot::default() }
}

const REFUSED: &str = "\"Unable to register node with API server\" err=\"Unauthorized\"";

fn causes(node: &Snapshot, options: &Options) -> Vec<(u8, Confidence)> {
    let report = examine(node, options);
    report.findings.iter().map(|finding| (finding.cause.number, finding.confidence)).collect()
}

#[test]
fn one_text_is_possible_and_two_programs_are_likely() {
    assert_eq!(causes(&node(&[(900, REFUSED)]), &Options::default()), [(1, Confidence::Possible)]);
    let mut pulled = node(&[(900, "failed to get sandbox image \"x\"")]);
    assert_eq!(causes(&pulled, &Options::default()), [(23, Confidence::Possible)]);
    let line = kubelet(901, "failed to get sandbox image \"x\"");
    pulled.journal.push(Line {
        unit: "containerd.service".into(),
        identifier: "containerd".into(),
        ..line
    });
    assert_eq!(causes(&pulled, &Options::default()), [(23, Confidence::Likely)]);
}

#[test]
fn a_later_success_heals() {
    let healed = node(&[(100, REFUSED), (200, "\"Successfully registered node\"")]);
    assert_eq!(causes(&healed, &Options::default()), []);
    let again = node(&[(200, "\"Successfully registered node\""), (900, REFUSED)]);
    assert_eq!(causes(&again, &Options::default()).len(), 1);
}

#[test]
fn only_this_boot_counts_unless_asked() {
    let mut node = node(&[]);
    node.journal.insert(0, Line { boot: "earlier".into(), ..kubelet(1, REFUSED) });
    assert_eq!(causes(&node, &Options::default()), []);
    let since = Options { since_us: Some(START), ..Options::default() };
    assert_eq!(causes(&node, &since).len(), 1);
}

#[test]
fn what_was_said_before_the_last_change_does_not_count() {
    let mut node = node(&[(100, REFUSED)]);
    node.changed_us = Some(START + 500 * SECOND);
    assert_eq!(causes(&node, &Options::default()), []);
    // A change after the last word, such as the copying of a volume, hides nothing.
    node.changed_us = Some(START + 5000 * SECOND);
    assert_eq!(causes(&node, &Options::default()).len(), 1);
}

#[test]
fn nothing_to_see_is_not_healthy() {
    let report = examine(&Snapshot::default(), &Options::default());
    assert_eq!((report.exit(), report.state), (5, State::Unknown));
    let silent = examine(&node(&[]), &Options::default());
    assert_eq!((silent.exit(), silent.state), (1, State::NotJoined));
    assert_eq!(silent.to_json()["causes"][0]["id"], "unknown");
}

#[test]
fn what_may_not_be_read_is_not_missing() {
    let mut node = node(&[]);
    let wants = "/etc/systemd/system/multi-user.target.wants";
    node.folders.insert(wants.to_owned(), vec!["sshd.service".to_owned()]);
    let swaps = "Filename Type\n/swapfile file 1024 0 -2\n";
    node.files.insert("/proc/swaps".to_owned(), swaps.to_owned());
    assert_eq!(causes(&node, &Options::default()), [(18, Confidence::Certain)]);
    node.denied = vec!["/etc/kubernetes/kubelet/config.json".to_owned()];
    assert_eq!(causes(&node, &Options::default()), []);
    let kubeconfig = "clusters: [{cluster: {server: https://x}}]";
    node.files.insert("/var/lib/kubelet/kubeconfig".to_owned(), kubeconfig.to_owned());
    assert_eq!(causes(&node, &Options::default()), [], "failSwapOn is not known");
    node.denied.clear();
    assert_eq!(causes(&node, &Options::default()), [(24, Confidence::Certain)]);
}

#[test]
fn a_log_cannot_forge_a_line_of_the_answer() {
    let node = node(&[(
        900,
        "\"Unable to register node with API server\" err=\"Unauthorized\"\nREADY \u{1b}[2J",
    )]);
    let text = examine(&node, &Options::default()).text(true);
    assert!(!text.contains("\nREADY") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn json_fits_the_schema_in_its_outline() {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    let answer = examine(&node(&[(900, REFUSED)]), &Options::default()).to_json();
    for (part, held) in [(&schema, &answer), (&schema["$defs"]["cause"], &answer["causes"][0])] {
        let known = part["properties"].as_object().unwrap();
        for key in held.as_object().unwrap().keys() {
            assert!(known.contains_key(key), "the schema lacks {key}");
        }
        for key in part["required"].as_array().unwrap() {
            assert!(held.get(key.as_str().unwrap()).is_some(), "the answer lacks {key}");
        }
    }
}

#[test]
fn pages_are_found_by_number_and_name() {
    assert_eq!(find("doctor-07").unwrap().number, 7);
    assert_eq!(find("wrong-ca").unwrap().number, 7);
    assert!(find("doctor-99").is_none());
    let (text, json) = page(find("doctor-07").unwrap());
    assert!(text.contains("x509: certificate signed by unknown authority"), "{text}");
    assert_eq!(json["id"], "doctor-07");
}

/// Texts that nobody has confirmed yet. Who confirms or drops one takes it off this list.
#[test]
fn tentative_texts_are_known() {
    let tentative = CAUSES.iter().flat_map(|cause| {
        let open = cause.signals.iter().filter(|signal| !signal.is_confirmed());
        open.map(|signal| (cause.number, signal.pieces.join(" … ")))
    });
    let mut list: Vec<_> = tentative.map(|(number, text)| format!("{number} {text}")).collect();
    list.dedup();
    assert_eq!(
        list,
        [
            "9 dial tcp: lookup … server misbehaving",
            "12 UnauthorizedOperation",
            "12 AccessDeniedException",
            "12 UnauthorizedOperation",
            "12 AccessDenied",
            "14 failed to get IMDS",
            "30 avc: … denied",
            "32 handshake failure",
            "33 RequestLimitExceeded",
            "33 ThrottlingException",
            "36 exec format error",
        ]
    );
}
