//! The other files: kubeconfig, environment, proxy, stale ones.

use super::*;
use crate::config::{Authenticator, Proxy};
use crate::facts::{DescribedCluster, LastRun};
use crate::secret::Secret;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, Secret> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), Secret::new(*value))).collect()
}

fn with(change: impl FnOnce(&mut Config, &mut Facts)) -> Plan {
    let (mut config, mut facts) = (fixture::config(), fixture::facts());
    change(&mut config, &mut facts);
    built(&config, &facts)
}

fn removals(plan: &Plan) -> Vec<(&str, Ownership)> {
    plan.steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Remove(removal) => Some((removal.path.as_str(), removal.proof)),
            _ => None,
        })
        .collect()
}

fn put_on_outpost(config: &mut Config, authenticator: Authenticator) {
    config.cluster.enable_outpost = Some(true);
    config.cluster.outpost.authenticator = authenticator;
}

#[test]
fn fault_64_103_values_are_escaped_for_unit_files() {
    let plan = with(|config, _| {
        let values = map(&[("FOO", "say \"hi\""), ("P", "100%"), ("B", "a\\b\n\tc")]);
        config.instance.environment.insert("default".into(), values.clone());
        config.instance.environment.insert("my-agent".into(), values);
        config.instance.environment.insert("empty".into(), BTreeMap::new());
    });
    let lines = "=\"B=a\\\\b\\n\\tc\"\n";
    let manager = text(&plan, "/etc/systemd/system.conf.d/environment.conf");
    assert_eq!(
        manager,
        format!(
            "[Manager]\nDefaultEnvironment{lines}DefaultEnvironment=\"FOO=say \\\"hi\\\"\"\nDefaultEnvironment=\"P=100%%\"\n"
        )
    );
    let service = text(&plan, "/etc/systemd/system/my-agent.service.d/environment.conf");
    assert!(service.starts_with("[Service]\nEnvironment=\"B="), "{service}");
    assert!(file(&plan, "/etc/systemd/system/empty.service.d/environment.conf").is_none());
}

#[test]
fn the_proxy_has_a_file_of_its_own() {
    let plan = with(|config, facts| {
        facts.instance.vpc_cidrs = vec!["10.0.0.0/16".parse().unwrap()];
        config.instance.proxy = Some(Proxy {
            http: Some(Secret::new("http://u:p$s\"@p:3128")),
            https: None,
            no_proxy: vec![".corp".into(), "localhost".into()],
        });
    });
    let no_proxy = ".corp,localhost,127.0.0.1,::1,169.254.169.254,fd00:ec2::254,10.100.0.0/16,10.0.0.0/16,.svc,.cluster.local,.internal";
    let url = "http://u:p\\$s\\\"@p:3128";
    let expected = format!(
        "HTTP_PROXY=\"{url}\"\nNO_PROXY=\"{no_proxy}\"\nhttp_proxy=\"{url}\"\nno_proxy=\"{no_proxy}\"\n"
    );
    assert_eq!(text(&plan, "/etc/eks/proxy.env"), expected);
    for service in ["containerd", "kubelet"] {
        let drop_in = format!("/etc/systemd/system/{service}.service.d/environment.conf");
        assert_eq!(text(&plan, &drop_in), "[Service]\nEnvironmentFile=-/etc/eks/proxy.env\n");
        assert_eq!(file(&plan, &drop_in).unwrap().mode, 0o600);
    }
}

#[test]
fn an_explicit_variable_beats_the_proxy_block() {
    let plan = with(|config, _| {
        config.instance.proxy = Some(Proxy {
            http: Some(Secret::new("http://p:1")),
            https: Some(Secret::new("http://p:2")),
            no_proxy: vec![],
        });
        config.instance.environment.insert("default".into(), map(&[("http_proxy", "http://d:1")]));
        config.instance.environment.insert("kubelet".into(), map(&[("https_proxy", "http://k:1")]));
    });
    let block = text(&plan, "/etc/eks/proxy.env");
    assert!(
        !block.to_lowercase().contains("http_proxy") && block.contains("HTTPS_PROXY"),
        "{block}"
    );
    let kubelet = text(&plan, "/etc/systemd/system/kubelet.service.d/environment.conf");
    assert!(!kubelet.contains("EnvironmentFile") && !kubelet.contains("http://p:2"), "{kubelet}");
    assert!(kubelet.contains("Environment=\"https_proxy=http://k:1\"\n"), "{kubelet}");
    assert!(kubelet.contains("Environment=\"NO_PROXY=localhost,"), "{kubelet}");
    let containerd = text(&plan, "/etc/systemd/system/containerd.service.d/environment.conf");
    assert!(containerd.contains("EnvironmentFile=-/etc/eks/proxy.env\n"));
}

