//! OpenSCAP's verdict on a root (`e2e/scan.sh`), against the list of known failures in
//! `docs/image-cis.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

use super::super::stage::Stage;
use crate::checkout;
use crate::lab::{SCAP, must};

const PAGE: &str = "docs/image-cis.md";

/// Rules and what became of them.
pub struct Verdict(BTreeMap<String, String>);

/// Lets OpenSCAP judge a root.
pub fn scan(stage: &Stage, root: &Path) -> anyhow::Result<Verdict> {
    let results = stage.place.join("results.xml");
    let scanner = SCAP.ready(&stage.cache)?;
    must(Command::new(checkout().join("e2e/scan.sh")).args([root, &scanner, &results]))?;
    let verdict = read(&fs::read_to_string(&results)?);
    ensure!(verdict.0.len() > 300, "OpenSCAP judged {} rules only", verdict.0.len());
    Ok(verdict)
}

/// Reads results of XCCDF; rules outside the profile are left out.
fn read(xml: &str) -> Verdict {
    let parts = xml.split("<rule-result idref=\"xccdf_org.ssgproject.content_rule_").skip(1);
    let pairs = parts.filter_map(|part| {
        let (rule, rest) = part.split_once('"')?;
        let (result, _) = rest.split_once("<result>")?.1.split_once('<')?;
        (result != "notselected").then(|| (rule.to_owned(), result.to_owned()))
    });
    Verdict(pairs.collect())
}

impl Verdict {
    fn count(&self, result: &str) -> usize {
        self.0.values().filter(|found| *found == result).count()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        for (at, result) in RESULTS.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(formatter, "{comma}{} {result}", self.count(result))?;
        }
        Ok(())
    }
}

const RESULTS: &[&str] = &["pass", "fail", "error", "unknown", "notchecked", "notapplicable"];

/// Every failure that is left is on the page with its reason, and none there passes.
pub fn compare(after: &Verdict) -> anyhow::Result<()> {
    let page = fs::read_to_string(checkout().join(PAGE)).context(PAGE)?;
    let known = exceptions(&page);
    let failed = after.0.iter().filter(|(_, result)| *result == "fail").map(|(rule, _)| rule);
    let new: Vec<_> = failed.filter(|rule| !known.contains_key(rule.as_str())).collect();
    ensure!(new.is_empty(), "rules fail that {PAGE} gives no reason for: {new:?}");
    let stale: Vec<_> = known
        .keys()
        .filter(|rule| after.0.get(**rule).is_none_or(|found| found != "fail"))
        .collect();
    ensure!(stale.is_empty(), "{PAGE} lists rules that do not fail: {stale:?}");
    ensure!(after.count("pass") >= 290, "only {} rules pass", after.count("pass"));
    Ok(())
}

/// Rows whose first cell is a rule: rule to reason.
fn exceptions(page: &str) -> BTreeMap<&str, &str> {
    page.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(rule, reason)| (rule, reason.trim_end_matches(" |")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = "<rule-result idref=\"xccdf_org.ssgproject.content_rule_";

    fn verdict(rules: &[(&str, &str)]) -> Verdict {
        let one = |(rule, result): &(&str, &str)| {
            format!("{RESULT}{rule}\" weight=\"1.0\">\n <result>{result}</result></rule-result>")
        };
        read(&rules.iter().map(one).collect::<String>())
    }

    #[test]
    fn results_are_read_and_counted() {
        let found = verdict(&[("a", "pass"), ("b", "fail"), ("c", "notselected"), ("d", "pass")]);
        assert_eq!(found.count("pass"), 2);
        assert_eq!(found.0.len(), 3);
        assert!(found.to_string().starts_with("2 pass, 1 fail, 0 error"));
    }

    #[test]
    fn a_failure_needs_a_reason_and_a_reason_needs_a_failure() {
        let page = fs::read_to_string(checkout().join(PAGE)).unwrap();
        let known: Vec<_> = exceptions(&page).into_keys().map(|rule| (rule, "fail")).collect();
        assert!(known.len() > 10);
        let filler: Vec<_> = (0..290).map(|at| format!("rule_{at}")).collect();
        let passing = filler.iter().map(|rule| (rule.as_str(), "pass"));
        let whole: Vec<_> = known.iter().copied().chain(passing).collect();
        compare(&verdict(&whole)).unwrap();
        let new: Vec<_> = whole.iter().copied().chain([("no_such_rule", "fail")]).collect();
        assert!(compare(&verdict(&new)).unwrap_err().to_string().contains("no_such_rule"));
        let mended = verdict(&whole[1..]);
        assert!(compare(&mended).unwrap_err().to_string().contains(whole[0].0));
    }

    #[test]
    fn every_reason_says_something() {
        let page = fs::read_to_string(checkout().join(PAGE)).unwrap();
        for (rule, reason) in exceptions(&page) {
            assert!(reason.len() >= 20, "{rule}: {reason}");
        }
    }
}
