//! What a source held besides configuration, and what probably went wrong in it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Decoded, Part};
use crate::codes::decode::{
    BOOTSTRAP_CALL, INDENTED_BY_TEMPLATE, PART_OF_OTHER_TYPE, PART_WITHOUT_TYPE, SCRIPT_ONLY,
};
use crate::config::legacy;
use crate::problem::{Finding, Place, Problem};
use crate::tree::Span;
use crate::{words, yaml};

const SHELL: &str = "shell script";

/// How a text starts, and what it is.
const STARTS: &[(&str, &str)] = &[
    ("#!", SHELL),
    ("#cloud-config-archive", "cloud-config archive"),
    ("#cloud-config", "cloud-config"),
    ("#cloud-boothook", "boothook"),
    ("#include", "include list"),
    ("#part-handler", "part handler"),
    ("## template:", "template"),
    ("<powershell>", "PowerShell script"),
    ("<script>", "batch script"),
    ("[settings", "Bottlerocket settings"),
];

const MEDIA_TYPES: &[(&str, &str)] = &[
    ("text/x-shellscript", SHELL),
    ("text/x-shellscript-per-boot", SHELL),
    ("text/x-shellscript-per-instance", SHELL),
    ("text/x-shellscript-per-once", SHELL),
    ("text/cloud-config", "cloud-config"),
    ("text/cloud-config-archive", "cloud-config archive"),
    ("text/cloud-config-jsonp", "cloud-config"),
    ("text/cloud-boothook", "boothook"),
    ("text/x-include-url", "include list"),
    ("text/x-include-once-url", "include list"),
    ("text/part-handler", "part handler"),
    ("text/jinja2", "template"),
];

/// Names that only a configuration mentions, and keys that it has; in lower case.
const CONFIG_WORDS: &[&str] = &["nodeconfig", "node.eks.aws", "tenon.dev"];
const CONFIG_KEYS: &[&str] = &["apiversion", "kind", "spec"];

const BOOTSTRAP: &str = "/etc/eks/bootstrap.sh";

/// True for a text that should be read as a document although nothing says what it is.
pub(super) fn may_be_config(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let word = || CONFIG_WORDS.iter().any(|word| lower.contains(word));
    let key = || lower.lines().any(|line| CONFIG_KEYS.iter().any(|key| has_key(line, key)));
    kind_by_start(text).is_none() && (word() || key())
}

/// True for a script that is not a document with a comment in its first line.
pub(super) fn is_script(text: &str) -> bool {
    let keyed = || text.to_ascii_lowercase().lines().any(|line| has_key(line, CONFIG_KEYS[0]));
    kind_by_start(text) == Some(SHELL) && !keyed()
}

/// True for `key:` and `"key":` at the start of a line, brackets and blanks aside.
fn has_key(line: &str, key: &str) -> bool {
    let rest = line.trim_start_matches([' ', '\t', '{', '"', '\'']).strip_prefix(key);
    rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
}

/// True when no line stands at the first column.
pub(super) fn is_indented(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && *line != "---");
    let first = lines.next().is_some_and(|line| line.starts_with(' '));
    first && lines.all(|line| line.starts_with(' '))
}

/// Finds a message whose headers are indented and so are none.
pub(super) fn indented_message(text: &str, place: &Place) -> Option<Problem> {
    let (index, line) = text.lines().enumerate().find(|(_, line)| !line.trim().is_empty())?;
    let lower = line.trim_start().to_ascii_lowercase();
    let header = lower.starts_with("mime-version:") || lower.starts_with("content-type:");
    if !header || !line.starts_with([' ', '\t']) {
        return None;
    }
    let span = Span { line: u32::try_from(index + 1).unwrap_or(u32::MAX), ..Span::start() };
    let mut place = span.in_part(place, "");
    place.offset = None;
    Some(
        Problem::new(&INDENTED_BY_TEMPLATE, "the headers of a MIME message are indented").at(place),
    )
}

