//! Rules of benchmarks, and what answers each: a resource, an exception, or a line of the
//! catalogue that says why nothing does. Every rule has an answer, or the tests fail.
//!
//! ```text
//! debian cis level 1           family, benchmark, words for people
//! [rules]                      ids that resources and exceptions of the profiles answer
//! account_unique_id
//! [manual] somebody must look  ids that share an answer, and the reason
//! grub2_password
//! [as debian12-cis-level1]     ids that another catalogue answers; `*` means all of it
//! *
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::profile::Profile;

/// The shipped catalogues by name, each after those that it refers to.
static SHIPPED: &[(&str, &str)] = &[
    ("debian12-cis-level1", include_str!("../../../../profiles/catalogue/debian12-cis-level1.txt")),
    ("al2023-cis-level1", include_str!("../../../../profiles/catalogue/al2023-cis-level1.txt")),
    ("debian12-cis-level2", include_str!("../../../../profiles/catalogue/debian12-cis-level2.txt")),
    ("al2023-cis-level2", include_str!("../../../../profiles/catalogue/al2023-cis-level2.txt")),
    ("al2023-stig", include_str!("../../../../profiles/catalogue/al2023-stig.txt")),
];

/// A reason of fewer letters says nothing.
const SHORTEST_REASON: usize = 20;

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
    /// Every rule, and what the file itself answers.
    pub rules: BTreeMap<String, Said>,
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
    read_all(SHIPPED).unwrap_or_default().into_values().collect()
}

/// Reads catalogues in an order in which each knows those that it refers to.
fn read_all(texts: &[(&str, &str)]) -> Result<BTreeMap<String, Catalogue>, String> {
    let mut known = BTreeMap::new();
    for (name, text) in texts {
        let one = Catalogue::read(text, &known).map_err(|told| format!("{name}: {told}"))?;
        known.insert((*name).to_owned(), one);
    }
    Ok(known)
}

/// A rule's answer in the file: kind and reason; None for what profiles answer.
pub type Said = Option<(Answer, String)>;

/// What the heading above a line says of it.
enum Heading<'a> {
    Said(Said),
    As(&'a Catalogue),
}

impl<'a> Heading<'a> {
    /// Reads the words between the brackets and the reason behind them.
    fn read(
        word: &str,
        reason: &str,
        known: &'a BTreeMap<String, Catalogue>,
    ) -> Result<Self, String> {
        if let Some(name) = word.strip_prefix("as ") {
            let other = known.get(name).ok_or(format!("no catalogue `{name}`"))?;
            return Ok(Heading::As(other));
        }
        if (word, reason) == ("rules", "") {
            return Ok(Heading::Said(None));
        }
        if reason.len() < SHORTEST_REASON {
            return Err("the answer has no reason".to_owned());
        }
        let answer = Answer::ALL.iter().find(|(known, _)| *known == word);
        let (_, kind) = answer.ok_or(format!("no answer `{word}`"))?;
        Ok(Heading::Said(Some((*kind, reason.to_owned()))))
    }

    /// The rules that a line below the heading stands for.
    fn rules(&self, line: &str) -> Result<Vec<(String, Said)>, String> {
        match self {
            Heading::Said(said) => Ok(vec![(line.to_owned(), said.clone())]),
            Heading::As(other) if line == "*" => Ok(other.rules.clone().into_iter().collect()),
            Heading::As(other) => match other.rules.get(line) {
                Some(said) => Ok(vec![(line.to_owned(), said.clone())]),
                None => Err(format!("that catalogue has no `{line}`")),
            },
        }
    }
}

impl Catalogue {
    /// Reads a file; a mistake is told with its line.
    fn read(text: &str, known: &BTreeMap<String, Catalogue>) -> Result<Catalogue, String> {
        let mut lines =
            text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
        let (_, title) = lines.next().ok_or("the file is empty")?;
        let mut words = title.split(' ').map(str::to_owned);
        let (family, profile) =
            (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut rules = BTreeMap::new();
        let mut heading = Heading::Said(None);
        for (at, line) in lines {
            let told = |what: String| format!("line {}: {what}", at + 1);
            if let Some((word, reason)) = line.strip_prefix('[').and_then(|l| l.split_once(']')) {
                heading = Heading::read(word, reason.trim(), known).map_err(told)?;
                continue;
            }
            for (rule, said) in heading.rules(line).map_err(told)? {
                if rules.insert(rule.clone(), said).is_some() {
                    return Err(told(format!("{rule} stands here twice")));
                }
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

    fn below(name: &str, family: &str, found: &mut Vec<Profile>) {
        if !found.iter().any(|profile| profile.name == name) {
            let profile = profile::shipped(name).unwrap();
            found.push(profile.clone());
            profile.stands_on(family).for_each(|name| below(name, family, found));
        }
    }

    #[test]
    fn every_rule_of_every_catalogue_has_an_answer() {
        let mut sizes = Vec::new();
        for (name, catalogue) in read_all(SHIPPED).unwrap() {
            let mut profiles = Vec::new();
            below(&catalogue.profile, &catalogue.family, &mut profiles);
            let coverage = catalogue.coverage(&profiles);
            assert!(coverage.unanswered.is_empty(), "{name}: {:#?}", coverage.unanswered);
            sizes.push((name, catalogue.rules.len()));
        }
        let expected = [
            ("al2023-cis-level1", 259),
            ("al2023-cis-level2", 356),
            ("al2023-stig", 481),
            ("debian12-cis-level1", 403),
            ("debian12-cis-level2", 507),
        ];
        assert_eq!(sizes, expected.map(|(name, size)| (name.to_owned(), size)));
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
            ("debian cis\n[as other]\n*\n", "line 2: no catalogue `other`"),
        ];
        for (text, told) in bad {
            assert_eq!(Catalogue::read(text, &BTreeMap::new()).unwrap_err(), told);
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
        let catalogue = Catalogue::read(text, &BTreeMap::new()).unwrap();
        let coverage = catalogue.coverage(&[profile.unwrap()]);
        assert_eq!((coverage.resources, coverage.unanswered), (1, vec!["nobody".to_owned()]));
        assert_eq!(coverage.others[1], ("manual", 1));
    }

    #[test]
    fn a_catalogue_takes_answers_of_another() {
        let one = "debian cis one\n[manual] somebody has to look at it\na\nb\n";
        let all = "debian cis all\n[as one]\n*\n[rules]\nc\n";
        let some = "debian cis some\n[as one]\na\n";
        let read = read_all(&[("one", one), ("all", all), ("some", some)]).unwrap();
        assert_eq!(read["all"].rules.len(), 3);
        assert_eq!(read["some"].rules["a"], read["one"].rules["a"]);
        let absent = read_all(&[("one", one), ("x", "debian cis x\n[as one]\nc\n")]);
        assert_eq!(absent.unwrap_err(), "x: line 3: that catalogue has no `c`");
    }
}
