//! Order of the run, limits of `--daemon`, preflight.

use super::*;
use crate::config::{Fips, Hook, HookRun, HookWork, OnFailure};
use crate::facts::LastRun;

fn hook(name: &str) -> Hook {
    Hook {
        name: name.into(),
        work: HookWork::Argv(vec!["/bin/true".into()]),
        timeout: std::time::Duration::from_secs(60),
        on_failure: OnFailure::Abort,
        run: HookRun::OncePerInstance,
    }
}

/// The steps that are not files, in one word each.
fn story(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Reload { .. } => Some("reload".to_owned()),
            Action::Unit(unit) => Some(unit.name.clone()),
            Action::Program(program) => Some(program.argv[0].clone()),
            Action::Hook { hook, .. } => Some(hook.name.clone()),
            Action::File(file) if file.path == "/run/nodeadm/init" => Some("marker".to_owned()),
            _ => None,
        })
        .collect()
}

#[test]
fn the_run_has_its_order() {
    let (mut config, mut facts) = (fixture::config(), fixture::facts());
    config.hooks.pre_bootstrap = vec![hook("pre")];
    config.hooks.post_config = vec![hook("config")];
    config.hooks.post_join = vec![hook("join")];
    config.fast_image_pull = true;
    facts.machine.online_cpus = 4;
    facts.machine.pause_archive = true;
    let expected = "pre reload systemd-resolved.service config marker soci-snapshotter.service \
        containerd.service ctr kubelet.service join";
    let plan = built(&config, &facts);
    assert_eq!(story(&plan).join(" "), expected);
    let phases: Vec<Phase> = plan.steps.iter().map(|step| step.phase).collect();
    assert!(phases.is_sorted(), "the config phase comes first");
}

#[test]
fn files_come_before_what_reads_them() {
    let plan = built(&fixture::config(), &fixture::facts());
    let place = |wanted: &dyn Fn(&Action) -> bool| {
        plan.steps.iter().position(|step| wanted(&step.action)).unwrap()
    };
    let reload = place(&|action| matches!(action, Action::Reload { .. }));
    let removal = place(&|action| matches!(action, Action::Remove(_)));
    let directory = place(&|action| matches!(action, Action::Directory { .. }));
    let file = place(&|action| matches!(action, Action::File(_)));
    assert!(directory < file && file < removal && removal < reload);
}

#[test]
fn a_daemon_that_is_not_asked_for_is_left_alone() {
    let mut facts = fixture::facts();
    let old = ["/etc/kubernetes/kubelet/config.json", "/etc/containerd/config.toml"];
    facts.last_run = Some(LastRun {
        instance_id: facts.instance.id.clone(),
        files: old.map(|path| (path.to_owned(), String::new())).into(),
        ..LastRun::default()
    });
    let paths = |daemons: &[&str]| -> Vec<String> {
        let daemons = Some(daemons.iter().map(|name| (*name).to_owned()).collect());
        let options = Options { daemons, ..Options::default() };
        let plan = build(&fixture::config(), &facts, &options).unwrap();
        let named = plan.steps.into_iter().filter_map(|step| match step.action {
            Action::File(file) => Some(file.path),
            Action::Remove(removal) => Some(removal.path),
            Action::Unit(unit) => Some(unit.name),
            _ => None,
        });
        named.collect()
    };
    let touches = |paths: &[String], word: &str| paths.iter().any(|path| path.contains(word));
    let containerd = paths(&["containerd"]);
    assert!(touches(&containerd, "/etc/containerd/config.toml"));
    assert!(
        !touches(&containerd, "/etc/kubernetes/") && !touches(&containerd, "kubelet.service\n")
    );
    assert!(!containerd.contains(&"kubelet.service".to_owned()));
    let none = paths(&[""]);
    assert!(!touches(&none, "/etc/kubernetes/") && !touches(&none, "/etc/containerd/"));
    assert!(!none.iter().any(|name| name == "containerd.service" || name == "kubelet.service"));
}

#[test]
fn fault_79_104_everything_missing_is_reported_at_once() {
    let (mut config, mut facts) = (fixture::config(), fixture::facts());
    config.instance.fips = Fips::Require;
    facts.machine.credential_provider = None;
    facts.machine.swap_enabled = true;
    facts.machine.cgroup_version = 1;
    facts.machine.kubelet_version = "v1.35.0".into();
    let expected = ["fips-off", "credential-provider-missing", "swap-on", "cgroup-v1"];
    assert_eq!(refused(&config, &facts), expected);
    for finding in build(&config, &facts, &Options::default()).unwrap_err() {
        assert_eq!(finding.problem.exit(), 6);
    }
}

#[test]
fn the_user_may_accept_swap_and_cgroup_v1() {
    let (mut config, mut facts) = (fixture::config(), fixture::facts());
    facts.machine.swap_enabled = true;
    facts.machine.cgroup_version = 1;
    facts.machine.kubelet_version = "v1.35.0".into();
    config.kubelet.config.insert("failSwapOn".into(), false.into());
    config.kubelet.config.insert("failCgroupV1".into(), false.into());
    assert_eq!(slugs(&built(&config, &facts)), ["cgroup-v1"]);
}

#[test]
fn fault_72_an_unreadable_version_is_not_the_oldest() {
    let mut facts = fixture::facts();
    facts.machine.kubelet_version = "unknown".into();
    facts.machine.containerd_version = "".into();
    assert_eq!(refused(&fixture::config(), &facts), ["unreadable-version"; 2]);
}

#[test]
fn each_daemon_restarts_on_its_own_inputs() {
    use crate::config::{Mirror, Registry};
    let mut config = fixture::config();
    let mirror = Mirror {
        url: "https://m.corp".into(),
        capabilities: vec![],
        override_path: false,
        ca_file: None,
    };
    config.containerd.registries =
        vec![Registry { host: "docker.io".into(), mirrors: vec![mirror] }];
    config.kubelet.config.insert("registryPullQPS".into(), 0.into());
    let plan = built(&config, &fixture::facts());
    let inputs = |name: &str| {
        let unit = plan.steps.iter().find_map(|step| match &step.action {
            Action::Unit(unit) if unit.name == name => Some(unit.inputs.clone()),
            _ => None,
        });
        unit.unwrap()
    };
    // Every file of the plan that a daemon reads is among its inputs, itself or by its directory.
    let reads = |name: &str, path: &str| {
        let parent = format!("{}/", path.rsplit_once('/').unwrap().0);
        inputs(name).iter().any(|input| input == path || *input == parent)
    };
    for step in &plan.steps {
        if let Action::File(file) = &step.action {
            let of_containerd = file.path.starts_with("/etc/containerd/");
            let of_kubelet = file.path.contains("kube") || file.path.contains("credential");
            assert_eq!(reads("containerd.service", &file.path), of_containerd, "{}", file.path);
            assert_eq!(reads("kubelet.service", &file.path), of_kubelet, "{}", file.path);
        }
    }
}
