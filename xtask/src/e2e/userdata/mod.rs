//! User data before its real readers: cloud-init, Ignition, CloudFormation's linter and a local
//! stand-in for it, shellcheck, bash, Python's TOML parser, a PowerShell grammar; and the
//! self-contained script itself, run in a sandbox root.

mod cases;
mod run_scripts;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::Lab;
use cases::{Case, Stack};
use tools::Tools;

pub fn refuse(_lab: &Lab) -> Option<String> {
    None
}

/// Ignition's two programs: the one that judges a config, and the one that carries it out.
pub fn ignition_programs(lab: &Lab) -> anyhow::Result<(PathBuf, PathBuf)> {
    let tools = Tools::install(lab)?;
    Ok((tools.program("ignition-validate"), tools.ignition()))
}

/// What one reader said: cases, and what it found.
struct Verdict {
    reader: &'static str,
    cases: usize,
    findings: Vec<String>,
}

pub fn run(lab: &Lab) -> anyhow::Result<usize> {
    let tools = Tools::install(lab)?;
    let place = tempfile::tempdir()?;
    let work = place.path().to_owned();
    let cases = cases::all(lab)?;
    let stacks = cases::stacks(lab)?;
    let verdicts = [
        shellcheck(&tools, &work, &cases)?,
        cloud_init(lab, &tools, &work, &cases)?,
        ignition(&tools, &work, &cases)?,
        settings(lab, &tools, &work, &cases)?,
        powershell(lab, &tools, &work, &cases)?,
        node_config(&tools, &work, &cases)?,
        units(&work, &cases)?,
        lint_stacks(&tools, &work, &stacks)?,
        deploy_stacks(lab, &tools, &work, &stacks)?,
        run_scripts::environment_files(&work)?,
        run_scripts::self_contained(lab, &work)?,
        run_scripts::signal(lab, &work)?,
    ];
    println!("{:<28} {:>6} {:>9}", "reader", "cases", "findings");
    for verdict in &verdicts {
        println!("{:<28} {:>6} {:>9}", verdict.reader, verdict.cases, verdict.findings.len());
    }
    let findings: Vec<_> = verdicts
        .iter()
        .flat_map(|verdict| {
            verdict.findings.iter().map(move |text| format!("{}: {text}", verdict.reader))
        })
        .collect();
    if !findings.is_empty() {
        bail!("{}", findings.join("\n"));
    }
    Ok(verdicts.iter().map(|verdict| verdict.cases).sum())
}

/// Runs a reader; its output is a finding unless it ends with 0.
fn ask(command: &mut Command) -> anyhow::Result<Option<String>> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    let text = [output.stdout, output.stderr].concat();
    Ok((!output.status.success()).then(|| String::from_utf8_lossy(&text).into_owned()))
}

fn shellcheck(tools: &Tools, work: &Path, cases: &[Case]) -> anyhow::Result<Verdict> {
    let directory = work.join("scripts");
    fs::create_dir_all(&directory)?;
    let mut paths = Vec::new();
    for case in cases {
        for (index, script) in case.scripts().into_iter().enumerate() {
            let path = directory.join(format!("{}-{index}.sh", case.name));
            fs::write(&path, script)?;
            paths.push(path);
        }
    }
    let finding = ask(Command::new(tools.program("shellcheck"))
        .args(["-s", "bash", "-S", "warning"])
        .args(&paths))?;
    Ok(Verdict {
        reader: "shellcheck",
        cases: paths.len(),
        findings: finding.into_iter().collect(),
    })
}

fn cloud_init(lab: &Lab, tools: &Tools, work: &Path, cases: &[Case]) -> anyhow::Result<Verdict> {
    let directory = work.join("cloud-init");
    fs::create_dir_all(&directory)?;
    let mut count = 0;
    for case in cases {
        let Some(parts) = case.cloud_init_parts() else { continue };
        for (suffix, bytes) in
            [("plain", case.bytes.clone()), ("gzip", tenon_core::userdata::size::gzip(&case.bytes))]
        {
            let name = format!("{}-{suffix}", case.name);
            fs::write(directory.join(format!("{name}.bin")), bytes)?;
            fs::write(directory.join(format!("{name}.json")), serde_json::to_vec(&parts)?)?;
            count += 1;
        }
    }
    let finding = ask(tools.python(lab, "cloud_init.py").arg(&directory))?;
    Ok(Verdict { reader: "cloud-init", cases: count, findings: finding.into_iter().collect() })
}

fn ignition(tools: &Tools, work: &Path, cases: &[Case]) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict { reader: "ignition-validate", cases: 0, findings: Vec::new() };
    for case in cases.iter().filter(|case| case.is_ignition()) {
        let path = work.join(format!("{}.ign", case.name));
        fs::write(&path, &case.bytes)?;
        let output = Command::new(tools.program("ignition-validate")).arg(&path).output()?;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        verdict.cases += 1;
        if !output.status.success() || text.contains("warning") {
            verdict.findings.push(format!("{}: {text}", case.name));
        }
    }
    Ok(verdict)
}

