//! The promises of `docs/better-than-nodeadm.md` are held by tests that exist.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};

/// How many behaviours of nodeadm are answered.
const PROMISES: usize = 29;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of every source file of the crates.
fn sources() -> String {
    let (mut text, mut todo) = (String::new(), vec![repository().join("crates")]);
    while let Some(next) = todo.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                text.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    text
}

#[test]
fn every_promise_has_tests_and_every_test_exists() {
    let page = fs::read_to_string(repository().join("docs/better-than-nodeadm.md")).unwrap();
    let sources = sources();
    let rows = page.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        Some((cells.get(1)?.parse::<usize>().ok()?, *cells.get(3)?))
    });
    let mut numbers = Vec::new();
    for (number, cell) in rows {
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "promise {number} has no test");
        for name in names {
            let is_there = sources.contains(&format!("fn {name}("));
            assert!(is_there, "promise {number}: there is no test {name}");
        }
        numbers.push(number);
    }
    assert_eq!(numbers, (1..=PROMISES).collect::<Vec<_>>());
}
