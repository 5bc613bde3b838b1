//! The promises of the tables in `docs/` are held by tests that exist.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};

/// How many behaviours of nodeadm are answered.
const PROMISES: usize = 29;
/// How many goals of the first list are answered.
const WISHES: usize = 38;

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

/// Checks that the last column of a table names tests and goldens that exist, and gives the
/// numbers of its rows.
fn rows_held(page: &str, column: usize) -> Vec<usize> {
    let text = fs::read_to_string(repository().join(page)).unwrap();
    let sources = sources();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        Some((cells.get(1)?.parse::<usize>().ok()?, *cells.get(column)?))
    });
    let mut numbers = Vec::new();
    for (number, cell) in rows {
        let names: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{page}: row {number} has no test");
        for name in names {
            let is_there = match name.starts_with("golden/") {
                true => repository().join(name).is_dir(),
                false => sources.contains(&format!("fn {name}(")),
            };
            assert!(is_there, "{page}: row {number}: there is no test {name}");
        }
        numbers.push(number);
    }
    numbers
}

#[test]
fn every_promise_has_tests_and_every_test_exists() {
    let numbers = rows_held("docs/better-than-nodeadm.md", 3);
    assert_eq!(numbers, (1..=PROMISES).collect::<Vec<_>>());
}

#[test]
fn every_wish_has_an_answer_that_is_tested() {
    let numbers = rows_held("docs/seed-001.md", 4);
    assert_eq!(numbers, (1..=WISHES).collect::<Vec<_>>());
}
