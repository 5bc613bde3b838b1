//! Names of instance types: patterns over them, and the nearest ones to a mistyped name.

use super::instances::Table;
use crate::nearest::distance;

/// How many names are offered for a mistyped one.
const OFFERED: usize = 3;

/// Longest list that the braces of one pattern may stand for.
const MAX_ALTERNATIVES: usize = 64;

/// True when the text holds a sign of a pattern.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '{'])
}

/// A pattern taken apart: `{c,m}7g.large` stands for two plain ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    alternatives: Vec<String>,
}

impl Pattern {
    /// Takes a pattern apart; None when its braces do not close or stand for too much.
    pub fn parse(text: &str) -> Option<Self> {
        let mut done = Vec::new();
        let mut open = vec![text.to_owned()];
        while let Some(text) = open.pop() {
            match braces(&text)? {
                Some(expanded) => open.extend(expanded),
                None => done.push(text),
            }
            if done.len() + open.len() > MAX_ALTERNATIVES {
                return None;
            }
        }
        Some(Pattern { alternatives: done })
    }

    pub fn matches(&self, name: &str) -> bool {
        self.alternatives.iter().any(|pattern| matches(pattern.as_bytes(), name.as_bytes()))
    }
}

/// The texts that the first pair of braces stands for. The outer None is a pair that does not
/// close or holds another one; the inner None is a text without braces.
fn braces(text: &str) -> Option<Option<Vec<String>>> {
    let Some(start) = text.find('{') else {
        return if text.contains('}') { None } else { Some(None) };
    };
    let end = start + text[start..].find('}')?;
    let inside = &text[start + 1..end];
    if inside.contains('{') {
        return None;
    }
    let texts =
        inside.split(',').map(|word| format!("{}{word}{}", &text[..start], &text[end + 1..]));
    Some(Some(texts.collect()))
}

/// `*` is any run of characters, `?` any one. Goes back to the last star only, so the work is
/// bounded by the product of the lengths.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((star_p, star_n)) = star else { return false };
                star = Some((star_p, star_n + 1));
                (p, n) = (star_p + 1, star_n + 1);
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// The three known names nearest to a name: of its own family if that is known, else of all.
pub fn nearest_types<'a>(name: &str, table: Table<'a>) -> Vec<&'a str> {
    let family = name.split('.').next().unwrap_or(name);
    let known: Vec<&str> = table.rows().map(|row| row.name).collect();
    let siblings: Vec<&str> =
        known.iter().copied().filter(|other| other.split('.').next() == Some(family)).collect();
    let mut candidates = if siblings.is_empty() { known } else { siblings };
    // A distance costs far more than a comparison: each is computed once.
    candidates.sort_by_cached_key(|candidate| (distance(name, candidate), *candidate));
    candidates.truncate(OFFERED);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("m7i.*", "m7i.large", true),
            ("m7i.*", "m7i-flex.large", false),
            ("*.metal", "m5.metal", true),
            ("*.metal", "m5.metal-48xl", false),
            ("{c,m}7g.large", "c7g.large", true),
            ("{c,m}7g.large", "r7g.large", false),
            ("m?.{large,xlarge}", "m5.xlarge", true),
            ("*", "anything", true),
            ("m5.large", "m5.large", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "ab-ba", false),
            ("{m5,}.large", ".large", true),
        ] {
            let parsed = Pattern::parse(pattern).unwrap();
            assert_eq!(parsed.matches(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn bad_braces_are_refused() {
        for pattern in ["{a,b", "a}b", "{a,{b}}"] {
            assert_eq!(Pattern::parse(pattern), None, "{pattern}");
        }
        assert_eq!(Pattern::parse(&"{a,b}".repeat(20)), None);
    }

    #[test]
    fn a_hostile_pattern_ends_soon() {
        let pattern = Pattern::parse(&format!("{}b", "a*".repeat(200))).unwrap();
        assert!(!pattern.matches(&"a".repeat(2000)));
    }

    #[test]
    fn the_family_comes_first() {
        let near = nearest_types("m5.larg", Table::embedded());
        assert_eq!(near.len(), 3);
        assert_eq!(near[0], "m5.large");
        assert!(near.iter().all(|name| name.starts_with("m5.")), "{near:?}");
        assert_eq!(nearest_types("m55.large", Table::embedded())[0], "m5.large");
    }
}
