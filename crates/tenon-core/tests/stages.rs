//! The units and the Ignition config of every role, byte for byte.
//!
//! `cargo xtask bless` writes `tests/stages/` anew. The difference is read line by line.

#![expect(clippy::disallowed_methods, reason = "the harness reads and writes the golden files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::path::Path;

use base64::Engine as _;
use serde_json::Value;
use tenon_core::stages::ignition::{self, Os, Request};
use tenon_core::stages::units::{self, Assets, Target};
use tenon_core::stages::{Role, load_as};

const CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: worker
  cluster: {name: prod, endpoint: \"https://api.prod.example:6443\", kubernetesVersion: v1.34.2}
  bootstrapToken: {token: abcdef.0123456789abcdef}
  assets: {source: push}
";

fn compare(name: &str, found: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stages").join(name);
    if std::env::var("TENON_BLESS").is_ok() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, found).unwrap();
        return None;
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    (found != expected).then(|| name.to_owned())
}

fn units_text(role: Role, systemd: u32, assets: Assets) -> String {
    let target = Target { role, systemd, binary: "/opt/bin/tenon", assets };
    let mut text = String::new();
    for unit in units::render(&target) {
        text.push_str(&format!("# {} {:?}\n{}\n", unit.name, unit.enabled, unit.body));
        for (name, body) in &unit.drop_ins {
            text.push_str(&format!("# {}.d/{name}\n{body}\n", unit.name));
        }
    }
    text
}

#[test]
fn every_role_has_its_units() {
    let mut differing = Vec::new();
    for role in [Role::FirstMaster, Role::Worker] {
        for (systemd, assets) in [(252, Assets::Push), (254, Assets::Pull)] {
            let name = format!("{}-{systemd}-{assets:?}.units", role.word()).to_lowercase();
            differing.extend(compare(&name, &units_text(role, systemd, assets)));
        }
    }
    assert!(differing.is_empty(), "{differing:?} (`cargo xtask bless` accepts)");
}

/// The config with its files readable: what stands in base64 is decoded.
fn readable(text: &str) -> String {
    let mut config: Value = serde_json::from_str(text).unwrap();
    for file in config["storage"]["files"].as_array_mut().unwrap() {
        let source = file["contents"]["source"].as_str().unwrap();
        let data = source.strip_prefix("data:;base64,").unwrap();
        let body = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
        file["contents"] = String::from_utf8(body).unwrap().into();
    }
    // The units have files of their own.
    config["systemd"]["units"].as_array_mut().unwrap().iter_mut().for_each(|unit| {
        unit.as_object_mut().unwrap().retain(|key, _| key != "contents" && key != "dropins");
    });
    format!("{config:#}\n")
}

#[test]
fn every_role_has_its_ignition_config() {
    let mut differing = Vec::new();
    for role in [Role::FirstMaster, Role::Worker] {
        for (os, word) in
            [(Os::Flatcar, "flatcar"), (Os::FedoraCoreos, "fcos"), (Os::Generic, "generic")]
        {
            let (machine, text) = load_as(CONFIG, "golden", Some(role.word())).unwrap();
            let request = Request {
                machine: &machine,
                text: &text,
                spec: "3.3.0",
                systemd: 252,
                os,
                binary: None,
                mappings: None,
                catalogue: None,
            };
            let (config, warnings) = ignition::render(&request).unwrap();
            assert!(warnings.is_empty() && config.len() < 16 << 10);
            differing.extend(compare(&format!("{}-{word}.json", role.word()), &readable(&config)));
        }
    }
    assert!(differing.is_empty(), "{differing:?} (`cargo xtask bless` accepts)");
}