fn kind_by_start(text: &str) -> Option<&'static str> {
    let text = text.trim_start();
    let known = STARTS.iter().find(|(start, _)| text.starts_with(start)).map(|(_, kind)| *kind);
    let ignition = || text.starts_with('{') && text.contains("\"ignition\"");
    known.or_else(|| ignition().then_some("Ignition config"))
}

/// Describes user data that is no message and no document.
pub(super) fn describe_whole(part: Part, decoded: &mut Decoded) {
    if part.text.trim().is_empty() {
        return decoded.held.push("nothing: it is empty".into());
    }
    let kind = kind_by_start(&part.text);
    decoded.held.push(match kind {
        Some(kind) => format!("1 {kind}"),
        None => "text of an unknown kind".into(),
    });
    if kind == Some(SHELL) {
        let what = "the text is a script only";
        decoded
            .hints
            .push(Problem::new(&SCRIPT_ONLY, what).at(Span::start().in_part(&part.place, "")));
        decoded.hints.extend(bootstrap_hint(&part));
    }
}

/// Describes a part that is not taken and says so if it looks like one that should be.
pub(super) fn describe_part(part: &Part, decoded: &mut Decoded) -> String {
    if looks_like_config(&part.text) {
        report_untaken(part, decoded);
    }
    let media = part.media_type.as_deref().unwrap_or("text/plain");
    let by_type = MEDIA_TYPES.iter().find(|(name, _)| *name == media).map(|(_, kind)| *kind);
    // As cloud-init does: plain text is what its first line says.
    let by_start = if media == "text/plain" { kind_by_start(&part.text) } else { None };
    let kind = by_type.or(by_start);
    if matches!(kind, Some(SHELL | "boothook")) {
        decoded.hints.extend(bootstrap_hint(part));
    }
    match (kind, &part.media_type) {
        (Some(kind), _) => kind.to_owned(),
        (None, Some(media)) => media.chars().take(60).collect(),
        (None, None) => "untyped".into(),
    }
}

/// Stricter than [`may_be_config`]: scripts that write a NodeConfig mention one too.
fn looks_like_config(text: &str) -> bool {
    let starts = |line: &str, key: &str| line.trim_start_matches(['"', '{', ' ']).starts_with(key);
    let versioned = |line: &str| {
        starts(line, "apiVersion")
            && (line.contains("node.eks.aws/") || line.contains("tenon.dev/"))
    };
    kind_by_start(text).is_none() && text.lines().any(versioned) && text.contains("NodeConfig")
}

fn report_untaken(part: &Part, decoded: &mut Decoded) {
    let number = part.place.part.unwrap_or(1);
    let place = part.place.clone();
    decoded.findings.push(match &part.media_type {
        None => {
            let what = format!("part {number} holds a NodeConfig but has no Content-Type");
            Finding::error(Problem::new(&PART_WITHOUT_TYPE, what).at(place))
        }
        // nodeadm skips such a part without a word.
        Some(_) => {
            let what = format!("part {number} holds a NodeConfig but is of another type");
            Finding::tolerated(Problem::new(&PART_OF_OTHER_TYPE, what).at(place))
        }
    });
}

/// Counts parts by kind: `1 cloud-config part`, `2 shell script parts`.
pub(super) fn count_parts(kinds: &[String]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in kinds {
        *counts.entry(kind).or_default() += 1;
    }
    let line = |(kind, count): (&str, usize)| {
        format!("{count} {kind} part{}", if count == 1 { "" } else { "s" })
    };
    counts.into_iter().map(line).collect()
}

/// Says that a script calls `bootstrap.sh`, with the shape of the document that replaces it.
fn bootstrap_hint(part: &Part) -> Option<Problem> {
    let call = bootstrap_arguments(&part.text)?;
    let place = Place { line: call.line, column: 1, ..part.place.clone() };
    let problem = Problem::new(&BOOTSTRAP_CALL, format!("a script calls {BOOTSTRAP}")).at(place);
    let Ok(converted) = legacy::convert(&call.arguments) else { return Some(problem) };
    let shape = yaml::emit(&outline(&converted.document));
    let lines = std::iter::once("the same as a document, values left out:".to_owned());
    Some(problem.details(lines.chain(shape.lines().map(str::to_owned))))
}

