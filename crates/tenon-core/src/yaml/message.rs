//! The parser's complaints in the words of somebody who wrote a config file.

use saphyr_parser::ScanError;

use super::Syntax;
use super::offsets::Offsets;
use crate::codes::decode::{BAD_SYNTAX, TAB_INDENT, TEMPLATE_LEFT};
use crate::tree::Span;

pub(super) const TAB_WHAT: &str = "a tab cannot indent";
pub(super) const TEMPLATE_WHAT: &str = "a template expression was left in the text";

/// What the parser says, what we say, and what usually cures it.
const WORDS: &[(&str, &str, &str)] = &[
    (
        "mapping values are not allowed",
        "a second `: ` stands where one value is expected",
        "quote the value when it contains `: `, or correct the indentation of this line",
    ),
    (
        "simple key expect",
        "a line without `:` stands among the keys of a map",
        "write `key: value`, or indent the line if it continues the one above",
    ),
    (
        "did not find expected key",
        "this line does not line up with the keys above it",
        "indent the keys of one map by the same number of spaces",
    ),
    (
        "invalid indentation",
        "this line is indented by another depth than its neighbours",
        "indent the entries of one map or list by the same number of spaces",
    ),
    (
        "did not find expected '-' indicator",
        "this line does not line up with the list items above it",
        "start each item with `- ` at the same column",
    ),
    (
        "block sequence entries are not allowed",
        "a list item stands where one value is expected",
        "put the list on its own lines, below its key",
    ),
    (
        "quoted scalar, found unexpected end",
        "a quote is opened and never closed",
        "close the quote",
    ),
    (
        "unexpected document indicator",
        "a quote is still open at the end of the document",
        "close the quote",
    ),
    (
        "unknown escape character",
        "a backslash in double quotes is followed by a character it cannot escape",
        "double the backslash, or use single quotes",
    ),
    (
        "hexadecimal number",
        "an escape in double quotes has too few hexadecimal digits",
        "write two digits after `\\x`, four after `\\u`",
    ),
    (
        "invalid trailing content",
        "there is more text after a closing quote",
        "quote the whole value, or double the quote inside it",
    ),
    (
        "expected ',' or '}'",
        "a `{` map is not continued by `,` or closed by `}`",
        "add the missing `,` or `}`",
    ),
    (
        "expected ',' or ']'",
        "a `[` list is not continued by `,` or closed by `]`",
        "add the missing `,` or `]`",
    ),
    (
        "misplaced bracket",
        "a bracket is closed that was not opened",
        "remove it, or quote the value",
    ),
    (
        "unknown anchor",
        "an alias (`*name`) names an anchor that the document does not have",
        "define it with `&name` before its use, or quote the value if it starts with `*`",
    ),
    (
        "unexpected character",
        "a value starts with a character that YAML reserves",
        "quote the value",
    ),
    (
        "illegal placement of ':'",
        "a `key:` stands inside a bracket that is still open",
        "close the `[` or `{` above",
    ),
    (
        "did not find expected node content",
        "a value is missing, starts with a reserved sign, or a bracket above is still open",
        "add the value or quote it, or close the bracket",
    ),
    (
        "block scalar",
        "the lines of a `|` or `>` text are not indented alike",
        "indent every line of the text at least as far as its first line",
    ),
    (
        "<document start>",
        "there is more text after the end of the document",
        "separate documents with a line `---`, or correct the indentation",
    ),
    (
        "recursion limit",
        "lists and maps stand inside each other too deeply",
        "flatten the document",
    ),
];

/// Turns an error of the parser into ours, with the likely cause in the line it points at.
pub(super) fn syntax(text: &str, offsets: &Offsets, error: &ScanError) -> Syntax {
    let offset = offsets.byte(error.marker().index());
    let start = line_start(text, offset);
    if let Some(tab) = indenting_tab(text, start, error.info().contains("tab")) {
        return Syntax::new(&TAB_INDENT, TAB_WHAT, span_at(text, tab));
    }
    let span = span_at(text, culprit(text, offset, error.info()));
    let line = text[start..].lines().next().unwrap_or("");
    if line.contains("{{") || line.contains("${") {
        return Syntax::new(&TEMPLATE_LEFT, TEMPLATE_WHAT, span);
    }
    let words = WORDS.iter().find(|(theirs, ..)| error.info().contains(theirs));
    match words {
        Some((_, what, fix)) => Syntax::new(&BAD_SYNTAX, *what, span).fix(*fix),
        None => Syntax::new(&BAD_SYNTAX, "the text is not YAML from here on", span),
    }
}

/// Refuses control characters, which the parser lets through.
pub(super) fn control_character(text: &str) -> Option<Syntax> {
    let forbidden = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    let offset = text.find(forbidden)?;
    let what = "there is a control character in the text";
    let fix = "remove it, or write it as an escape in double quotes";
    Some(Syntax::new(&BAD_SYNTAX, what, span_at(text, offset)).fix(fix))
}

/// The parser notices a line without `:` and an open bracket only where the text goes on or
/// ends; the line before that is the one to mend.
fn culprit(text: &str, offset: usize, info: &str) -> usize {
    let before = text[..offset].trim_end();
    let late = text[offset..].trim().is_empty() || info.contains("simple key expect");
    if !late || before.is_empty() || text[before.len()..offset].is_empty() {
        return offset;
    }
    let start = line_start(text, before.len());
    start + indent(&text[start..])
}

fn span_at(text: &str, offset: usize) -> Span {
    let start = line_start(text, offset);
    let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
    let line = number(text[..start].lines().count());
    Span { offset, line, column: number(text[start..offset].chars().count()), width: 1 }
}

fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |end| end + 1)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// The first tab in the indentation of the line at `start`, or of a later one when the parser
/// complains of a tab: it then points at the value before it.
fn indenting_tab(text: &str, start: usize, search: bool) -> Option<usize> {
    let mut position = start;
    for line in text[start..].split_inclusive('\n') {
        if let Some(tab) = line[..indent(line)].find('\t') {
            return Some(position + tab);
        }
        if !search {
            return None;
        }
        position += line.len();
    }
    None
}
