//! Goldens: for each folder of `golden/`, the tree that the node would get.
//!
//! ```text
//! golden/CASE/config.yaml    what the user wrote; or config.d/, read in the order of its names
//! golden/CASE/facts.json     what the machine is
//! golden/CASE/options.json   choices of the command line, if there are any
//! golden/CASE/expect/        every file at its path, and plan.txt with all the rest
//! ```
//!
//! `cargo xtask bless` writes `expect/` anew. The difference is read line by line.

#![expect(clippy::disallowed_methods, reason = "the harness reads and writes the golden tree")]
#![expect(clippy::unwrap_used, reason = "a harness that cannot read its cases has nothing to say")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tenon_core::config::{self, SourceRead};
use tenon_core::decode::Origin;
use tenon_core::facts::Facts;
use tenon_core::plan::step::{Action, Phase, Plan, Step};
use tenon_core::plan::{self, Options};
use tenon_core::problem::Finding;

/// Relative paths and their content.
type Tree = BTreeMap<String, Vec<u8>>;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct CaseOptions {
    file_mode_compat: bool,
    daemons: Option<Vec<String>>,
    reset_identity: bool,
    mount_bpf: bool,
}

fn golden_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden")
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(golden_root()).unwrap();
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    // Images have a harness of their own.
    cases.retain(|case| !case.ends_with("image"));
    cases.sort();
    cases
}

#[test]
fn every_case_gives_its_tree() {
    let bless = std::env::var("TENON_BLESS").is_ok();
    let mut differing = Vec::new();
    for case in cases() {
        let found = tree(&case);
        let folder = case.join("expect");
        if bless {
            write_tree(&folder, &found);
        } else if let Some(difference) = difference(&read_tree(&folder), &found) {
            differing.push(format!("{}: {difference}", case.file_name().unwrap().display()));
        }
    }
    assert!(differing.is_empty(), "{}\n(`cargo xtask bless` accepts)", differing.join("\n"));
}

#[test]
fn a_plan_is_the_same_twice() {
    for case in cases() {
        assert_eq!(tree(&case), tree(&case), "{}", case.display());
    }
}

#[test]
fn there_is_a_case_for_each_theme() {
    let names: Vec<String> =
        cases().iter().map(|case| case.file_name().unwrap().display().to_string()).collect();
    assert!(names.len() >= 42, "{} cases", names.len());
    for minor in 29..=36 {
        assert!(names.contains(&format!("kubelet-1.{minor}")), "1.{minor}");
    }
}

/// What the case comes to: the node's files and `plan.txt`.
fn tree(case: &Path) -> Tree {
    let facts: Facts = serde_json::from_slice(&fs::read(case.join("facts.json")).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", case.display()));
    let given: CaseOptions = match fs::read(case.join("options.json")) {
        Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
        Err(_) => CaseOptions::default(),
    };
    let loaded = config::load(&sources(case), config::Options::default());
    let outcome = loaded.and_then(|loaded| {
        let options = Options {
            file_mode_compat: given.file_mode_compat,
            daemons: given.daemons,
            reset_identity: given.reset_identity,
            mount_bpf: given.mount_bpf,
            config_hash: loaded.config_hash(),
        };
        let plan = plan::build(&loaded.config, &facts, &options)?;
        Ok((loaded.findings, plan))
    });
    match outcome {
        Ok((findings, plan)) => planned(&findings, &plan),
        Err(findings) => [("plan.txt".to_owned(), refused(&findings).into_bytes())].into(),
    }
}

fn sources(case: &Path) -> Vec<SourceRead> {
    let folder = case.join("config.d");
    let mut paths: Vec<PathBuf> = match fs::read_dir(&folder) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => vec![case.join("config.yaml")],
    };
    paths.sort();
    let source = |path: &PathBuf| SourceRead {
        uri: format!("file://{}", path.strip_prefix(case).unwrap().display()),
        origin: Origin::File,
        bytes: Some(fs::read(path).unwrap()),
    };
    paths.iter().map(source).collect()
}

fn refused(findings: &[Finding]) -> String {
    format!("refused\n{}", findings_text(findings))
}

fn planned(of_config: &[Finding], plan: &Plan) -> Tree {
    let mut tree = Tree::new();
    for step in &plan.steps {
        if let Action::File(file) = &step.action {
            tree.insert(file.path.trim_start_matches('/').to_owned(), file.body.clone());
        }
    }
    tree.insert("plan.txt".into(), listing(of_config, plan).into_bytes());
    tree
}

