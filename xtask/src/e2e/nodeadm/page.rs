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
const HEAD: &str = "| where | field | nodeadm | Tenon | cases |";

/// Fails unless what was found is what is listed.
pub fn judge(found: &BTreeMap<Difference, BTreeSet<&str>>) -> anyhow::Result<()> {
    let seen = found.iter().map(|(difference, cases)| difference.row(&in_words(cases)));
    check(&read()?, &seen.collect())
}

/// The text of the page, which must say what was compared.
fn read() -> anyhow::Result<String> {
    let text =
        fs::read_to_string(checkout().join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
    let version = nodeadm_version()?;
    ensure!(text.contains(&version), "{PAGE} does not speak of nodeadm {version}");
    for case in CASES {
        let row = format!("| `{}` |", case.name);
        ensure!(text.contains(&row), "{PAGE} does not speak of the case {}", case.name);
    }
    Ok(text)
}

/// The cases that show a difference, by the shorter of two lists.
fn in_words(cases: &BTreeSet<&str>) -> String {
    let compared = CASES.iter().filter(|case| !case.refused_by_nodeadm).map(|case| case.name);
    let others: Vec<_> = compared.filter(|name| !cases.contains(name)).collect();
    match others.len() {
        0 => "all".into(),
        few if few < cases.len() => format!("all but {}", others.join(", ")),
        _ => cases.iter().copied().collect::<Vec<_>>().join(", "),
    }
}

/// Compares the rows of the page with those that were seen.
fn check(text: &str, seen: &BTreeSet<String>) -> anyhow::Result<()> {
    let listed = listed(text)?;
    let lacking = |one: &BTreeSet<String>, other| {
        let rows: Vec<_> = one.difference(other).cloned().collect();
        format!("{}:\n{}", rows.len(), rows.join("\n"))
    };
    ensure!(
        listed == *seen,
        "differences that are not on {PAGE}, {}\nrows of it that were not seen, {}",
        lacking(seen, &listed),
        lacking(&listed, seen),
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
        | where | field | nodeadm | Tenon | cases |\n|---|---|---|---|---|\n\
        | `/a` | `(mode)` | `1` | `2` | all |\n";
    const ROW: &str = "| `/a` | `(mode)` | `1` | `2` | all |";

    fn seen(rows: &[&str]) -> BTreeSet<String> {
        rows.iter().map(|row| (*row).to_owned()).collect()
    }

    #[test]
    fn the_page_speaks_of_every_case_and_gives_every_reason() {
        assert!(!listed(&read().unwrap()).unwrap().is_empty());
    }

    #[test]
    fn what_is_listed_and_seen_passes() {
        check(SAMPLE, &seen(&[ROW])).unwrap();
    }

    #[test]
    fn an_unlisted_difference_fails_and_is_shown() {
        let rows = [ROW, "| `/b` | – | – | `file 0600` | plain |"];
        let error = check(SAMPLE, &seen(&rows)).unwrap_err().to_string();
        assert!(error.contains("not on docs/differences-from-nodeadm.md, 1:\n| `/b`"), "{error}");
        assert!(!error.contains("`/a`"), "{error}");
    }

    #[test]
    fn a_row_that_was_not_seen_fails() {
        let error = check(SAMPLE, &seen(&[])).unwrap_err().to_string();
        assert!(error.contains("were not seen, 1:\n| `/a`"), "{error}");
    }

    #[test]
    fn a_difference_in_another_case_fails() {
        let elsewhere = ROW.replace("all", "plain");
        check(SAMPLE, &seen(&[&elsewhere])).unwrap_err();
    }

    #[test]
    fn cases_are_named_by_the_shorter_list() {
        let all = CASES.iter().filter(|case| !case.refused_by_nodeadm).map(|case| case.name);
        let all: BTreeSet<_> = all.collect();
        assert_eq!(in_words(&all), "all");
        let but: BTreeSet<_> = all.iter().copied().filter(|name| *name != "plain").collect();
        assert_eq!(in_words(&but), "all but plain");
        assert_eq!(in_words(&BTreeSet::from(["ipv6", "plain"])), "ipv6, plain");
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
