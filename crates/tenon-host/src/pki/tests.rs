//! The PKI on a temporary root, held against openssl where the machine has it.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use tenon_core::kubeconfig;
use tenon_core::pki::table::{BOOTSTRAP_API_SERVER, KUBECONFIGS};
use tenon_core::pki::{Certificate, DAY_SECONDS, Identity, San};

use super::*;

/// 2026-11-15, and some.
const NOW: u64 = 1_794_700_000;

struct Desk {
    dir: tempfile::TempDir,
    root: Root,
    identity: Identity,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let identity = Identity {
            node_name: "cp-1".into(),
            advertise: "10.0.0.4".parse().unwrap(),
            endpoint: "api.example.com:6443".into(),
            service_cidrs: vec!["10.96.0.0/12".parse().unwrap()],
            domain: "cluster.local".into(),
            extra_sans: vec![San::parse("fd00::7").unwrap()],
            etcd_sans: Vec::new(),
            external_etcd: false,
        };
        Desk { dir, root, identity }
    }

    fn made() -> Self {
        let desk = Desk::new();
        desk.init(NOW).unwrap();
        desk.at(NOW).kubeconfigs(&desk.identity, true, &[], &External::default()).unwrap();
        desk
    }

    fn at(&self, now: u64) -> Pki<'_> {
        Pki::new(&self.root, Options::at(now))
    }

    fn init(&self, now: u64) -> Result<Vec<Done>, Problem> {
        self.at(now).init(&self.identity, &[], &External::default())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("etc/kubernetes").join(name)
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }

    fn certificate(&self, name: &str) -> Certificate {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        Certificate::from_pem(&text).unwrap()
    }

    /// Every file with its content and mode.
    fn tree(&self) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.dir.path().join("etc")];
        while let Some(at) = left.pop() {
            for entry in std::fs::read_dir(&at).unwrap() {
                let path = entry.unwrap().path();
                let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
                match path.is_dir() {
                    true => left.push(path),
                    false => {
                        drop(found.insert(path.clone(), (std::fs::read(&path).unwrap(), mode)))
                    }
                }
            }
        }
        found
    }

    fn check(&self, now: u64, identity: Option<&Identity>) -> Vec<String> {
        let inspection = Inspection { identity, now, warn_days: 30 };
        let found = check(&self.root, &inspection).unwrap();
        found.iter().map(|finding| finding.problem.page.slug.to_owned()).collect()
    }
}

use tenon_core::problem::Problem;

fn code(result: Result<Vec<Done>, Problem>) -> &'static str {
    result.unwrap_err().page.code
}

/// Runs openssl, which must succeed; None when the machine has none.
#[expect(clippy::print_stderr, reason = "a skip must be seen")]
fn openssl(desk: &Desk, line: &str) -> Option<String> {
    let output = Command::new("openssl")
        .args(line.split_whitespace())
        .current_dir(desk.path("pki"))
        .output();
    let Ok(output) = output else {
        eprintln!("openssl is not here: skipped");
        return None;
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "openssl {line}: {said}");
    Some(said)
}

#[test]
fn the_whole_table_is_made_with_its_modes() {
    let desk = Desk::made();
    let tree = desk.tree();
    assert_eq!(tree.len(), 2 * 10 + 2 + 5);
    for (path, (_, mode)) in &tree {
        let public = path.extension().is_some_and(|end| end == "crt" || end == "pub");
        assert_eq!(*mode, if public { 0o644 } else { 0o600 }, "{}", path.display());
    }
    assert_eq!(desk.check(NOW, Some(&desk.identity)), Vec::<String>::new());
    let serials: std::collections::BTreeSet<_> = list(&desk.root)
        .unwrap()
        .into_iter()
        .map(|shown| shown.certificate.der[..40].to_vec())
        .collect();
    assert_eq!(serials.len(), 15);
}

