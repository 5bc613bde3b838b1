//! The kubelet's arguments and the environment file that carries them.
//!
//! `kubelet.service` expands `$NODEADM_KUBELET_ARGS` as a bare word, so the text passes two
//! parsers of systemd: the reader of environment files, then the word splitter. Values of our
//! own are quoted for both; flags of `node.eks.aws` documents are placed as written.

use crate::config::Flag;

/// The variable that the image's `kubelet.service` expands.
pub(crate) const VARIABLE: &str = "NODEADM_KUBELET_ARGS";

/// One argument, written so that both parsers give it back whole.
pub(crate) fn quoted(argument: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&b);
    if !argument.is_empty() && argument.bytes().all(plain) {
        return argument.to_owned();
    }
    let escaped = argument.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"").replace('\\', "\\\\")
}

/// The user's flags as they stand in the environment file.
pub(crate) fn written(flags: &[Flag]) -> Vec<String> {
    flags
        .iter()
        .map(|flag| if flag.verbatim { flag.text.clone() } else { quoted(&flag.text) })
        .collect()
}

/// The user's flags as the kubelet will see them.
pub(crate) fn seen(flags: &[Flag]) -> Vec<String> {
    split_words(&read_value(&written(flags).join(" ")))
}

/// The value of a flag, `--name=value` or `--name value`; the last one wins.
pub(crate) fn value_of<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let mut found = None;
    for (index, argument) in arguments.iter().enumerate() {
        let Some((flag, value)) = split_flag(argument) else { continue };
        if flag == name {
            found = value.or_else(|| arguments.get(index + 1).map(String::as_str));
        }
    }
    found
}

/// The names of all flags among the arguments, without dashes.
pub(crate) fn names(arguments: &[String]) -> Vec<&str> {
    arguments.iter().filter_map(|argument| split_flag(argument)).map(|(name, _)| name).collect()
}

pub(crate) fn split_flag(argument: &str) -> Option<(&str, Option<&str>)> {
    let flag = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))?;
    Some(match flag.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (flag, None),
    })
}

/// What systemd's reader of environment files makes of an unquoted value: a backslash takes the
/// next character as it is.
pub(crate) fn read_value(text: &str) -> String {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        value.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    value
}

/// What systemd's word splitter makes of an expanded variable: blanks separate, quotes of both
/// kinds group, a backslash takes the next character as it is.
pub(crate) fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            c if quote.is_none() && c.is_ascii_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flag(text: &str, verbatim: bool) -> Flag {
        Flag { text: text.into(), verbatim }
    }

    #[test]
    fn quotes_only_what_needs_it() {
        let cases = [
            ("--v=2", "--v=2"),
            ("--node-labels=a=b,c/d=e", "--node-labels=a=b,c/d=e"),
            ("a b", r#""a b""#),
            (r#"say "hi""#, r#""say \\"hi\\"""#),
            (r"C:\x", r#""C:\\\\x""#),
            ("", r#""""#),
        ];
        for (argument, expected) in cases {
            assert_eq!(quoted(argument), expected, "{argument}");
        }
    }

    #[test]
    fn verbatim_flags_may_hold_several_words() {
        let flags = [flag("--a=1 --b='x y'", true), flag("--c=x y", false)];
        assert_eq!(written(&flags).join(" "), r#"--a=1 --b='x y' "--c=x y""#);
        assert_eq!(seen(&flags), ["--a=1", "--b=x y", "--c=x y"]);
    }

    #[test]
    fn the_last_flag_wins_in_both_spellings() {
        let flags = [flag("--max-pods=17", true), flag("--max-pods 58 --v=2", true)];
        let seen = seen(&flags);
        assert_eq!(value_of(&seen, "max-pods"), Some("58"));
        assert_eq!(value_of(&seen, "reserved-cpus"), None);
        assert_eq!(names(&seen), ["max-pods", "max-pods", "v"]);
    }

    proptest! {
        #[test]
        fn each_argument_survives_both_parsers(arguments in prop::collection::vec("[^\\p{Cc}]*", 1..5)) {
            let line: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
            prop_assert_eq!(split_words(&read_value(&line.join(" "))), arguments);
        }
    }
}
