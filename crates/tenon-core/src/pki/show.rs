//! The list of certificates for people and programs.

use serde_json::{Value, json};

use super::certificate::Certificate;

/// One line of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    pub path: String,
    pub certificate: Certificate,
}

impl Shown {
    fn names(&self) -> Vec<String> {
        self.certificate.alt.names.iter().map(ToString::to_string).collect()
    }

    pub fn to_json(&self, now: u64) -> Value {
        let certificate = &self.certificate;
        json!({
            "file": self.path,
            "subject": certificate.subject_text,
            "names": self.names(),
            "issuer": certificate.issuer_text,
            "authority": certificate.is_authority,
            "notAfter": certificate.not_after_text,
            "daysLeft": certificate.days_left(now),
        })
    }
}

/// The list as a table, names below their line.
pub fn table(list: &[Shown], now: u64) -> String {
    let head = ["FILE", "SUBJECT", "ISSUER", "NOT AFTER", "DAYS"].map(str::to_owned);
    let mut rows = vec![head];
    rows.extend(list.iter().map(|shown| {
        let certificate = &shown.certificate;
        [
            shown.path.trim_start_matches("/etc/kubernetes/").to_owned(),
            certificate.subject_text.clone(),
            certificate.issuer_text.clone(),
            certificate.not_after_text.clone(),
            certificate.days_left(now).to_string(),
        ]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(widths) {
            text.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(&format!("{:>4}\n", row[4]));
        let names = index.checked_sub(1).map(|index| list[index].names()).unwrap_or_default();
        if !names.is_empty() {
            text.push_str(&format!("  names: {}\n", names.join(" ")));
        }
    }
    text
}
