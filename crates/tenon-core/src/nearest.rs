//! The name somebody probably meant.

/// Finds the known name nearest to a mistyped one, for "did you mean".
///
/// Nearest is by Damerau-Levenshtein distance: at most 2, at most 3 for names over ten
/// characters, and never all of a short name's characters. A name that differs only in letter
/// case is the nearest of all. Of equally near names the first given wins.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let allowed = if length > 10 { 3 } else { 2 }.min(length.saturating_sub(1));
    known
        .into_iter()
        .map(|candidate| (score(name, candidate), candidate))
        .filter(|(score, _)| *score <= allowed)
        .min_by_key(|(score, _)| *score)
        .map(|(_, candidate)| candidate)
}

fn score(name: &str, candidate: &str) -> usize {
    if name.eq_ignore_ascii_case(candidate) { 0 } else { distance(name, candidate) }
}

/// Counts insertions, deletions, substitutions and swaps of neighbours between two words.
pub fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let same = left[i - 1] == right[j - 1];
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + usize::from(!same));
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (left, right, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kublet", "kubelet", 1),
            ("kuebelt", "kubelet", 2),
            ("flasg", "flags", 1),
            ("maxPod", "maxPods", 1),
            ("straße", "strasse", 2),
        ] {
            assert_eq!(distance(left, right), edits, "{left} {right}");
            assert_eq!(distance(right, left), edits, "{right} {left}");
        }
    }

    #[test]
    fn suggests_within_the_allowed_distance() {
        let known = ["kubelet", "cluster", "containerd", "apiServerEndpoint", "id"];
        for (name, expected) in [
            ("kublet", Some("kubelet")),
            ("KUBELET", Some("kubelet")),
            ("clutser", Some("cluster")),
            ("apiServrEndpont", Some("apiServerEndpoint")),
            ("apiServerEnd", None),
            ("kube", None),
            ("ix", Some("id")),
            ("xy", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
    }

    #[test]
    fn the_first_of_equals_wins() {
        assert_eq!(nearest("bat", ["bar", "baz"]), Some("bar"));
    }
}
