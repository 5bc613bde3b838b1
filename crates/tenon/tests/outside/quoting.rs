//! What is quoted for another reader comes out of that reader as it went in.

use std::process::Command;

use tenon_host::rehearsal::SAMPLE;

use crate::desk::{Desk, code, stderr};

/// User names and passwords that a careless writer of shell text would break on.
const AWKWARD: &[&str] = &[
    "plain",
    "p$ss",
    "$HOME",
    "$(id)",
    "`id`",
    "\"quoted\"",
    "'single'",
    "back\\slash",
    "end\\\\",
    "a;b&c|d",
    "#hash",
    "per%20cent%",
    "!history!",
    "*?[x]",
    "{a,b}~",
    "<in>out",
    "ü€",
];

/// What a shell makes of a variable in a file that it reads.
fn read_by_shell(file: &std::path::Path, variable: &str) -> String {
    let script = format!(". \"$1\"; printf %s \"${variable}\"");
    let mut command = Command::new("/bin/sh");
    command.args(["-euc", &script, "sh"]).arg(file).env_clear();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn row_66_the_proxy_file_reads_back_through_a_shell() {
    let desk = Desk::new();
    let mut accepted = 0;
    for text in AWKWARD {
        let url = format!("http://user:{text}@proxy.corp:3128");
        let sample = SAMPLE.replace("node.eks.aws/v1alpha1", "tenon.dev/v1alpha1");
        let proxy = serde_json::json!({"http": url, "https": "http://proxy.corp:3128"});
        let config = format!("{sample}  instance: {{\"proxy\": {proxy}}}\n");
        let config = desk.file("node.yaml", &config);
        let output = desk.init(&["-c", &config]);
        // A value is written so that it reads back, or it is refused; nothing in between.
        if code(&output) == 3 {
            assert!(!stderr(&output).contains(&url), "{}", stderr(&output));
            continue;
        }
        assert_eq!(code(&output), 0, "{text} {}", stderr(&output));
        let file = desk.path("etc/eks/proxy.env");
        for variable in ["HTTP_PROXY", "http_proxy"] {
            assert_eq!(read_by_shell(&file, variable), url);
        }
        accepted += 1;
    }
    assert!(accepted > AWKWARD.len() / 2, "{accepted} accepted");
}
