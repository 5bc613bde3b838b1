//! Shell text into its simple commands, without running or expanding anything.
//!
//! Enough of the language to tell which programs a script calls and with which words; loops and
//! conditions are read as if every line ran. What only a shell could know is [`Piece::Unknown`].

mod lexer;

use std::collections::BTreeMap;

pub(super) use lexer::parse;

/// A simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Command {
    /// Assignments in front of the words; alone they set variables.
    pub(super) assignments: Vec<(String, Word)>,
    pub(super) words: Vec<Word>,
    /// First and last line, from 1.
    pub(super) line: u32,
    pub(super) last_line: u32,
    /// Its input is the output of the command before it.
    pub(super) piped: bool,
    /// The file that its output goes to.
    pub(super) output: Option<Word>,
    pub(super) here: Option<Here>,
}

/// The text that a command is given in place (`<<EOF`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Here {
    pub(super) text: String,
    /// The delimiter is quoted, so nothing in the text is expanded.
    pub(super) literal: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// `$NAME` or `${NAME:-default}`.
    Variable {
        name: String,
        default: Option<String>,
    },
    /// Decided when the script runs.
    Unknown,
}

/// Variables whose values are known.
pub(super) type Variables = BTreeMap<String, String>;

impl Word {
    /// The word's value where it can be told.
    pub(super) fn value(&self, known: &Variables) -> Option<String> {
        let mut value = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => value.push_str(text),
                Piece::Variable { name, default } => {
                    let set = known.get(name).filter(|set| !set.is_empty() || default.is_none());
                    value.push_str(set.or(default.as_ref())?);
                }
                Piece::Unknown => return None,
            }
        }
        Some(value)
    }

    /// The word's text when nothing in it is expanded.
    pub(super) fn literal(&self) -> Option<String> {
        self.value(&Variables::new())
    }

    /// Adds a character to the text at the word's end.
    fn push(&mut self, c: char) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(c),
            _ => self.pieces.push(Piece::Text(c.into())),
        }
    }
}

/// Words that start a compound command and are followed by a simple one.
const LEADING: &[&str] =
    &["if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec", "sudo"];

/// Words that make the rest of the command something else than a call.
const NOT_CALLS: &[&str] = &["for", "case", "select", "function", "in", "fi", "done", "esac", "}"];

impl Command {
    /// The words from the program's name on; empty when no program is called.
    pub(super) fn call(&self) -> &[Word] {
        let is = |word: &Word, list: &[&str]| {
            word.literal().is_some_and(|text| list.contains(&text.as_str()))
        };
        let start = self.words.iter().take_while(|word| is(word, LEADING)).count();
        match &self.words[start..] {
            [first, ..] if is(first, NOT_CALLS) => &[],
            words => words,
        }
    }

    /// The program's name as written, when it can be told.
    pub(super) fn program(&self, known: &Variables) -> Option<String> {
        self.call().first()?.value(known)
    }
}

/// What a script consists of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<Command>,
    /// Names that the script defines as functions.
    pub(super) functions: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands as texts: unknown pieces as `?`, variables as `$NAME`.
    fn shown(text: &str) -> Vec<String> {
        let word = |word: &Word| -> String {
            let piece = |piece: &Piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Variable { name, .. } => format!("${name}"),
                Piece::Unknown => "?".into(),
            };
            word.pieces.iter().map(piece).collect()
        };
        let command = |command: &Command| {
            let sets =
                command.assignments.iter().map(|(name, value)| format!("{name}={}", word(value)));
            sets.chain(command.words.iter().map(word)).collect::<Vec<_>>().join("|")
        };
        parse(text).commands.iter().map(command).collect()
    }

    #[test]
    fn scripts_become_commands() {
        for (text, expected) in [
            ("#!/bin/bash\nset -e\n", vec!["set|-e"]),
            ("a 'b c' \"d $E\" f\\ g", vec!["a|b c|d $E|f g"]),
            ("a \\\n  b\nc", vec!["a|b", "c"]),
            ("a; b && c || d | e & f", vec!["a", "b", "c", "d", "e", "f"]),
            ("X=1 Y='a b' cmd Z=2", vec!["X=1|Y=a b|cmd|Z=2"]),
            ("X=$(curl http://a; b)", vec!["X=?"]),
            ("X=`id`y", vec!["X=?y"]),
            ("a > out 2>&1 < in", vec!["a"]),
            ("if a; then b; fi", vec!["if|a", "then|b", "fi"]),
            ("f() {\n a\n}\nf", vec!["{", "a", "}", "f"]),
            ("A=(\"x\" y)\nb", vec!["A=?", "b"]),
            ("case $x in\na) b ;;\n*) c;;\nesac", vec!["case|$x|in", "b", "c", "esac"]),
            ("(a; b)", vec!["a", "b"]),
            ("a ${X:-1} ${Y#z} $1", vec!["a|$X|?|?"]),
            ("a # comment\n# other\nb#c", vec!["a", "b#c"]),
            ("", vec![]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn here_texts_belong_to_their_command() {
        let script =
            parse("cat > /etc/x <<'EOF' | tee y\na $b\nEOF\ncat <<-E >> /z\n\tq\n\tE\nend");
        let first = &script.commands[0];
        assert_eq!(first.output.as_ref().and_then(Word::literal).as_deref(), Some("/etc/x"));
        assert_eq!(first.here, Some(Here { text: "a $b\n".into(), literal: true }));
        assert_eq!((first.line, first.last_line), (1, 3));
        let third = &script.commands[2];
        assert_eq!(third.here, Some(Here { text: "q\n".into(), literal: false }));
        assert_eq!(third.output.as_ref().and_then(Word::literal).as_deref(), Some("/z"));
        assert_eq!(script.commands[3].line, 7);
    }

    #[test]
    fn values_are_told_where_they_can_be() {
        let known = Variables::from([("A".into(), "1".into()), ("EMPTY".into(), String::new())]);
        for (text, expected) in [
            ("x\"$A\"y", Some("x1y")),
            ("$B", None),
            ("${B:-2}", Some("2")),
            ("${A:-2}", Some("1")),
            ("${EMPTY:-2}", Some("2")),
            ("$EMPTY", Some("")),
            ("$(a)", None),
        ] {
            let script = parse(&format!("c {text}"));
            let value = script.commands[0].words[1].value(&known);
            assert_eq!(value.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn programs_are_found_behind_keywords() {
        for (text, program) in [
            ("if ! curl x", Some("curl")),
            ("sudo systemctl x", Some("systemctl")),
            ("for a in b", None),
            ("$X a", None),
            ("done", None),
        ] {
            let script = parse(text);
            assert_eq!(script.commands[0].program(&Variables::new()).as_deref(), program, "{text}");
        }
    }
}