fn listing(of_config: &[Finding], plan: &Plan) -> String {
    let mut text = summary(plan);
    for phase in [Phase::Config, Phase::Run] {
        text.push_str(if phase == Phase::Config { "\nconfig\n" } else { "\nrun\n" });
        let steps = plan.steps.iter().filter(|step| step.phase == phase);
        steps.for_each(|step| text.push_str(&step_text(step)));
    }
    text.push_str("\nwhy\n");
    for (name, reasons) in &plan.reasons {
        text.push_str(&format!("  {name}\n"));
        for reason in reasons {
            text.push_str(&format!("    {:<8} {}\n", reason.rank, reason.text));
        }
    }
    if !plan.disk_indexes.is_empty() {
        text.push_str(&format!("\ndisk indexes {:?}\n", plan.disk_indexes));
    }
    let findings: Vec<Finding> = of_config.iter().chain(&plan.findings).cloned().collect();
    text.push_str("\nfindings\n");
    text.push_str(&findings_text(&findings));
    text.push_str(&format!("\nhash {}\n", plan::hash_public(plan)));
    text
}

fn summary(plan: &Plan) -> String {
    let summary = &plan.summary;
    format!(
        "instance   {} {} {}\nnode       {} {}\nkubelet    {}\ncontainerd {}\npods       {}\n",
        summary.instance_id,
        summary.instance_type,
        summary.region,
        summary.node_name,
        summary.node_ip,
        summary.kubelet_version,
        summary.containerd_version,
        summary.max_pods,
    )
}

/// One step: a line for the thing, one for each list that belongs to it.
fn step_text(step: &Step) -> String {
    match &step.action {
        Action::Directory { path, mode } => format!("  directory {mode:04o} {path}\n"),
        Action::File(file) => {
            let marks = [(file.secret, " secret"), (file.refuse_foreign, " refuse-foreign")];
            let marks: String =
                marks.iter().filter(|(set, _)| *set).map(|(_, mark)| *mark).collect();
            format!("  file {:04o} {}{marks}\n", file.mode, file.path)
        }
        Action::Link { path, target } => format!("  link {path} -> {target}\n"),
        Action::Block(block) => {
            let lines: String = block.lines.iter().map(|line| format!("    | {line}\n")).collect();
            format!("  block {} in {}\n{lines}", block.name, block.path)
        }
        Action::Remove(removal) => format!("  remove {} ({:?})\n", removal.path, removal.proof),
        Action::Discard { path } => format!("  discard {path}\n"),
        Action::Reload { inputs } => format!("  reload\n{}", list("if changed", inputs)),
        Action::Unit(unit) => format!(
            "  unit {} {:?} ready {:?} within {:?}\n{}{}",
            unit.name,
            unit.verb,
            unit.ready,
            unit.deadline,
            list("input", &unit.inputs),
            list("requires", &unit.requires),
        ),
        Action::Program(program) => format!(
            "  program within {:?}: {}\n{}{}{}{}",
            program.timeout,
            program.argv.join(" "),
            list(
                if program.stamp { "unless stamped" } else { "unless exists" },
                &program.unless_exists
            ),
            list("unless signature on", &program.unless_signature),
            list("when changed", &program.when_changed),
            list("output to", &program.stdout_to),
        ),
        Action::Bind(bind) => {
            format!(
                "  bind {} to {} by {}\n{}",
                bind.at,
                bind.source,
                bind.unit,
                list("owner", &bind.owners)
            )
        }
        Action::Hook { stage, hook } => format!(
            "  hook {stage:?} {} {:?} {:?} {:?} within {:?}\n",
            hook.name, hook.work, hook.on_failure, hook.run, hook.timeout
        ),
    }
}

fn list<'a>(name: &str, items: impl IntoIterator<Item = &'a String>) -> String {
    items.into_iter().map(|item| format!("    {name} {item}\n")).collect()
}

fn findings_text(findings: &[Finding]) -> String {
    let line = |finding: &Finding| {
        let problem = &finding.problem;
        let place = problem.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        format!("  {:?} {}{place}\n    fix {}\n", finding.class, problem, problem.fix_text())
    };
    findings.iter().map(line).collect()
}

fn difference(expected: &Tree, found: &Tree) -> Option<String> {
    let paths: std::collections::BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let path = paths.into_iter().find(|path| expected.get(*path) != found.get(*path))?;
    let text = |tree: &Tree| tree.get(path).map(|body| String::from_utf8_lossy(body).into_owned());
    Some(match (text(expected), text(found)) {
        (None, _) => format!("{path} is new"),
        (_, None) => format!("{path} is gone"),
        (Some(old), Some(new)) => {
            let same = old.lines().zip(new.lines()).take_while(|(a, b)| a == b).count();
            let at = |text: &str| text.lines().nth(same).unwrap_or("(end)").to_owned();
            format!("{path}:{}\n  - {}\n  + {}", same + 1, at(&old), at(&new))
        }
    })
}

fn read_tree(folder: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                tree.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    tree
}

fn write_tree(folder: &Path, tree: &Tree) {
    if folder.exists() {
        fs::remove_dir_all(folder).unwrap();
    }
    for (name, body) in tree {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, body).unwrap();
    }
}