fn settings(lab: &Lab, tools: &Tools, work: &Path, cases: &[Case]) -> anyhow::Result<Verdict> {
    let mut command = tools.python(lab, "settings.py");
    let mut count = 0;
    for case in cases {
        let Some(json) = case.settings() else { continue };
        let (toml, expected) = (
            work.join(format!("{}.toml", case.name)),
            work.join(format!("{}.toml.json", case.name)),
        );
        fs::write(&toml, &case.bytes)?;
        fs::write(&expected, json.to_string())?;
        command.arg(toml).arg(expected);
        count += 1;
    }
    Ok(Verdict {
        reader: "Python tomllib",
        cases: count,
        findings: ask(&mut command)?.into_iter().collect(),
    })
}

fn powershell(lab: &Lab, tools: &Tools, work: &Path, cases: &[Case]) -> anyhow::Result<Verdict> {
    let mut command = tools.python(lab, "powershell.py");
    let mut count = 0;
    for case in cases.iter().filter(|case| case.is_powershell()) {
        let path = work.join(format!("{}.ps1", case.name));
        fs::write(&path, &case.bytes)?;
        command.arg(path);
        count += 1;
    }
    Ok(Verdict {
        reader: "tree-sitter-powershell",
        cases: count,
        findings: ask(&mut command)?.into_iter().collect(),
    })
}

/// Every NodeConfig against the schema, and a wrong one to see that the schema refuses.
fn node_config(tools: &Tools, work: &Path, cases: &[Case]) -> anyhow::Result<Verdict> {
    let schema = work.join("node-config.schema.json");
    let kind = tenon_core::config::Kind::Eks;
    fs::write(&schema, tenon_core::config::json_schema(Some(kind)).to_string())?;
    let check = |path: &Path| {
        ask(Command::new(tools.python_program("check-jsonschema"))
            .arg("--schemafile")
            .arg(&schema)
            .arg(path))
    };
    let mut verdict = Verdict { reader: "check-jsonschema", cases: 0, findings: Vec::new() };
    for case in cases {
        for (index, text) in case.node_configs().into_iter().enumerate() {
            let path = work.join(format!("{}-{index}.yaml", case.name));
            fs::write(&path, text)?;
            verdict.cases += 1;
            verdict.findings.extend(check(&path)?);
        }
    }
    let wrong = work.join("wrong.yaml");
    fs::write(
        &wrong,
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {cluster: {endpoint: x}}\n",
    )?;
    verdict.cases += 1;
    if check(&wrong)?.is_none() {
        verdict.findings.push("a wrong field passes the schema".into());
    }
    Ok(verdict)
}

/// Every generated unit before systemd's own checker.
fn units(work: &Path, cases: &[Case]) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict { reader: "systemd-analyze verify", cases: 0, findings: Vec::new() };
    for case in cases {
        for (name, text) in case.units() {
            let directory = work.join("units").join(&case.name);
            fs::create_dir_all(&directory)?;
            // The programs live on the node, not here; only the text is under test.
            fs::write(directory.join(&name), tools::with_true(&text))?;
            let output = Command::new("systemd-analyze")
                .args(["verify", "--man=no", "--recursive-errors=no"])
                .arg(directory.join(&name))
                .output()?;
            verdict.cases += 1;
            if !output.status.success() || !output.stderr.is_empty() {
                verdict.findings.push(format!(
                    "{} {name}: {}",
                    case.name,
                    String::from_utf8_lossy(&output.stderr)
                ));
            }
        }
    }
    Ok(verdict)
}

fn lint_stacks(tools: &Tools, work: &Path, stacks: &[Stack]) -> anyhow::Result<Verdict> {
    let directory = work.join("templates");
    fs::create_dir_all(&directory)?;
    let mut command = Command::new(tools.python_program("cfn-lint"));
    command.args(["-r", "us-west-2", "--"]);
    for stack in stacks {
        for (suffix, text) in [("json", &stack.json), ("yaml", &stack.yaml)] {
            let path = directory.join(format!("{}.{suffix}", stack.name));
            fs::write(&path, text)?;
            command.arg(path);
        }
    }
    let findings = ask(&mut command)?.into_iter().collect();
    Ok(Verdict { reader: "cfn-lint", cases: stacks.len() * 2, findings })
}

fn deploy_stacks(
    lab: &Lab,
    tools: &Tools,
    work: &Path,
    stacks: &[Stack],
) -> anyhow::Result<Verdict> {
    let directory = work.join("stacks");
    fs::create_dir_all(&directory)?;
    for stack in stacks {
        fs::write(directory.join(format!("{}.template.json", stack.name)), &stack.deployed)?;
        fs::write(directory.join(format!("{}.bin", stack.name)), &stack.user_data)?;
    }
    let finding = ask(tools.python(lab, "stack.py").arg(&directory))?;
    Ok(Verdict { reader: "moto", cases: stacks.len(), findings: finding.into_iter().collect() })
}