/// A document without the user's values; `apiVersion` and `kind` are ours.
fn outline(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let keep = |key: &str| matches!(key, "apiVersion" | "kind");
            let entry = |(key, value): (&String, &Value)| {
                (key.clone(), if keep(key) { value.clone() } else { outline(value) })
            };
            Value::Object(map.iter().map(entry).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(outline).collect()),
        _ => Value::from("…"),
    }
}

/// A call of `bootstrap.sh` in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Line of the script, from 1.
    pub line: u32,
    pub arguments: Vec<String>,
}

/// Finds the first call of `bootstrap.sh` in a script and its arguments, as far as they are
/// literal. Lines continued by a backslash are one line.
pub fn bootstrap_arguments(script: &str) -> Option<Call> {
    let (start, _) = script.match_indices(BOOTSTRAP).find(|(start, _)| {
        let line = script[..*start].rfind('\n').map_or(0, |end| end + 1);
        !script[line..*start].trim_start().starts_with('#')
    })?;
    let line = 1 + script[..start].matches('\n').count();
    let arguments = words::split(command(&script[start + BOOTSTRAP.len()..])).unwrap_or_default();
    Some(Call { line: u32::try_from(line).unwrap_or(u32::MAX), arguments: arguments.words })
}

/// The text up to the end of a shell command: a newline or operator outside of quotes.
fn command(text: &str) -> &str {
    let mut quote = None;
    let mut escaped = false;
    for (offset, c) in text.char_indices() {
        match (escaped, quote, c) {
            (true, ..) => escaped = false,
            (_, None | Some('"'), '\\') => escaped = true,
            (_, None, '\'' | '"') => quote = Some(c),
            (_, Some(open), _) if open == c => quote = None,
            (_, None, '\n' | ';' | '&' | '|' | '>' | '<') => return &text[..offset],
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_with_their_arguments() {
        let script = "#!/bin/bash\n# /etc/eks/bootstrap.sh old\nset -e\n\
            B64=x\n/etc/eks/bootstrap.sh web \\\n  --kubelet-extra-args '--v=2; x' && echo done\n";
        let call = bootstrap_arguments(script).unwrap();
        assert_eq!(call.line, 5);
        assert_eq!(call.arguments, ["web", "--kubelet-extra-args", "--v=2; x"]);
        assert_eq!(bootstrap_arguments("#!/bin/sh\n# /etc/eks/bootstrap.sh x\n"), None);
    }

    #[test]
    fn documents_are_told_from_scripts() {
        for (text, config) in [
            ("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n", true),
            ("---\napiversion: x\n", true),
            ("{\"kind\":\"NodeConfig\"}", true),
            ("# a comment\nkind: NodeConfig\n", true),
            ("#!/bin/bash\ncat <<E\napiVersion: node.eks.aws/v1alpha1\nE\n", false),
            ("#cloud-config\nwrite_files: [{content: 'kind: NodeConfig'}]\n", false),
            ("{\"ignition\":{\"version\":\"3.4.0\"},\"kind\":1}", false),
            ("[settings.kubernetes]\nkind = 1\n", false),
            ("spec:\n", true),
            ("{ \"spec\" : {} }", true),
            ("hello\n", false),
            ("be kind: rewind\nkindly\nspecial: x\n", false),
        ] {
            assert_eq!(may_be_config(text), config, "{text}");
        }
    }

    #[test]
    fn indentation_of_every_line_is_seen() {
        for (text, indented) in [
            ("  a: 1\n  b:\n    c: 2\n", true),
            ("---\n  a: 1\n", true),
            ("  a: 1\nb: 2\n", false),
            ("a: 1\n", false),
            ("\n\n", false),
        ] {
            assert_eq!(is_indented(text), indented, "{text}");
        }
    }
}
