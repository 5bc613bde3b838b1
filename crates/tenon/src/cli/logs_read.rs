//! `tenon logs list|show|grep|diff`.

use std::io::{self, BufRead, BufReader, Read, Write};

use serde_json::{Value, json};
use tenon_core::codes::logs as pages;
use tenon_core::collect::catalogue::{self, Entry};
use tenon_core::collect::compare::{self, Difference};
use tenon_core::collect::manifest::{Item, Manifest, one_line};
use tenon_core::problem::{Problem, visible};
use tenon_host::collect::Bundle;

use super::logs::{DiffArgs, GrepArgs, ListArgs, ShowArgs};
use super::logs_collect::check_groups;
use super::{Global, node_args};
use crate::output::{self, Failure, Outcome};

/// A longer line is shown up to here.
const LONGEST_LINE: usize = 4 << 10;
/// Items above this are not compared line by line.
const COMPARED: u64 = 4 << 20;

pub fn list(args: &ListArgs, global: &Global) -> Outcome {
    let entries = all_entries(global)?;
    check_groups(&args.only, &entries)?;
    let wanted = |entry: &&Entry| {
        let name = format!("{}/{}", entry.group, entry.id);
        args.only.is_empty() || args.only.iter().any(|only| *only == entry.group || *only == name)
    };
    let entries: Vec<&Entry> = entries.iter().filter(wanted).collect();
    if global.json() {
        let rows: Vec<Value> = entries.iter().map(|entry| row(entry)).collect();
        return output::answer_json(&json!({"schema": "tenon.logs-list/1", "items": rows}));
    }
    let mut text = String::new();
    for entry in entries {
        let marks = [(entry.required, "required"), (entry.when.is_some(), "conditional")];
        let marks: Vec<&str> =
            marks.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        text.push_str(&format!(
            "{}\n    {} {}\n    up to {}, {} kept, {} s, sensitivity {}{}\n",
            entry.path(),
            entry.kind.name(),
            entry.kind.target(),
            size(entry.cap),
            entry.keep.name(),
            entry.timeout_s,
            entry.sensitivity.name(),
            marks.iter().map(|mark| format!(", {mark}")).collect::<String>(),
        ));
    }
    output::answer(&text)
}

/// The embedded entries and those of the node's own files.
fn all_entries(global: &Global) -> Result<Vec<Entry>, Problem> {
    let mut entries = catalogue::embedded()?;
    let root = node_args::open_root(global)?;
    entries.extend(tenon_host::collect::run::user_entries(&root, true)?);
    Ok(entries)
}

fn row(entry: &Entry) -> Value {
    json!({
        "path": entry.path(), "id": entry.id, "group": entry.group, "kind": entry.kind.name(),
        "target": entry.kind.target(), "cap": entry.cap, "keep": entry.keep.name(),
        "timeoutSeconds": entry.timeout_s, "sensitivity": entry.sensitivity.name(),
        "required": entry.required, "when": entry.when,
    })
}

pub fn show(args: &ShowArgs, global: &Global) -> Outcome {
    let bundle = Bundle::open(&args.bundle)?;
    match &args.path {
        Some(path) => show_item(&bundle, path),
        None if global.json() => {
            let manifest = serde_json::to_value(&bundle.manifest);
            output::answer_json(&manifest.unwrap_or_default())
        }
        None => output::answer(&tree(&bundle.manifest)),
    }
}

/// Every item with its status; text of the bundle is made harmless for a terminal.
fn tree(manifest: &Manifest) -> String {
    let mut text = manifest.readme();
    text.push('\n');
    for item in &manifest.items {
        let (status, path, note) = (item.status.name(), &item.path, one_line(&item.note));
        let row = format!("{status:<15} {:>10}  {path}  {note}", size(item.bytes));
        text.push_str(row.trim_end());
        text.push('\n');
    }
    visible(&text)
}

fn show_item(bundle: &Bundle, path: &str) -> Outcome {
    let by_source = |item: &&Item| item.source == path && bundle.size(&item.path).is_some();
    let items = &bundle.manifest.items;
    let name = items.iter().find(by_source).map_or(path, |item| item.path.as_str());
    let Some(mut reader) = bundle.reader(name) else {
        let item = items.iter().find(|item| item.path == name || item.source == name);
        let mut problem =
            Problem::new(&pages::NO_SUCH_ITEM, format!("no content of {}", visible(path)));
        if let Some(item) = item {
            problem = problem.why(tenon_core::collect::manifest::reason(item));
        }
        return Err(problem.into());
    };
    let mut stdout = io::stdout().lock();
    match io::copy(&mut reader, &mut stdout).and_then(|_| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let page = &tenon_core::codes::host::FILE_WRITE;
            Err(Problem::new(page, "writing to standard output").cause(error).into())
        }
        _ => Ok(()),
    }
}

