//! Rules about scripts and environment files.

use super::super::node::{Kind, Node};
use super::super::redact;
use super::super::shell::{self, Command, Variables, Word};
use super::{Case, at};
use crate::codes::inspect::{U014, U015, U016, U018};
use crate::userdata::Family;

const METADATA: [&str; 2] = ["169.254.169.254", "[fd00:ec2::254]"];
const TOKEN_HEADER: &str = "x-aws-ec2-metadata-token";
const DOWNLOADERS: [&str; 2] = ["curl", "wget"];
const SHELLS: [&str; 5] = ["sh", "bash", "zsh", "python", "python3"];
/// What a shell does with these in a value that is not quoted.
const UNSAFE: &str = " \t$`\"'\\&;|<>()*?";

pub(super) fn check(case: &mut Case<'_>) {
    for (trail, node) in case.nodes.clone() {
        if is_leaf(node) {
            secrets(case, node, &trail);
        }
        match node.kind {
            Kind::Script | Kind::Boothook | Kind::Command => script(case, node, &trail),
            Kind::EnvFile => environment(case, node, &trail),
            _ => {}
        }
    }
}

/// True for nodes whose text is not shown again by a child.
fn is_leaf(node: &Node) -> bool {
    let scripts = matches!(node.kind, Kind::Script | Kind::Boothook | Kind::Command);
    node.children.is_empty() || scripts
}

fn line_of(text: &str, offset: usize) -> u32 {
    let lines = text[..offset].matches('\n').count();
    u32::try_from(lines + 1).unwrap_or(u32::MAX)
}

/// Reports the first secret of each kind: one is reason enough to look.
fn secrets(case: &mut Case<'_>, node: &Node, trail: &str) {
    let text = node.text();
    let mut found = redact::find(&text);
    found.sort_unstable();
    found.dedup_by_key(|(secret, ..)| *secret);
    for (secret, start, _) in found {
        let what = format!("the text holds what looks like {}", secret.name());
        case.warn(&U014, what, at(node, trail, line_of(&text, start)));
    }
}

fn script(case: &mut Case<'_>, node: &Node, trail: &str) {
    let text = node.text();
    let script = shell::parse(&text);
    let waits = case.target.family == Family::AmazonLinux2023;
    let mut before: Option<&Command> = None;
    for command in &script.commands {
        let place = at(node, trail, command.line);
        if let Some(what) = danger(command, before) {
            case.warn(&U015, what, place.clone());
        }
        if waits && waits_for_kubelet(command) {
            let what = "the script waits for the kubelet, which starts after all scripts";
            case.warn(&U018, what, place);
        }
        before = Some(command);
    }
    for line in old_metadata(&text) {
        let what = "the metadata service is asked without a token (IMDSv1)";
        case.warn(&U016, what, at(node, trail, line));
    }
}

fn program(command: &Command) -> String {
    let name = command.program(&Variables::new()).unwrap_or_default();
    name.rsplit('/').next().unwrap_or_default().to_owned()
}

fn arguments(command: &Command) -> Vec<String> {
    command.call().iter().skip(1).filter_map(Word::literal).collect()
}

fn danger(command: &Command, before: Option<&Command>) -> Option<&'static str> {
    let name = program(command);
    let downloads = |name: &str| DOWNLOADERS.contains(&name);
    if name == "eval" {
        return Some("`eval` runs data as code");
    }
    let fed = command.piped && before.is_some_and(|before| downloads(&program(before)));
    if fed && SHELLS.contains(&name.as_str()) {
        return Some("a download is piped into a shell");
    }
    let plain = arguments(command).iter().any(|word| {
        let host = word.strip_prefix("http://").unwrap_or_default();
        let local = METADATA.iter().chain(&["localhost", "127.0.0.1"]).any(|h| host.starts_with(h));
        !host.is_empty() && !local
    });
    (downloads(&name) && plain).then_some("a download over plain http can be changed on its way")
}

fn waits_for_kubelet(command: &Command) -> bool {
    let words = arguments(command);
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    match program(command).as_str() {
        "systemctl" => {
            has(&["is-active", "start", "restart"])
                && has(&["kubelet", "kubelet.service"])
                && !has(&["--no-block"])
        }
        "kubectl" => true,
        name if DOWNLOADERS.contains(&name) => words.iter().any(|word| word.contains(":10248")),
        _ => false,
    }
}

/// Lines that ask the metadata service without a token. Text, not commands: most such calls
/// stand inside `$(…)`.
fn old_metadata(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let mut joined = String::new();
    let mut start = 1;
    for (index, line) in text.lines().enumerate() {
        if joined.is_empty() {
            start = index + 1;
        }
        joined.push_str(line.trim_end_matches('\\'));
        if line.ends_with('\\') {
            continue;
        }
        let lower = std::mem::take(&mut joined).to_ascii_lowercase();
        let asks = METADATA.iter().any(|address| lower.contains(address))
            && DOWNLOADERS.iter().any(|name| lower.contains(name));
        let safe = lower.contains(TOKEN_HEADER) || lower.contains("/api/token");
        if asks && !safe && !lower.trim_start().starts_with('#') {
            found.push(u32::try_from(start).unwrap_or(u32::MAX));
        }
    }
    found
}

fn environment(case: &mut Case<'_>, node: &Node, trail: &str) {
    for (index, line) in node.text().lines().enumerate() {
        let line = line.trim();
        let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        if is_unsafe(value) {
            let line = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let what = format!("the value of `{}` is not quoted for a shell", name.trim());
            case.warn(&U015, what, at(node, trail, line));
        }
    }
}

/// True when a shell that sources the line reads something else than the text.
fn is_unsafe(value: &str) -> bool {
    let quoted =
        |quote: char| value.len() > 1 && value.starts_with(quote) && value.ends_with(quote);
    if quoted('\'') {
        return value[1..value.len() - 1].contains('\'');
    }
    if quoted('"') {
        let mut escaped = false;
        return value[1..value.len() - 1].chars().any(|c| {
            let bare = !escaped && matches!(c, '"' | '$' | '`');
            escaped = c == '\\' && !escaped;
            bare
        });
    }
    value.contains(|c| UNSAFE.contains(c))
}