#[test]
fn openssl_accepts_chains_hosts_and_purposes() {
    let desk = Desk::made();
    // Certificates are dated at NOW, whatever the clock of the machine says.
    let verify = format!("verify -attime {NOW} -x509_strict");
    for row in CERTIFICATES.iter().filter(|row| !row.is_authority()) {
        let issuer = row.issuer.unwrap();
        for usage in row.usages {
            let purpose = format!("ssl{}", usage.word());
            let line = format!("{verify} -purpose {purpose} -CAfile {issuer}.crt {}.crt", row.name);
            if openssl(&desk, &line).is_none() {
                return;
            }
        }
    }
    for (file, question) in [
        ("apiserver", "-checkhost kubernetes.default.svc.cluster.local"),
        ("apiserver", "-checkhost api.example.com"),
        ("apiserver", "-checkip 10.96.0.1"),
        ("apiserver", "-checkip fd00::7"),
        ("etcd/server", "-checkhost localhost"),
        ("etcd/peer", "-checkip 10.0.0.4"),
    ] {
        let said = openssl(&desk, &format!("x509 -noout -in {file}.crt {question}")).unwrap();
        assert!(said.contains("does match"), "{file} {question}: {said}");
    }
    let ca = openssl(&desk, "x509 -noout -text -in ca.crt").unwrap();
    for words in [
        "CA:TRUE",
        "Digital Signature, Certificate Sign, CRL Sign",
        "DNS:kubernetes",
        "Subject Key Identifier",
    ] {
        assert!(ca.contains(words), "{words}: {ca}");
    }
    let leaf = openssl(&desk, "x509 -noout -text -in apiserver-kubelet-client.crt").unwrap();
    for words in ["CA:FALSE", "Authority Key Identifier", "TLS Web Client Authentication"] {
        assert!(leaf.contains(words), "{words}: {leaf}");
    }
    assert!(!leaf.contains("Server Authentication") && !leaf.contains("Key Encipherment"));
    openssl(&desk, "pkey -in sa.key -check -noout").unwrap();
}

#[test]
fn other_algorithms_and_times_are_as_asked() {
    let desk = Desk::new();
    let options =
        Options { algorithm: Algorithm::P384, ca_days: 20, leaf_days: 90, ..Options::at(NOW) };
    let pki = Pki::new(&desk.root, options);
    pki.init(&desk.identity, &[], &External::default()).unwrap();
    let (ca, leaf) = (desk.certificate("pki/ca.crt"), desk.certificate("pki/apiserver.crt"));
    assert_eq!((ca.not_before, ca.not_after), (NOW - 300, NOW + 20 * DAY_SECONDS));
    assert_eq!(leaf.not_after, ca.not_after, "a leaf does not outlive its CA");
    assert_eq!(ca.public_key.len(), 120, "a point of P-384");
    let days = |it: &Certificate| (it.not_after - NOW) / DAY_SECONDS;
    let usual = Desk::made();
    assert_eq!(days(&usual.certificate("pki/ca.crt")), 3650);
    assert_eq!(days(&usual.certificate("pki/apiserver.crt")), 365);
}

#[test]
fn a_second_run_changes_nothing() {
    let desk = Desk::made();
    let before = desk.tree();
    let done = desk.init(NOW + DAY_SECONDS).unwrap();
    assert!(done.iter().all(|done| done.action == Action::Kept));
    let again = desk.at(NOW).kubeconfigs(&desk.identity, true, &[], &External::default()).unwrap();
    assert!(again.iter().all(|done| done.action == Action::Kept));
    assert_eq!(desk.tree(), before);
}

#[test]
fn a_key_without_its_certificate_is_completed() {
    let desk = Desk::made();
    let key = desk.certificate("pki/apiserver.crt").public_key;
    desk.remove("pki/apiserver.crt");
    let done = desk.init(NOW).unwrap();
    let apiserver = done.iter().find(|done| done.name == "apiserver").unwrap();
    assert_eq!(apiserver.action, Action::Signed);
    assert_eq!(desk.certificate("pki/apiserver.crt").public_key, key);
    desk.remove("pki/sa.pub");
    desk.init(NOW).unwrap();
    assert_eq!(desk.check(NOW, Some(&desk.identity)), Vec::<String>::new());
}

