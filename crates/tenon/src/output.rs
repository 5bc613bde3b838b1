//! What a user sees: answers on standard output, bad news on standard error, exit codes.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::{Value, json};
use tenon_core::problem::{Finding, Problem};

/// The exit code of a broken invariant.
const BUG: u8 = 70;
/// The schema of a JSON answer that tells why a command did not do its work.
const FAILURE: &str = "tenon.failure/1";

/// `--output`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    #[default]
    Text,
    Json,
    /// Aligned columns with a header; only where a command has a list to show.
    Table,
    Csv,
    /// `type count` lines, for a node without Tenon.
    Map,
    /// User data as one line of base64.
    #[value(skip)]
    Base64,
    /// User data inside LaunchTemplateData.
    #[value(skip)]
    LaunchTemplateData,
    /// The files of user data, below a directory.
    #[value(skip)]
    Files,
    /// For code hosts; only where a command finds faults in files.
    #[value(skip)]
    Sarif,
    /// For build servers; only where a command runs checks.
    #[value(skip)]
    Junit,
}

impl Format {
    /// The forms of user data; `raw` is its text.
    pub fn user_data(text: &str) -> Result<Format, String> {
        match text {
            "raw" => Ok(Format::Text),
            "base64" => Ok(Format::Base64),
            "json" => Ok(Format::Json),
            "launch-template-data" => Ok(Format::LaunchTemplateData),
            "files" => Ok(Format::Files),
            _ => Err("the forms are raw, base64, json, launch-template-data and files".to_owned()),
        }
    }

    /// The formats that every command knows. A command with more of them has its own `--output`.
    pub fn text_or_json(text: &str) -> Result<Format, String> {
        match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            _ => Err("the formats are text and json".to_owned()),
        }
    }

    /// The formats of checks of an image.
    pub fn image_checks(text: &str) -> Result<Format, String> {
        match text {
            "junit" => Ok(Format::Junit),
            _ => Format::text_or_json(text).map_err(|more| format!("{more}, or junit")),
        }
    }

    /// The formats of checks of a node.
    pub fn checks(text: &str) -> Result<Format, String> {
        match text {
            "junit" => Ok(Format::Junit),
            _ => Format::findings(text).map_err(|more| format!("{more}, or junit")),
        }
    }

    /// The formats of findings.
    pub fn findings(text: &str) -> Result<Format, String> {
        match text {
            "sarif" => Ok(Format::Sarif),
            _ => Format::text_or_json(text).map_err(|more| format!("{more}, or sarif")),
        }
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum Failure {
    /// One thing went wrong.
    Problem(Problem),
    /// Checks found something. `lenient`: tolerated findings count as warnings.
    Findings { findings: Vec<Finding>, lenient: bool },
    /// The answer has been given and is "no": an exit code without a message.
    Answer(u8),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Problem(problem)
    }
}

/// What a command returns.
pub type Outcome = Result<(), Failure>;

/// Prints an answer. A closed pipe ends the output quietly, as with any filter.
pub fn answer(text: &str) -> Outcome {
    let mut stdout = anstream::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let page = &tenon_core::codes::host::FILE_WRITE;
            Err(Problem::new(page, "writing to standard output").cause(error).into())
        }
        _ => Ok(()),
    }
}

/// Prints a JSON answer, indented, with a final newline.
pub fn answer_json(value: &Value) -> Outcome {
    answer(&format!("{value:#}\n"))
}

/// Prints lines of the story that are not log lines, such as findings.
pub fn tell(text: &str) {
    // Nothing can be done about a closed standard error.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Tells each finding, worst news first in the order of its place.
pub fn tell_findings(findings: &[Finding], lenient: bool) {
    for finding in findings {
        let severity = if finding.stops(lenient) { "error" } else { "warning" };
        tell(&finding.problem.render(severity));
    }
}

/// Reports a failure in the format asked for and turns it into an exit code.
pub fn report(outcome: Outcome, format: Format) -> u8 {
    let Err(failure) = outcome else { return 0 };
    match (failure, format) {
        (Failure::Answer(code), _) => code,
        (Failure::Problem(problem), Format::Json) => {
            let error = problem.to_json();
            let _ = answer_json(&json!({"schema": FAILURE, "result": "failed", "error": error}));
            problem.exit()
        }
        (Failure::Problem(problem), _) => {
            tell(&problem.render("error"));
            problem.exit()
        }
        (Failure::Findings { findings, lenient }, Format::Json) => {
            let list: Vec<_> = findings.iter().map(|finding| finding.to_json(lenient)).collect();
            let _ = answer_json(&json!({"schema": FAILURE, "result": "failed", "findings": list}));
            worst(&findings, lenient)
        }
        (Failure::Findings { findings, lenient }, _) => {
            tell_findings(&findings, lenient);
            worst(&findings, lenient)
        }
    }
}

/// The exit code of the first finding that stops the run. That none does is our mistake.
fn worst(findings: &[Finding], lenient: bool) -> u8 {
    let stops = findings.iter().find(|finding| finding.stops(lenient));
    stops.map_or(BUG, |finding| finding.problem.exit())
}

/// The first eight digits of a hash, as people compare it.
pub fn short_hash(hash: &str) -> &str {
    let digits = hash.strip_prefix("sha256:").unwrap_or(hash);
    digits.get(..8).unwrap_or(digits)
}

/// True when colour may be used on standard error.
pub fn colour_on_stderr() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !refused && io::stderr().is_terminal()
}

/// A panic is our mistake: it says where, never with what value, and ends with 70.
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let problem = Problem::new(&tenon_core::codes::usage::BUG, format!("panic at {place}"));
        tell(&problem.render("error"));
        #[expect(clippy::exit, reason = "the release build aborts on panic; the exit code is 70")]
        std::process::exit(i32::from(BUG));
    }));
}

/// The process exit code.
pub fn exit(code: u8) -> ExitCode {
    ExitCode::from(code)
}
