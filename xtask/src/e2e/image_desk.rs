//! What `tenon image` writes for other programs, before readers that are not ours: Packer's
//! templates, and bills of materials.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use tenon_core::image::config::{self, Text};
use tenon_core::image::family::FAMILIES;
use tenon_core::image::manifest::{self, Build, Found};
use tenon_core::image::packages::{Package, dpkg};
use tenon_core::image::plan::{self, ImagePlan};
use tenon_core::image::{packer, sbom};

use super::Lab;
use crate::checkout;
use crate::lab::{ROOT, must};

const PYTHON: [&str; 4] = [
    "python-hcl2>=8,<9",
    "spdx-tools",
    "cyclonedx-python-lib[json-validation]",
    "packageurl-python",
];
/// Packages of Amazon Linux, which this host cannot install: with and without an epoch.
const RPMS: &[(&str, &str, &str)] = &[
    ("bash", "0:5.2.15-1.amzn2023.0.2", "x86_64"),
    ("openssl-libs", "1:3.2.2-1.amzn2023.0.1", "x86_64"),
    ("libstdc++", "0:14.2.1-7.amzn2023.0.1", "x86_64"),
    ("tzdata", "0:2025b-1.amzn2023.0.1", "noarch"),
];

pub fn run(lab: &Lab) -> anyhow::Result<usize> {
    let python = install(lab)?;
    let place = tempfile::tempdir()?;
    let mut cases = 0;
    for family in FAMILIES {
        for architecture in ["x86_64", "aarch64"] {
            cases += templates(place.path(), family.name, architecture)?;
        }
        cases += bills(lab, place.path(), family.name)?;
    }
    cases += real_root(lab, place.path())?;
    let judge = checkout().join("e2e/image-desk/judge.py");
    let output = Command::new(python).arg(judge).arg(place.path()).output()?;
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{told}");
    Ok(cases)
}

/// A Python environment with the readers, kept in the cache.
fn install(lab: &Lab) -> anyhow::Result<PathBuf> {
    let home = lab.cache.join("image-desk");
    let (python, done) = (home.join("bin/python"), home.join("done"));
    if !done.exists() {
        println!("installing {}", PYTHON.join(", "));
        must(Command::new("python3").args(["-m", "venv"]).arg(&home))?;
        must(Command::new(&python).args(["-m", "pip", "install", "-q"]).args(PYTHON))?;
        fs::write(done, "")?;
    }
    Ok(python)
}

/// A config with something of everything: components, a cached image, words that need escaping.
fn planned(family: &str, architecture: &str) -> anyhow::Result<(ImagePlan, config::Packer)> {
    let sum = "a".repeat(64);
    let text = format!(
        "apiVersion: tenon.dev/v1alpha1\nkind: NodeImage\nmetadata: {{name: {family}-desk}}\nspec:\n  \
         family: {family}\n  arch: {architecture}\n  components:\n    \
         kubelet: {{version: \"1.34.2\", source: upstream, sha256: {{{architecture}: \"{sum}\"}}}}\n  \
         cachedImages:\n  - {{name: pause, ref: registry.k8s.io/pause, digest: \"sha256:{sum}\", pin: true}}\n  \
         files:\n  - {{kind: download, path: /opt/agent, component: agent, version: \"1.0+site\", \
         url: \"https://example.com/agent?arch=x%20y\", licence: Site licence, sha256: {{{architecture}: \"{sum}\"}}}}\n  \
         packer: {{rootVolumeGiB: 30, volumeType: io2, encrypt: false}}\n"
    );
    let told = |problems: Vec<tenon_core::problem::Problem>| {
        let lines: String = problems.iter().map(|problem| problem.render("error")).collect();
        anyhow::anyhow!("{family}: {lines}")
    };
    let config = config::read(&[Text { name: "image.yaml".into(), text }], &[]).map_err(told)?;
    let wanted = config.wanted(None, Vec::new()).map_err(told)?;
    Ok((plan::resolve(&wanted).map_err(told)?, config.packer))
}

