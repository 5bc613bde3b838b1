//! The forms that texts of a resource have: what a path, a name or a word of a short list looks
//! like, so that no spelling reaches a root that means something else there.

use crate::nearest::nearest;

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Any,
    NotEmpty,
    /// One line.
    Line,
    /// One word, which may have slashes.
    Word,
    /// One word without slashes: part of a file's name or of a line.
    Name,
    /// A path from the root in its only spelling; a component may be a pattern.
    Path,
    /// `DOMAIN/ITEM`
    Limit,
    /// A SHA-256 in hexadecimal digits.
    Sum,
    /// Words between commas, each an entry of its own.
    Commas,
    OneOf(&'static [&'static str]),
}

impl Form {
    pub fn holds(self, text: &str) -> bool {
        let is_word = |text: &str| {
            !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
        };
        match self {
            Form::Any => true,
            Form::NotEmpty => !text.is_empty(),
            Form::Line => !text.is_empty() && !text.contains(char::is_control),
            Form::Word | Form::Commas => is_word(text),
            Form::Name => is_word(text) && !text.contains('/') && ![".", ".."].contains(&text),
            Form::Path => is_path(text),
            Form::Limit => {
                let parts = text.split_once('/');
                let is_part = |part| Form::Name.holds(part);
                parts.is_some_and(|(domain, item)| is_part(domain) && is_part(item))
            }
            Form::Sum => text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Form::OneOf(words) => words.contains(&text),
        }
    }

    /// What is right, as the end of a sentence.
    pub fn words(self) -> String {
        let words = match self {
            Form::Any => "any text",
            Form::NotEmpty => "not empty",
            Form::Line => "one line without control characters",
            Form::Word | Form::Commas => "one word without spaces and control characters",
            Form::Name => "one word without `/`, spaces and control characters",
            Form::Path => {
                "a path from `/` on, without `.`, `..`, empty parts, a `/` at the end and control characters"
            }
            Form::Limit => "a domain and an item such as `*/nofile`",
            Form::Sum => "64 hexadecimal digits",
            Form::OneOf(words) => return format!("one of {}", words.join(", ")),
        };
        words.to_owned()
    }

    /// The right word that a wrong one probably meant.
    pub fn nearest(self, text: &str) -> Option<&'static str> {
        let Form::OneOf(words) = self else { return None };
        nearest(text, words.iter().copied())
    }

    /// The text in the spelling that is compared and written.
    pub fn normal(self, text: &str) -> Vec<String> {
        match self {
            Form::Sum => vec![text.to_ascii_lowercase()],
            Form::Commas => {
                text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
            }
            _ => vec![text.to_owned()],
        }
    }
}

fn is_path(text: &str) -> bool {
    let is_part = |part: &str| !["", ".", ".."].contains(&part);
    let below_root = text.strip_prefix('/');
    below_root.is_some_and(|rest| rest.split('/').all(is_part))
        && !text.contains(|c: char| c.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_texts_that_fit_and_texts_that_do_not() {
        let cases: &[(Form, &[&str], &[&str])] = &[
            (
                Form::Path,
                &["/etc", "/etc/cron.d/*", "/a b", "/a:b", "/..a/b.", "/etc/@x"],
                &["", "/", "etc", "/srv/", "//srv", "/etc/../media", "/etc/./a", "/a\nb", "/.."],
            ),
            (
                Form::Name,
                &["containerd.service", "x@.service", "!rootpw", "g++", "br_netfilter"],
                &["", "a b", "a/b", "a\n", "a\tb", "..", "\u{7f}"],
            ),
            (Form::Word, &["net/ipv4/ip_forward", "a.b"], &["", "a b", "a\n"]),
            (Form::Line, &["-w /etc/a -p wa"], &["", "a\nb"]),
            (Form::NotEmpty, &["../a"], &[""]),
            (Form::Limit, &["*/nofile", "@adm/nproc"], &["nofile", "*/", "/x", "a/b/c", "* /x"]),
            (Form::OneOf(&["loaded", "denied"]), &["loaded"], &["", "load", "Loaded"]),
        ];
        for (form, right, wrong) in cases {
            for text in *right {
                assert!(form.holds(text), "{form:?} {text:?}");
            }
            for text in *wrong {
                assert!(!form.holds(text), "{form:?} {text:?}");
            }
        }
        assert!(Form::Sum.holds(&"aB".repeat(32)) && !Form::Sum.holds(&"a".repeat(63)));
        assert!(!Form::Sum.holds(&"g".repeat(64)));
    }

    #[test]
    fn a_text_has_one_spelling() {
        assert_eq!(Form::Sum.normal("AB"), ["ab"]);
        assert_eq!(Form::Commas.normal("nodev,,noexec"), ["nodev", "noexec"]);
        assert_eq!(Form::Name.normal("PermitRootLogin"), ["PermitRootLogin"]);
    }
}
