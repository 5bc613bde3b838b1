//! The page that lists the differences: a section for each reason, in it the reason as prose and the
//! rows that it explains.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, ensure};

use super::cases::CASES;
use super::difference::Difference;
use crate::checkout;
use crate::lab::nodeadm_version;

const PAGE: &str = "docs/differences-from-nodeadm.md";
const HEAD: &str = "| where | field | nodeadm | Tenon |";

/// Fails unless what was found is what is listed.
pub fn judge(found: &BTreeMap<Difference, BTreeSet<&str>>) -> anyhow::Result<()> {
    let text =
        fs::read_to_string(checkout().join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
    let version = nodeadm_version()?;
    ensure!(text.contains(&version), "{PAGE} does not speak of nodeadm {version}");
    let unnamed = CASES.iter().find(|case| !text.contains(&format!("| `{}` |", case.name)));
    ensure!(unnamed.is_none(), "{PAGE} does not name the case {}", unnamed.map_or("", |c| c.name));
    let seen = found.iter().map(|(difference, cases)| {
        let cases = cases.iter().copied().collect::<Vec<_>>().join(", ");
        (difference.row(), cases)
    });
    check(&text, &seen.collect())
}

/// Compares the rows of the page with those that were seen, each with its cases.
fn check(text: &str, seen: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let listed = listed(text)?;
    let unlisted = seen.iter().filter(|(row, _)| !listed.contains(*row));
    let unlisted: Vec<_> = unlisted.map(|(row, cases)| format!("{row}  ({cases})")).collect();
    let stale: Vec<_> = listed.iter().filter(|row| !seen.contains_key(*row)).cloned().collect();
    ensure!(
        unlisted.is_empty() && stale.is_empty(),
        "{} differences are not on {PAGE}:\n{}\n{} rows of it were not seen:\n{}",
        unlisted.len(),
        unlisted.join("\n"),
        stale.len(),
        stale.join("\n"),
    );
    Ok(())
}

/// The rows of the page. Each stands once, below prose that gives its reason.
fn listed(text: &str) -> anyhow::Result<BTreeSet<String>> {
    let mut rows = BTreeSet::new();
    for section in text.split("\n## ").skip(1) {
        let Some((reason, table)) = section.split_once(HEAD) else { continue };
        let (title, prose) = reason.split_once('\n').unwrap_or((reason, ""));
        ensure!(!prose.trim().is_empty(), "{PAGE}: `{title}` gives no reason");
        for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
            ensure!(rows.insert(row.to_owned()), "{PAGE}: listed twice: {row}");
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "# Title\n\n## Safer modes\n\nOnly root reads secrets.\n\n\
        | where | field | nodeadm | Tenon |\n|---|---|---|---|\n| `/a` | `(mode)` | `1` | `2` |\n";

    fn seen(rows: &[&str]) -> BTreeMap<String, String> {
        rows.iter().map(|row| ((*row).to_owned(), "plain".to_owned())).collect()
    }

    #[test]
    fn what_is_listed_and_seen_passes() {
        check(SAMPLE, &seen(&["| `/a` | `(mode)` | `1` | `2` |"])).unwrap();
    }

    #[test]
    fn an_unlisted_difference_fails_and_is_shown_with_its_case() {
        let rows = ["| `/a` | `(mode)` | `1` | `2` |", "| `/b` | – | – | `file 0600` |"];
        let error = check(SAMPLE, &seen(&rows)).unwrap_err().to_string();
        assert!(error.contains("`/b` | – | – | `file 0600` |  (plain)"), "{error}");
        assert!(!error.contains("`/a`"), "{error}");
    }

    #[test]
    fn a_row_that_was_not_seen_fails() {
        let error = check(SAMPLE, &seen(&[])).unwrap_err().to_string();
        assert!(error.contains("1 rows of it were not seen:\n| `/a`"), "{error}");
    }

    #[test]
    fn rows_without_a_reason_or_twice_fail() {
        let silent = SAMPLE.replace("Only root reads secrets.\n", "");
        assert!(listed(&silent).unwrap_err().to_string().contains("gives no reason"));
        let second = SAMPLE.split_once("# Title\n").unwrap().1;
        let twice = format!("{SAMPLE}{second}");
        assert!(listed(&twice).unwrap_err().to_string().contains("listed twice"));
    }
}
