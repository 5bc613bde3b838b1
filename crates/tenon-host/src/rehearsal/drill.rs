//! The fault drill: the same job with something wrong each time. A case passes when the run ends
//! as the table says, and when a run without the fault afterwards gives the files of a clean one.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use tenon_core::userdata::size::gzip;

use super::Stage;
use crate::job::Refusal;
use crate::root::Root;
use crate::simulator::faults::{Faults, Rule};

/// One thing that goes wrong.
pub struct Case {
    pub name: &'static str,
    /// The exit code that a real run would have; 0 means that it succeeds in spite of the fault.
    pub expected: u8,
    faults: fn() -> Vec<Rule>,
    /// Changes the pretended instance.
    twist: fn(&mut Stage),
}

/// How a case ended.
pub struct Verdict {
    pub name: &'static str,
    pub expected: u8,
    pub exit: u8,
    /// The first words of the error, or how it was survived.
    pub words: String,
    /// A clean run afterwards gave the files of a run without any fault.
    pub cured: bool,
    /// The fault was felt: the run was refused, or it needed more requests than a clean one.
    pub felt: bool,
}

impl Verdict {
    pub fn passed(&self) -> bool {
        self.exit == self.expected && self.cured && self.felt
    }
}

/// Patience in the drill: long enough to retry, short enough to watch.
const PATIENCE: Duration = Duration::from_millis(1500);

fn nothing(_: &mut Stage) {}

/// Leaves this user data as the only source: another one would make up for it.
fn only_user_data(stage: &mut Stage, user_data: Option<Vec<u8>>) {
    stage.profile.user_data = user_data;
    stage.sources.clear();
}

/// The drill, in the order of the fault matrix.
pub const CASES: &[Case] = &[
    Case {
        name: "metadata endpoint switched off (403 on the token)",
        expected: 5,
        faults: || vec![Rule { status: Some(403), ..Rule::on("*/token") }],
        twist: nothing,
    },
    Case {
        name: "token request not known (404)",
        expected: 5,
        faults: || vec![Rule { status: Some(404), ..Rule::on("*/token") }],
        twist: nothing,
    },
    Case {
        name: "token expires during the run (401 once)",
        expected: 0,
        faults: || vec![Rule { status: Some(401), times: Some(1), ..Rule::on("*/document") }],
        twist: nothing,
    },
    Case {
        name: "throttled twice (429)",
        expected: 0,
        faults: || vec![Rule { status: Some(429), times: Some(2), ..Rule::on("*/mac") }],
        twist: nothing,
    },
    Case {
        name: "three server errors, then fine (500)",
        expected: 0,
        faults: || vec![Rule { status: Some(500), times: Some(3), ..Rule::on("*/document") }],
        twist: nothing,
    },
    Case {
        name: "server errors for ever (503)",
        expected: 5,
        faults: || vec![Rule { status: Some(503), ..Rule::on("*/document") }],
        twist: nothing,
    },
    Case {
        name: "connection reset in the middle of a body",
        expected: 0,
        faults: || {
            let reset = Rule { reset: true, truncate: Some(10), ..Rule::on("*/user-data") };
            vec![Rule { times: Some(1), ..reset }]
        },
        twist: nothing,
    },
    Case {
        name: "body shorter than announced",
        expected: 0,
        faults: || vec![Rule { truncate: Some(10), times: Some(1), ..Rule::on("*/user-data") }],
        twist: nothing,
    },
    Case {
        name: "a captive portal answers with HTML",
        expected: 5,
        faults: || {
            let page = "<html><body>Please log in</body></html>".to_owned();
            vec![Rule { body: Some(page), ..Rule::on("*/document") }]
        },
        twist: nothing,
    },
    Case {
        name: "redirect to elsewhere",
        expected: 5,
        faults: || vec![Rule { status: Some(302), ..Rule::on("*/document") }],
        twist: nothing,
    },
    Case {
        name: "no user data",
        expected: 4,
        faults: Vec::new,
        twist: |stage| only_user_data(stage, None),
    },
    Case {
        name: "user data cut short",
        expected: 3,
        faults: Vec::new,
        twist: |stage| {
            // Compressed, because half of a YAML document may well be a document.
            let whole = gzip(stage.profile.user_data.as_deref().unwrap_or_default());
            only_user_data(stage, Some(whole[..whole.len() / 2].to_vec()));
        },
    },
    Case {
        name: "user data is not text",
        expected: 3,
        faults: Vec::new,
        twist: |stage| only_user_data(stage, Some(vec![0xff, 0xfe, 0x00, 0x01])),
    },
];

/// Runs every case. `stage.directory` is the place for one directory per case.
pub fn run(stage: &Stage, mut tell: impl FnMut(&Verdict)) -> Result<Vec<Verdict>, Refusal> {
    let clean = rehearse_clean(stage)?;
    let mut verdicts = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let mut own = stage.clone();
        own.directory = stage.directory.join(format!("case-{number:02}"));
        let verdict = judge(case, own, &clean)?;
        tell(&verdict);
        verdicts.push(verdict);
    }
    Ok(verdicts)
}

type Files = BTreeMap<String, Vec<u8>>;

/// What a run without faults leaves and needs.
struct Clean {
    files: Files,
    requests: usize,
}

fn rehearse_clean(stage: &Stage) -> Result<Clean, Refusal> {
    let mut own = stage.clone();
    own.directory = stage.directory.join("clean");
    own.set()?;
    let act = own.perform(Faults::default())?;
    let paths = act.report.changes.iter().map(|change| change.path.as_str());
    Ok(Clean { files: written(&own.directory, paths), requests: act.requests })
}

fn judge(case: &Case, mut stage: Stage, clean: &Clean) -> Result<Verdict, Refusal> {
    let whole = stage.clone();
    stage.set()?;
    stage.imds_timeout = PATIENCE;
    (case.twist)(&mut stage);
    let (exit, words, felt) = match stage.perform(Faults::of((case.faults)())) {
        Ok(act) => {
            let words = format!("files written after {} requests", act.requests);
            (0, words, act.requests > clean.requests)
        }
        Err(refusal) => {
            let (exit, words) = describe(&refusal);
            (exit, words, true)
        }
    };
    let paths = || clean.files.keys().map(String::as_str);
    let nothing_written = exit == 0 || written(&stage.directory, paths()).is_empty();
    whole.perform(Faults::default())?;
    let cured = nothing_written && written(&stage.directory, paths()) == clean.files;
    Ok(Verdict { name: case.name, expected: case.expected, exit, words, cured, felt })
}

fn describe(refusal: &Refusal) -> (u8, String) {
    match refusal {
        Refusal::Problem(problem) => (problem.exit(), problem.to_string()),
        Refusal::Findings { findings, lenient } => {
            let first = findings.iter().find(|finding| finding.stops(*lenient));
            first.map_or((0, String::new()), |finding| {
                (finding.problem.exit(), finding.problem.to_string())
            })
        }
    }
}

/// The content of the files among `paths` that are there.
fn written<'a>(directory: &Path, paths: impl Iterator<Item = &'a str>) -> Files {
    let Ok(root) = Root::open(directory) else { return Files::new() };
    let read = |path: &str| Some((path.to_owned(), root.read(path, 1 << 20).ok()??));
    paths.filter_map(read).collect()
}
