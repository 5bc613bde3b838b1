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
    for command in
        ["plan", "fetch", "apply", "verify", "seal", "manifest", "packer", "profiles", "diff"]
    {
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
        "1.33.7",
        "--output",
        "json",
    ]);
    assert_eq!((&plan["release"], &plan["arch"]), (&json!("bookworm"), &json!("aarch64")));
    assert_eq!(plan["kubernetes"], "1.33.7");
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
    let shipped = tenon_core::image::profile::names().count();
    assert_eq!(list["profiles"].as_array().unwrap().len(), shipped);
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
    assert_eq!(tenon(&["diff", &one, &other, "--exit-code"]).status.code(), Some(2));
    assert_eq!(tenon(&["diff", &one, &one, "--exit-code"]).status.code(), Some(0));
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_rule_and_an_exception_are_explained_too() {
    let explain = |name: &str| text(&tenon(&["plan", "--family", "debian", "--explain", name]));
    let rule = explain("rule/sysctl_net_ipv4_ip_forward");
    assert!(
        rule.contains("decided by exception\n  sysctl/net.ipv4.ip_forward keeps base"),
        "{rule}"
    );
    let exception = explain("exception/sysctl/net.ipv4.ip_forward");
    assert!(exception.contains("see rule/sysctl_net_ipv4_ip_forward"), "{exception}");
    let name = "rule/sysctl_net_ipv4_ip_forward";
    let value = answer(&["plan", "--family", "debian", "--explain", name, "--output", "json"]);
    assert_eq!(value["schema"], "tenon.image-rule/1");
}

#[test]
fn a_mistake_of_a_flag_names_the_flag() {
    for (flag, value) in [("--family", "debain"), ("--kubernetes", "abc")] {
        let output = tenon(&["plan", "--family", "debian", flag, value]);
        let told = errors(&output);
        assert_eq!(output.status.code(), Some(if flag == "--family" { 64 } else { 3 }), "{told}");
        assert!(told.contains(flag), "{told}");
    }
    let told = errors(&tenon(&["plan", "--family", "debain"]));
    assert!(told.contains("  where  --family, spec.family\n"), "{told}");
}

#[test]
fn a_profile_cannot_take_a_name_that_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cis.toml");
    fs::write(&path, "about = 'nothing'\n").unwrap();
    let output = tenon(&["plan", "--family", "debian", "--profile", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(errors(&output).contains("cannot be called `cis`"), "{output:?}");
}

/// A root that is just enough for files: what it is, and one program.
fn small_root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for directory in ["etc", "bin", "var/lib/dpkg"] {
        fs::create_dir_all(root.path().join(directory)).unwrap();
    }
    let os = "ID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n";
    fs::write(root.path().join("etc/os-release"), os).unwrap();
    fs::copy("/bin/sh", root.path().join("bin/sh")).unwrap();
    let status = "Package: agent\nStatus: install ok installed\nVersion: 1\nOrigin: Site\n";
    fs::write(root.path().join("var/lib/dpkg/status"), status).unwrap();
    root
}

const SMALL: &str = "about = 's'\n[[file]]\npath = '/etc/small'\nmode = '0644'\ncontent = \"s\\n\"\n\
    reason = 'r'\n[[sysctl]]\nkey = 'a.b'\nvalue = '1'\nreason = 'r'\n";

