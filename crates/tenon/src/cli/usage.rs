//! A bad command line, told in the same five parts as every other problem.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use tenon_core::codes::usage::BAD_USAGE;
use tenon_core::problem::Problem;

use crate::output::Format;

/// Says what was wrong with the command line. Help and version are answers, not problems: None.
///
/// Values are never repeated, since people put secrets in wrong places; names are.
pub fn problem(error: &clap::Error) -> Option<Problem> {
    let what = match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => return None,
        ErrorKind::UnknownArgument => unknown_argument(error),
        ErrorKind::InvalidSubcommand => match name(error, ContextKind::InvalidSubcommand) {
            Some(command) => format!("there is no command `{command}`"),
            None => "there is no such command".to_owned(),
        },
        ErrorKind::MissingSubcommand => "a command is missing".to_owned(),
        ErrorKind::MissingRequiredArgument => {
            format!("{} missing", named(&words(error, ContextKind::InvalidArg), "is", "are"))
        }
        ErrorKind::ArgumentConflict => conflict(error),
        ErrorKind::InvalidUtf8 => "an argument is not UTF-8 text".to_owned(),
        _ => match name(error, ContextKind::InvalidArg) {
            Some(argument) => format!("`{argument}` is given a value that it does not take"),
            None => "the arguments do not fit".to_owned(),
        },
    };
    Some(Problem::new(&BAD_USAGE, what).fix(fix(error)))
}

/// The format asked for on a command line that could not be parsed.
pub fn format(arguments: &[OsString]) -> Format {
    let json = |pair: &[OsString]| pair[0] == "--output" && pair[1] == "json";
    match arguments.iter().any(|one| one == "--output=json") || arguments.windows(2).any(json) {
        true => Format::Json,
        false => Format::Text,
    }
}

/// A word that does not begin with a dash is a value, and is not repeated.
fn unknown_argument(error: &clap::Error) -> String {
    match name(error, ContextKind::InvalidArg) {
        Some(name) if name.starts_with('-') => {
            let name = name.split('=').next().unwrap_or_default();
            format!("there is no option `{name}` here")
        }
        _ => "an argument is one too many".to_owned(),
    }
}

fn conflict(error: &clap::Error) -> String {
    let first = name(error, ContextKind::InvalidArg).unwrap_or_default();
    let others = words(error, ContextKind::PriorArg);
    match others.iter().all(|other| *other == first) {
        true => format!("`{first}` is given more than once"),
        false => format!("`{first}` cannot go with {}", quoted(&others)),
    }
}

/// The best advice that is known: the nearest name, the values there are, or the usage line.
fn fix(error: &clap::Error) -> String {
    let nearest =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue]
            .into_iter()
            .flat_map(|kind| words(error, kind))
            // The parser lists what is nearest last.
            .next_back();
    if let Some(nearest) = nearest {
        return format!("did you mean `{nearest}`?");
    }
    let values = words(error, ContextKind::ValidValue);
    if !values.is_empty() {
        return format!("use one of {}", values.join(", "));
    }
    if let Some(reason) = std::error::Error::source(error) {
        return reason.to_string();
    }
    match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => {
            let usage = usage.to_string();
            let usage = usage.trim().trim_start_matches("Usage:");
            format!("use `{}`", usage.split_whitespace().collect::<Vec<_>>().join(" "))
        }
        _ => "see `tenon help`".to_owned(),
    }
}

fn name(error: &clap::Error, kind: ContextKind) -> Option<String> {
    words(error, kind).into_iter().next()
}

fn words(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

fn named(names: &[String], one: &str, many: &str) -> String {
    let verb = if names.len() == 1 { one } else { many };
    format!("{} {verb}", quoted(names))
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn told(arguments: &[&str]) -> String {
        let error = Cli::try_parse_from([&["tenon"], arguments].concat()).unwrap_err();
        problem(&error).map_or_else(String::new, |problem| problem.render("error"))
    }

    #[test]
    fn each_mistake_has_its_words_and_a_way_out() {
        let cases: &[(&[&str], &str, &str)] = &[
            (&["plan", "--fact", "x"], "there is no option `--fact` here", "`--facts`"),
            (&["plan", "--nonsense=hunter2"], "no option `--nonsense`", "use `tenon"),
            (&["bootstap"], "there is no command `bootstap`", "`bootstrap`"),
            (&["plan", "hunter2"], "an argument is one too many", "use `tenon"),
            (&["plan", "--aws-api", "hunter2"], "does not take", "never, ifNeeded, verify"),
            (&["plan", "--output", "hunter2"], "does not take", "text and json"),
            (&["plan", "--root"], "does not take", ""),
            (&["plan", "--root", "a", "--root", "b"], "more than once", ""),
            (&["explain"], "missing", "use `tenon"),
        ];
        for (arguments, what, fix) in cases {
            let text = told(arguments);
            assert!(text.contains(what) && text.contains(fix), "{arguments:?}: {text}");
            assert!(text.contains("TN64001") && !text.contains("hunter2"), "{arguments:?}: {text}");
        }
    }

    #[test]
    fn help_is_no_problem() {
        assert_eq!(told(&["--help"]), "");
        assert_eq!(told(&["plan", "--help"]), "");
    }

    #[test]
    fn the_format_is_found_without_the_parser() {
        let asked = |text: &str| format(&text.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(asked("tenon plan --output json --x"), Format::Json);
        assert_eq!(asked("tenon plan --output=json --x"), Format::Json);
        assert_eq!(asked("tenon plan --output text json"), Format::Text);
    }
}
