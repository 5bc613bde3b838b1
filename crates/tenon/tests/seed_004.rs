//! `docs/seed-004.md` keeps its word: 66 rows, and every test that it names exists.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::fs;
use std::path::Path;

/// The text of every source below a directory.
fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                sources(&path, text);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_statement_has_a_test_that_exists() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(checkout.join("docs/seed-004.md")).unwrap();
    let mut code = String::new();
    for part in ["crates", "xtask"] {
        sources(&checkout.join(part), &mut code);
    }
    let mut rows = 0;
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #")) {
        rows += 1;
        let number = line.split('|').nth(1).unwrap().trim();
        assert_eq!(number, format!("{rows:02}"), "a row is missing");
        let tests = line.trim_end_matches('|').rsplit('|').next().unwrap();
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "row {number} has no test");
        for name in names {
            assert!(code.contains(&format!("fn {name}(")), "row {number}: no test `{name}`");
        }
    }
    assert_eq!(rows, 66);
}
