//! `journalctl`, for a live node whose journal files cannot be read here.

use std::time::Duration;

use serde_json::Value;
use tenon_core::collect::journal::Entry;

use super::{Match, Query};
use crate::command;

/// How many entries are asked for; the output of a program is kept in memory.
const MOST_ENTRIES: &str = "200";
const TIMEOUT: Duration = Duration::from_secs(10);

/// Asks the program; None if it does not run or has no answer.
pub fn ask_journalctl(query: &Query) -> Option<Vec<Entry>> {
    let mut argv: Vec<String> =
        ["journalctl", "--no-pager", "--output=json", "--lines", MOST_ENTRIES]
            .map(String::from)
            .into();
    match &query.of {
        Match::Unit(unit) => argv.push(format!("--unit={unit}")),
        Match::Identifier(name) => argv.push(format!("--identifier={name}")),
        Match::Kernel => argv.push("_TRANSPORT=kernel".to_owned()),
        Match::All => {}
    }
    if let Some(since) = query.since_us {
        argv.push(format!("--since=@{}", since / 1_000_000));
    }
    let output = command::run(&argv, TIMEOUT, &[]).ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().filter_map(entry).collect())
}

fn entry(line: &str) -> Option<Entry> {
    let fields: Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
    Some(Entry {
        time_us: text("__REALTIME_TIMESTAMP").parse().ok()?,
        boot: text("_BOOT_ID"),
        unit: text("_SYSTEMD_UNIT"),
        identifier: text("SYSLOG_IDENTIFIER"),
        pid: text("_PID").parse().unwrap_or_default(),
        priority: text("PRIORITY").parse().unwrap_or(6),
        message: message(&fields["MESSAGE"]),
    })
}

/// A text, or the numbers of its bytes when it is not one.
fn message(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(bytes) => {
            let bytes = bytes.iter().filter_map(Value::as_u64);
            let bytes: Vec<u8> = bytes.filter_map(|byte| u8::try_from(byte).ok()).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_program_become_entries() {
        let line = r#"{"__REALTIME_TIMESTAMP":"5","_BOOT_ID":"b","SYSLOG_IDENTIFIER":"x","PRIORITY":"3","MESSAGE":[104,105,255]}"#;
        let found = entry(line).unwrap();
        assert_eq!((found.time_us, found.priority, found.message.as_str()), (5, 3, "hi\u{fffd}"));
        assert_eq!(entry("-- no entries --"), None);
    }
}
