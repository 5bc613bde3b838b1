//! Types that the API does not list, and corrections of what it lists.
//!
//! Rows of the same grammar, each after a comment line with a date and a reason. Origin `o` adds
//! a type, `c` overrides one.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use tenon_core::max_pods::Table;

/// Puts the overlay over the API's rows.
pub(crate) fn apply(text: &str, rows: &mut BTreeMap<String, String>) -> anyhow::Result<()> {
    let mut reason = "";
    for line in text.lines() {
        if line.starts_with('#') || line.is_empty() {
            reason = line;
            continue;
        }
        let name = line.split('\t').next().unwrap_or(line);
        check(line, reason).with_context(|| format!("overlay row {name}"))?;
        let listed = rows.contains_key(name);
        match (line.ends_with("\to"), listed) {
            (true, true) => bail!(
                "{name} is listed by the API now: delete its overlay row, or mark it `c` with a reason"
            ),
            (false, false) => {
                bail!("{name} overrides a type that the API does not list: mark it `o`")
            }
            _ => rows.insert(name.to_owned(), line.to_owned()),
        };
        reason = "";
    }
    Ok(())
}

fn check(line: &str, reason: &str) -> anyhow::Result<()> {
    if Table::parse(line).is_err() || line.ends_with("\t-") {
        bail!("not a row with the origin `o` or `c`");
    }
    let date = reason.strip_prefix("# ").and_then(|rest| rest.split(' ').next());
    if !date.is_some_and(super::is_date) {
        bail!("needs a comment line before it: date, then the reason");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = "p3.2xlarge\t4\t15\t15\t8\t62464\tx\tx\t1\t4\t0\tn1:V100:16384\t-\to";

    fn overlay(text: &str, listed: &[&str]) -> anyhow::Result<BTreeMap<String, String>> {
        let mut rows = listed.iter().map(|name| ((*name).to_owned(), "api".to_owned())).collect();
        apply(text, &mut rows).map(|()| rows)
    }

    #[test]
    fn a_missing_type_is_added() {
        let rows = overlay(&format!("# 2026-11-15 retired\n{ROW}\n"), &["m5.large"]).unwrap();
        assert_eq!(rows["p3.2xlarge"], ROW);
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn a_stale_row_stops_the_run() {
        let text = format!("# 2026-11-15 retired\n{ROW}\n");
        let error = overlay(&text, &["p3.2xlarge"]).unwrap_err().to_string();
        assert!(error.contains("delete its overlay row"), "{error}");
        let corrected = text.replace("\to\n", "\tc\n");
        assert!(overlay(&corrected, &["p3.2xlarge"]).unwrap()["p3.2xlarge"].ends_with("\tc"));
        assert!(overlay(&corrected, &[]).is_err());
    }

    #[test]
    fn every_row_needs_a_reason_with_a_date() {
        for text in
            [format!("{ROW}\n"), format!("# because\n{ROW}\n"), "# 2026-11-15 x\nbad\n".into()]
        {
            assert!(overlay(&text, &[]).is_err(), "{text}");
        }
    }
}
