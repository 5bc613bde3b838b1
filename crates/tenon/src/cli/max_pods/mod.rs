//! `tenon max-pods`: how many pods an instance type may run, and why.
//!
//! Arguments in, one call into the core for each type, printing out.

mod args;
mod select;

use std::io::{self, IsTerminal};

use serde_json::json;
use tenon_core::codes;
use tenon_core::facts::Facts;
use tenon_core::max_pods::{self, Machine, Question, Resolved, Subject, Table};
use tenon_core::plan::reserved;
use tenon_core::problem::Problem;

pub use args::Args;

use super::Global;
use crate::output::{self, Failure, Format, Outcome};

pub fn run(args: &Args, global: &Global) -> Outcome {
    let question = args.question().map_err(usage)?;
    if args.table_info {
        return table_info(args.output);
    }
    let texts = select::table_texts(args, &global.root)?;
    let tables = select::tables(&texts)?;
    if let Some(facts) = machine_facts(args, global)? {
        let answer = answer_for_machine(&question, &facts, &tables)?;
        return print_one(args, advised(args, answer)?);
    }
    let selection = select::select(args, &tables)?;
    let names = &selection.names;
    if names.is_empty() {
        return match args.wanted().is_empty() {
            true => Err(usage("no instance type was given".to_owned())),
            false => Err(usage("the filters leave no instance type".to_owned())),
        };
    }
    let mut answers = answers(args, &question, names, &tables)?;
    match (answers.pop(), selection.is_list) {
        (Some(one), false) => print_one(args, one),
        (last, _) => {
            answers.extend(last);
            max_pods::sort(&mut answers, args.sort());
            print_list(args, &answers)
        }
    }
}

fn usage(what: String) -> Failure {
    Problem::new(&codes::usage::BAD_USAGE, what).fix("see `tenon max-pods --help`").into()
}

/// The facts of one machine, when they are asked for instead of types.
fn machine_facts(args: &Args, global: &Global) -> Result<Option<Facts>, Failure> {
    let Some(path) = &global.facts else { return Ok(None) };
    if !args.wanted().is_empty() {
        return Err(usage("--facts does not go with instance types".to_owned()));
    }
    select::read_facts(path).map(Some)
}

fn answer_for_machine<'a>(
    question: &Question,
    facts: &'a Facts,
    tables: &[Table<'a>],
) -> Result<Resolved<'a>, Failure> {
    let instance = &facts.instance;
    let subject = Subject::find(&instance.instance_type, tables, instance.limits);
    let mut resolved = max_pods::answer(question, &subject)?;
    resolved.machine = Some(Machine {
        cpus: facts.machine.online_cpus,
        memory_mib: facts.machine.online_memory_bytes >> 20,
    });
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
    let mut refused: Vec<(&str, Problem)> = Vec::new();
    for name in names {
        match max_pods::answer(question, &Subject::find(name, tables, None)) {
            Ok(resolved) => answers.push(advised(args, resolved)?),
            Err(problem) => refused.push((name, problem)),
        }
    }
    match refused.len() {
        0 => Ok(answers),
        1 => Err(refused.remove(0).1.into()),
        count => {
            let (first, problem) = refused.remove(0);
            let what =
                format!("{count} of {} types cannot be answered, {first} first", names.len());
            Err(Problem::new(problem.page, what).cause(problem.what.clone()).into())
        }
    }
}

/// Lowers the limit to the share of memory that the user would give away.
fn advised<'a>(args: &Args, mut resolved: Resolved<'a>) -> Result<Resolved<'a>, Failure> {
    let Some(share) = args.memory_share else { return Ok(resolved) };
    let name = resolved.instance_type;
    let Some(memory_mib) = resolved.memory_mib() else {
        return Err(usage(format!(
            "--memory-share needs the memory of {name}, which is not known"
        )));
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

fn print_one(args: &Args, resolved: Resolved<'_>) -> Outcome {
    tell_trouble(&resolved);
    let list = std::slice::from_ref(&resolved);
    match (args.output, args.explain) {
        (Format::Json, _) => output::answer(&max_pods::json(&resolved)),
        (Format::Text, true) => output::answer(&max_pods::text(&resolved)),
        (Format::Text, false) => output::answer(&format!("{}\n", resolved.pods)),
        _ => print_list(args, list),
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
