//! Where hardening and Kubernetes want different things: each case names what hardening asks, how
//! that is found out when nobody answers it, and what the shipped profiles answer.

#![expect(clippy::unwrap_used, reason = "a case that cannot be read has nothing to say")]

use tenon_core::image::family;
use tenon_core::image::plan::{self, ImagePlan, Wanted};
use tenon_core::image::profile::{self, Profile};
use tenon_core::problem::Problem;

fn wanted(family_name: &str, profiles: &[&str], own: Vec<Profile>) -> Wanted {
    let family = family::find(family_name).unwrap();
    Wanted {
        name: "test".into(),
        family,
        release: family.release.into(),
        architecture: "x86_64".into(),
        kubernetes: "1.34.2".into(),
        profiles: profiles.iter().map(|name| (*name).to_owned()).collect(),
        own_profiles: own,
        wishes: Vec::new(),
        exceptions: Vec::new(),
    }
}

/// The plan of a node on which somebody also wants this.
fn hardened(text: &str) -> Result<ImagePlan, Vec<Problem>> {
    let own = Profile::read("hard", &format!("about = 'h'\n{text}")).unwrap();
    plan::resolve(&wanted("debian", &["base", "hard"], vec![own]))
}

fn shipped(family: &str, profiles: &[&str]) -> ImagePlan {
    let plan = plan::resolve(&wanted(family, profiles, Vec::new()));
    plan.unwrap_or_else(|problems| panic!("{profiles:?}: {problems:#?}"))
}

/// A text field of a resource, or of its drop-in.
fn field(plan: &ImagePlan, resource: &str, field: &str) -> String {
    let one = plan.resource(resource).unwrap_or_else(|| panic!("no {resource}"));
    let list = one.texts(field).join(",");
    one.text(field).map_or(list, str::to_owned)
}

fn sysctl(key: &str, value: &str) -> String {
    format!("[[sysctl]]\nkey = '{key}'\nvalue = '{value}'\nreason = 'r'\n")
}

fn mount(path: &str) -> String {
    format!(
        "[[mount]]\npath = '{path}'\nsource = 's'\ntype = 'ext4'\noptions = ['noexec']\nreason = 'r'\n"
    )
}

fn named(kind: &str, pairs: &[(&str, &str)]) -> String {
    let lines: String =
        pairs.iter().map(|(name, value)| format!("{name} = '''{value}'''\n")).collect();
    format!("[[{kind}]]\n{lines}reason = 'r'\n")
}

fn module(name: &str) -> String {
    named("module", &[("name", name), ("state", "denied")])
}

fn enabled(unit: &str) -> String {
    let unit = named("unit", &[("name", unit), ("state", "enabled")]);
    format!("{unit}wanted-by = ['multi-user.target']\n")
}

fn file(path: &str, content: &str) -> String {
    named("file", &[("path", path), ("mode", "0644"), ("content", content)])
}

/// `Err`: words of the refusal. `Ok`: it is compatible.
type Found = Result<(), &'static str>;

fn must(row: &str, hardening: &str, found: Found) {
    match (hardened(hardening), found) {
        (Ok(_), Ok(())) => {}
        (Err(problems), Err(words)) => {
            let told = problems.iter().any(|problem| problem.what.contains(words));
            assert!(told, "{row}: {problems:#?}");
        }
        (Ok(_), Err(words)) => panic!("{row}: not refused ({words}): {hardening}"),
        (Err(problems), Ok(())) => panic!("{row}: {problems:#?}"),
    }
}

const TWO_WAYS: Found = Err("is wanted in two ways");

#[test]
fn forwarding_off() {
    let keys = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];
    let plan = shipped("debian", &["base", "cis"]);
    for key in keys {
        must("forwarding", &sysctl(key, "0"), TWO_WAYS);
        assert_eq!(field(&plan, &format!("sysctl/{key}"), "value"), "1");
        let answered = |one: &&str| **one == format!("sysctl/{key}");
        assert!(
            plan.exceptions.iter().filter_map(|one| one.resource.as_deref()).any(|n| answered(&n))
        );
    }
}

#[test]
fn strict_checks_of_the_way_back() {
    let plan = shipped("debian", &["base", "cis"]);
    for part in ["all", "default"] {
        let key = format!("net.ipv4.conf.{part}.rp_filter");
        must("rp_filter", &sysctl(&key, "1"), TWO_WAYS);
        assert_eq!(field(&plan, &format!("sysctl/{key}"), "value"), "2");
    }
}

#[test]
fn impossible_senders_are_told() {
    must("log_martians", &sysctl("net.ipv4.conf.all.log_martians", "1"), Ok(()));
    let plan = shipped("debian", &["base", "cis"]);
    let martians = plan.resource("sysctl/net.ipv4.conf.all.log_martians").unwrap();
    assert_eq!(martians.text("value"), Some("1"));
    assert!(martians.reasons[0].why.contains("limits the rate"));
}

