//! The kinds of resources that an image is made of: what fields each has, and how two wishes for
//! the same thing become one. A new kind is a row here and a way to make it true.

use super::form::Form;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Text,
    Flag,
    Number,
    /// Octal text such as `0644`.
    Mode,
    Texts,
    /// Names to texts.
    Table,
    /// A list of tables, whose shape the kind's own reader knows.
    Tables,
}

/// How two values of one field become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// Only if they are equal.
    Equal,
    Highest,
    Lowest,
    /// All of both; in tables a name may stand in both only with one value.
    Union,
    /// One version is the beginning of the other: the longer one.
    Narrower,
}

#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    /// The form of its text, of each text of a list, and of each value of a table; of a table
    /// whose form is [`Form::Name`], the names have it.
    pub form: Form,
    pub merge: Merge,
    /// A resource without it means nothing.
    pub needed: bool,
    /// What a wish means that does not say it, beside one that does.
    pub unsaid: Option<bool>,
    /// Another field without which it does nothing.
    pub beside: Option<&'static str>,
}

const fn field(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        form: Form::Any,
        merge: Merge::Equal,
        needed: false,
        unsaid: None,
        beside: None,
    }
}

const fn text(name: &'static str) -> Field {
    field(name, Shape::Text)
}

impl Field {
    const fn of(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    const fn beside(mut self, other: &'static str) -> Self {
        self.beside = Some(other);
        self
    }

    const fn needed(mut self) -> Self {
        self.needed = true;
        self
    }

    const fn merged(mut self, merge: Merge) -> Self {
        self.merge = merge;
        self
    }

    const fn unsaid(mut self, flag: bool) -> Self {
        self.unsaid = Some(flag);
        self
    }
}

/// The families and architectures that a wish can be limited to.
const FAMILIES: Form = Form::OneOf(&["al2023", "debian", "ubuntu"]);
const ARCHITECTURES: Form = Form::OneOf(&["x86_64", "aarch64"]);

/// Fields that every resource may have besides those of its kind.
pub static COMMON: &[Field] = &[
    text("reason"),
    field("rules", Shape::Texts),
    field("required", Shape::Flag),
    ONLY,
    field("arch", Shape::Texts).of(ARCHITECTURES),
    field("release", Shape::Texts),
];

/// Limits a wish or a need to families.
pub const ONLY: Field = field("only", Shape::Texts).of(FAMILIES);

/// The forms of keys, by their names.
static KEYS: &[(&str, Form)] = &[
    ("path", Form::Path),
    ("file", Form::Path),
    ("name", Form::Name),
    ("unit", Form::Name),
    ("directive", Form::Name),
    ("default", Form::Name),
    ("marker", Form::Line),
    ("key", Form::Word),
    ("module", Form::Word),
    ("item", Form::Limit),
    ("rule", Form::Line),
];

/// The form of a part of a key.
pub fn key_form(key: &str) -> Form {
    KEYS.iter().find(|(name, _)| *name == key).map_or(Form::Any, |(_, form)| *form)
}

/// One kind of resource.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    /// Name of the field that says which thing it is. Two names joined by `:` are two fields,
    /// whose values are joined likewise: `/etc/login.defs:UMASK`.
    pub key: &'static str,
    pub fields: &'static [Field],
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.name == other.name
    }
}

