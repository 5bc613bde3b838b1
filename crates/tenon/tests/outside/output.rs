//! What a user sees whatever the command: help, colours, pipes, JSON.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tenon_host::rehearsal::SAMPLE;

use crate::desk::{Desk, TENON, code, json, quiet_command, skipped, stderr, stdout, tenon};

/// Every command with subcommands below it, as its help lists them.
fn commands(prefix: &[String]) -> Vec<Vec<String>> {
    let mut arguments: Vec<&str> = prefix.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = stdout(&tenon(&arguments));
    let mut found = vec![prefix.to_vec()];
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return found };
    for line in list.lines().take_while(|line| !line.is_empty()) {
        // Lines that go on are indented further.
        let Some(rest) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) else {
            continue;
        };
        let name = rest.split(' ').next().unwrap().to_owned();
        if name != "help" {
            found.extend(commands(&[prefix, &[name]].concat()));
        }
    }
    found
}

#[test]
fn help_fits_80_columns_and_shows_an_example() {
    let all = commands(&[]);
    assert!(all.len() >= 20, "{all:?}");
    for command in all {
        for flag in ["--help", "-h"] {
            let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
            arguments.push(flag);
            let output = tenon(&arguments);
            assert_eq!(code(&output), 0, "{command:?}");
            assert!(output.stderr.is_empty(), "help is an answer: {command:?}");
            let help = stdout(&output);
            let wide: Vec<_> = help.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(wide.is_empty(), "{command:?} {wide:#?}");
            let only_lists = help.contains("\nCommands:\n");
            if flag == "--help" && !only_lists {
                let example = format!("tenon {}", command.join(" "));
                let usage = help.matches(&example).count();
                assert!(help.contains("Example") && usage >= 2, "{command:?} has no example");
            }
        }
    }
}

