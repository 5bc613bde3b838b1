//! OpenSCAP's verdicts: on a root (`e2e/scan.sh`) and on the booted machine, against the list of
//! rules that may end otherwise than well in `docs/image-cis.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::super::machine::{Machine, text};
use super::super::stage::Stage;
use super::page::{self, PAGE};
use crate::checkout;
use crate::lab::{SCAP, must};

/// The lists of the levels; a level has the rules of those before it, too.
const HEADINGS: [&str; 2] =
    ["Rules that do not pass, and why", "Rules of level 2 that do not pass, and why"];
const PROFILE: &str = "xccdf_org.ssgproject.content_profile_cis_level1_server";
const CONTENT: &str = "/usr/share/xml/scap/ssg/content/ssg-debian12-ds.xml";
const RESULTS: &str = "/root/results.xml";
/// All that a rule can come to.
const WORDS: &[&str] = &["pass", "fail", "error", "unknown", "notchecked", "notapplicable"];
/// What a rule may come to without a reason.
const WELL: &[&str] = &["pass", "notapplicable"];

/// Rules and what became of them.
pub struct Verdict(BTreeMap<String, String>);

/// What was judged: a column of the list.
#[derive(Clone, Copy)]
pub enum Judged {
    Directory = 0,
    Machine = 1,
}

/// Lets OpenSCAP judge a root by a level of CIS.
pub fn scan(stage: &Stage, root: &Path, level: usize) -> anyhow::Result<Verdict> {
    let results = stage.place.join("results.xml");
    let scanner = SCAP.ready(&stage.cache)?;
    let mut scan = Command::new(checkout().join("e2e/scan.sh"));
    must(scan.args([root, &scanner, &results]).arg(level.to_string()))?;
    read(&fs::read_to_string(&results)?)
}

/// Lets OpenSCAP judge a machine that has the scanner laid over its root.
pub fn scan_machine(machine: &Machine) -> anyhow::Result<Verdict> {
    let words = ["oscap", "xccdf", "eval", "--results", RESULTS, "--profile", PROFILE, CONTENT];
    let output = machine.run_within(600, &words)?;
    match output.status.code() {
        // 2: some rules do not pass.
        Some(0 | 2) => read(&machine.must(&["cat", RESULTS])?),
        code => bail!("oscap ended with {code:?}: {}", text(&output)),
    }
}

/// Reads results of XCCDF; rules outside the profile are left out.
fn read(xml: &str) -> anyhow::Result<Verdict> {
    let parts = xml.split("<rule-result idref=\"xccdf_org.ssgproject.content_rule_").skip(1);
    let pairs = parts.filter_map(|part| {
        let (rule, rest) = part.split_once('"')?;
        let (result, _) = rest.split_once("<result>")?.1.split_once('<')?;
        (result != "notselected").then(|| (rule.to_owned(), result.to_owned()))
    });
    let verdict = Verdict(pairs.collect());
    ensure!(verdict.0.len() > 300, "OpenSCAP judged {} rules only", verdict.0.len());
    Ok(verdict)
}

impl Verdict {
    fn count(&self, result: &str) -> usize {
        self.0.values().filter(|found| *found == result).count()
    }

    /// What each rule came to that did not come out well.
    fn odd(&self) -> BTreeMap<&str, &str> {
        let pairs = self.0.iter().map(|(rule, result)| (rule.as_str(), result.as_str()));
        pairs.filter(|(_, result)| !WELL.contains(result)).collect()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        for (at, result) in WORDS.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(formatter, "{comma}{} {result}", self.count(result))?;
        }
        Ok(())
    }
}

/// Every rule that does not come out well is on the page with what it came to, and none there
/// comes out otherwise.
pub fn compare(found: &Verdict, judged: Judged, level: usize) -> anyhow::Result<()> {
    let text = page::read()?;
    let known = expected(&text, judged, level)?;
    let odd = found.odd();
    let rules = known.keys().chain(odd.keys());
    let differs = |rule: &&&str| known.get(**rule) != odd.get(**rule);
    let told: BTreeMap<_, _> = rules
        .filter(differs)
        .map(|rule| {
            let listed = known.get(rule).copied().unwrap_or("nothing");
            (
                *rule,
                format!(
                    "listed {listed}, found {}",
                    found.0.get(*rule).map_or("nothing", String::as_str)
                ),
            )
        })
        .collect();
    ensure!(told.is_empty(), "{PAGE} does not say what OpenSCAP says: {told:#?}");
    ensure!(found.count("pass") >= 290, "only {} rules pass", found.count("pass"));
    Ok(())
}

/// The rules that may not come out well, and what they come to.
fn expected(page: &str, judged: Judged, level: usize) -> anyhow::Result<BTreeMap<&str, &str>> {
    let mut expected = BTreeMap::new();
    for heading in HEADINGS.iter().take(level) {
        for (rule, cells) in page::rows(page, heading)? {
            let word = *cells.get(judged as usize).context("a row without a result")?;
            ensure!(WORDS.contains(&word), "{PAGE}: {rule} ends in {word}");
            if !WELL.contains(&word) {
                expected.insert(rule, word);
            }
        }
    }
    Ok(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What OpenSCAP would print of these, and of so many that pass.
    fn verdict(rules: &[(&str, &str)]) -> Verdict {
        let filler: Vec<_> = (0..310).map(|at| format!("rule_{at}")).collect();
        let filler = filler.iter().map(|rule| (rule.as_str(), "pass"));
        let one = |(rule, result): (&str, &str)| {
            format!(
                "<rule-result idref=\"xccdf_org.ssgproject.content_rule_{rule}\" weight=\"1.0\">\n <result>{result}</result></rule-result>"
            )
        };
        read(&rules.iter().copied().chain(filler).map(one).collect::<String>()).unwrap()
    }

    #[test]
    fn results_are_read_and_counted() {
        let found = verdict(&[("b", "fail"), ("c", "notselected"), ("d", "notchecked")]);
        assert_eq!((found.count("pass"), found.0.len()), (310, 312));
        assert!(found.to_string().starts_with("310 pass, 1 fail, 0 error"));
        assert_eq!(found.odd().into_keys().collect::<Vec<_>>(), ["b", "d"]);
    }

    #[test]
    fn a_result_needs_a_reason_and_a_reason_needs_a_result() {
        let page = page::read().unwrap();
        for (judged, level) in
            [(Judged::Directory, 1), (Judged::Machine, 1), (Judged::Directory, 2)]
        {
            let known: Vec<_> = expected(&page, judged, level).unwrap().into_iter().collect();
            assert!(known.len() > 10);
            compare(&verdict(&known), judged, level).unwrap();
            let new: Vec<_> = known.iter().copied().chain([("no_such_rule", "unknown")]).collect();
            let said = compare(&verdict(&new), judged, level).unwrap_err().to_string();
            assert!(said.contains("no_such_rule"), "{said}");
            let said = compare(&verdict(&known[1..]), judged, level).unwrap_err().to_string();
            assert!(said.contains(known[0].0), "{said}");
        }
    }
}