#[test]
fn what_is_there_and_wrong_is_refused_and_kept() {
    type Break = fn(&Desk);
    let rows: [(&str, Break); 7] = [
        ("TN12600", |desk| desk.remove("pki/apiserver.key")),
        ("TN12600", |desk| desk.remove("pki/sa.key")),
        ("TN12601", |desk| std::fs::write(desk.path("pki/apiserver.crt"), "hello").unwrap()),
        ("TN12601", |desk| std::fs::write(desk.path("pki/ca.key"), "hello").unwrap()),
        ("TN12602", |desk| {
            std::fs::copy(desk.path("pki/etcd/peer.key"), desk.path("pki/apiserver.key")).unwrap();
        }),
        ("TN12602", |desk| {
            std::fs::copy(desk.path("pki/etcd/ca.crt"), desk.path("pki/ca.crt")).unwrap();
        }),
        ("TN12602", |desk| {
            let other = Desk::made();
            std::fs::copy(other.path("pki/sa.pub"), desk.path("pki/sa.pub")).unwrap();
        }),
    ];
    for (expected, break_it) in rows {
        let desk = Desk::made();
        break_it(&desk);
        let before = desk.tree();
        assert_eq!(code(desk.init(NOW)), expected);
        assert_eq!(desk.tree(), before);
    }
    let mut desk = Desk::made();
    desk.identity.advertise = "10.0.0.9".parse().unwrap();
    let problem = desk.init(NOW).unwrap_err();
    assert_eq!(problem.page.code, "TN12602");
    assert_eq!(problem.causes, ["apiserver does not name 10.0.0.9"]);
}

#[test]
fn an_expired_authority_stops_everything() {
    let desk = Desk::made();
    let late = NOW + 3651 * DAY_SECONDS;
    assert_eq!(code(desk.init(late)), "TN12603");
    let renewal = Renewal { due: Due::All, new_key: false, identity: None };
    assert_eq!(code(desk.at(late).renew(&renewal)), "TN12603");
    assert_eq!(code(desk.init(NOW - DAY_SECONDS)), "TN12604");
    let leaf_late = NOW + 400 * DAY_SECONDS;
    assert_eq!(code(desk.init(leaf_late)), "TN12602");
    assert_eq!(
        code(desk.at(late).kubeconfigs(&desk.identity, true, &[], &External::default())),
        "TN12602"
    );
}

#[test]
fn renewal_keeps_names_and_key_unless_told() {
    let mut desk = Desk::made();
    let before = desk.certificate("pki/apiserver.crt");
    let later = NOW + 340 * DAY_SECONDS;
    let renew = |desk: &Desk, due: Due, new_key: bool| {
        desk.at(later).renew(&Renewal { due, new_key, identity: None }).unwrap()
    };
    assert_eq!(renew(&desk, Due::Within(20), false), []);
    let done = renew(&desk, Due::Within(30), false);
    assert_eq!(done.len(), 7 + 5, "every leaf and every kubeconfig");
    let after = desk.certificate("pki/apiserver.crt");
    assert_eq!((&after.alt, &after.public_key), (&before.alt, &before.public_key));
    assert_eq!(after.not_after, later + 365 * DAY_SECONDS);
    assert_eq!(desk.check(later, Some(&desk.identity)), Vec::<String>::new());

    let only = Due::Only(vec!["apiserver".into(), "admin.conf".into()]);
    assert_eq!(renew(&desk, only.clone(), true).len(), 2);
    let renewed = desk.certificate("pki/apiserver.crt");
    assert_ne!(renewed.public_key, before.public_key);
    assert_eq!(desk.check(later, Some(&desk.identity)), Vec::<String>::new());

    desk.identity.extra_sans.push(San::parse("new.example.com").unwrap());
    assert_eq!(desk.check(later, Some(&desk.identity)), ["certificate-names-drifted"]);
    let renewal = Renewal { due: only, new_key: false, identity: Some(&desk.identity) };
    desk.at(later).renew(&renewal).unwrap();
    assert_eq!(desk.check(later, Some(&desk.identity)), Vec::<String>::new());
    for name in ["ca", "etcd/ca", "sa"] {
        let due = Due::Only(vec![name.into()]);
        let renewal = Renewal { due, new_key: false, identity: None };
        assert_eq!(code(desk.at(later).renew(&renewal)), "TN03602", "{name}");
    }
}

