//! The node was given nothing to work with.

use super::*;
use crate::config::{self, SourceRead};
use crate::decode::Origin as Source;

const PATH: &str = "/var/lib/cloud/instance/user-data.txt";

pub(super) static CAUSE: Cause = Cause {
    number: 17,
    slug: "user-data",
    title: "the user data is missing or malformed",
    step: Step::UserData,
    alone: true,
    signals: &[
        Signal::confirmed(Log::Bootstrap, &["could not find NodeConfig within UserData"], "awslabs/amazon-eks-ami nodeadm/internal/configprovider"),
        Signal::confirmed(Log::CloudInit, &["bootstrap.sh has been removed"], "awslabs/amazon-eks-ami templates/al2023/runtime/bootstrap.sh"),
        Signal::confirmed(Log::Bootstrap, &["error TN03"], "tenon-core/src/codes/config.rs"),
        Signal::confirmed(Log::Bootstrap, &["error TN04"], "tenon-core/src/codes/config.rs"),
    ],
    support: &[Signal::confirmed(Log::Manager, &["Failed to start"], "systemd src/core/job.c")],
    checks: &[Check::proves("user-data-parses", parses)],
    why: "no NodeConfig was found in the user data, or it is not one: a MIME part without its content type, bad YAML, an empty field, or a call of the old boot script on an image that does not have it",
    fix: "check it at the desk: `tenon userdata lint FILE --family AmazonLinux2023`",
    command: "tenon config check -c file:///var/lib/cloud/instance/user-data.txt",
    ..Cause::BLANK
};

/// Reads the stored user data again, unless the node was configured from something.
fn parses(view: &View) -> Found {
    let Some(text) = view.file(PATH) else {
        return Found::Unknown("the stored user data could not be read");
    };
    if !is_unconfigured(view) {
        return Found::NotApplicable;
    }
    let bytes = Some(text.as_bytes().to_vec());
    let source = SourceRead { uri: format!("file://{PATH}"), origin: Source::Imds, bytes };
    let Err(findings) = config::load(&[source], config::Options::default()) else {
        return Found::Pass;
    };
    let evidence = findings.iter().filter(|finding| finding.stops(true)).take(3).map(|finding| {
        let problem = &finding.problem;
        let line = problem.place.as_ref().map_or(0, |place| place.line);
        let place = if line > 0 { format!("line {line}: ") } else { String::new() };
        Evidence::file(PATH, format!("{place}{} ({})", problem.what, problem.page.code))
            .fix(problem.fix_text())
    });
    Found::of(evidence.collect())
}
