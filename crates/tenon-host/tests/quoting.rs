//! Literals before their real readers: whatever the text, the shell sees exactly it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::process::Command;

use proptest::prelude::*;
use tenon_core::userdata::document::NodeFile;
use tenon_core::userdata::quote::{env, shell};
use tenon_core::userdata::signal::install_script;

/// Pieces that end values early in one language or another.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("'".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("$(id)".to_owned()),
        Just("${HOME}".to_owned()),
        Just("`id`".to_owned()),
        Just("%n".to_owned()),
        Just(" ; rm x & ".to_owned()),
        Just("</powershell>".to_owned()),
        Just("]]>".to_owned()),
        Just("--//".to_owned()),
        Just("!!".to_owned()),
        Just("#".to_owned()),
        "[a-zA-Z0-9 äöü=:*?~<>|-]{0,8}",
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// What a script prints, one value after each NUL.
fn printed(script: &str, shell: &str) -> Vec<String> {
    let output = Command::new(shell).args(["-eu", "-c", script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn shell_literals_mean_themselves(mut texts in prop::collection::vec(hostile(), 1..30)) {
        // Lines are part of a literal too.
        texts.push(texts.join("\n"));
        let words: Vec<_> = texts.iter().map(|text| shell::literal(text)).collect();
        let script = format!("printf '%s\\0' {}", words.join(" "));
        for program in ["bash", "sh"] {
            prop_assert_eq!(&printed(&script, program), &texts);
        }
    }

    #[test]
    fn environment_files_mean_themselves(texts in prop::collection::vec(hostile(), 1..30)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.env");
        let lines: String = texts.iter().enumerate().map(|(i, text)| env::line(&format!("V{i}"), text).unwrap()).collect();
        std::fs::write(&path, lines).unwrap();
        let names: Vec<_> = (0..texts.len()).map(|i| format!("\"$V{i}\"")).collect();
        let script = format!(". {}; printf '%s\\0' {}", shell::literal(path.to_str().unwrap()), names.join(" "));
        for program in ["bash", "sh"] {
            prop_assert_eq!(&printed(&script, program), &texts);
        }
    }

    #[test]
    fn install_scripts_write_what_they_carry(texts in prop::collection::vec(hostile(), 1..6), end in 0..3_usize) {
        let directory = tempfile::tempdir().unwrap();
        let bodies: Vec<_> = texts.iter().map(|text| format!("x{text}\nTENON_END{}\n$(id)\n", "_".repeat(end))).collect();
        let files: Vec<_> = bodies.iter().enumerate().map(|(i, body)| {
            NodeFile::new(format!("{}/f{i}", directory.path().display()), 0o755, body)
        }).collect();
        printed(&install_script(&files, ""), "bash");
        for (i, body) in bodies.iter().enumerate() {
            prop_assert_eq!(&std::fs::read_to_string(directory.path().join(format!("f{i}"))).unwrap(), body);
        }
    }
}
