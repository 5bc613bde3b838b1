//! The one shape of bad news: what, where, why, fix.
//!
//! A [`Problem`] is a failure or a finding in five parts, printed the same way everywhere, as
//! text or as JSON. A [`Finding`] is a problem found by a check, with the class that decides
//! whether it stops the run.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde_json::{Value, json};

use crate::codes::Page;

/// A place in something the user wrote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Position of the source in the chain; findings are sorted by it, it is not printed.
    pub source_index: usize,
    /// URI of the source: `imds://user-data`, `file:///etc/eks/node.yaml`, `stdin:`.
    pub source: String,
    /// Number of the MIME part, from 1, when the source is a multipart message.
    pub part: Option<u32>,
    /// Media type of that part.
    pub media_type: Option<String>,
    /// Encodings removed on the way to the document: `base64`, `gzip`.
    pub layers: Vec<String>,
    /// Line and column in the decoded document, from 1; 0 when the place is the whole document.
    pub line: u32,
    pub column: u32,
    /// Byte offset in the decoded part, when the position is known.
    pub offset: Option<usize>,
    /// Path of the field: `spec.kubelet.maxPods`; empty when the place is not a field.
    pub path: String,
}

impl Place {
    /// A place that is a field path alone, for checks on merged or replayed values.
    pub fn field(path: impl Into<String>) -> Self {
        Place { path: path.into(), ..Place::default() }
    }

    fn to_json(&self) -> Value {
        json!({
            "source": self.source,
            "part": self.part,
            "mediaType": self.media_type,
            "layers": self.layers,
            "line": self.line,
            "column": self.column,
            "offset": self.offset,
            "path": self.path,
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if !self.source.is_empty() {
            words.push(self.source.clone());
        }
        if let Some(part) = self.part {
            let media = self.media_type.as_deref().unwrap_or("no content type");
            words.push(format!("part {part} ({media})"));
        }
        if self.line > 0 {
            words.push(format!("line {}, column {}", self.line, self.column));
        }
        if let (Some(offset), true) = (self.offset, self.part.is_some() || !self.layers.is_empty())
        {
            words.push(format!("byte {offset} of the decoded part"));
        }
        if !self.path.is_empty() {
            words.push(self.path.clone());
        }
        out.write_str(&words.join(", "))
    }
}

/// The line of the user's text that a place points at, without any value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Snippet {
    /// The line up to the marked words; values after a key are cut to `…`.
    pub line: String,
    /// Column of the first marked character, from 1, and how many are marked.
    pub column: u32,
    pub width: u32,
}

impl Snippet {
    /// The line with its number, and the marks below it.
    fn render(&self, number: u32) -> String {
        let before = self.line.chars().take(self.column.saturating_sub(1) as usize);
        // A tab is as wide as the terminal makes it, so the margin repeats it.
        let margin: String = before.map(|c| if c == '\t' { c } else { ' ' }).collect();
        let marks = "^".repeat(self.width.max(1) as usize);
        let gutter = " ".repeat(number.to_string().len());
        format!("{number} | {}\n{gutter} | {margin}{marks}", one_line(&self.line))
    }
}

/// Where a problem is when it has no place of its own, by its exit code.
const SCENES: &[(u8, &str)] = &[
    (3, "the configuration"),
    (4, "the sources of the configuration"),
    (5, "the facts about this machine"),
    (7, "the files of this machine"),
    (8, "the units of this machine"),
    (9, "the units of this machine"),
    (10, "a service elsewhere"),
    (11, "the lock of this machine"),
    (12, "the record of earlier runs"),
    (64, "the command line"),
    (70, "tenon itself"),
];

fn scene(exit: u8) -> &'static str {
    SCENES.iter().find(|(code, _)| *code == exit).map_or("this machine", |(_, words)| words)
}

/// A failure or a finding, in five parts. Boxed, so that a `Result` that carries it stays small.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem(Box<Parts>);

/// The parts of a [`Problem`], which derefs to them.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    pub page: &'static Page,
    pub what: String,
    pub place: Option<Place>,
    pub snippet: Option<Snippet>,
    pub why: Option<String>,
    pub fix: Option<String>,
    /// What happened underneath, outermost first. After retries: the first and the last cause.
    pub causes: Vec<String>,
    /// Further lines that help, such as the last journal lines of a unit.
    pub details: Vec<String>,
}

impl Deref for Problem {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl DerefMut for Problem {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.0
    }
}

