//! `tenon max-pods`: how many pods an instance type may run, and why.
//!
//! Arguments in, one call into the core for each type, printing out.

mod args;
mod machine;
mod select;

use std::io::{self, IsTerminal};

use serde_json::json;
use tenon_core::codes;
use tenon_core::max_pods::{self, Limits, Question, Resolved, Subject, Table};
use tenon_core::plan::reserved;
use tenon_core::problem::Problem;
use tenon_host::gather::tables::TableFile;

pub use args::Args;
use machine::Asked;

use super::Global;
use crate::output::{self, Failure, Format, Outcome};

pub fn run(args: &Args, global: &Global) -> Outcome {
    let question = args.question().map_err(|what| usage(&what))?;
    if args.table_info {
        return table_info(args.output);
    }
    let files = select::table_files(args, &global.root)?;
    let tables: Vec<Table<'_>> = files.iter().map(TableFile::table).collect::<Result<_, _>>()?;
    if let Some(asked) = machine::asked(args, &question, global)? {
        let resolved = answer_for_machine(args, &asked, &tables)?;
        return print_one(args, &advised(args, resolved)?);
    }
    let selection = select::select(args, &tables)?;
    let mut answers = answers(args, &question, &selection.names, &tables)?;
    if let ([one], false) = (&answers[..], selection.is_list) {
        return print_one(args, one);
    }
    max_pods::sort(&mut answers, args.sort());
    print_list(args, &answers)
}

fn usage(what: &str) -> Failure {
    Problem::new(&codes::usage::BAD_USAGE, what).fix("see `tenon max-pods --help`").into()
}

fn answer_for_machine<'a>(
    args: &Args,
    asked: &'a Asked,
    tables: &[Table<'a>],
) -> Result<Resolved<'a>, Failure> {
    let instance = &asked.instance;
    let mut subject = Subject::find(&instance.instance_type, tables, instance.limits);
    if let Subject::Unknown(name) = subject
        && let Some(limits) = machine::ask_ec2(args, name, Some(instance))
    {
        subject = Subject::Known(Limits::bare(name, limits, "ec2"));
    }
    let mut resolved = max_pods::answer(&asked.question, &subject)?;
    resolved.machine = Some(asked.machine);
    Ok(resolved)
}

/// One answer for each name; types that cannot be answered for are told in one problem.
fn answers<'a>(
    args: &Args,
    question: &Question,
    names: &'a [String],
    tables: &[Table<'a>],
) -> Result<Vec<Resolved<'a>>, Failure> {
    let mut answers = Vec::new();
    let mut refused: Vec<Problem> = Vec::new();
    for name in names {
        let mut subject = Subject::find(name, tables, None);
        if let Subject::Unknown(name) = subject
            && let Some(limits) = machine::ask_ec2(args, name, None)
        {
            subject = Subject::Known(Limits::bare(name, limits, "ec2"));
        }
        match max_pods::answer(question, &subject) {
            Ok(resolved) => answers.push(advised(args, resolved)?),
            Err(problem) => refused.push(problem),
        }
    }
    match &refused[..] {
        [] => Ok(answers),
        [only] => Err(only.clone().into()),
        [first, ..] => {
            let what = format!("{} of {} types cannot be answered", refused.len(), names.len());
            Err(Problem::new(first.page, what).cause(format!("{first}")).into())
        }
    }
}

/// Lowers the limit to the share of memory that the user would give away.
fn advised<'a>(args: &Args, mut resolved: Resolved<'a>) -> Result<Resolved<'a>, Failure> {
    let Some(share) = args.memory_share else { return Ok(resolved) };
    let name = resolved.instance_type;
    let Some(memory_mib) = resolved.memory_mib() else {
        return Err(usage(&format!("--memory-share: the memory of {name} is not known")));
    };
    let pods = reserved::within_share(resolved.pods, memory_mib, share).map_err(|smallest| {
        let least = format!("{}.{:02}", smallest / 100, smallest % 100);
        let what = format!("not one pod of {name} fits into this share of {memory_mib} MiB");
        Problem::new(&codes::max_pods::MEMORY_SHARE, what)
            .fix(format!("give --memory-share {least} or more, or choose a larger instance type"))
    })?;
    resolved.notes.push(format!("within the share: maxPods: {{mode: min, value: {pods}}}"));
    resolved.pods = pods;
    Ok(resolved)
}

fn print_one(args: &Args, resolved: &Resolved<'_>) -> Outcome {
    tell_trouble(resolved);
    match (args.output, args.explain) {
        (Format::Json, _) => output::answer(&max_pods::json(resolved)),
        (Format::Text, true) => output::answer(&max_pods::text(resolved)),
        (Format::Text, false) => output::answer(&format!("{}\n", resolved.pods)),
        _ => print_list(args, std::slice::from_ref(resolved)),
    }
}

/// Warnings go to standard error, so that the answer stays one number.
fn tell_trouble(resolved: &Resolved<'_>) {
    for warning in &resolved.warnings {
        output::tell(&warning.render("warning"));
    }
    let reserved_mib = reserved::memory_mib(resolved.pods);
    let finding = resolved.memory_mib().and_then(|mib| reserved::check_memory(reserved_mib, mib));
    if let Some(finding) = finding {
        // The command gives the number; it is the plan that refuses to write it.
        output::tell(&finding.problem.render("warning"));
    }
}

fn print_list(args: &Args, answers: &[Resolved<'_>]) -> Outcome {
    let explained = || answers.iter().map(max_pods::text).collect::<Vec<_>>().join("\n");
    let text = match args.output {
        Format::Json => max_pods::json_list(answers),
        Format::Csv => max_pods::csv(answers),
        Format::Map => max_pods::map(answers),
        Format::Text if args.explain => explained(),
        _ => {
            let terminal = io::stdout().is_terminal();
            let header = terminal || args.output == Format::Table;
            max_pods::table(answers, header, terminal.then(terminal_width))
        }
    };
    output::answer(&text)
}

/// What the shell says, else the classic width.
fn terminal_width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.unwrap_or(80)
}

fn table_info(format: Format) -> Outcome {
    let head = Table::embedded().head();
    let rows = [
        ("source", head.source),
        ("date", head.date),
        ("types", head.types),
        ("rowsSha256", head.rows_sha256),
    ];
    match format {
        Format::Json => {
            let types: u64 = head.types.parse().unwrap_or_default();
            output::answer_json(&json!({
                "schema": 1,
                "source": head.source,
                "date": head.date,
                "types": types,
                "rowsSha256": head.rows_sha256,
            }))
        }
        _ => {
            let lines = rows.map(|(name, value)| format!("{name:<11} {value}\n"));
            output::answer(&lines.concat())
        }
    }
}
