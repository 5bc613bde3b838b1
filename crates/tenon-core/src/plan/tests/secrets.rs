//! What a plan shows, and what its hashes depend on.

use super::*;
use crate::config::{Flag, Hook, HookRun, HookWork, OnFailure, Proxy};
use crate::secret::Secret;

const CANARY: &str = "canary-7f3a91c2";

fn with_secret(secret: &str) -> Plan {
    let mut config = fixture::config();
    let variable = [("API".to_owned(), Secret::new(secret))];
    config.instance.environment.insert("default".into(), variable.clone().into());
    config.instance.environment.insert("my-agent".into(), variable.into());
    config.instance.proxy = Some(Proxy {
        http: Some(Secret::new(format!("http://u:{secret}@p:1"))),
        ..Proxy::default()
    });
    config.kubelet.flags = vec![Flag { text: format!("--some-token={secret}"), verbatim: false }];
    config.kubelet.config.insert("x".into(), serde_json::json!({"password": secret}));
    config.containerd.config = format!("version = 3\n[plugins.x]\nauth_token = '{secret}'\n");
    config.hooks.post_config = vec![Hook {
        name: "tune".into(),
        work: HookWork::Script(Secret::new(secret)),
        timeout: std::time::Duration::from_secs(60),
        on_failure: OnFailure::Warn,
        run: HookRun::EveryBoot,
    }];
    built(&config, &fixture::facts())
}

#[test]
fn fault_67_no_secret_is_shown() {
    let plan = with_secret(CANARY);
    for step in &plan.steps {
        let shown = step.to_json(false).to_string();
        assert!(!shown.contains(CANARY), "{shown}");
    }
    let all: String = plan.steps.iter().map(|step| step.to_json(true).to_string()).collect();
    assert_eq!(all.matches(CANARY).count(), 8, "every destination holds it");
    for finding in &plan.findings {
        assert!(!finding.problem.render("warning").contains(CANARY));
    }
    assert!(!format!("{:?}", plan.reasons).contains(CANARY));
    let bytes: Vec<String> = CANARY.bytes().map(|byte| byte.to_string()).collect();
    let debug = format!("{plan:?}");
    assert!(!debug.contains(CANARY) && !debug.contains(&bytes.join(", ")));
}

#[test]
fn the_public_hash_does_not_tell_secrets_apart() {
    let (one, other) = (with_secret("aaaa"), with_secret("longer"));
    assert_eq!(hash_public(&one), hash_public(&other));
    assert_ne!(hash_full(&one), hash_full(&other));
}

#[test]
fn equal_input_gives_equal_hashes_and_other_input_others() {
    let plan = || built(&fixture::config(), &fixture::facts());
    assert_eq!(hash_full(&plan()), hash_full(&plan()));
    let mut facts = fixture::facts();
    facts.instance.id = "i-0fff12345678def90".into();
    assert_ne!(hash_public(&built(&fixture::config(), &facts)), hash_public(&plan()));
}

#[test]
fn the_hash_is_that_of_the_state_not_of_the_way_there() {
    let plain = built(&fixture::config(), &fixture::facts());
    let mut facts = fixture::facts();
    facts.last_run = Some(crate::facts::LastRun {
        instance_id: facts.instance.id.clone(),
        files: [("/etc/systemd/system/old.mount".to_owned(), String::new())].into(),
        ..Default::default()
    });
    let clearing = built(&fixture::config(), &facts);
    assert_ne!(clearing.steps, plain.steps, "one file more to remove");
    assert_eq!(hash_full(&clearing), hash_full(&plain));
}
