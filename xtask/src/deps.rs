//! `cargo xtask deps`: what Tenon links, held to the rules.
//!
//! Reads `cargo metadata` alone, so that it runs wherever Rust does. `cargo deny` knows more
//! (advisories) and needs more.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::checkout;

/// Licences that may be linked into the binary.
const LICENCES: &[&str] = &[
    "Apache-2.0",
    "MIT",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "0BSD",
    "BSL-1.0",
    "Unlicense",
    "CDLA-Permissive-2.0",
    "Apache-2.0 WITH LLVM-exception",
];

/// Crates that must never be linked, with the reason.
const BANNED: &[(&str, &str)] = &[
    ("openssl-sys", "no C library at run time"),
    ("libsystemd-sys", "no C library at run time"),
    ("reqwest", "ureq is what we link"),
    ("serde_yaml", "archived"),
    ("aws-sdk-ec2", "one crate of a million lines for three calls"),
];

/// Crates that would bring I/O, clocks, randomness or threads into the core.
const IMPURE: &[&str] =
    &["tokio", "rustix", "ureq", "zbus", "signal-hook", "tempfile", "getrandom", "tracing", "mio"];

/// Largest trees allowed, in packages. Raise a number in the commit that needs it.
const BUDGET: &[(&str, usize)] = &[("tenon-core", 60), ("tenon", 190)];

#[derive(clap::Args)]
pub struct Args {
    /// List every package of the binary
    #[arg(long)]
    list: bool,
    /// Write the list of crates that bills of materials tell
    #[arg(long)]
    write: bool,
}

/// What the binary is linked from, as `tenon image manifest` tells it.
const CRATES: &str = "crates/tenon/src/cli/image/crates.tsv";

pub fn run(args: &Args) -> anyhow::Result<()> {
    let metadata = metadata()?;
    let graph = Graph::read(&metadata)?;
    let mut faults = Vec::new();
    for (name, budget) in BUDGET {
        let tree = graph.tree(name)?;
        println!("{name}: {} packages (budget {budget})", tree.len());
        if tree.len() > *budget {
            faults.push(format!("{name} links {} packages, budget {budget}", tree.len()));
        }
    }
    let core = graph.tree("tenon-core")?;
    let impure = core.iter().filter(|id| IMPURE.contains(&graph.name(id)));
    faults.extend(impure.map(|id| format!("tenon-core links {}", graph.name(id))));
    for id in &graph.tree("tenon")? {
        let package = &graph.packages[id];
        if args.list {
            println!("  {} {} ({})", package.name, package.version, package.licence);
        }
        if let Some((_, why)) = BANNED.iter().find(|(name, _)| *name == package.name) {
            faults.push(format!("{} is banned: {why}", package.name));
        }
        if !licence_allowed(&package.licence) {
            faults.push(format!(
                "{}: licence `{}` is not on the list",
                package.name, package.licence
            ));
        }
    }
    let (path, crates) = (checkout().join(CRATES), crates(&graph)?);
    if args.write {
        std::fs::write(&path, &crates)?;
    }
    if std::fs::read_to_string(&path).unwrap_or_default() != crates {
        faults.push(format!("{CRATES} is not what is linked; `cargo xtask deps --write`"));
    }
    if !faults.is_empty() {
        bail!("dependency rules broken:\n  {}", faults.join("\n  "));
    }
    println!("dependency rules hold");
    Ok(())
}

/// Name, version, licence and sha256 of everything that the binary is linked from, but itself.
fn crates(graph: &Graph) -> anyhow::Result<String> {
    let lock = std::fs::read_to_string(checkout().join("Cargo.lock"))?;
    let sum = |package: &Package| {
        let head = format!("name = \"{}\"\nversion = \"{}\"\n", package.name, package.version);
        let own = lock.split("\n\n").find(|one| one.contains(&head)).unwrap_or_default();
        let line = own.lines().find_map(|line| line.strip_prefix("checksum = "));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let tree = graph.tree("tenon")?;
    let linked = tree.iter().map(|id| &graph.packages[id]).filter(|one| one.name != "tenon");
    let mut lines: Vec<String> = linked
        .map(|one| format!("{}\t{}\t{}\t{}\n", one.name, one.version, one.licence, sum(one)))
        .collect();
    lines.sort();
    Ok(lines.concat())
}

/// An expression is allowed if every `AND` part has an allowed `OR` choice.
fn licence_allowed(expression: &str) -> bool {
    let expression = expression.replace(['(', ')'], "").replace('/', " OR ");
    expression
        .split(" AND ")
        .all(|part| part.split(" OR ").any(|one| LICENCES.contains(&one.trim())))
}

struct Package {
    name: String,
    version: String,
    licence: String,
}

struct Graph {
    packages: BTreeMap<String, Package>,
    edges: BTreeMap<String, Vec<String>>,
}

impl Graph {
    fn read(metadata: &Value) -> anyhow::Result<Self> {
        let mut packages = BTreeMap::new();
        for package in list(metadata, "packages")? {
            packages.insert(
                text(package, "id")?,
                Package {
                    name: text(package, "name")?,
                    version: text(package, "version")?,
                    licence: package["license"].as_str().unwrap_or("none").to_owned(),
                },
            );
        }
        let mut edges = BTreeMap::new();
        for node in list(&metadata["resolve"], "nodes")? {
            edges.insert(text(node, "id")?, normal_dependencies(node)?);
        }
        Ok(Graph { packages, edges })
    }

    fn name(&self, id: &str) -> &str {
        &self.packages[id].name
    }

    /// Everything that a package links, itself included.
    fn tree(&self, name: &str) -> anyhow::Result<BTreeSet<String>> {
        let start = self.packages.iter().find(|(_, package)| package.name == name);
        let (start, _) = start.with_context(|| format!("package {name}"))?;
        let mut seen = BTreeSet::new();
        let mut open = vec![start.clone()];
        while let Some(id) = open.pop() {
            if seen.insert(id.clone()) {
                open.extend(self.edges.get(&id).into_iter().flatten().cloned());
            }
        }
        Ok(seen)
    }
}

/// Dependencies that end up in the binary: neither build nor dev ones.
fn normal_dependencies(node: &Value) -> anyhow::Result<Vec<String>> {
    let mut ids = Vec::new();
    for dependency in list(node, "deps")? {
        let kinds = list(dependency, "dep_kinds")?;
        if kinds.iter().any(|kind| kind["kind"].is_null()) {
            ids.push(text(dependency, "pkg")?);
        }
    }
    Ok(ids)
}

fn metadata() -> anyhow::Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .output()
        .context("running cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn list<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("`{key}` in cargo metadata"))
}

fn text(value: &Value, key: &str) -> anyhow::Result<String> {
    Ok(value[key].as_str().with_context(|| format!("`{key}` in cargo metadata"))?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_crates_is_what_is_linked() {
        let found = crates(&Graph::read(&metadata().unwrap()).unwrap()).unwrap();
        assert!(found.lines().count() > 100);
        let kept = std::fs::read_to_string(checkout().join(CRATES)).unwrap();
        assert!(kept == found, "`cargo xtask deps --write` writes it");
    }

    #[test]
    fn licence_expressions() {
        for (expression, allowed) in [
            ("MIT OR Apache-2.0", true),
            ("MIT/Apache-2.0", true),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
            ("GPL-3.0", false),
            ("MIT AND GPL-3.0", false),
            ("none", false),
        ] {
            assert_eq!(licence_allowed(expression), allowed, "{expression}");
        }
    }
}