#[test]
fn no_programs_below_var_and_opt() {
    for path in ["/var", "/var/lib", "/opt"] {
        must("noexec", &mount(path), Err("programs run below"));
    }
    let answer = "[[exception]]\nresource = 'mount//opt'\nreason = 'plugins are started from /usr/lib/cni here'\n";
    must("noexec", &format!("{}{answer}", mount("/opt")), Ok(()));
}

#[test]
fn no_programs_in_tmp() {
    must("noexec", &format!("{}{}", mount("/tmp"), mount("/dev/shm")), Ok(()));
    let plan = shipped("debian", &["base", "cis"]);
    assert!(field(&plan, "mount//tmp", "options").contains("noexec"));
}

#[test]
fn modules_denied() {
    for name in ["overlay", "br_netfilter", "nf_conntrack"] {
        must("modules", &module(name), TWO_WAYS);
    }
    must("modules", &module("squashfs"), Ok(()));
    let snapshotter = "[[need]]\nmodule = 'squashfs'\nreason = 'a snapshotter mounts it'\n";
    must(
        "modules",
        &format!("{}{snapshotter}", module("squashfs")),
        Err("module squashfs is loaded"),
    );
    let plan = shipped("debian", &["cis-level2"]);
    assert_eq!(field(&plan, "module/overlay", "state"), "loaded");
    assert_eq!(field(&plan, "module/squashfs", "state"), "denied");
}

#[test]
fn a_firewall_that_closes_what_it_does_not_know() {
    for unit in ["ufw.service", "firewalld.service"] {
        let enabled = enabled(unit);
        must("firewall", &enabled, Err("port tcp/10250 is reachable"));
    }
    let closed =
        "table inet a {\n\tchain i {\n\t\ttype filter hook input priority 0; policy drop;\n\t}\n}";
    must("firewall", &file("/etc/nftables.conf", closed), Err("port tcp/10250 is reachable"));
    let silent = closed.replace("input", "forward");
    must("firewall", &file("/etc/nftables.conf", &silent), Err("the hook forward"));
    let plan = shipped("debian", &["base", "cis"]);
    let rules = field(&plan, "file//etc/nftables.conf", "content");
    assert!(rules.contains("hook input priority 0; policy drop") && rules.contains("10250"));
    assert!(rules.contains("hook forward priority 0; policy accept"));
    assert!(plan.resource("mask/ufw.service").is_some());
    assert!(plan.resource("mask/firewalld.service").is_some());
}

#[test]
fn no_namespaces_of_users() {
    let key = "user.max_user_namespaces";
    must("namespaces", &sysctl(key, "0"), Err("is at least 1"));
    must("namespaces", &sysctl(key, "10000"), Ok(()));
    must("BPF", &sysctl("kernel.unprivileged_bpf_disabled", "1"), Ok(()));
}

#[test]
fn kernel_defaults_that_the_kubelet_protects() {
    let plan = shipped("debian", &["base", "cis"]);
    for (key, asked, kept) in [
        ("vm.overcommit_memory", "0", "1"),
        ("kernel.panic", "60", "10"),
        ("kernel.panic_on_oops", "0", "1"),
    ] {
        must("kernel defaults", &sysctl(key, asked), TWO_WAYS);
        assert_eq!(field(&plan, &format!("sysctl/{key}"), "value"), kept);
    }
}

#[test]
fn few_processes() {
    must("pid_max", &sysctl("kernel.pid_max", "32768"), TWO_WAYS);
    let floor = "[[sysctl]]\nkey = 'kernel.pid_max'\nfloor = 65536\nreason = 'r'\n";
    let plan = hardened(floor).unwrap();
    assert_eq!(plan.resource("sysctl/kernel.pid_max").unwrap().number("floor"), Some(4_194_304));
    let limit =
        |count: &str| named("limit", &[("item", "*/nproc"), ("soft", count), ("hard", count)]);
    must("nproc", &limit("1024"), Err("is at least 65536"));
    must("nproc", &limit("unlimited"), Ok(()));
}

#[test]
fn audit_rules_that_nobody_changes() {
    must("audit", &named("audit", &[("rule", "-e 2"), ("group", "99-x")]), Ok(()));
    let plan = shipped("debian", &["cis-level2"]);
    let rules: Vec<(String, String)> = plan
        .items
        .iter()
        .map(|item| {
            (item.act.name().1.to_string(), item.act.to_json()["with"]["content"].to_string())
        })
        .filter(|(path, _)| path.starts_with("/etc/audit/rules.d/") && path.contains("-tenon-"))
        .collect();
    let last = rules.last().unwrap();
    assert!(last.0.ends_with("99-tenon-finalize.rules") && last.1.contains("-e 2"));
    // The first rule that fits decides, so what containers do stands before everything else.
    let first = rules.iter().position(|(_, text)| text.contains("-a always")).unwrap();
    let excluded =
        rules.iter().position(|(_, text)| text.contains("dir=/var/lib/containerd")).unwrap();
    assert!(excluded < first);
}