#[test]
fn every_kind_of_fault_is_found() {
    type Break = fn(&Desk);
    let rows: [(&str, Break); 6] = [
        ("certificate-missing", |desk| desk.remove("pki/apiserver.crt")),
        ("certificate-missing", |desk| desk.remove("pki/etcd/peer.key")),
        ("key-readable-by-others", |desk| {
            let mode = std::fs::Permissions::from_mode(0o640);
            std::fs::set_permissions(desk.path("admin.conf"), mode).unwrap();
        }),
        ("bad-pem", |desk| std::fs::write(desk.path("pki/apiserver.crt"), "x").unwrap()),
        ("certificate-key-mismatch", |desk| {
            std::fs::copy(desk.path("pki/etcd/peer.key"), desk.path("pki/apiserver.key")).unwrap();
        }),
        ("certificate-wrong-issuer", |desk| {
            let other = Desk::made();
            for end in ["crt", "key"] {
                let name = format!("pki/front-proxy-client.{end}");
                std::fs::copy(other.path(&name), desk.path(&name)).unwrap();
            }
        }),
    ];
    for (slug, break_it) in rows {
        let desk = Desk::made();
        break_it(&desk);
        assert_eq!(desk.check(NOW, Some(&desk.identity)), [slug]);
    }
    let desk = Desk::made();
    std::fs::write(desk.path("scheduler.conf"), "clusters: []\n").unwrap();
    assert_eq!(desk.check(NOW, Some(&desk.identity)), ["bad-kubeconfig"]);
    let desk = Desk::made();
    std::fs::copy(Desk::made().path("admin.conf"), desk.path("admin.conf")).unwrap();
    let found = desk.check(NOW, Some(&desk.identity));
    assert_eq!(found, ["certificate-wrong-issuer", "kubeconfig-other-ca"]);
    let desk = Desk::made();
    std::fs::copy(desk.path("pki/apiserver.crt"), desk.path("pki/apiserver-kubelet-client.crt"))
        .unwrap();
    std::fs::copy(desk.path("pki/apiserver.key"), desk.path("pki/apiserver-kubelet-client.key"))
        .unwrap();
    assert_eq!(desk.check(NOW, Some(&desk.identity)), ["certificate-wrong-content"]);
    assert_eq!(desk.check(NOW, None).last().unwrap(), "certificate-names-not-compared");
}

#[test]
fn the_clock_decides_what_expires() {
    let desk = Desk::made();
    let found = |days: u64| {
        let mut found = desk.check(NOW + days * DAY_SECONDS, Some(&desk.identity));
        found.dedup();
        found
    };
    assert_eq!(found(334), Vec::<String>::new());
    assert_eq!(found(336), ["certificate-expires-soon"]);
    assert_eq!(found(366), ["certificate-expired"]);
    assert!(found(3651).contains(&"ca-expired".to_owned()));
}

#[test]
fn a_key_kept_elsewhere_is_no_fault_while_every_leaf_is_there() {
    let desk = Desk::made();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::rename(desk.path("pki/ca.key"), elsewhere.path().join("ca.key")).unwrap();
    assert!(desk.init(NOW).unwrap().iter().all(|done| done.action == Action::Kept));
    assert_eq!(desk.check(NOW, Some(&desk.identity)), Vec::<String>::new());
    desk.remove("pki/apiserver.crt");
    assert_eq!(code(desk.init(NOW)), "TN12605");

    let requests = Some("/requests".to_owned());
    let external = External { asked: true, requests };
    let done = desk.at(NOW).init(&desk.identity, &[], &external).unwrap();
    let requested: Vec<_> = done
        .iter()
        .filter(|done| done.action == Action::Requested)
        .map(|done| done.path.as_str())
        .collect();
    assert_eq!(requested, ["/requests/apiserver.csr"]);
    let sign = |request: &str, certificate: &str| {
        let line = format!(
            "x509 -req -days 365 -copy_extensions copy -CA ca.crt -CAkey {} -in {} -out {}",
            elsewhere.path().join("ca.key").display(),
            desk.dir.path().join(request).display(),
            desk.dir.path().join(certificate).display(),
        );
        openssl(&desk, &line)
    };
    if sign("requests/apiserver.csr", "etc/kubernetes/pki/apiserver.crt").is_none() {
        return;
    }
    // openssl dates by the clock of the machine, to which the rest of this test keeps.
    let now = desk.certificate("pki/apiserver.crt").not_before + 60;
    desk.at(now).init(&desk.identity, &[], &external).unwrap();

    desk.remove("admin.conf");
    let admin = ["admin.conf".to_owned()];
    let again = || desk.at(now).kubeconfigs(&desk.identity, true, &admin, &external).unwrap();
    assert_eq!(again()[0].action, Action::Requested);
    sign("requests/admin.conf.csr", "requests/admin.conf.crt").unwrap();
    assert_eq!(again()[0].action, Action::Signed);
    assert_eq!(again()[0].action, Action::Kept);
}

