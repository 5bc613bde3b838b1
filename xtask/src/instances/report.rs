//! What a new table changes, for the person who reviews it.

use std::collections::BTreeMap;

use tenon_core::max_pods::{InstanceType, Table};

/// Added, removed and changed rows as Markdown; changed pod limits first.
pub(crate) fn markdown(before: Table<'_>, after: Table<'_>) -> String {
    let old: BTreeMap<&str, InstanceType<'_>> = before.rows().map(|row| (row.name, row)).collect();
    let new: BTreeMap<&str, InstanceType<'_>> = after.rows().map(|row| (row.name, row)).collect();
    let changed: Vec<_> =
        old.iter().filter_map(|(name, row)| Some((row, new.get(name)?))).collect();
    let changed: Vec<_> = changed.into_iter().filter(|(row, now)| row != now).collect();
    let limits = changed.iter().filter(|(row, now)| pods(row) != pods(now));
    let others = changed.iter().filter(|(row, now)| pods(row) == pods(now));
    let mut text = format!("# Instance table {} → {}\n", before.head().date, after.head().date);
    section(
        &mut text,
        "Changed pod limits",
        limits.map(|(row, now)| format!("{}: {} → {} pods", row.name, pods(row), pods(now))),
    );
    section(&mut text, "Changed otherwise", others.map(|(row, _)| row.name.to_owned()));
    let added = new.values().filter(|row| !old.contains_key(row.name));
    section(&mut text, "Added", added.map(|row| format!("{}: {} pods", row.name, pods(row))));
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    section(&mut text, "Removed", removed.map(|name| (*name).to_owned()));
    text
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    text.push_str(&format!("\n## {title} ({})\n\n", lines.len()));
    for line in lines {
        text.push_str(&format!("- {line}\n"));
    }
}

/// The plain limit, by the function that serves the node.
fn pods(row: &InstanceType<'_>) -> u32 {
    tenon_core::max_pods::plain(row.enis, row.ipv4_per_eni)
}
