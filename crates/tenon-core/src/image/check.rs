//! What `verify` says about each item: as a list of checks, as JSON, and as JUnit for CI systems.

use serde_json::{Value, json};

use crate::xml::escape;

/// The schema of the answer of `verify`.
pub const SCHEMA: &str = "tenon.image-verify/1";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Pass,
    Fail,
    /// Somebody has to look.
    Manual,
    /// It could not be found out.
    Unknown,
}

/// What the check looked at: files judge the image, the kernel judges the machine it runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    Files,
    Running,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Pass => "pass",
            State::Fail => "fail",
            State::Manual => "manual",
            State::Unknown => "unknown",
        }
    }
}

impl Half {
    pub fn name(self) -> &'static str {
        match self {
            Half::Files => "files",
            Half::Running => "running",
        }
    }
}

/// One thing that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Kind of act: `file`, or `sysctl` for an effective value.
    pub act: String,
    pub key: String,
    pub half: Half,
    pub state: State,
    pub expected: String,
    pub actual: String,
    /// Names of the resources that ask for it.
    pub from: Vec<String>,
    /// Rules of benchmarks that those resources satisfy.
    pub rules: Vec<String>,
    pub remedy: String,
}

impl Check {
    pub fn to_json(&self) -> Value {
        json!({
            "act": self.act,
            "key": self.key,
            "half": self.half.name(),
            "state": self.state.name(),
            "expected": self.expected,
            "actual": self.actual,
            "from": self.from,
            "rules": self.rules,
            "remedy": self.remedy,
        })
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let Check { act, key, expected, actual, .. } = self;
        let told = match self.state {
            State::Pass => String::new(),
            State::Manual => format!("\n         {expected}"),
            State::Fail | State::Unknown => {
                let from = self.from.join(", ");
                format!(
                    "\n         expected {expected}\n         actual   {actual}\
                     \n         asked by {from}\n         remedy   {}",
                    self.remedy
                )
            }
        };
        format!("{:<8} {act} {key}{told}\n", self.state.name())
    }
}

/// How many checks came out in this way.
pub fn count(checks: &[Check], state: State) -> usize {
    checks.iter().filter(|check| check.state == state).count()
}

/// True if nothing speaks against the image. What could not be looked at is no proof of anything.
pub fn holds(checks: &[Check]) -> bool {
    !checks.iter().any(|check| matches!(check.state, State::Fail | State::Unknown))
}

/// The whole answer.
pub fn to_json(checks: &[Check], plan_hash: &str) -> Value {
    json!({
        "schema": SCHEMA,
        "planHash": plan_hash,
        "holds": holds(checks),
        "passed": count(checks, State::Pass),
        "failed": count(checks, State::Fail),
        "manual": count(checks, State::Manual),
        "unknown": count(checks, State::Unknown),
        "checks": checks.iter().map(Check::to_json).collect::<Vec<_>>(),
    })
}

/// The answer as JUnit's XML, one test case for each check.
pub fn junit(checks: &[Check]) -> String {
    let failed = count(checks, State::Fail) + count(checks, State::Unknown);
    let skipped = count(checks, State::Manual);
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"tenon image verify\" \
         tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\">\n",
        checks.len()
    );
    for check in checks {
        let head = format!(
            "  <testcase classname=\"{}.{}\" name=\"{}\"",
            check.half.name(),
            escape(&check.act),
            escape(&check.key)
        );
        let expected = escape(&check.expected);
        let inner = match check.state {
            State::Pass => String::new(),
            State::Fail | State::Unknown => format!(
                "<failure message=\"expected {expected}, actual {}\">{}</failure>",
                escape(&check.actual),
                escape(&check.remedy)
            ),
            State::Manual => {
                format!("<skipped message=\"{}: {expected}\"/>", check.state.name())
            }
        };
        match inner.is_empty() {
            true => xml.push_str(&format!("{head}/>\n")),
            false => xml.push_str(&format!("{head}>{inner}</testcase>\n")),
        }
    }
    xml + "</testsuite>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(state: State) -> Check {
        Check {
            act: "file".into(),
            key: "/etc/<x>".into(),
            half: Half::Files,
            state,
            expected: "mode 0644".into(),
            actual: "mode \"0666\"\u{1}".into(),
            from: vec!["file//etc/x".into()],
            rules: Vec::new(),
            remedy: "apply again".into(),
        }
    }

    #[test]
    fn every_form_tells_the_failure() {
        let checks = [check(State::Pass), check(State::Fail), check(State::Manual)];
        let xml = junit(&checks);
        assert!(xml.contains("tests=\"3\" failures=\"1\" skipped=\"1\""));
        assert!(xml.contains("expected mode 0644, actual mode &quot;0666&quot; "));
        assert!(xml.contains("name=\"/etc/&lt;x&gt;\""));
        let json = to_json(&checks, "h");
        assert_eq!((&json["holds"], &json["failed"]), (&json!(false), &json!(1)));
        assert!(holds(&checks[..1]) && !holds(&checks));
        let unknown = Check { state: State::Unknown, ..checks[0].clone() };
        assert!(junit(std::slice::from_ref(&unknown)).contains("failures=\"1\" skipped=\"0\""));
        assert!(!holds(&[unknown]), "what was not seen is not proven");
        assert!(checks[1].line().contains("remedy   apply again"));
        assert_eq!(checks[0].line(), "pass     file /etc/<x>\n");
    }
}
