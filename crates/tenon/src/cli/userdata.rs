//! `tenon userdata`: what an instance is given at launch.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Subcommand;
use serde_json::json;
use tenon_core::codes;
use tenon_core::problem::{Finding, Problem};
use tenon_core::userdata::input::eksctl;
use tenon_core::userdata::{Group, Rendered, cloudformation, render, render_with};

use super::userdata_input::{Described, InputArgs, findings};
use super::{Global, userdata_read, userdata_source};
use crate::output::{self, Failure, Format, Outcome};

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the user data of a group
    ///
    /// Example: tenon userdata render -f cluster.yaml --cluster-json cluster.json
    Render(Box<RenderArgs>),
    #[command(flatten)]
    Read(userdata_read::Command),
}

#[derive(Debug, clap::Args)]
pub struct RenderArgs {
    #[command(flatten)]
    input: InputArgs,
    /// raw, base64, json (flat strings, for Terraform), launch-template-data or
    /// files (the node's file tree, below --out-dir)
    #[arg(long, value_name = "FORM", default_value = "raw", value_parser = Format::user_data)]
    output: Format,
    /// Write one file for each group, or the node's files with --output files
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    /// Your own user data, joined with ours by the rules of the family
    #[arg(long, value_name = "FILE")]
    custom: Option<PathBuf>,
}

pub fn run(command: &Command, global: &Global) -> Outcome {
    match command {
        Command::Render(args) => run_render(args, global.quiet),
        Command::Read(command) => userdata_read::run(command, global),
    }
}

fn run_render(args: &RenderArgs, quiet: bool) -> Outcome {
    let described = args.input.read()?;
    described.notes.iter().for_each(|note| output::tell(&format!("note: {note}\n")));
    let custom = args.custom.as_deref().map(userdata_source::bytes).transpose()?;
    let all = args.out_dir.is_some() && args.output != Format::Files && args.input.group.is_none();
    if !all {
        let group = eksctl::select(&described.groups, args.input.group.as_deref())?;
        let rendered = make(&described, group, custom.as_deref()).map_err(findings)?;
        story(&rendered, quiet);
        return answer(args, &described, group, &rendered);
    }
    let mut bad = Vec::new();
    let mut done = Vec::new();
    for group in &described.groups {
        match make(&described, group, custom.as_deref()) {
            Ok(rendered) => done.push((group, rendered)),
            Err(more) => bad.extend(more),
        }
    }
    if !bad.is_empty() {
        return Err(findings(bad));
    }
    for (group, rendered) in &done {
        story(rendered, quiet);
        answer(args, &described, group, rendered)?;
    }
    Ok(())
}

/// Renders one group, with the user's own data where there is some.
fn make(
    described: &Described,
    group: &Group,
    custom: Option<&[u8]>,
) -> Result<Rendered, Vec<Finding>> {
    let (cluster, options) = (&described.cluster, &described.options);
    match custom {
        Some(custom) => render_with(cluster, group, described.mode(group), options, custom),
        None => render(cluster, group, described.mode(group), options),
    }
}

/// Renders one group and tells the story of it.
pub fn one(described: &Described, group: &Group, quiet: bool) -> Result<Rendered, Failure> {
    let rendered = make(described, group, None).map_err(findings)?;
    story(&rendered, quiet);
    Ok(rendered)
}

/// The meter, warnings and notes.
fn story(rendered: &Rendered, quiet: bool) {
    output::tell_findings(&rendered.findings, false);
    if quiet {
        return;
    }
    rendered.notes.iter().for_each(|note| output::tell(&format!("note: {note}\n")));
    let sizes = tenon_core::userdata::size::Sizes {
        bytes: rendered.bytes.len(),
        limit: tenon_core::userdata::size::LIMIT,
        pieces: Vec::new(),
    };
    output::tell(&format!("{}\n", sizes.meter()));
}

fn answer(args: &RenderArgs, described: &Described, group: &Group, rendered: &Rendered) -> Outcome {
    let bytes = match args.output {
        Format::Base64 => base64_line(args, rendered),
        Format::Json => format!("{:#}\n", flat(group, rendered)).into_bytes(),
        Format::LaunchTemplateData => {
            let data = cloudformation::launch_template_data(&described.cluster, group, rendered);
            format!("{data:#}\n").into_bytes()
        }
        Format::Files => return write_files(args, rendered),
        _ => rendered.bytes.clone(),
    };
    match &args.out_dir {
        Some(directory) => write(&directory.join(&group.name), &bytes),
        None => print(&bytes),
    }
}

/// A newline only where a person reads: a variable takes the text without one.
fn base64_line(args: &RenderArgs, rendered: &Rendered) -> Vec<u8> {
    let mut line = STANDARD.encode(&rendered.bytes);
    if args.out_dir.is_none() && std::io::stdout().is_terminal() {
        line.push('\n');
    }
    line.into_bytes()
}

/// Strings only, as Terraform's external data source wants them.
fn flat(group: &Group, rendered: &Rendered) -> serde_json::Value {
    let mut object = json!({
        "user_data_base64": STANDARD.encode(&rendered.bytes),
        "sha256": rendered.sha256(),
        "bytes": rendered.bytes.len().to_string(),
        "limit": tenon_core::userdata::size::LIMIT.to_string(),
        "encoding": rendered.encoding.name(),
        "family": group.family.name(),
        "group": group.name,
    });
    if let Ok(text) = std::str::from_utf8(&rendered.bytes) {
        object["user_data"] = json!(text);
    }
    let parts: Vec<_> = rendered
        .sizes()
        .pieces
        .iter()
        .map(|piece| format!("{}={}", piece.name, piece.bytes))
        .collect();
    object["parts"] = json!(parts.join("\n"));
    object
}

fn write_files(args: &RenderArgs, rendered: &Rendered) -> Outcome {
    let Some(directory) = &args.out_dir else {
        let what = "--output files needs --out-dir";
        return Err(Problem::new(&codes::usage::BAD_USAGE, what).into());
    };
    for file in rendered.document.files() {
        let path = directory.join(file.path.trim_start_matches('/'));
        write(&path, file.content.as_bytes())?;
        set_mode(&path, file.mode)?;
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
        .map_err(|error| write_problem(path, error).into())
}

/// Writes a file that the user named, with the directories above it.
pub fn write(path: &Path, bytes: &[u8]) -> Outcome {
    let make = || {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, bytes)
    };
    make().map_err(|error| write_problem(path, error).into())
}

fn write_problem(path: &Path, error: std::io::Error) -> Problem {
    Problem::new(&codes::host::FILE_WRITE, format!("writing {}", path.display())).cause(error)
}

/// Prints bytes as they are: a terminal library would take escape sequences out of them. A
/// closed pipe ends the output quietly.
pub fn print(bytes: &[u8]) -> Outcome {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let what = "writing to standard output";
            Err(Problem::new(&codes::host::FILE_WRITE, what).cause(error).into())
        }
        _ => Ok(()),
    }
}