#[test]
fn outposts_bootstraps_and_pins_the_endpoint() {
    let plan = with(|config, facts| {
        config.cluster.id = "ID-1".into();
        put_on_outpost(config, Authenticator::Aws);
        facts.endpoint_addresses = vec!["10.0.1.6".parse().unwrap(), "10.0.1.5".parse().unwrap()];
        let old = [("/var/lib/kubelet/kubeconfig".to_owned(), String::new())];
        facts.last_run = Some(LastRun {
            instance_id: facts.instance.id.clone(),
            files: old.into(),
            ..LastRun::default()
        });
    });
    assert!(file(&plan, "/var/lib/kubelet/kubeconfig").is_none());
    assert!(removals(&plan).iter().all(|(path, _)| *path != "/var/lib/kubelet/kubeconfig"));
    assert!(text(&plan, "/var/lib/kubelet/bootstrap-kubeconfig").contains("- \"ID-1\"\n"));
    let environment = text(&plan, "/etc/eks/kubelet/environment");
    assert!(environment.contains(
        " --kubeconfig=/var/lib/kubelet/kubeconfig --bootstrap-kubeconfig=/var/lib/kubelet/bootstrap-kubeconfig "
    ));
    let host = "abc.gr7.us-west-2.eks.amazonaws.com";
    let block = plan.steps.iter().find_map(|step| match &step.action {
        Action::Block(block) => Some(block),
        _ => None,
    });
    assert_eq!(block.unwrap().lines, [format!("10.0.1.5\t{host}"), format!("10.0.1.6\t{host}")]);
}

#[test]
fn fault_105_the_block_is_kept_when_dns_is_down() {
    let plan = with(|config, _| {
        config.cluster.id = "ID-1".into();
        put_on_outpost(config, Authenticator::Aws);
    });
    assert_eq!(slugs(&plan), ["endpoint-not-pinned"]);
    assert!(!plan.steps.iter().any(|step| matches!(step.action, Action::Block(_))));
}

#[test]
fn the_token_program_follows_the_authenticator() {
    let plan = with(|config, facts| {
        config.cluster.id = "ID-1".into();
        put_on_outpost(config, Authenticator::AwsIamAuthenticator);
        facts.endpoint_addresses = vec!["10.0.1.6".parse().unwrap()];
    });
    let kubeconfig = text(&plan, "/var/lib/kubelet/bootstrap-kubeconfig");
    let expected = "command: \"aws-iam-authenticator\"\n        args:\n          - \"token\"\n          - \"-i\"\n          - \"ID-1\"\n          - \"--region\"\n          - \"us-west-2\"\n";
    assert!(kubeconfig.contains(expected), "{kubeconfig}");
}

#[test]
fn fault_66_odd_names_stay_one_yaml_string() {
    let plan = with(|config, _| config.cluster.name = "a\": [x] #$(id) `y`".into());
    let kubeconfig = text(&plan, "/var/lib/kubelet/kubeconfig");
    assert!(kubeconfig.contains("          - \"a\\\": [x] #$(id) `y`\"\n"), "{kubeconfig}");
}

#[test]
fn what_the_config_leaves_out_comes_from_the_described_cluster() {
    let (mut config, mut facts) = (fixture::config(), fixture::facts());
    config.cluster.api_server_endpoint.clear();
    config.cluster.certificate_authority.clear();
    config.cluster.cidr = None;
    assert_eq!(refused(&config, &facts), ["cluster-incomplete"; 3]);
    facts.cluster = Some(DescribedCluster {
        endpoint: "https://described.example".into(),
        certificate_authority: "Y2VydA==".into(),
        cidr: "172.20.0.0/16".parse().unwrap(),
        outpost_id: None,
    });
    let plan = built(&config, &facts);
    assert_eq!(text(&plan, "/etc/kubernetes/pki/ca.crt"), "cert");
    assert!(text(&plan, "/var/lib/kubelet/kubeconfig").contains("https://described.example"));
    assert!(text(&plan, "/etc/kubernetes/kubelet/config.json").contains("\"172.20.0.10\""));
}

