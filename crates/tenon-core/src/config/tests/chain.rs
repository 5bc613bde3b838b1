//! Which sources count, and what is said when none does.

use super::*;

const COMPLETE: &str = "cluster: {name: a, apiServerEndpoint: 'https://a.example', certificateAuthority: YQ==, cidr: 10.100.0.0/16}";

fn complete(kind: Kind) -> String {
    document(kind, COMPLETE)
}

fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.problem.page.code).collect()
}

#[test]
fn row_100_broken_user_data_is_the_answer_when_nothing_else_is() {
    let broken = user_data("apiVersion: node.eks.aws/v1alpha1\nkind: [\n");
    let findings = load(std::slice::from_ref(&broken), Options::default()).unwrap_err();
    let problem = &findings[0].problem;
    assert!(problem.page.code.starts_with("TN032"), "{problem}");
    assert_eq!(problem.exit(), 3);

    let other = file("file:///b.yaml", &complete(Kind::Eks));
    let loaded = load(&[broken, other], Options::default()).unwrap();
    assert_eq!(loaded.config.cluster.name, "a");
    assert!(loaded.findings.iter().all(|finding| finding.class == Class::Warning));
    assert!(loaded.findings[0].problem.what.starts_with("user data skipped"));
}

#[test]
fn a_broken_file_is_fatal_whatever_else_there_is() {
    let sources =
        [file("file:///a.yaml", "apiVersion: [\n"), file("file:///b.yaml", &complete(Kind::Eks))];
    assert!(load(&sources, Options::default()).is_err());
}

#[test]
fn no_config_lists_every_source_and_what_it_held() {
    let sources = [
        user_data("#!/bin/bash\necho hi\n"),
        SourceRead { uri: "file:///etc/eks/nodeadm.d".into(), origin: Origin::File, bytes: None },
    ];
    let findings = load(&sources, Options::default()).unwrap_err();
    let none = findings.iter().find(|finding| finding.problem.page.code == "TN04001").unwrap();
    assert_eq!(none.problem.exit(), 4);
    assert_eq!(none.problem.details.len(), 2);
    assert!(
        none.problem.details[0].starts_with("imds://user-data holds "),
        "{:?}",
        none.problem.details
    );
    assert!(none.problem.details[1].starts_with("file:///etc/eks/nodeadm.d holds nothing"));
}

#[test]
fn row_52_blank_user_data_is_no_config() {
    for text in ["", " \n\n"] {
        let findings = load(&[user_data(text)], Options::default()).unwrap_err();
        assert_eq!(findings[0].problem.exit(), 4, "{text:?}");
    }
}

#[test]
fn user_data_without_config_is_passed_over() {
    let sources = [user_data("#!/bin/bash\n"), file("file:///b.yaml", &complete(Kind::Eks))];
    let loaded = load(&sources, Options::default()).unwrap();
    assert_eq!(loaded.notes.len(), 1);
    assert_eq!(loaded.config.cluster.name, "a");
}

#[test]
fn row_108_a_second_document_is_never_dropped_silently() {
    let two = |kind| format!("---\n{}---\n{}", complete(kind), complete(kind));
    let loaded = load(&[file("f", &two(Kind::Eks))], Options::default()).unwrap();
    let second = loaded.findings.iter().find(|f| f.problem.page.code == "TN03005").unwrap();
    assert_eq!(second.class, Class::Tolerated);
    let findings = load(&[file("f", &two(Kind::Tenon))], Options::default()).unwrap_err();
    assert!(codes(&findings).contains(&"TN03005"));
}

#[test]
fn a_part_of_another_type_stops_the_strict_kind_only() {
    for (kind, refused) in [(Kind::Eks, false), (Kind::Tenon, true)] {
        let part = |media: &str| format!("--B\nContent-Type: {media}\n\n{}\n", complete(kind));
        let ours = part(&format!("application/{}", kind.group()));
        let text = format!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n{}{}--B--\n",
            ours.replace("YQ==", "''"),
            part("text/yaml"),
        );
        let outcome = load(&[file("f", &text)], PARTIAL);
        assert_eq!(outcome.is_err(), refused, "{kind:?}: {outcome:?}");
    }
}

#[test]
fn kinds_must_be_known() {
    for (head, what, fix) in [
        ("kind: NodeConfig", "apiVersion (not set) with kind `NodeConfig`", "apiVersion"),
        ("apiVersion: node.eks.aws/v1alpha1", "kind (not set)", "kind"),
        (
            "apiVersion: node.eks.aws/v1alpha2\nkind: NodeConfig",
            "node.eks.aws/v1alpha2",
            "did you mean apiVersion `node.eks.aws/v1alpha1`",
        ),
        (
            "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfigList",
            "NodeConfigList",
            "did you mean",
        ),
    ] {
        let findings = load(&[file("f", head)], PARTIAL).unwrap_err();
        let problem = &findings[0].problem;
        assert_eq!(problem.page.code, "TN03004", "{head}");
        assert!(problem.what.contains(what), "{head}: {}", problem.what);
        assert!(problem.fix_text().contains(fix), "{head}: {}", problem.fix_text());
    }
}

