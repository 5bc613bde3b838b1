//! A line into words, as a POSIX shell would split it, without running or expanding anything.

/// The words of a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words {
    pub words: Vec<String>,
    /// Byte offsets of each `$` and backtick that a shell would have expanded. They stand in the
    /// words as written.
    pub expansions: Vec<usize>,
}

/// A quote or backslash without its partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unclosed {
    /// Byte offset of the opening character.
    pub offset: usize,
    /// `'`, `"` or `\`.
    pub sign: char,
}

/// Splits a line at blanks and newlines, honouring quotes and backslashes.
pub fn split(text: &str) -> Result<Words, Unclosed> {
    let mut splitter = Splitter::default();
    let mut chars = text.char_indices();
    while let Some((offset, c)) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => splitter.end_word(),
            '\'' => splitter.single_quoted(&mut chars, offset)?,
            '"' => splitter.double_quoted(&mut chars, offset)?,
            '\\' => match chars.next() {
                None => return Err(Unclosed { offset, sign: '\\' }),
                Some((_, '\n')) => {}
                Some((_, next)) => splitter.push(next),
            },
            _ => splitter.push_checked(offset, c),
        }
    }
    splitter.end_word();
    Ok(splitter.found)
}

type Chars<'a> = std::str::CharIndices<'a>;

#[derive(Default)]
struct Splitter {
    found: Words,
    /// None between words; `''` makes an empty word.
    word: Option<String>,
}

impl Splitter {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn push_checked(&mut self, offset: usize, c: char) {
        if matches!(c, '$' | '`') {
            self.found.expansions.push(offset);
        }
        self.push(c);
    }

    fn end_word(&mut self) {
        self.found.words.extend(self.word.take());
    }

    fn single_quoted(&mut self, chars: &mut Chars, start: usize) -> Result<(), Unclosed> {
        self.word.get_or_insert_default();
        for (_, c) in chars {
            if c == '\'' {
                return Ok(());
            }
            self.push(c);
        }
        Err(Unclosed { offset: start, sign: '\'' })
    }

    fn double_quoted(&mut self, chars: &mut Chars, start: usize) -> Result<(), Unclosed> {
        self.word.get_or_insert_default();
        let unclosed = Unclosed { offset: start, sign: '"' };
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' => return Ok(()),
                '\\' => match chars.next().ok_or(unclosed)?.1 {
                    '\n' => {}
                    next @ ('$' | '`' | '"' | '\\') => self.push(next),
                    next => {
                        self.push('\\');
                        self.push(next);
                    }
                },
                _ => self.push_checked(offset, c),
            }
        }
        Err(unclosed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_as_a_shell_does() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("  \t\n", &[]),
            ("a b", &["a", "b"]),
            ("  --x=1   --y ", &["--x=1", "--y"]),
            ("'a b' c", &["a b", "c"]),
            ("\"a b\"c", &["a bc"]),
            ("''", &[""]),
            ("a''b", &["ab"]),
            ("'' \"\"", &["", ""]),
            ("a\\ b", &["a b"]),
            ("a\\\nb", &["ab"]),
            ("'a\\b'", &["a\\b"]),
            ("\"a\\b\"", &["a\\b"]),
            ("\"a\\\"b\\\\\"", &["a\"b\\"]),
            ("\"it's\" 'say \"x\"'", &["it's", "say \"x\""]),
            ("--node-labels=a=b,c=d --v=2", &["--node-labels=a=b,c=d", "--v=2"]),
            ("größe ü", &["größe", "ü"]),
        ];
        for (text, words) in cases {
            assert_eq!(split(text).unwrap().words, *words, "{text}");
        }
    }

    #[test]
    fn open_quotes_are_named_with_their_place() {
        for (text, offset, sign) in
            [("a 'b", 2, '\''), ("ü \"b", 3, '"'), ("a\\", 1, '\\'), ("\"a\\", 0, '"')]
        {
            assert_eq!(split(text), Err(Unclosed { offset, sign }), "{text}");
        }
    }

    #[test]
    fn what_a_shell_would_expand_is_reported() {
        for (text, offsets) in
            [("$A b", vec![0]), ("\"$A\" `id`", vec![1, 5, 8]), ("'$A' \\$B \"\\$C \\`\"", vec![])]
        {
            assert_eq!(split(text).unwrap().expansions, offsets, "{text}");
        }
        assert_eq!(split("$A").unwrap().words, ["$A"]);
    }
}