pub fn grep(args: &GrepArgs, global: &Global) -> Outcome {
    let bundle = Bundle::open(&args.bundle)?;
    let unit = args.unit.as_deref().map(|unit| journal_of(&bundle.manifest, unit)).transpose()?;
    let wanted = |item: &&Item| match &unit {
        Some(source) => item.source == *source,
        None => true,
    };
    let mut found = Vec::new();
    for item in bundle.manifest.items.iter().filter(wanted) {
        let Some(reader) = bundle.reader(&item.path) else { continue };
        search(BufReader::new(reader), item, args.pattern.as_bytes(), &mut |hit| {
            if global.json() {
                found.push(json!({"path": hit.path, "line": hit.line, "text": hit.text}));
                return Ok(true);
            }
            found.push(Value::Null);
            output::answer(&format!("{}:{}: {}\n", hit.path, hit.line, hit.text)).map(|()| true)
        })?;
    }
    if global.json() {
        output::answer_json(&json!({"schema": "tenon.logs-grep/1", "hits": found}))?;
    }
    // As grep has it: 1 says that nothing was found.
    if found.is_empty() { Err(Failure::Answer(1)) } else { Ok(()) }
}

/// The source of a unit's journal; as with journalctl a service needs no ending.
fn journal_of(manifest: &Manifest, unit: &str) -> Result<String, Problem> {
    let names = [format!("journal:unit={unit}"), format!("journal:unit={unit}.service")];
    let known = |name: &String| manifest.items.iter().any(|item| item.source == *name);
    names.into_iter().find(known).ok_or_else(|| {
        Problem::new(&pages::BAD_CHOICE, "the bundle has no journal of this unit")
            .fix("`tenon logs list` shows the journals; without --unit all are searched")
    })
}

struct Hit<'h> {
    path: &'h str,
    line: u64,
    text: String,
}

/// Gives each line with the pattern to `take`; a line without an end is looked at in parts.
fn search(
    mut from: impl BufRead,
    item: &Item,
    pattern: &[u8],
    take: &mut dyn FnMut(&Hit<'_>) -> Result<bool, Failure>,
) -> Outcome {
    let mut buffer = Vec::new();
    let mut line = 1;
    loop {
        line += u64::from(buffer.last() == Some(&b'\n'));
        buffer.clear();
        let read = from.by_ref().take(64 << 10).read_until(b'\n', &mut buffer);
        match read {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                let page = &tenon_core::codes::host::FILE_READ;
                return Err(Problem::new(page, format!("reading {}", item.path))
                    .cause(error)
                    .into());
            }
        }
        let holds = pattern.is_empty() || buffer.windows(pattern.len()).any(|part| part == pattern);
        if holds {
            let text = String::from_utf8_lossy(&buffer[..buffer.len().min(LONGEST_LINE)]);
            let text = visible(text.trim_end());
            take(&Hit { path: &item.path, line, text })?;
        }
    }
}

pub fn diff(args: &DiffArgs, global: &Global) -> Outcome {
    let (left, right) = (Bundle::open(&args.left)?, Bundle::open(&args.right)?);
    let mut found = compare::manifests(&left.manifest, &right.manifest);
    let names: Vec<String> = left.names().map(str::to_owned).collect();
    for name in names.iter().filter(|name| compare::is_setting(name)) {
        let texts = [&left, &right].map(|bundle| {
            bundle
                .read(name, COMPARED)
                .and_then(Result::ok)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        });
        if let [Some(left), Some(right)] = texts {
            found.extend(compare::contents(name, &left, &right));
        }
    }
    match global.json() {
        true => {
            let rows: Vec<Value> = found
                .iter()
                .map(|it| json!({"subject": it.subject, "left": it.left, "right": it.right}))
                .collect();
            output::answer_json(&json!({"schema": "tenon.logs-diff/1", "differences": rows}))
        }
        false => output::answer(&differences(&found)),
    }
}

fn differences(found: &[Difference]) -> String {
    let mut text = String::new();
    let mut subject = "";
    for it in found {
        if it.subject != subject {
            text.push_str(&format!("{}\n", visible(&it.subject)));
            subject = &it.subject;
        }
        for (mark, side) in [('-', &it.left), ('+', &it.right)] {
            if let Some(side) = side {
                text.push_str(&format!("  {mark} {}\n", visible(side)));
            }
        }
    }
    if text.is_empty() {
        text.push_str("no difference in versions, config, kernel settings and units\n");
    }
    text
}

/// A size as people read it.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}