#[test]
fn fault_99_files_that_are_no_longer_planned_go() {
    let run = |id: &str| {
        with(|_, facts| {
            let files = ["/etc/kubernetes/pki/ca.crt", "/etc/containerd/certs.d/old/hosts.toml"];
            facts.last_run = Some(LastRun {
                instance_id: id.into(),
                files: files.map(|path| (path.to_owned(), String::new())).into(),
                ..LastRun::default()
            });
        })
    };
    use Ownership::{Certain, EnvironmentShape};
    let expected = [
        ("/etc/containerd/certs.d/old/hosts.toml", Certain),
        ("/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf", Certain),
        ("/etc/systemd/system.conf.d/environment.conf", EnvironmentShape),
        ("/etc/systemd/system/containerd.service.d/10-soci-snapshotter.conf", Certain),
        ("/etc/systemd/system/containerd.service.d/environment.conf", EnvironmentShape),
        ("/etc/systemd/system/kubelet.service.d/environment.conf", EnvironmentShape),
        ("/etc/systemd/system/soci-snapshotter.service.d/environment.conf", EnvironmentShape),
        ("/run/systemd/resolved.conf.d/40-eks.conf", Certain),
    ];
    assert_eq!(removals(&run("i-0abc12345678def90")), expected);
    // A record that came with the image is no proof.
    assert_eq!(removals(&run("i-0other")), expected[1..]);
}

#[test]
fn removed_unit_files_are_inputs_of_the_reload() {
    let plan = built(&fixture::config(), &fixture::facts());
    let inputs = plan.steps.iter().find_map(|step| match &step.action {
        Action::Reload { inputs } => Some(inputs),
        _ => None,
    });
    let inputs = inputs.unwrap();
    assert!(inputs.contains(&"/etc/systemd/system.conf.d/environment.conf".to_owned()));
    assert!(inputs.iter().all(|path| path.starts_with("/etc/systemd/")), "{inputs:?}");
}

#[test]
fn resolver_settings_are_lines() {
    let plan = with(|config, _| {
        config.instance.nameservers = vec!["10.0.0.2".into(), "10.0.0.3".into()];
        config.instance.domains = vec!["corp.example".into()];
    });
    let expected = "[Resolve]\nDNS=10.0.0.2 10.0.0.3\nDomains=corp.example\n";
    assert_eq!(text(&plan, "/run/systemd/resolved.conf.d/40-eks.conf"), expected);
}

#[test]
fn compat_restores_the_old_modes() {
    let mut config = fixture::config();
    config.instance.environment.insert("default".into(), map(&[("A", "b")]));
    config.instance.proxy =
        Some(Proxy { http: Some(Secret::new("http://p:1")), ..Proxy::default() });
    let options = Options { file_mode_compat: true, ..Options::default() };
    let plan = build(&config, &fixture::facts(), &options).unwrap();
    for step in &plan.steps {
        if let Action::File(file) = &step.action {
            let mode = if file.path == "/etc/eks/proxy.env" { 0o600 } else { 0o644 };
            assert_eq!(file.mode, mode, "{}", file.path);
        }
    }
}

#[test]
fn an_unset_switch_follows_the_described_cluster() {
    let mut config = fixture::config();
    let mut facts = fixture::facts();
    facts.endpoint_addresses = vec!["10.0.1.6".parse().unwrap()];
    facts.cluster = Some(DescribedCluster {
        endpoint: "https://described.example".into(),
        certificate_authority: "Y2VydA==".into(),
        cidr: "172.20.0.0/16".parse().unwrap(),
        outpost_id: Some("ID-2".into()),
    });
    for (switch, local) in [(None, true), (Some(true), true), (Some(false), false)] {
        config.cluster.enable_outpost = switch;
        let plan = built(&config, &facts);
        let bootstrap = file(&plan, "/var/lib/kubelet/bootstrap-kubeconfig");
        assert_eq!(bootstrap.is_some(), local, "{switch:?}");
    }
}

#[test]
fn outposts_without_an_id_is_refused() {
    let mut config = fixture::config();
    put_on_outpost(&mut config, Authenticator::Aws);
    assert_eq!(refused(&config, &fixture::facts()), ["cluster-incomplete"]);
}