impl Problem {
    pub fn new(page: &'static Page, what: impl Into<String>) -> Self {
        Problem(Box::new(Parts {
            page,
            what: what.into(),
            place: None,
            snippet: None,
            why: None,
            fix: None,
            causes: Vec::new(),
            details: Vec::new(),
        }))
    }

    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub fn cause(mut self, cause: impl fmt::Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    pub fn details(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(lines);
        self
    }

    /// The exit code of the process when this problem ends it.
    pub fn exit(&self) -> u8 {
        self.page.exit()
    }

    pub fn why_text(&self) -> &str {
        self.why.as_deref().unwrap_or(self.page.why)
    }

    pub fn fix_text(&self) -> &str {
        self.fix.as_deref().unwrap_or(self.page.fix)
    }

    /// The place, or what the exit code is about when nothing narrower is known.
    pub fn where_text(&self) -> String {
        self.place.as_ref().map_or_else(|| scene(self.exit()).to_owned(), Place::to_string)
    }

    /// The five parts as text, led by `error` or `warning`.
    pub fn render(&self, severity: &str) -> String {
        let mut text = format!("{severity} {}: {}\n", self.page.code, one_line(&self.what));
        let mut line = |name: &str, value: &str| {
            let value = visible(value).replace('\n', "\n         ");
            text.push_str(&format!("  {name:<6} {value}\n"));
        };
        line("where", &one_line(&self.where_text()));
        if let Some(snippet) = &self.snippet {
            line("", &snippet.render(self.place.as_ref().map_or(0, |place| place.line)));
        }
        line("why", self.why_text());
        for cause in &self.causes {
            line("cause", cause);
        }
        line("fix", self.fix_text());
        for detail in &self.details {
            line("|", detail);
        }
        line("see", &format!("tenon explain {}", self.page.code));
        text
    }

    /// The same content as JSON.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "code": self.page.code,
            "slug": self.page.slug,
            "exit": self.exit(),
            "what": self.what,
            "why": self.why_text(),
            "fix": self.fix_text(),
            "causes": self.causes,
        });
        json["where"] = match &self.place {
            Some(place) => place.to_json(),
            None => json!({"scene": scene(self.exit())}),
        };
        if !self.details.is_empty() {
            json["details"] = json!(self.details);
        }
        json
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.page.code, self.what)
    }
}

impl std::error::Error for Problem {}

/// Shows control characters escaped, so that output can neither forge lines nor move a cursor.
pub fn visible(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escape = c.is_control() && c != '\n' && c != '\t';
            let shown: Vec<char> = if escape { c.escape_default().collect() } else { vec![c] };
            shown
        })
        .collect()
}

/// The same for text that must stay on its line, such as a name that the user chose.
fn one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// How a finding is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The node cannot be built as asked. Stops everything.
    Error,
    /// nodeadm accepts and ignores it. A warning for `node.eks.aws` in `init`, an error elsewhere.
    Tolerated,
    /// Suspicious, never stops anything.
    Warning,
}

/// A problem found by a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub class: Class,
    pub problem: Problem,
}

impl Finding {
    pub fn error(problem: Problem) -> Self {
        Finding { class: Class::Error, problem }
    }

    pub fn tolerated(problem: Problem) -> Self {
        Finding { class: Class::Tolerated, problem }
    }

    pub fn warning(problem: Problem) -> Self {
        Finding { class: Class::Warning, problem }
    }

    /// True when this finding stops a run in which tolerated findings are `lenient` warnings.
    pub fn stops(&self, lenient: bool) -> bool {
        match self.class {
            Class::Error => true,
            Class::Tolerated => !lenient,
            Class::Warning => false,
        }
    }

    pub fn to_json(&self, lenient: bool) -> Value {
        let mut json = self.problem.to_json();
        json["severity"] = json!(if self.stops(lenient) { "error" } else { "warning" });
        json["class"] = json!(match self.class {
            Class::Error => "E",
            Class::Tolerated => "T",
            Class::Warning => "W",
        });
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;

    #[test]
    fn renders_five_parts_in_order() {
        let place = Place {
            source: "file://node.yaml".into(),
            line: 14,
            column: 5,
            path: "spec.kubelet.maxPod".into(),
            ..Place::default()
        };
        let problem = Problem::new(&codes::config::UNKNOWN_FIELD, "unknown field `maxPod`")
            .at(place)
            .fix("did you mean `maxPods`?");
        let text = problem.render("error");
        let words: Vec<_> =
            text.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
        assert_eq!(words, ["error", "where", "why", "fix", "see"]);
        assert!(text.contains("file://node.yaml, line 14, column 5, spec.kubelet.maxPod"));
    }

    #[test]
    fn a_problem_without_a_place_says_where_it_belongs() {
        for (page, scene) in [
            (&codes::usage::BAD_USAGE, "the command line"),
            (&codes::config::NO_CONFIG, "the sources of the configuration"),
            (&codes::host::NOT_ROOT, "this machine"),
        ] {
            let problem = Problem::new(page, "x");
            assert!(problem.render("error").contains(&format!("  where  {scene}\n")), "{scene}");
            assert_eq!(problem.to_json()["where"]["scene"], scene);
        }
    }

    #[test]
    fn a_name_cannot_forge_a_line() {
        let place = Place::field("spec.a\nerror TN99999: forged");
        let what = "unknown field `spec.a\nerror TN99999: forged`";
        let text = Problem::new(&codes::config::UNKNOWN_FIELD, what).at(place).render("error");
        assert_eq!(text.matches("\nerror").count(), 0, "{text}");
        assert_eq!(text.matches("\\nerror").count(), 2, "{text}");
    }

    #[test]
    fn marks_stand_below_what_they_mark_after_tabs() {
        let snippet = Snippet { line: "\t\t\"kublet\": …".into(), column: 3, width: 8 };
        assert_eq!(snippet.render(12), "12 | \t\t\"kublet\": …\n   | \t\t^^^^^^^^");
    }

    #[test]
    fn control_characters_are_shown_not_sent() {
        assert_eq!(visible("a\u{1b}[31mb\r"), "a\\u{1b}[31mb\\r");
    }
}