/// Every kind, in the order in which they are made true and printed.
pub static KINDS: &[Kind] = &[
    Kind {
        name: "repository",
        key: "name",
        fields: &[
            text("url").needed(),
            text("fingerprint").needed(),
            text("key"),
            field("enabled", Shape::Flag),
        ],
    },
    Kind {
        name: "package",
        key: "name",
        fields: &[
            text("version").merged(Merge::Narrower),
            text("source"),
            // Packages of one set must be of one version.
            text("set"),
            field("lock", Shape::Flag).merged(Merge::Union),
        ],
    },
    Kind { name: "package-absent", key: "name", fields: &[] },
    Kind {
        name: "group",
        key: "name",
        fields: &[field("id", Shape::Number), field("system", Shape::Flag)],
    },
    Kind {
        name: "user",
        key: "name",
        fields: &[
            field("id", Shape::Number),
            text("shell").of(Form::Path),
            text("home").of(Form::Path),
            field("locked", Shape::Flag),
            field("groups", Shape::Texts).of(Form::Name).merged(Merge::Union),
        ],
    },
    Kind {
        name: "directory",
        key: "path",
        fields: &[field("mode", Shape::Mode).needed(), text("owner")],
    },
    // Its content is whichever build applies the plan; the record has the hash.
    Kind { name: "tenon", key: "path", fields: &[] },
    Kind {
        name: "download",
        key: "path",
        fields: &[
            text("component").needed(),
            text("version").needed(),
            text("url").needed(),
            field("sha256", Shape::Table).of(Form::Sum).needed(),
            field("members", Shape::Table),
            field("mode", Shape::Mode),
            text("licence"),
        ],
    },
    Kind {
        name: "file",
        key: "path",
        fields: &[
            text("content").needed(),
            field("mode", Shape::Mode).needed(),
            text("owner"),
            field("if-absent", Shape::Flag),
            field("seed", Shape::Flag),
        ],
    },
    Kind { name: "block", key: "path:marker", fields: &[text("content").needed()] },
    // The version of an installed package, for whoever cannot ask the package itself.
    Kind { name: "stamp", key: "path", fields: &[text("package").of(Form::Name).needed()] },
    Kind { name: "link", key: "path", fields: &[text("target").of(Form::NotEmpty).needed()] },
    Kind { name: "absent", key: "path", fields: &[] },
    Kind {
        name: "access",
        key: "path",
        fields: &[field("mode", Shape::Mode).merged(Merge::Equal), text("owner")],
    },
    Kind {
        name: "sysctl",
        key: "key",
        fields: &[
            text("value"),
            field("floor", Shape::Number).merged(Merge::Highest),
            field("ceiling", Shape::Number).merged(Merge::Lowest),
        ],
    },
    Kind {
        name: "kernel-argument",
        key: "key",
        fields: &[text("value"), field("present", Shape::Flag).unsaid(true)],
    },
    Kind {
        name: "module",
        key: "name",
        fields: &[text("state").of(Form::OneOf(&["loaded", "denied"])).needed()],
    },
    Kind {
        name: "unit",
        key: "name",
        fields: &[
            text("content"),
            text("state").of(Form::OneOf(&["enabled", "disabled"])).beside("wanted-by"),
            field("wanted-by", Shape::Texts).of(Form::Name).merged(Merge::Union),
            field("drop-ins", Shape::Table).of(Form::Name).merged(Merge::Union),
        ],
    },
    Kind { name: "mask", key: "unit", fields: &[] },
    Kind {
        name: "mount",
        key: "path",
        fields: &[
            text("source").needed(),
            text("type").needed(),
            field("options", Shape::Texts).of(Form::Commas).merged(Merge::Union),
        ],
    },
    Kind { name: "limit", key: "item", fields: &[text("soft").needed(), text("hard").needed()] },
    Kind { name: "setting", key: "file:name", fields: &[text("value").needed()] },
    Kind { name: "sshd", key: "directive", fields: &[text("value").needed()] },
    Kind { name: "sudo", key: "default", fields: &[text("value")] },
    Kind { name: "pam", key: "file:module", fields: &[text("arguments").needed()] },
    Kind { name: "audit", key: "rule", fields: &[text("group").of(Form::Name).needed()] },
    Kind {
        name: "cached-image",
        key: "name",
        fields: &[
            text("reference").needed(),
            text("digest").needed(),
            field("pin", Shape::Flag),
            field("names", Shape::Texts).merged(Merge::Union),
        ],
    },
    Kind { name: "crypto-policy", key: "name", fields: &[text("policy").needed()] },
    Kind {
        name: "command",
        key: "name",
        fields: &[
            field("words", Shape::Texts).needed(),
            field("inputs", Shape::Texts),
            field("outputs", Shape::Texts).needed(),
            text("why").needed(),
        ],
    },
    Kind { name: "manual", key: "name", fields: &[text("text").needed()] },
];

/// Finds a kind by its name.
pub fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

impl Kind {
    /// The fields that make up the key.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.key.split(':')
    }

    pub fn field(&self, name: &str) -> Option<&'static Field> {
        let own = find(self.name)?;
        own.fields.iter().find(|field| field.name == name)
    }

    /// Its place in the order of kinds.
    pub fn rank(&self) -> usize {
        KINDS.iter().position(|kind| kind.name == self.name).unwrap_or(KINDS.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (at, kind) in KINDS.iter().enumerate() {
            assert_eq!(kind.rank(), at, "{}", kind.name);
            let mut names: Vec<_> = kind.fields.iter().map(|field| field.name).collect();
            names.extend(kind.keys());
            names.sort_unstable();
            assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{}", kind.name);
        }
    }

    #[test]
    fn every_key_has_a_form_and_the_families_are_all_named() {
        for key in KINDS.iter().flat_map(Kind::keys) {
            assert_ne!(key_form(key), Form::Any, "{key}");
        }
        let known: Vec<_> = crate::image::family::FAMILIES.iter().map(|one| one.name).collect();
        assert!(matches!(FAMILIES, Form::OneOf(words) if words == known));
    }
}
