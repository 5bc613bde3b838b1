//! What goes wrong, and when: a script of rules, from a test or from a file in YAML or JSON.

use serde::Deserialize;
use tenon_core::codes::facts::FAULT_SCRIPT;
use tenon_core::problem::Problem;
use tenon_core::tree::Dialect;
use tenon_core::yaml;

/// A fault script.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Faults {
    /// Refuse connections for this long after the start.
    pub refuse_for_ms: u64,
    /// The first rule that matches a request and is not used up decides.
    pub rules: Vec<Rule>,
}

/// One thing that goes wrong.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Rule {
    /// Path of the request, `*` standing for any characters.
    pub path: String,
    /// `GET` or `PUT`; both if left out.
    pub method: Option<String>,
    /// Let this many matching requests pass first.
    pub skip: u32,
    /// Act on this many requests; on all if left out.
    pub times: Option<u32>,
    /// Act only on requests beyond this many in a second.
    pub per_second: Option<u32>,
    pub status: Option<u16>,
    pub body: Option<String>,
    /// Seconds in a `Retry-After` header.
    pub retry_after: Option<u64>,
    /// A `Location` header.
    pub location: Option<String>,
    pub delay_ms: u64,
    /// Announce the whole body, send this much of it, close.
    pub truncate: Option<usize>,
    /// Like `truncate`, but end the connection with a reset.
    pub reset: bool,
    /// Pause between two bytes.
    pub drip_ms: Option<u64>,
    /// Answer nothing, keep the connection open.
    pub hang: bool,
    /// Answer with `Connection: close` and close.
    pub close: bool,
    /// How the end of the body is marked.
    pub framing: Framing,
    /// Forget every token before the request is looked at.
    pub expire_tokens: bool,
}

/// How the end of a body is marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Framing {
    #[default]
    Length,
    Chunked,
    /// Neither length nor chunks: the body ends with the connection.
    Close,
}

impl Rule {
    /// A rule on a path that changes nothing yet.
    pub fn on(path: &str) -> Self {
        Rule { path: path.into(), ..Rule::default() }
    }

    /// True if the rule is about this request.
    pub fn matches(&self, method: &str, path: &str) -> bool {
        let method_fits = self.method.as_ref().is_none_or(|want| want.eq_ignore_ascii_case(method));
        method_fits && glob(&self.path, path)
    }
}

impl Faults {
    /// A script of these rules.
    pub fn of(rules: impl Into<Vec<Rule>>) -> Self {
        Faults { refuse_for_ms: 0, rules: rules.into() }
    }

    /// Reads a script from YAML or JSON.
    pub fn parse(text: &[u8]) -> Result<Self, Problem> {
        let refuse =
            |cause: String| Problem::new(&FAULT_SCRIPT, "reading the fault script").cause(cause);
        let text = std::str::from_utf8(text).map_err(|_| refuse("it is not UTF-8".into()))?;
        let trees = yaml::parse(text).map_err(|syntax| {
            refuse(format!(
                "line {}, column {}: {}",
                syntax.span.line, syntax.span.column, syntax.what
            ))
        })?;
        let [tree] = trees.as_slice() else { return Err(refuse("it is not one document".into())) };
        serde_json::from_value(tree.to_json(Dialect::Yaml12))
            .map_err(|error| refuse(error.to_string()))
    }
}

/// True if `pattern` matches all of `text`; `*` stands for any characters.
fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len()).any(|at| rest.is_char_boundary(at) && glob(after, &rest[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_paths() {
        for (pattern, text, fits) in [
            ("*", "/latest/x", true),
            ("*/mac", "/latest/meta-data/mac", true),
            ("*/mac", "/latest/meta-data/macs", false),
            ("/latest/*/x*", "/latest/a/b/xy", true),
            ("/latest", "/latest/", false),
        ] {
            assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_script_is_strict() {
        let text = br#"{"refuseForMs": 5, "rules": [{"path": "*/token", "method": "PUT", "status": 403, "times": 2}]}"#;
        let script = Faults::parse(text).unwrap();
        assert_eq!(script.refuse_for_ms, 5);
        assert!(script.rules[0].matches("put", "/latest/api/token"));
        assert!(!script.rules[0].matches("GET", "/latest/api/token"));
        let problem = Faults::parse(br#"{"rules": [{"path": "*", "stauts": 1}]}"#).unwrap_err();
        assert!(problem.causes[0].contains("stauts"), "{problem:?}");
        let yaml = b"rules:\n  - path: '*/mac'\n    delayMs: 5\n    framing: chunked\n";
        let script = Faults::parse(yaml).unwrap();
        assert_eq!((script.rules[0].delay_ms, script.rules[0].framing), (5, Framing::Chunked));
        let problem = Faults::parse(b"rules:\n  - [").unwrap_err();
        assert_eq!((problem.page.code, problem.exit()), ("TN03299", 3));
        assert!(problem.causes[0].contains("line "), "{problem:?}");
    }
}
