//! The characters of a script into words and commands.

use super::{Command, Here, Piece, Script, Word};

/// Reads a script. Text that no shell would accept is read as far as it goes.
pub(in super::super) fn parse(text: &str) -> Script {
    let mut lexer = Lexer { chars: text.chars().collect(), line: 1, ..Lexer::default() };
    lexer.run();
    lexer.script
}

#[derive(Default)]
struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: u32,
    script: Script,
    command: Command,
    word: Option<Word>,
    /// The next word is a file that output goes to, or one that input comes from.
    redirect: Option<Redirect>,
    here: Vec<PendingHere>,
    /// Open parentheses; a `)` beyond them ends a pattern of `case`.
    parentheses: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Redirect {
    Output,
    Other,
}

struct PendingHere {
    delimiter: String,
    literal: bool,
    strip_tabs: bool,
    /// The command that gets the text; its number, because it may be finished by then.
    command: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            match c {
                '\n' => self.newline(),
                '\'' | '"' | '$' | '`' | '\\' => self.quoted(c),
                '#' if self.word.is_none() => self.skip_comment(),
                '<' | '>' => self.redirection(c),
                _ => self.plain(c),
            }
        }
        self.end_command(false);
    }

    fn newline(&mut self) {
        self.end_command(false);
        self.next();
        for pending in std::mem::take(&mut self.here) {
            let text = self.here_text(&pending);
            if let Some(command) = self.script.commands.get_mut(pending.command) {
                command.here = Some(Here { text, literal: pending.literal });
                command.last_line = self.line.saturating_sub(1);
            }
        }
    }

    fn quoted(&mut self, c: char) {
        match c {
            '\'' => self.single_quotes(),
            '"' => self.double_quotes(),
            '$' => self.dollar(),
            '`' => self.backquotes(),
            _ => {
                self.next();
                if let Some(escaped) = self.next().filter(|c| *c != '\n') {
                    self.push(escaped);
                }
            }
        }
    }

    fn plain(&mut self, c: char) {
        self.next();
        match c {
            ' ' | '\t' | '\r' => self.end_word(),
            ';' => self.end_command(false),
            '|' => {
                let or = self.peek(0) == Some('|');
                self.at += usize::from(or);
                self.end_command(!or);
            }
            '&' if self.peek(0) == Some('>') => {}
            '&' => {
                self.at += usize::from(self.peek(0) == Some('&'));
                self.end_command(false);
            }
            '(' => self.open_parenthesis(),
            ')' => self.close_parenthesis(),
            _ => self.push(c),
        }
    }

    /// An array, a function's name, or a subshell.
    fn open_parenthesis(&mut self) {
        let is_array = self.word.as_ref().and_then(Word::literal).is_some_and(|w| w.ends_with('='));
        if is_array {
            self.at -= 1;
            self.skip_parentheses();
            self.word().pieces.push(Piece::Unknown);
        } else if self.peek(0) == Some(')') {
            self.at += 1;
            self.end_word();
            let name = self.command.words.pop().and_then(|word| word.literal());
            self.script.functions.extend(name);
            self.command = Command::default();
        } else {
            self.parentheses += 1;
            self.end_command(false);
        }
    }

    fn close_parenthesis(&mut self) {
        match self.parentheses.checked_sub(1) {
            Some(open) => {
                self.parentheses = open;
                self.end_command(false);
            }
            None => {
                self.word = None;
                self.command = Command::default();
            }
        }
    }

    fn word(&mut self) -> &mut Word {
        if self.command.words.is_empty() && self.command.assignments.is_empty() {
            self.command.line = self.line;
        }
        self.word.get_or_insert_default()
    }

    fn push(&mut self, c: char) {
        self.word().push(c);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.redirect.take() {
            Some(Redirect::Output) => self.command.output = Some(word),
            Some(Redirect::Other) => {}
            None => match (self.command.words.is_empty(), assignment(&word)) {
                (true, Some(assignment)) => self.command.assignments.push(assignment),
                _ => self.command.words.push(word),
            },
        }
    }

    fn end_command(&mut self, pipe: bool) {
        self.end_word();
        self.redirect = None;
        let mut command = std::mem::take(&mut self.command);
        self.command.piped = pipe;
        let empty = command.words.is_empty() && command.assignments.is_empty();
        if empty && command.output.is_none() {
            return;
        }
        command.last_line = self.line;
        command.line = if command.line == 0 { self.line } else { command.line };
        self.script.commands.push(command);
    }

    fn skip_comment(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    fn single_quotes(&mut self) {
        self.next();
        self.word();
        while let Some(c) = self.next() {
            if c == '\'' {
                return;
            }
            self.push(c);
        }
    }

    fn double_quotes(&mut self) {
        self.next();
        self.word();
        while let Some(c) = self.peek(0) {
            match c {
                '"' => {
                    self.next();
                    return;
                }
                '$' => self.dollar(),
                '`' => self.backquotes(),
                '\\' => {
                    self.next();
                    match self.next() {
                        Some('\n') | None => {}
                        Some(c @ ('$' | '`' | '"' | '\\')) => self.push(c),
                        Some(c) => {
                            self.push('\\');
                            self.push(c);
                        }
                    }
                }
                _ => {
                    self.next();
                    self.push(c);
                }
            }
        }
    }

    fn dollar(&mut self) {
        self.next();
        match self.peek(0) {
            Some('(') => {
                self.skip_parentheses();
                self.word().pieces.push(Piece::Unknown);
            }
            Some('{') => self.braces(),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.take_while(is_name);
                self.word().pieces.push(Piece::Variable { name, default: None });
            }
            Some(c) if c.is_ascii_digit() || "?@*#!$-".contains(c) => {
                self.next();
                self.word().pieces.push(Piece::Unknown);
            }
            _ => self.push('$'),
        }
    }

    /// `${NAME}` and `${NAME:-default}`; any other form is unknown.
    fn braces(&mut self) {
        self.next();
        let inner = self.take_while(|c| c != '}' && c != '\n');
        self.next();
        let name: String = inner.chars().take_while(|c| is_name(*c)).collect();
        let rest = &inner[name.len()..];
        let default = rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-'));
        let plain = default.is_none_or(|default| !default.contains(['$', '`', '"', '\'']));
        let piece = match (name.is_empty(), rest.is_empty() || default.is_some(), plain) {
            (false, true, true) => Piece::Variable { name, default: default.map(str::to_owned) },
            _ => Piece::Unknown,
        };
        self.word().pieces.push(piece);
    }

    fn backquotes(&mut self) {
        self.next();
        self.take_while(|c| c != '`');
        self.next();
        self.word().pieces.push(Piece::Unknown);
    }

    /// Skips from an opening parenthesis to its partner, quotes respected.
    fn skip_parentheses(&mut self) {
        let mut depth = 0usize;
        while let Some(c) = self.next() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                '\\' => drop(self.next()),
                '\'' => {
                    self.take_while(|c| c != '\'');
                    self.next();
                }
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut text = String::new();
        while let Some(c) = self.peek(0).filter(|c| wanted(*c)) {
            text.push(c);
            self.next();
        }
        text
    }

    fn redirection(&mut self, c: char) {
        // `2>` names a descriptor, not a word.
        let descriptor = self.word.as_ref().and_then(Word::literal);
        if descriptor.is_some_and(|text| text.chars().all(|c| c.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.next();
        if c == '<' && self.peek(0) == Some('<') && self.peek(1) != Some('<') {
            return self.here_start();
        }
        let more = self.take_while(|next| "<>&|".contains(next));
        let output = c == '>' && !more.contains('&');
        self.redirect = Some(if output { Redirect::Output } else { Redirect::Other });
    }

    fn here_start(&mut self) {
        self.next();
        let strip_tabs = self.peek(0) == Some('-');
        self.at += usize::from(strip_tabs);
        self.take_while(|c| c == ' ' || c == '\t');
        let raw = self.take_while(|c| !c.is_whitespace() && !";|&<>()".contains(c));
        let literal = raw.contains(['\'', '"', '\\']);
        let delimiter = raw.replace(['\'', '"', '\\'], "");
        let command = self.script.commands.len();
        self.here.push(PendingHere { delimiter, literal, strip_tabs, command });
    }

    fn here_text(&mut self, pending: &PendingHere) -> String {
        let mut text = String::new();
        while self.peek(0).is_some() {
            let line = self.take_while(|c| c != '\n');
            self.next();
            let line = if pending.strip_tabs { line.trim_start_matches('\t') } else { &line };
            if line.trim_end_matches('\r') == pending.delimiter {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `NAME=value` as its two halves.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Piece::Text(first)) = word.pieces.first() else { return None };
    let (name, rest) = first.split_once('=')?;
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(is_name);
    if !valid {
        return None;
    }
    let mut pieces = word.pieces[1..].to_vec();
    if !rest.is_empty() {
        pieces.insert(0, Piece::Text(rest.to_owned()));
    }
    Some((name.to_owned(), Word { pieces }))
}
