//! `tenon image` from outside, where it needs no root: plan, profiles, packer, diff.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

fn tenon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon")).arg("image").args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn answer(arguments: &[&str]) -> Value {
    let output = tenon(arguments);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn golden(case: &str) -> String {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/image");
    root.join(case).join("image.yaml").display().to_string()
}

#[test]
fn every_help_fits_80_columns_and_has_an_example() {
    for command in ["plan", "profiles", "packer", "manifest", "diff"] {
        let help = text(&tenon(&[command, "--help"]));
        assert!(help.contains("Example"), "{command}");
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
    }
}

#[test]
fn a_plan_is_printed_in_words_and_as_apply_takes_it() {
    let words = text(&tenon(&["plan", "--family", "al2023"]));
    assert!(words.starts_with("image al2023-x86_64: al2023 2023 x86_64, Kubernetes 1.34.2"));
    assert!(words.lines().all(|line| line.chars().count() <= 80));
    let plan = answer(&["plan", "--family", "al2023", "--output", "json"]);
    assert_eq!(
        (&plan["schema"], &plan["profiles"]),
        (&json!("tenon.image-plan/1"), &json!(["base", "cis"]))
    );
}

#[test]
fn flags_win_over_files() {
    let config = golden("debian-base");
    let plan = answer(&[
        "plan",
        "--config",
        &config,
        "--set",
        "spec.release=bookworm",
        "--kubernetes",
        "1.33.1",
        "--output",
        "json",
    ]);
    assert_eq!((&plan["release"], &plan["arch"]), (&json!("bookworm"), &json!("aarch64")));
    assert_eq!(plan["kubernetes"], "1.33.1");
}

#[test]
fn a_resource_is_explained_or_its_nearest_name_given() {
    let told =
        text(&tenon(&["plan", "--family", "debian", "--explain", "sysctl/net.ipv4.ip_forward"]));
    assert!(told.contains("decided by exception"), "{told}");
    let output = tenon(&["plan", "--family", "debian", "--explain", "sysctl/net.ipv4.ip_forwad"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        String::from_utf8_lossy(&output.stderr)
            .contains("did you mean `sysctl/net.ipv4.ip_forward`?")
    );
}

#[test]
fn what_cannot_be_planned_ends_with_3() {
    for arguments in [
        &["plan"][..],
        &["plan", "--family", "debian", "--profile", "ciss"],
        &["plan", "--family", "debian", "--profile", "fips"],
        &["plan", "--config", &golden("debian-no-checksum")],
        &["plan", "--family", "debian", "--set", "spec.relase=x"],
    ] {
        let output = tenon(arguments);
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {output:?}");
    }
}

#[test]
fn an_expired_exception_warns_and_with_strict_refuses() {
    let set = "spec.exceptions=[{rule: sysctl_kernel_randomize_va_space, expires: 2020-01-31, reason: the kernel of this site does it itself}]";
    let output = tenon(&["plan", "--family", "debian", "--set", set]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("warning TN03847"));
    let output = tenon(&["plan", "--family", "debian", "--strict", "--set", set]);
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_profile_of_ones_own_is_composed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    fs::write(
        &path,
        "about = 'm'\nrequires = ['base']\n[[sysctl]]\nkey = 'a.b'\nvalue = '1'\nreason = 'r'\n",
    )
    .unwrap();
    let path = path.display().to_string();
    let plan = answer(&["plan", "--family", "debian", "--profile", &path, "--output", "json"]);
    assert_eq!(plan["profiles"], json!(["base", "mine"]));
    assert!(text(&tenon(&["profiles", &path])).contains("a.b"));
}

#[test]
fn profiles_are_listed_and_cis_counts_its_rules() {
    let list = answer(&["profiles", "--output", "json"]);
    assert_eq!(list["profiles"].as_array().unwrap().len(), 10);
    let told = text(&tenon(&["profiles", "cis"]));
    assert!(told.contains("403 rules") && told.contains("259 rules"), "{told}");
}

#[test]
fn packer_answers_in_both_notations() {
    let config = golden("al2023-components");
    let template = answer(&["packer", "--config", &config, "--format", "json"]);
    assert_eq!(template["builders"][0]["type"], "amazon-ebs");
    let hcl = text(&tenon(&["packer", "--config", &config, "--format", "hcl"]));
    assert!(hcl.contains("source \"amazon-ebs\" \"node\" {"));
}

#[test]
fn two_manifests_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = |version: &str| json!({"schema": "tenon.image-manifest/1", "packages": [{"name": "runc", "version": version}]});
    let write = |name: &str, version: &str| {
        let path = folder.path().join(name);
        fs::write(&path, manifest(version).to_string()).unwrap();
        path.display().to_string()
    };
    let (one, other) = (write("a.json", "1.1"), write("b.json", "1.2"));
    assert_eq!(text(&tenon(&["diff", &one, &other])), "~ packages runc  1.1 → 1.2\n1 difference\n");
    assert_eq!(answer(&["diff", &one, &one, "--output", "json"])["changed"], false);
}

/// The table of kinds as the guide must have it.
fn kinds() -> String {
    let mut text = String::from("| Kind | Key | Fields |\n|---|---|---|\n");
    for kind in tenon_core::image::kind::KINDS {
        let field = |field: &tenon_core::image::kind::Field| match field.needed {
            true => format!("**{}**", field.name),
            false => field.name.to_owned(),
        };
        let fields: Vec<_> = kind.fields.iter().map(field).collect();
        text.push_str(&format!("| `{}` | `{}` | {} |\n", kind.name, kind.key, fields.join(", ")));
    }
    text
}

#[test]
fn the_guide_knows_every_kind_and_profile() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/images.md");
    let guide = fs::read_to_string(path).unwrap();
    let kinds = kinds();
    assert!(guide.contains(&kinds), "the table of kinds must be\n{kinds}");
    for name in tenon_core::image::profile::names() {
        assert!(guide.contains(&format!("| `{name}` |")), "{name}");
    }
    for name in tenon_core::image::component::table().keys() {
        assert!(guide.contains(&format!("`{name}`")), "{name}");
    }
}