#[test]
fn one_bad_source_does_not_hide_another() {
    let sources = [
        file("file:///a.yaml", &document(Kind::Eks, "cluster: {cidr: x}")),
        file("file:///b.yaml", "apiVersion: x/v1\nkind: NodeConfig\n"),
        file("file:///c.yaml", &document(Kind::Tenon, "kublet: {}\nnode: {name: x}")),
    ];
    let findings = load(&sources, PARTIAL).unwrap_err();
    assert_eq!(codes(&findings), ["TN03016", "TN03004", "TN03001", "TN03003"]);
}

#[test]
fn findings_are_sorted_by_source_then_position() {
    let text = document(Kind::Eks, "kublet: {}\ncluster:\n  nam: x\n  cidr: bad\n  name: '-'");
    let sources = [file("file:///z.yaml", &text), file("file:///a.yaml", &text)];
    let findings = load(&sources, PARTIAL).unwrap_err();
    let places: Vec<_> = findings
        .iter()
        .map(|finding| finding.problem.place.clone().unwrap())
        .map(|place| (place.source, place.line))
        .collect();
    let one = |name: &str| [4, 6, 7, 8].map(|line| (format!("file:///{name}.yaml"), line));
    assert_eq!(places, [one("z"), one("a")].concat());
}

#[test]
fn row_60_the_later_source_wins_and_says_where_it_was_written() {
    let sources = [
        file(
            "file:///a.yaml",
            &document(
                Kind::Tenon,
                "cluster:\n  name: a\nnode:\n  labels: {corp.example/team: web}\nkubelet:\n  flags: [--v=1]",
            ),
        ),
        file(
            "file:///b.yaml",
            &document(Kind::Tenon, "cluster:\n  name: b\nkubelet:\n  flags:\n  - --v=2"),
        ),
    ];
    let loaded = load(&sources, PARTIAL).unwrap();
    let place =
        |path: &str| loaded.origin(path).map(|place| (place.source, place.line, place.column));
    assert_eq!(place("spec.cluster.name"), Some(("file:///b.yaml".into(), 5, 11)));
    assert_eq!(place("spec.kubelet.flags[0]"), Some(("file:///a.yaml".into(), 9, 13)));
    assert_eq!(place("spec.kubelet.flags[1]"), Some(("file:///b.yaml".into(), 8, 7)));
    assert_eq!(place("spec.node.labels.corp.example/team").map(|p| p.1), Some(7));
    assert_eq!(place("spec.cluster.cidr"), None);
    assert!(loaded.origins().iter().all(|(_, place)| place.line > 0));
}

#[test]
fn compatible_numbers_come_with_a_compatible_document() {
    let of = |specs: &[(Kind, &str)]| {
        let documents: Vec<_> = specs.iter().map(|(kind, spec)| document(*kind, spec)).collect();
        let kubelet = load_partial(&documents).unwrap().config.kubelet;
        (kubelet.reserved.basis, kubelet.max_pods.cap)
    };
    let set = "kubelet: {reserved: {basis: effective}, maxPods: {cap: auto}}";
    assert_eq!(of(&[(Kind::Eks, "")]), (Basis::Computed, Cap::None));
    assert_eq!(of(&[(Kind::Tenon, "{}")]), (Basis::Effective, Cap::Auto));
    assert_eq!(of(&[(Kind::Tenon, "{}"), (Kind::Eks, "{}")]), (Basis::Computed, Cap::None));
    assert_eq!(of(&[(Kind::Tenon, set), (Kind::Eks, "{}")]), (Basis::Effective, Cap::Auto));
    assert_eq!(of(&[(Kind::Tenon, "kubelet: {maxPods: {cap: 120}}")]).1, Cap::At(120));
}

#[test]
fn gates_and_expressions_convert() {
    let spec = "featureGates: {InstanceIdNodeName: true, FastImagePull: true}\nkubelet: {maxPodsExpression: max_pods - 1}";
    let config = load_partial(&[document(Kind::Eks, spec)]).unwrap().config;
    assert_eq!(config.node.name, NameRule::InstanceId);
    assert!(config.fast_image_pull);
    let text = "max_pods - 1".to_owned();
    assert_eq!(config.kubelet.max_pods.mode, MaxPodsMode::Expression { text, lenient: true });
}

#[test]
fn a_broken_part_hides_neither_its_neighbours_nor_invents_gaps() {
    let part = |text: &str| format!("--B\nContent-Type: application/node.eks.aws\n\n{text}\n");
    let message = format!(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n{}{}--B--\n",
        part("apiVersion: [\n"),
        part(&document(Kind::Eks, "cluster: {cidr: bad}")),
    );
    let findings = load(&[user_data(&message)], Options::default()).unwrap_err();
    let found = codes(&findings);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("TN032") && found[1] == "TN03016", "{found:?}");
    let parts: Vec<_> = findings
        .iter()
        .map(|one| one.problem.place.as_ref().and_then(|place| place.part))
        .collect();
    assert_eq!(parts, [Some(1), Some(2)]);
}