fn templates(place: &Path, family: &str, architecture: &str) -> anyhow::Result<usize> {
    let (plan, packer) = planned(family, architecture)?;
    let case = format!("{family}-{architecture}");
    fs::write(place.join(format!("{case}.pkr.hcl")), packer::hcl(&plan, &packer))?;
    let legacy = packer::json(&plan, &packer).to_string();
    fs::write(place.join(format!("{case}.packer.json")), legacy)?;
    Ok(1)
}

/// Bills of a family, with the packages of the lab's root or those of Amazon Linux.
fn bills(lab: &Lab, place: &Path, family: &str) -> anyhow::Result<usize> {
    let (plan, _) = planned(family, "x86_64")?;
    let packages = match family {
        "al2023" => rpms(),
        _ => dpkg(&fs::read_to_string(lab_root(lab)?.join("var/lib/dpkg/status"))?),
    };
    let origins = packages.keys().map(|name| (name.clone(), "Some Vendor/stable".to_owned()));
    let found = Found {
        origins: origins.collect(),
        packages,
        tenon_sha256: Some("b".repeat(64)),
        ..Found::default()
    };
    let build = Build { version: "0.1.0", epoch: 1_700_000_000, ..Build::default() };
    let manifest = manifest::render(&plan, &found, &build);
    let crates = fs::read_to_string(checkout().join("crates/tenon/src/cli/image/crates.tsv"))?;
    let spdx = sbom::spdx(&manifest, &crates);
    let parts = spdx["packages"].as_array().map_or(0, Vec::len);
    ensure!(parts > 150, "{family}: a bill of {parts} parts");
    fs::write(place.join(format!("{family}.spdx.json")), spdx.to_string())?;
    let cyclonedx = sbom::cyclonedx(&manifest, &crates).to_string();
    fs::write(place.join(format!("{family}.cdx.json")), cyclonedx)?;
    Ok(2)
}

fn rpms() -> BTreeMap<String, Package> {
    let package = |(name, version, architecture): &(&str, &str, &str)| {
        let (version, architecture) = ((*version).to_owned(), (*architecture).to_owned());
        ((*name).to_owned(), Package { version, architecture, ..Package::default() })
    };
    RPMS.iter().map(package).collect()
}

fn lab_root(lab: &Lab) -> anyhow::Result<PathBuf> {
    Ok(ROOT.ready(&lab.cache)?.join("root"))
}

/// Both bills of a real root, as the command prints them; the same bytes twice.
fn real_root(lab: &Lab, place: &Path) -> anyhow::Result<usize> {
    let root = lab_root(lab)?;
    let (plan, _) = planned("debian", "x86_64")?;
    let file = place.join("plan.json");
    fs::write(&file, plan.to_json().to_string())?;
    for (kind, end) in [("spdx", "spdx.json"), ("cyclonedx", "cdx.json")] {
        let ask = || -> anyhow::Result<Vec<u8>> {
            let mut command = Command::new(&lab.tenon);
            command.env("SOURCE_DATE_EPOCH", "1700000000").args([
                "image",
                "manifest",
                "--print-only",
            ]);
            command.args(["--sbom", kind, "--source-image", "ami-0123456789abcdef0"]);
            command.arg("--root").arg(&root).arg("--plan").arg(&file);
            let output = command.output().context("starting tenon image manifest")?;
            if !output.status.success() {
                bail!("{kind}: {}", String::from_utf8_lossy(&output.stderr));
            }
            Ok(output.stdout)
        };
        let bill = ask()?;
        ensure!(bill == ask()?, "{kind}: a second bill of the same root differs");
        let parts: Value = serde_json::from_slice(&bill)?;
        let count =
            ["packages", "components"].map(|list| parts[list].as_array().map_or(0, Vec::len));
        ensure!(count.iter().sum::<usize>() > 100, "{kind}: only {count:?} parts");
        fs::write(place.join(format!("real.{end}")), bill)?;
    }
    Ok(4)
}