/// Every way that a small image can go, and its exit code.
#[test]
fn every_exit_code_of_the_table_is_met() {
    let (root, place) = (small_root(), tempfile::tempdir().unwrap());
    let at = |name: &str| place.path().join(name).display().to_string();
    let (dir, cache) = (root.path().display().to_string(), at("cache"));
    fs::write(at("small.toml"), SMALL).unwrap();
    let small = at("small.toml");
    let plan = |name: &str, more: &[&str]| {
        let output = tenon(&[&["plan", "--profile", &small, "--output", "json"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        fs::write(at(name), &output.stdout).unwrap();
        at(name)
    };
    let right = plan("plan.json", &["--family", "debian"]);
    let family = plan("family.json", &["--family", "al2023"]);
    let arm = plan("arm.json", &["--family", "debian", "--set", "spec.arch=aarch64"]);
    let sum = "0".repeat(64);
    let download = format!(
        "spec.files=[{{kind: download, path: /usr/bin/x, component: x, version: \"1\", \
         url: \"http://127.0.0.1:1/x\", sha256: {{x86_64: \"{sum}\"}}}}]"
    );
    let other = plan("download.json", &["--family", "debian", "--set", &download]);
    fs::write(at("edited.json"), fs::read_to_string(&right).unwrap().replace("0644", "0666"))
        .unwrap();
    let edited = at("edited.json");
    let (nowhere, file) = (at("nowhere"), at("small.toml"));
    for (arguments, exit) in [
        (vec!["plan", "--profile", &small, "--root", &dir], 0),
        (vec!["plan", "--profile", &small, "--root", &dir, "--exit-code"], 2),
        (vec!["plan", "--profile", &small, "--against", &dir, "--exit-code"], 2),
        (vec!["plan", "--profile", &small, "--root", &nowhere], 7),
        (vec!["plan", "--profile", &small, "--family", "al2023", "--root", &dir], 6),
        (vec!["verify", "--root", &dir], 12),
        (vec!["verify", "--root", &dir, "--plan", &right], 1),
        (vec!["verify", "--root", &dir, "--plan", &right, "--output", "junit"], 1),
        (vec!["apply", "--root", &dir, "--plan", &family], 6),
        (vec!["apply", "--root", &dir, "--plan", &arm], 6),
        (vec!["apply", "--root", &dir, "--plan", &edited], 3),
        (vec!["apply", "--root", &dir, "--plan", &nowhere], 7),
        (vec!["apply", "--root", &dir, "--plan", &file], 3),
        (vec!["apply", "--root", &dir, "--plan", &right, "--live"], 6),
        (vec!["apply", "--root", &dir, "--plan", &other, "--cache", &cache, "--offline"], 10),
        (vec!["fetch", "--root", &dir, "--plan", &other, "--cache", &cache], 10),
        (vec!["apply", "--root", &dir, "--plan", &right], 0),
        (vec!["apply", "--root", &dir, "--plan", &right], 0),
        (vec!["plan", "--profile", &small, "--root", &dir, "--exit-code"], 0),
        (vec!["verify", "--root", &dir], 0),
        (vec!["verify", "--root", &dir, "--only", "sysctl"], 0),
        (vec!["verify", "--root", &dir, "--only", "sysctll"], 3),
        (vec!["verify", "--root", &dir, "--output", "xml"], 64),
        (vec!["manifest", "--root", &dir], 0),
        (vec!["seal", "--root", &dir], 0),
        (vec!["seal", "--root", &cache], 6),
    ] {
        let output = tenon(&arguments);
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {output:?}");
        if ![0, 1, 2].contains(&exit) {
            let told = errors(&output);
            for part in [
                "error TN",
                "\n  where  ",
                "\n  why    ",
                "\n  fix    ",
                "\n  see    tenon explain TN",
            ] {
                assert!(told.contains(part), "{arguments:?}: {told}");
            }
        }
    }
}

#[test]
fn a_manifest_tells_what_the_root_can_tell() {
    let (root, place) = (small_root(), tempfile::tempdir().unwrap());
    let (profile, dir) = (place.path().join("small.toml"), root.path().display().to_string());
    fs::write(&profile, SMALL).unwrap();
    let applied = tenon(&["apply", "--root", &dir, "--profile", profile.to_str().unwrap()]);
    assert_eq!(applied.status.code(), Some(0), "{applied:?}");
    let manifest = answer(&["manifest", "--root", &dir, "--source-image", "ami-1"]);
    assert_eq!(manifest["base"]["sourceImage"], "ami-1");
    assert_eq!(manifest["base"]["snapshot"], Value::Null);
    assert_eq!(manifest["packages"][0]["origin"], "Site");
    assert_eq!(manifest["rules"]["failed"], 0);
    let left = fs::read_to_string(root.path().join("usr/lib/tenon/image/manifest.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&left).unwrap(), manifest);
    for (kind, field) in [("spdx", "packages"), ("cyclonedx", "components")] {
        let bill = answer(&["manifest", "--root", &dir, "--sbom", kind, "--print-only"]);
        assert!(bill[field].is_array(), "{kind}");
    }
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

/// From another directory than theirs, as a build system would.
#[test]
fn every_example_can_be_planned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/images");
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let output = tenon(&["plan", "--config", path.to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(0), "{}: {output:?}", path.display());
            names.push(path.file_stem().unwrap().to_string_lossy().into_owned());
        }
    }
    names.sort();
    assert_eq!(names, ["debian", "fips", "gpu", "own-profile", "standard-al2023"]);
}
