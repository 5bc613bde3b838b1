//! Which types are asked about, and the tables they are looked up in.

use std::collections::BTreeSet;
use std::path::Path;

use tenon_core::codes;
use tenon_core::facts::Facts;
use tenon_core::max_pods::{Arch, InstanceType, Pattern, Table, is_pattern, nearest_types};
use tenon_core::problem::{Place, Problem};
use tenon_host::root::Root;

use super::args::{ArchArg, Args};
use crate::output::Failure;

/// Largest table that is read: ten times the embedded one.
const TABLE_CAP: u64 = 1 << 20;

/// Tables that an image carries for types newer than this binary.
const TABLE_DIRECTORY: &str = "/etc/tenon/instances.d";

/// The texts of the user's tables: files named by flags, then those of the machine.
pub(super) fn table_texts(args: &Args, root: &Path) -> Result<Vec<(String, String)>, Failure> {
    let mut texts = Vec::new();
    for path in &args.table {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(&name).cause(error))?;
        texts.push((name, text));
    }
    // A desk without such a directory, or without a readable root, has no such tables.
    let Ok(root) = Root::open(root) else { return Ok(texts) };
    let names = root.list(TABLE_DIRECTORY).unwrap_or_default();
    for name in names.iter().filter(|name| name.ends_with(".tsv")) {
        let path = format!("{TABLE_DIRECTORY}/{name}");
        let bytes = root.read(&path, TABLE_CAP).map_err(|error| unreadable(&path).cause(error))?;
        let text = String::from_utf8(bytes.unwrap_or_default())
            .map_err(|_| unreadable(&path).cause("the file is not UTF-8"))?;
        texts.push((path, text));
    }
    Ok(texts)
}

fn unreadable(name: &str) -> Problem {
    Problem::new(&codes::max_pods::BAD_INSTANCE_TABLE, format!("reading the instance table {name}"))
}

/// Checks the user's tables.
pub(super) fn tables(texts: &[(String, String)]) -> Result<Vec<Table<'_>>, Failure> {
    let mut tables = Vec::new();
    for (name, text) in texts {
        let table = Table::parse(text).map_err(|error| {
            let line = u32::try_from(error.line).unwrap_or(u32::MAX);
            let source = format!("file://{name}");
            let place = Place { source, line, column: 1, ..Place::default() };
            let what = "a line of an instance table is no row";
            Problem::new(&codes::max_pods::BAD_INSTANCE_TABLE, what).at(place).cause(error.message)
        })?;
        tables.push(table);
    }
    Ok(tables)
}

/// The names that the arguments stand for, each once, and whether they are a list.
pub(super) struct Selection {
    pub(super) names: Vec<String>,
    pub(super) is_list: bool,
}

pub(super) fn select(args: &Args, tables: &[Table<'_>]) -> Result<Selection, Failure> {
    let wanted = args.wanted();
    let mut names = BTreeSet::new();
    for word in &wanted {
        if is_pattern(word) {
            names.extend(matching(word, args, tables)?);
        } else {
            names.insert((*word).to_owned());
        }
    }
    let is_list = wanted.len() > 1 || wanted.iter().any(|word| is_pattern(word));
    Ok(Selection { names: names.into_iter().collect(), is_list })
}

fn matching(word: &str, args: &Args, tables: &[Table<'_>]) -> Result<Vec<String>, Failure> {
    let usage = |what: String| Problem::new(&codes::usage::BAD_USAGE, what);
    let pattern = Pattern::parse(word)
        .ok_or_else(|| usage(format!("the braces of the pattern {word} do not close")))?;
    let embedded = Table::embedded();
    let all = embedded.rows().chain(tables.iter().flat_map(Table::rows));
    let hits: Vec<InstanceType<'_>> = all.filter(|row| pattern.matches(row.name)).collect();
    if hits.is_empty() {
        let near = nearest_types(word, embedded).join(", ");
        return Err(usage(format!("no instance type matches {word}"))
            .why("a pattern must stand for at least one type of the table")
            .fix(format!("the nearest names are {near}"))
            .into());
    }
    let kept = hits.iter().filter(|row| fits(row, args));
    Ok(kept.map(|row| row.name.to_owned()).collect())
}

/// The filters of the command line.
fn fits(row: &InstanceType<'_>, args: &Args) -> bool {
    let arch = match args.arch {
        None => true,
        Some(ArchArg::X86_64) => row.arch == Arch::X86_64,
        Some(ArchArg::Arm64) => row.arch == Arch::Arm64,
    };
    arch && (!args.gpu || row.has_gpu())
        && (!args.local_disks || row.disks().next().is_some())
        && (!args.efa || row.efa > 0)
}

/// Saved facts of a machine.
pub(super) fn read_facts(path: &Path) -> Result<Facts, Failure> {
    let what = format!("reading the facts in {}", path.display());
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problem::new(&codes::usage::BAD_USAGE, what.clone()).cause(error))?;
    serde_json::from_str(&text).map_err(|error| {
        // The line and column say enough; the message could repeat a value.
        let place = format!("line {}, column {}", error.line(), error.column());
        Problem::new(&codes::usage::BAD_USAGE, what)
            .why("the file is not a facts file of this version")
            .fix("write it with `tenon facts`")
            .cause(place)
            .into()
    })
}