#[test]
fn files_of_services_for_root_alone() {
    for unit in ["containerd.service", "kubelet.service"] {
        let drop_in = format!(
            "[[unit]]\nname = '{unit}'\nreason = 'r'\n[unit.drop-ins]\n'99-hard.conf' = '''\n[Service]\nUMask=0077\n'''\n"
        );
        must("umask", &drop_in, Err("pods read files that"));
    }
    let people = [("name", "UMASK"), ("file", "/etc/login.defs"), ("value", "077")];
    must("umask", &named("setting", &people), Ok(()));
    let plan = shipped("debian", &["base", "cis"]);
    assert!(field(&plan, "unit/kubelet.service", "content").contains("UMask=0022"));
    let drop_ins = plan.resource("unit/containerd.service").unwrap().table("drop-ins");
    assert!(drop_ins.iter().any(|(_, text)| text.contains("UMask=0022")));
    assert_eq!(field(&plan, "setting//etc/login.defs:UMASK", "value"), "027");
}

#[test]
fn selinux_without_the_policy_of_containers() {
    let setting = [("name", "SELINUX"), ("file", "/etc/selinux/config"), ("value", "enforcing")];
    let beside = Err("has package/container-selinux beside it");
    must("SELinux", &named("setting", &setting), beside);
    must("SELinux", &file("/etc/selinux/config", "SELINUX=enforcing\n"), beside);
    must("SELinux", &file("/etc/selinux/config", "SELINUX=permissive\n"), Ok(()));
    let plan = shipped("al2023", &["selinux"]);
    assert!(plan.resource("package/container-selinux").is_some());
    let labels = "file//etc/selinux/targeted/contexts/files/file_contexts.local";
    for path in ["/var/lib/kubelet", "/opt/cni/bin", "/var/lib/tenon"] {
        assert!(field(&plan, labels, "content").contains(path), "{path}");
    }
    let setting = "setting//etc/selinux/config:SELINUX";
    assert_eq!(field(&plan, setting, "value"), "enforcing");
    let tried = shipped("al2023", &["cis-level2", "selinux-permissive"]);
    assert_eq!(field(&tried, setting, "value"), "permissive");
}

#[test]
fn validated_cryptography_alone() {
    let policy = named("crypto-policy", &[("name", "system"), ("policy", "FIPS")]);
    must("FIPS", &policy, Err("90-tenon-fips.conf beside it"));
    let plan = shipped("al2023", &["fips"]);
    let environment = field(&plan, "file//etc/systemd/system.conf.d/90-tenon-fips.conf", "content");
    assert!(environment.contains("AWS_USE_FIPS_ENDPOINT=true"));
}

#[test]
fn files_watched_and_memory_swapped() {
    let watch = |more: &str| file("/etc/aide/aide.conf", &format!("/var/lib All\n{more}"));
    must("AIDE", &watch(""), Err("/var/lib/containerd changes all the time"));
    must("AIDE", &watch("!/var/lib/containerd\n"), Err("/var/lib/kubelet changes all the time"));
    must("AIDE", &watch("!/var/lib/containerd\n!/var/lib/kubelet\n"), Ok(()));
    let config = field(&shipped("debian", &["base", "cis"]), "file//etc/aide/aide.conf", "content");
    assert!(config.contains("!/var/lib/containerd\n"));
    let swap = [
        enabled("dev-sdb.swap"),
        named(
            "block",
            &[("path", "/etc/fstab"), ("marker", "s"), ("content", "/swap none swap sw 0 0")],
        ),
    ];
    for one in swap {
        must("swap", &one, Err("there is no swap"));
    }
}

/// Auditors read the main file alone; it says what the drop-in says, whichever profile asks.
#[test]
fn the_main_file_of_sshd_has_every_directive() {
    let plan = shipped("debian", &["cis-level2"]);
    let main = field(&plan, "file//etc/ssh/sshd_config", "content");
    for one in plan.resources.iter().filter(|one| one.kind.name == "sshd") {
        let line = format!("{} {}\n", one.key, one.text("value").unwrap());
        assert!(main.contains(&line), "{line}");
    }
    assert!(main.contains("DisableForwarding yes\n") && !main.contains("{{"));
}

/// Profiles compose in any order to the same plan; where two cannot stand beside each other, or on
/// a family, they say so and leave no other conflict.
#[test]
fn pairs_of_shipped_profiles_agree_in_any_order_or_say_why_not() {
    let names: Vec<_> = profile::names().collect();
    let read: Vec<_> = names.iter().map(|name| profile::shipped(name).unwrap()).collect();
    let outcome =
        |family: &str, pair: [&str; 2]| match plan::resolve(&wanted(family, &pair, read.clone())) {
            Ok(plan) => plan.hash(),
            Err(problems) => {
                let odd =
                    problems.iter().find(|problem| problem.page.slug != "image-profiles-clash");
                assert!(odd.is_none(), "{family} {pair:?}: {odd:#?}");
                let mut told: Vec<_> = problems.iter().map(|problem| &*problem.what).collect();
                told.sort_unstable();
                told.join("\n")
            }
        };
    for family in family::FAMILIES {
        for (at, one) in names.iter().enumerate() {
            for other in &names[at + 1..] {
                let turned = outcome(family.name, [other, one]);
                assert_eq!(outcome(family.name, [one, other]), turned, "{one} {other}");
            }
        }
    }
}