#[test]
fn an_external_authority_is_never_made_here() {
    let desk = Desk::new();
    let external = External { asked: true, requests: None };
    assert_eq!(code(desk.at(NOW).init(&desk.identity, &[], &external)), "TN12605");
    assert!(!desk.path("pki/ca.key").exists());
}

#[test]
fn keys_and_names_of_other_tools_can_sign() {
    for (key, subject) in [
        ("genrsa -traditional -out ca.key 2048", "/C=DE/O=Corp/OU=Unit/CN=Root"),
        ("ecparam -genkey -name prime256v1 -noout -out ca.key", "/CN=kubernetes"),
        ("ecparam -genkey -name secp384r1 -noout -out ca.key", "/DC=corp/CN=Root"),
    ] {
        let desk = Desk::new();
        std::fs::create_dir_all(desk.path("pki")).unwrap();
        if openssl(&desk, key).is_none() {
            return;
        }
        let line = format!("req -x509 -new -key ca.key -days 3650 -subj {subject} -out ca.crt");
        openssl(&desk, &line).unwrap();
        let now = desk.certificate("pki/ca.crt").not_before;
        desk.init(now).unwrap();
        openssl(&desk, "verify -CAfile ca.crt apiserver.crt").unwrap();
        assert_eq!(desk.check(now, Some(&desk.identity)), Vec::<String>::new(), "{subject}");
    }
}

#[test]
fn service_accounts_may_have_a_key_of_another_kind() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.path("pki")).unwrap();
    let given = Some("/etc/kubernetes/pki/given.pem".to_owned());
    let pki = Pki::new(&desk.root, Options { service_account_key: given, ..Options::at(NOW) });
    let init = || pki.init(&desk.identity, &["sa".to_owned()], &External::default());
    assert_eq!(code(init()), "TN03600");
    if openssl(&desk, "genrsa -out given.pem 2048").is_none() {
        return;
    }
    init().unwrap();
    assert_eq!(init().unwrap()[0].action, Action::Kept);
    assert!(openssl(&desk, "pkey -pubin -in sa.pub -noout -text").unwrap().contains("2048 bit"));
}

#[test]
fn kubeconfigs_belong_to_their_node() {
    let desk = Desk::made();
    for entry in KUBECONFIGS {
        let text = std::fs::read_to_string(desk.path(entry.row.name)).unwrap();
        let config = kubeconfig::read(&text, "x").unwrap();
        let endpoint = entry.row.name == "admin.conf";
        let server =
            if endpoint { "https://api.example.com:6443" } else { "https://10.0.0.4:6443" };
        assert_eq!(config.server, server);
        assert_eq!(config.user, entry.row.wanted(&desk.identity).common_name);
    }
    let second = Desk::new();
    second.init(NOW).unwrap();
    second.at(NOW).kubeconfigs(&second.identity, false, &[], &External::default()).unwrap();
    assert!(second.path("admin.conf").exists());
    assert!(!second.path("super-admin.conf").exists() && !second.path("kubelet.conf").exists());
}

#[test]
fn the_bootstrap_leaf_lives_a_day_behind_a_closed_door() {
    let desk = Desk::made();
    let leaf = |now: u64| desk.at(now).bootstrap_leaf(&desk.identity).unwrap().action;
    assert_eq!(leaf(NOW), Action::Made);
    assert_eq!(leaf(NOW + 100), Action::Kept);
    let held = desk.certificate("bootstrap-secrets/apiserver.crt");
    assert_eq!(held.not_after, NOW + DAY_SECONDS);
    assert_eq!(held.alt.names, BOOTSTRAP_API_SERVER.wanted(&desk.identity).names);
    let mode = desk.path("bootstrap-secrets").metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode, 0o700);
    assert_eq!(leaf(NOW + 2 * DAY_SECONDS), Action::Signed);
}
