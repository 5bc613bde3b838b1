//! The checked-in pages of `docs/reference` are what the program prints.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_pages_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    for page in ["cli", "config", "doctor", "errors"] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_tenon")).args(["reference", page]).output().unwrap();
        assert!(output.status.success(), "{page}");
        let held = fs::read(folder.join(format!("{page}.md"))).unwrap_or_default();
        assert!(held == output.stdout, "{page}.md is old: run `cargo xtask reference`");
    }
}