#[test]
fn version_is_one_line() {
    let text = stdout(&tenon(&["--version"]));
    assert_eq!(text, format!("tenon {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_escape_codes_where_no_terminal_is() {
    let desk = Desk::new();
    let mistakes = "tests/fixtures/mistakes.yaml";
    for variables in [
        &[][..],
        &[("NO_COLOR", "1"), ("TERM", "xterm-256color")],
        &[("TERM", "dumb")],
        &[("LANG", "C"), ("LC_ALL", "C")],
    ] {
        for arguments in [
            &["--help"][..],
            &["nope"],
            &["-d", "rehearse"],
            &["config", "check", "-c", mistakes],
            &["-d", "plan", "--diff", "--root", desk.root()],
        ] {
            let mut command = desk.command(TENON, arguments);
            let output = command.envs(variables.iter().copied()).output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            assert!(!said.contains(&0x1b), "{variables:?} {arguments:?}");
        }
    }
}

#[test]
fn no_escape_codes_on_a_terminal_that_refuses_them() {
    if !Path::new("/usr/bin/script").exists() {
        return skipped("colours on a terminal", "the program `script` is missing");
    }
    let on_terminal = |variables: &[(&str, &str)]| {
        let mut command = quiet_command("/usr/bin/script");
        command.args(["-qec", &format!("{TENON} -d rehearse"), "/dev/null"]);
        let variables = [&[("PATH", "/usr/bin:/bin"), ("TERM", "xterm")], variables].concat();
        command.envs(variables).output().unwrap().stdout
    };
    assert!(on_terminal(&[]).contains(&0x1b), "a terminal shows colours");
    assert!(!on_terminal(&[("NO_COLOR", "1")]).contains(&0x1b));
    assert!(!on_terminal(&[("TERM", "dumb")]).contains(&0x1b));
}

/// The writing end of a pipe that nobody reads.
fn closed_pipe() -> OwnedFd {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let desk = Desk::new();
    for (arguments, exit) in [
        (&["--help"][..], 0),
        (&["nope"], 64),
        (&["rehearse"], 0),
        (&["rehearse", "--output", "json"], 0),
        (&["-d", "facts", "--root", desk.root()], 0),
        (&["-d", "plan", "--root", desk.root()], 0),
        (&["config", "schema"], 0),
        (&["config", "check", "-c", "tests/fixtures/mistakes.yaml"], 3),
        (&["config", "check", "-c", "tests/fixtures/mistakes.yaml", "--output", "json"], 3),
        (&["max-pods", "*"], 0),
        (&["completions", "bash"], 0),
        (&["explain", "spec"], 0),
        (&["-d", "init", "--skip", "run", "--root", desk.root()], 0),
    ] {
        let run = |set: fn(&mut Command) -> &mut Command| {
            code(&set(&mut desk.command(TENON, arguments)).output().unwrap())
        };
        let codes = [
            run(|command| command.stdout(closed_pipe())),
            run(|command| command.stderr(closed_pipe())),
            run(|command| command.stdout(closed_pipe()).stderr(closed_pipe())),
        ];
        assert_eq!(codes, [exit; 3], "{arguments:?}");
    }
}

#[test]
fn a_full_standard_output_is_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = quiet_command(TENON).args(["config", "schema"]).stdout(full).output().unwrap();
    assert_eq!(code(&output), 7, "{}", stderr(&output));
    assert!(stderr(&output).contains("standard output"));
}

#[test]
fn every_json_answer_names_its_schema() {
    let desk = Desk::new();
    let config = desk.file("node.yaml", SAMPLE);
    let facts = desk.facts();
    let root = desk.root();
    assert_eq!(code(&desk.init(&[])), 0);
    for (arguments, schema) in [
        (&["init", "--skip", "run", "--root", root][..], "tenon.init/1"),
        (&["plan", "--root", root], "tenon.plan/1"),
        (&["plan", "--facts", &facts, "-c", &config, "--root", root], "tenon.plan/1"),
        (&["rehearse"], "tenon.rehearsal/1"),
        (&["rehearse", "--faults"], "tenon.drill/1"),
        (&["config", "check", "-c", &config], "tenon.configCheck/1"),
        (&["config", "dump", "-c", &config, "--origins"], "tenon.origins/1"),
        (&["explain", "spec.kubelet.maxPods"], "tenon.explain/1"),
        (&["explain", "TN03001"], "tenon.explain/1"),
        (&["explain", "maxPods", "--why", "--root", root], "tenon.why/1"),
        (&["status", "--root", root], "tenon.status/1"),
        (&["simulate", "fleet", "--nodes", "10"], "tenon.fleet/1"),
        (&["undo", "--root", root], "tenon.undo/1"),
        // Failures answer in JSON too.
        (&["undo", "--root", desk.side.path().to_str().unwrap()], "tenon.failure/1"),
        (&["config", "check", "-c", "tests/fixtures/mistakes.yaml"], "tenon.failure/1"),
        (&["plan", "-c", "/nowhere", "--root", root], "tenon.failure/1"),
    ] {
        let output = desk.command(TENON, arguments).args(["--output", "json"]).output().unwrap();
        assert_eq!(json(&output)["schema"], schema, "{arguments:?}");
    }
}

/// Answers that are a document of their own kind name that kind instead.
#[test]
fn documents_name_their_own_kind() {
    let desk = Desk::new();
    let config = desk.file("node.yaml", SAMPLE);
    let answer = |arguments: &[&str]| {
        json(&desk.command(TENON, arguments).args(["--output", "json"]).output().unwrap())
    };
    assert_eq!(answer(&["facts", "--root", desk.root()])["schema"], 1);
    for command in ["dump", "convert"] {
        assert_eq!(answer(&["config", command, "-c", &config])["kind"], "NodeConfig");
    }
    // Its keys and their order are a contract of its own, printed by `tenon schema max-pods`.
    assert_eq!(answer(&["max-pods", "m5.large"])["type"], "m5.large");
    for arguments in [&["config", "schema"][..], &["schema", "max-pods"]] {
        assert!(answer(arguments)["$schema"].is_string(), "{arguments:?}");
    }
}

#[test]
fn an_error_has_its_five_parts_in_both_formats() {
    let output = tenon(&["plan", "--root", "/nowhere"]);
    let text = stderr(&output);
    assert!(text.starts_with("error TN07"), "{text}");
    let order: Vec<_> =
        ["why", "fix", "see"].iter().map(|part| text.find(&format!("\n  {part}  "))).collect();
    assert!(order.is_sorted() && order.iter().all(Option::is_some), "{text}");
    let output = tenon(&["plan", "--root", "/nowhere", "--output", "json"]);
    let error = json(&output)["error"].take();
    for part in ["code", "exit", "what", "why", "fix", "causes"] {
        assert!(error.get(part).is_some_and(|value| *value != Value::Null), "{part}: {error}");
    }
    assert!(text.contains(error["what"].as_str().unwrap()), "both say the same");
    assert_eq!(error["exit"], code(&output));
}

#[test]
fn completions_are_scripts_that_their_shells_accept() {
    let desk = Desk::new();
    for (shell, check) in [
        ("bash", Some(["bash", "-n"])),
        ("zsh", Some(["zsh", "-n"])),
        ("fish", Some(["fish", "-n"])),
        ("powershell", None),
    ] {
        let output = tenon(&["completions", shell]);
        assert_eq!(code(&output), 0);
        let script = stdout(&output);
        for command in ["init", "rehearse", "max-pods"] {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
        let file = desk.file(shell, &script);
        let Some([program, flag]) = check else { continue };
        match Command::new(program).args([flag, &file]).stdin(Stdio::null()).output() {
            Ok(output) => assert!(output.status.success(), "{shell}: {}", stderr(&output)),
            Err(_) => skipped("the syntax of completions", &format!("{shell} is missing")),
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let desk = Desk::new();
    let directory = desk.side.path().join("man");
    assert_eq!(code(&tenon(&["man", directory.to_str().unwrap()])), 0);
    for command in commands(&[]) {
        let name = [&["tenon".to_owned()], command.as_slice()].concat().join("-");
        let page = fs::read_to_string(directory.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(".TH"), "{name}");
    }
}
