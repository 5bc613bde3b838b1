//! The parser's complaints in the words of somebody who wrote a config file.

use saphyr_parser::ScanError;

use super::Syntax;
use super::offsets::Offsets;
use crate::codes::decode::{BAD_SYNTAX, TAB_INDENT, TEMPLATE_LEFT};
use crate::tree::Span;

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
        "found unprintable character",
        "there is a control character in the text",
        "remove it, or write it as an escape in double quotes",
    ),
    (
        "did not find expected node content",
        "a value is missing or starts with a reserved character",
        "add the value, or quote it",
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
    let span = offsets.point(*error.marker());
    let (start, line) = line_at(text, span.offset);
    if let Some(tab) = indenting_tab(line) {
        let column = u32::try_from(tab + 1).unwrap_or(u32::MAX);
        let span = Span { offset: start + tab, column, width: 1, ..span };
        return Syntax::new(&TAB_INDENT, "a tab cannot indent", span);
    }
    if line.contains("{{") || line.contains("${") {
        return Syntax::new(&TEMPLATE_LEFT, TEMPLATE_WHAT, span);
    }
    let words = WORDS.iter().find(|(theirs, ..)| error.info().contains(theirs));
    match words {
        Some((_, what, fix)) => Syntax::new(&BAD_SYNTAX, *what, span).fix(*fix),
        None => Syntax::new(&BAD_SYNTAX, "the text is not YAML from here on", span),
    }
}

/// The line around a byte offset and where it starts.
fn line_at(text: &str, offset: usize) -> (usize, &str) {
    let start = text[..offset].rfind('\n').map_or(0, |end| end + 1);
    (start, text[start..].lines().next().unwrap_or(""))
}

/// The column, from 0, of a tab in the indentation. Indentation is ASCII, so bytes are columns.
fn indenting_tab(line: &str) -> Option<usize> {
    let indent = line.len() - line.trim_start_matches([' ', '\t']).len();
    line[..indent].find('\t')
}
