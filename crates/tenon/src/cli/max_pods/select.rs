//! Which types are asked about, and the tables they are looked up in.

use std::collections::BTreeSet;
use std::path::Path;

use tenon_core::codes;
use tenon_core::max_pods::{Arch, InstanceType, Pattern, Table, is_pattern, nearest_types};
use tenon_core::problem::Problem;
use tenon_host::gather::tables::{self, TableFile};
use tenon_host::root::Root;

use super::args::{ArchArg, Args};
use super::usage;
use crate::output::Failure;

/// The user's tables: files named by flags, then those of the machine.
pub(super) fn table_files(args: &Args, root: &Path) -> Result<Vec<TableFile>, Failure> {
    let mut files = Vec::new();
    for path in &args.table {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| tables::unreadable(&name).cause(error))?;
        files.push(TableFile { path: name, text });
    }
    // A desk may not be able to open the root; it has no tables there.
    if let Ok(root) = Root::open(root) {
        files.extend(tables::read(&root)?);
    }
    Ok(files)
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
    if names.is_empty() {
        let what = match wanted.is_empty() {
            true => "no instance type was given",
            false => "the filters leave no instance type",
        };
        return Err(usage(what));
    }
    let is_list = wanted.len() > 1 || wanted.iter().any(|word| is_pattern(word));
    Ok(Selection { names: names.into_iter().collect(), is_list })
}

fn matching(word: &str, args: &Args, tables: &[Table<'_>]) -> Result<Vec<String>, Failure> {
    let pattern = Pattern::parse(word)
        .ok_or_else(|| usage(&format!("the braces of the pattern {word} do not close")))?;
    let embedded = Table::embedded();
    let all = embedded.rows().chain(tables.iter().flat_map(Table::rows));
    let hits: Vec<InstanceType<'_>> = all.filter(|row| pattern.matches(row.name)).collect();
    if hits.is_empty() {
        let near = nearest_types(word, embedded).join(", ");
        let what = format!("no instance type matches {word}");
        return Err(Problem::new(&codes::usage::BAD_USAGE, what)
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
