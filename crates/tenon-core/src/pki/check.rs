//! What is wrong with a certificate, at a given time.

use super::certificate::Certificate;
use super::table::{Row, Wanted};
use crate::codes::Page;
use crate::codes::pki as pages;
use crate::problem::{Place, Problem};

/// One certificate with everything that is compared.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The name of the file, for findings.
    pub path: &'a str,
    pub row: &'a Row,
    pub wanted: &'a Wanted,
    pub certificate: &'a Certificate,
    /// Whether the issuer's key made its signature.
    pub signed_by_issuer: bool,
    /// Whether the key beside it is its own; None when there is no key.
    pub key_matches: Option<bool>,
}

/// A finding about a file.
pub fn finding(page: &'static Page, path: &str, what: impl Into<String>) -> Problem {
    let source = format!("file://{path}");
    Problem::new(page, what).at(Place { source, ..Place::default() })
}

/// Everything that is wrong at `now`; `warn_days` before its end a certificate expires soon.
pub fn judge(subject: &Subject<'_>, now: u64, warn_days: u32) -> Vec<Problem> {
    let mut findings = Vec::new();
    let name = subject.row.name;
    let mut find = |page: &'static Page, what: String| {
        let fix = match subject.row.is_authority() {
            true if page.exit() == 1 => "bring the pair back from a backup".to_owned(),
            _ => page.fix.replace("NAME", name),
        };
        findings.push(finding(page, subject.path, what).fix(fix));
    };
    if let Some((page, what)) = time(subject, now, warn_days) {
        find(page, what);
    }
    if !subject.signed_by_issuer {
        let issuer = subject.row.issuer.unwrap_or("itself");
        find(&pages::WRONG_ISSUER, format!("{name} was not signed by {issuer}"));
    }
    if subject.key_matches == Some(false) {
        find(&pages::KEY_MISMATCH, format!("the key of {name} is another one's"));
    }
    if let Some(what) = content(subject) {
        find(&pages::WRONG_CONTENT, what);
    }
    // Nobody connects to an authority, so its name matters to nobody.
    let wanted = subject.wanted.names.iter().filter(|_| !subject.row.is_authority());
    let held = &subject.certificate.alt.names;
    let missing = wanted.filter(|name| !held.contains(name));
    let missing: Vec<_> = missing.map(ToString::to_string).collect();
    if !missing.is_empty() {
        let what = format!("{name} does not name {}", missing.join(", "));
        find(&pages::NAMES_DRIFTED, what);
    }
    findings
}

fn time(subject: &Subject<'_>, now: u64, warn_days: u32) -> Option<(&'static Page, String)> {
    let (name, certificate) = (subject.row.name, subject.certificate);
    let until = &certificate.not_after_text;
    let authority = subject.row.is_authority();
    if now > certificate.not_after {
        let page = if authority { &pages::CA_EXPIRED } else { &pages::EXPIRED };
        return Some((page, format!("{name} expired at {until}")));
    }
    if now < certificate.not_before {
        let page = if authority { &pages::CA_NOT_YET_VALID } else { &pages::NOT_YET_VALID };
        return Some((page, format!("{name} is not valid yet")));
    }
    let days = certificate.days_left(now);
    (days < i64::from(warn_days))
        .then(|| (&pages::EXPIRES_SOON, format!("{name} expires in {days} days, at {until}")))
}

/// What differs in subject and usages.
fn content(subject: &Subject<'_>) -> Option<String> {
    let (row, wanted, found) = (subject.row, subject.wanted, subject.certificate);
    if row.is_authority() {
        // An authority of somebody else has a subject of their choice.
        return (!found.is_authority).then(|| format!("{} is not a CA", row.name));
    }
    if found.common_name != wanted.common_name {
        return Some(format!("{} has not the common name {}", row.name, wanted.common_name));
    }
    let organizations: Vec<&str> = found.organizations.iter().map(String::as_str).collect();
    if wanted.organization.is_some_and(|organization| !organizations.contains(&organization)) {
        return Some(format!("{} is not of {}", row.name, wanted.organization.unwrap_or_default()));
    }
    let lacks = wanted
        .usages
        .iter()
        .find(|usage| !found.purposes.iter().any(|purpose| purpose == usage.purpose()))?;
    Some(format!("{} is not for use as {}", row.name, lacks.word()))
}
