//! Which lines of a small text changed, for `plan --diff`.

/// Above this many lines on either side only a count is shown.
const MOST_LINES: usize = 400;

/// Lines led by `- ` and `+ `, without context. Bytes that are not text give no lines.
pub fn lines(old: &[u8], new: &[u8]) -> Vec<String> {
    let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new)) else {
        return vec![format!("(not text: {} bytes, then {} bytes)", old.len(), new.len())];
    };
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len().max(new.len()) > MOST_LINES {
        return vec![format!("({} lines, then {} lines)", old.len(), new.len())];
    }
    walk(&old, &new, &common_lengths(&old, &new))
}

/// `table[i][j]`: length of the longest common subsequence of `old[i..]` and `new[j..]`.
fn common_lengths(old: &[&str], new: &[&str]) -> Vec<Vec<usize>> {
    let mut table = vec![vec![0; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            table[i][j] = if old[i] == new[j] {
                table[i + 1][j + 1] + 1
            } else {
                table[i + 1][j].max(table[i][j + 1])
            };
        }
    }
    table
}

fn walk(old: &[&str], new: &[&str], table: &[Vec<usize>]) -> Vec<String> {
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && table[i + 1][j] >= table[i][j + 1]) {
            out.push(format!("- {}", old[i]));
            i += 1;
        } else {
            out.push(format!("+ {}", new[j]));
            j += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_only_what_changed() {
        for (old, new, expected) in [
            ("a\nb\nc\n", "a\nB\nc\n", vec!["- b", "+ B"]),
            ("a\n", "a\nb\n", vec!["+ b"]),
            ("a\nb\n", "b\n", vec!["- a"]),
            ("a\n", "a\n", vec![]),
            ("", "a\n", vec!["+ a"]),
        ] {
            assert_eq!(lines(old.as_bytes(), new.as_bytes()), expected, "{old:?} {new:?}");
        }
        assert_eq!(lines(&[0xff], b"a"), ["(not text: 1 bytes, then 1 bytes)"]);
    }
}
