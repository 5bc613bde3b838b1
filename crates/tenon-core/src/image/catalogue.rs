//! Rules of benchmarks, and what answers each: a resource, an exception, or a line of the
//! catalogue that says why nothing does. Every rule has an answer, or the tests fail.
//!
//! ```text
//! debian cis level 1           family, benchmark, words for people
//! [rules]                      ids that resources and exceptions of the profiles answer
//! account_unique_id
//! [manual] somebody must look  ids that share an answer, and the reason
//! grub2_password
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::profile::Profile;

/// The shipped catalogues.
static SHIPPED: &[&str] = &[
    include_str!("../../../../profiles/catalogue/debian12-cis-level1.txt"),
    include_str!("../../../../profiles/catalogue/al2023-cis-level1.txt"),
];

/// Why a rule needs no resource of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// The distribution's own state satisfies it; nothing is written.
    Given,
    Manual,
    NotApplicable,
    /// Another rule was chosen instead.
    Other,
    /// It asks for what a node cannot do or what this image does not do.
    NotDone,
}

impl Answer {
    const ALL: &[(&str, Answer)] = &[
        ("given", Answer::Given),
        ("manual", Answer::Manual),
        ("not applicable", Answer::NotApplicable),
        ("other rule chosen", Answer::Other),
        ("not done", Answer::NotDone),
    ];

    /// The word of the catalogue for it.
    pub fn word(self) -> &'static str {
        Answer::ALL.iter().find(|(_, answer)| *answer == self).map_or("", |(word, _)| word)
    }
}

/// One benchmark for one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    pub family: String,
    /// The profile that answers it.
    pub profile: String,
    pub title: String,
    /// Every rule, and what the file itself answers: kind and reason.
    pub rules: BTreeMap<String, Option<(Answer, String)>>,
}

/// How the rules of a catalogue are answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    pub resources: usize,
    pub exceptions: usize,
    /// By the word of the answer, in order of the words.
    pub others: Vec<(&'static str, usize)>,
    /// Rules that nothing answers.
    pub unanswered: Vec<String>,
}

/// All shipped catalogues; the tests hold that each one reads.
pub fn shipped() -> Vec<Catalogue> {
    SHIPPED.iter().filter_map(|text| Catalogue::read(text).ok()).collect()
}

impl Catalogue {
    /// Reads a file; a mistake is told with its line.
    pub fn read(text: &str) -> Result<Catalogue, String> {
        let mut lines =
            text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
        let (_, title) = lines.next().ok_or("the file is empty")?;
        let mut words = title.split(' ').map(str::to_owned);
        let (family, profile) =
            (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut rules = BTreeMap::new();
        let mut answer = None;
        for (at, line) in lines {
            match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some(("rules", "")) => answer = None,
                Some((word, reason)) if reason.trim().len() >= 20 => {
                    let known = Answer::ALL.iter().find(|(known, _)| *known == word);
                    let (_, kind) = known.ok_or(format!("line {}: no answer `{word}`", at + 1))?;
                    answer = Some((*kind, reason.trim().to_owned()));
                }
                Some(_) => return Err(format!("line {}: the answer has no reason", at + 1)),
                None if rules.insert(line.to_owned(), answer.clone()).is_some() => {
                    return Err(format!("line {}: {line} stands here twice", at + 1));
                }
                None => {}
            }
        }
        Ok(Catalogue { family, profile, title: title.to_owned(), rules })
    }

    /// How these profiles, on the family of the catalogue, answer its rules.
    pub fn coverage(&self, profiles: &[Profile]) -> Coverage {
        let wishes = profiles.iter().flat_map(|profile| &profile.wishes);
        let here = wishes.filter(|(_, scope)| {
            scope.families.is_empty() || scope.families.contains(&self.family)
        });
        let by_resource: BTreeSet<&str> =
            here.flat_map(|(wish, _)| wish.rules.iter().map(String::as_str)).collect();
        let exceptions = profiles.iter().flat_map(|profile| &profile.exceptions);
        let by_exception: BTreeSet<&str> =
            exceptions.filter_map(|one| one.rule.as_deref()).collect();
        let mut coverage = Coverage::default();
        let mut others: BTreeMap<Answer, usize> = BTreeMap::new();
        for (rule, answer) in &self.rules {
            match answer {
                _ if by_exception.contains(rule.as_str()) => coverage.exceptions += 1,
                _ if by_resource.contains(rule.as_str()) => coverage.resources += 1,
                Some((answer, _)) => *others.entry(*answer).or_default() += 1,
                None => coverage.unanswered.push(rule.clone()),
            }
        }
        let count = |(word, answer): &(&'static str, Answer)| {
            (*word, others.get(answer).copied().unwrap_or(0))
        };
        coverage.others = Answer::ALL.iter().map(count).collect();
        coverage
    }

    /// The figures in words.
    pub fn words(&self, coverage: &Coverage) -> String {
        let others: Vec<_> =
            coverage.others.iter().map(|(word, count)| format!("{count} {word}")).collect();
        format!(
            "{}: {} rules\n  {} by resources, {} by exceptions,\n  {}\n",
            self.title,
            self.rules.len(),
            coverage.resources,
            coverage.exceptions,
            others.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::profile;

    #[test]
    fn every_rule_of_every_catalogue_has_an_answer() {
        let profiles: Vec<_> = ["base", "cis"].map(|name| profile::shipped(name).unwrap()).into();
        let sizes: Vec<usize> = SHIPPED
            .iter()
            .map(|text| {
                let catalogue = Catalogue::read(text).unwrap();
                let coverage = catalogue.coverage(&profiles);
                assert!(
                    coverage.unanswered.is_empty(),
                    "{}: {:#?}",
                    catalogue.title,
                    coverage.unanswered
                );
                catalogue.rules.len()
            })
            .collect();
        assert_eq!(sizes, [403, 259]);
    }

    #[test]
    fn mistakes_have_a_line() {
        let bad = [
            ("debian cis\n[rules]\na\na\n", "line 4: a stands here twice"),
            ("debian cis\n[manual]\na\n", "line 2: the answer has no reason"),
            (
                "debian cis\n[perhaps] a reason that is long enough\na\n",
                "line 2: no answer `perhaps`",
            ),
        ];
        for (text, told) in bad {
            assert_eq!(Catalogue::read(text).unwrap_err(), told);
        }
    }

    #[test]
    fn a_rule_without_answer_is_found() {
        let text =
            "debian cis x\n[rules]\nnobody\nseen\n[manual] somebody has to look at it\nlook\n";
        let profile = Profile::read(
            "p",
            "about='a'\n[[sysctl]]\nkey='a'\nvalue='1'\nreason='r'\nrules=['seen']\n",
        );
        let coverage = Catalogue::read(text).unwrap().coverage(&[profile.unwrap()]);
        assert_eq!((coverage.resources, coverage.unanswered), (1, vec!["nobody".to_owned()]));
        assert_eq!(coverage.others[1], ("manual", 1));
    }
}
