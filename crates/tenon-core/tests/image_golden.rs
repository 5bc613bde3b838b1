//! Goldens of images: for each folder of `golden/image/`, what its config comes to.
//!
//! ```text
//! golden/image/CASE/image.yaml    what the user wrote
//! golden/image/CASE/plan.txt      the plan in words, then every item with its exact bytes; or
//!                                 why there is no plan
//! golden/image/CASE/packer.json   both templates, where the config speaks of Packer
//! golden/image/CASE/packer.pkr.hcl
//! ```
//!
//! `cargo xtask bless` writes them anew. The difference is read line by line.

#![expect(clippy::disallowed_methods, reason = "the harness reads and writes the golden tree")]
#![expect(clippy::unwrap_used, reason = "a harness that cannot read its cases has nothing to say")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tenon_core::image::config::{self, ImageConfig, Text};
use tenon_core::image::plan::{self, ImagePlan};
use tenon_core::image::{describe, packer};
use tenon_core::problem::Problem;

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/image");
    let mut cases: Vec<_> = fs::read_dir(root).unwrap().map(|case| case.unwrap().path()).collect();
    cases.sort();
    cases
}

fn resolved(case: &Path) -> Result<(ImagePlan, ImageConfig), Vec<Problem>> {
    let text = fs::read_to_string(case.join("image.yaml")).unwrap();
    let config = config::read(&[Text { name: "image.yaml".into(), text }], &[])?;
    let wanted = config.wanted(None, Vec::new())?;
    Ok((plan::resolve(&wanted)?, config))
}

/// Everything that the case comes to, by the name of the file.
fn tree(case: &Path) -> BTreeMap<&'static str, String> {
    match resolved(case) {
        Err(problems) => {
            let told: String = problems.iter().map(|problem| problem.render("error")).collect();
            [("plan.txt", told)].into()
        }
        Ok((plan, config)) => {
            let mut tree = BTreeMap::from([("plan.txt", planned(&plan))]);
            if config.packer != config::Packer::default() {
                tree.insert("packer.json", format!("{:#}\n", packer::json(&plan, &config.packer)));
                tree.insert("packer.pkr.hcl", packer::hcl(&plan, &config.packer));
            }
            tree
        }
    }
}

fn planned(plan: &ImagePlan) -> String {
    let mut text = describe::plan(plan) + "\nitems\n";
    for item in &plan.items {
        let (act, key) = item.act.name();
        text.push_str(&format!("{act} {key}\n"));
        let value = item.act.to_json();
        for (name, value) in value["with"].as_object().unwrap() {
            match value {
                Value::Null => {}
                Value::String(lines) if lines.contains('\n') => {
                    lines
                        .trim_end()
                        .lines()
                        .for_each(|line| text.push_str(&format!("  | {line}\n")));
                }
                value => text.push_str(&format!("  {name} {value}\n")),
            }
        }
    }
    text
}

#[test]
fn every_case_gives_its_files() {
    let bless = std::env::var("TENON_BLESS").is_ok();
    let mut differing = Vec::new();
    for case in cases() {
        for (name, found) in tree(&case) {
            let path = case.join(name);
            if bless {
                fs::write(&path, &found).unwrap();
            } else if fs::read_to_string(&path).unwrap_or_default() != found {
                differing.push(path.display().to_string());
            }
        }
    }
    assert!(differing.is_empty(), "{}\n(`cargo xtask bless` accepts)", differing.join("\n"));
}

#[test]
fn a_plan_is_read_back_as_apply_does() {
    for case in cases() {
        if let Ok((plan, _)) = resolved(&case) {
            let text = plan.to_json().to_string();
            let back = ImagePlan::from_json(&serde_json::from_str(&text).unwrap()).unwrap();
            assert_eq!(back.hash(), plan.hash(), "{}", case.display());
        }
    }
}

#[test]
fn commands_are_few() {
    let names = tenon_core::image::profile::names();
    let count = |name: &str| {
        let profile = tenon_core::image::profile::shipped(name).unwrap();
        profile.wishes.iter().filter(|(wish, _)| wish.kind.name == "command").count()
    };
    let count: usize = names.map(count).sum();
    assert!(count <= 10, "{count} commands in shipped profiles");
}
