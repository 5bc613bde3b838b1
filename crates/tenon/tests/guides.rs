//! The examples of the guides, run as they are written.
//!
//! In a `console` block a line after `$ ` is a command; the lines below it are its output, in
//! which `…` stands for any lines; `! ` marks a line of standard error.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::path::Path;
use std::process::Command;

struct Example {
    command: String,
    output: Vec<String>,
}

fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            line if inside => match line.strip_prefix("$ ") {
                Some(command) => {
                    examples.push(Example { command: command.to_owned(), output: Vec::new() })
                }
                None => examples.last_mut().unwrap().output.push(line.to_owned()),
            },
            _ => {}
        }
    }
    examples
}

/// Finds the expected lines in order; between two of them stand others only where `…` allows.
fn agrees(expected: &[String], found: &[&str]) -> Result<(), String> {
    let (mut at, mut gap) = (0, false);
    for line in expected {
        if line == "…" {
            gap = true;
            continue;
        }
        let next = found[at..].iter().position(|candidate| candidate == line);
        match next {
            Some(0) => at += 1,
            Some(skipped) if gap => at += skipped + 1,
            _ => return Err(format!("expected {line:?} after line {at}")),
        }
        gap = false;
    }
    if at == found.len() || gap { Ok(()) } else { Err(format!("more output after line {at}")) }
}

#[test]
fn every_example_of_the_guides_works() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut count = 0;
    for name in [
        "from-eksctl.md",
        "from-bootstrap-sh.md",
        "from-karpenter.md",
        "images.md",
        "scale-out.md",
        "staged-boot.md",
    ] {
        let text = std::fs::read_to_string(docs.join("guides").join(name)).unwrap();
        for example in examples(&text) {
            let binary = env!("CARGO_BIN_EXE_tenon");
            let command = example.command.replacen("tenon", &format!("'{binary}'"), 1);
            let output = Command::new("sh")
                .args(["-c", &command])
                .current_dir(docs.join("examples"))
                .output()
                .unwrap();
            let (errors, lines): (Vec<_>, Vec<_>) =
                example.output.into_iter().partition(|line| line.starts_with("! "));
            let stdout = String::from_utf8(output.stdout).unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(
                output.status.success(),
                errors.is_empty(),
                "{name}: {}\n{stderr}",
                example.command
            );
            for error in errors {
                assert!(stderr.contains(&error[2..]), "{name}: {}\n{stderr}", example.command);
            }
            let found: Vec<_> = stdout.lines().collect();
            agrees(&lines, &found)
                .unwrap_or_else(|why| panic!("{name}: {}: {why}\n{stdout}", example.command));
            count += 1;
        }
    }
    assert!(count >= 10, "{count} examples");
}
