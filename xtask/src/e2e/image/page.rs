//! The lists of `docs/image-cis.md`: rows of a table under a heading, each with a reason.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, ensure};

use crate::checkout;

pub const PAGE: &str = "docs/image-cis.md";

pub fn read() -> anyhow::Result<String> {
    fs::read_to_string(checkout().join(PAGE)).context(PAGE)
}

/// Rows below a heading by their first cell, which is code; the other cells as they stand.
pub fn rows<'a>(page: &'a str, heading: &str) -> anyhow::Result<BTreeMap<&'a str, Vec<&'a str>>> {
    let title = format!("## {heading}\n");
    let (_, rest) = page.split_once(&title).with_context(|| format!("{PAGE} has no {heading}"))?;
    let section = rest.split("\n## ").next().unwrap_or_default();
    let mut rows = BTreeMap::new();
    for line in section.lines() {
        let Some((key, cells)) = line.strip_prefix("| `").and_then(|rest| rest.split_once("` | "))
        else {
            continue;
        };
        let cells: Vec<_> = cells.trim_end_matches(" |").split(" | ").collect();
        let reason = cells.last().copied().unwrap_or_default();
        ensure!(reason.len() >= 20, "{PAGE}: {key} has no reason");
        ensure!(rows.insert(key, cells).is_none(), "{PAGE} has {key} twice");
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_with_its_section() {
        let page = "# T\n\n## One\n| Rule | Why |\n|---|---|\n| `a` | x | a reason that is long enough |\n\n## Two\n| `b` | short |\n";
        let one = rows(page, "One").unwrap();
        assert_eq!(one["a"], ["x", "a reason that is long enough"]);
        assert_eq!(one.len(), 1);
        assert!(rows(page, "Two").unwrap_err().to_string().contains("no reason"));
        assert!(rows(page, "Three").is_err());
    }
}
