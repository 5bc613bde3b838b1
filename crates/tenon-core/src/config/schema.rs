//! What a field is: the vocabulary of the field table in [`super::fields`].
//!
//! One table serves every reader: checks, merge, JSON Schema, `explain`, the reference page and
//! redaction all walk it, so that none of them can disagree with another.

use super::grammar::Grammar;

/// The two kinds of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `node.eks.aws/v1alpha1`: compatible, reads what nodeadm reads.
    Eks,
    /// `tenon.dev/v1alpha1`: a strict superset.
    Tenon,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Eks, Kind::Tenon];

    pub fn api_version(self) -> &'static str {
        match self {
            Kind::Eks => "node.eks.aws/v1alpha1",
            Kind::Tenon => "tenon.dev/v1alpha1",
        }
    }

    /// The API group, which is also how the command line names the kind.
    pub fn group(self) -> &'static str {
        match self {
            Kind::Eks => "node.eks.aws",
            Kind::Tenon => "tenon.dev",
        }
    }

    /// Finds a kind by its group or its API version.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| [kind.group(), kind.api_version()].contains(&name))
    }
}

/// One field of a document.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub shape: Shape,
    pub merge: Merge,
    /// Part of `tenon.dev` only.
    pub tenon_only: bool,
    /// An item of a list cannot do without it.
    pub required: bool,
    /// Its values are secrets: redacted in hashes and plans.
    pub sensitive: bool,
    /// The default in words; empty when there is none.
    pub default: &'static str,
    pub doc: &'static str,
    /// YAML that sets the field, flow style.
    pub example: &'static str,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Fields of the table.
    Object(&'static [Field]),
    Text(Grammar),
    Bool,
    /// An integer within these bounds.
    Int(i64, i64),
    /// One of these words.
    Choice(Words),
    /// One of these words, or an integer from 1.
    ChoiceOrInt(Words),
    /// A list of texts.
    Texts(Grammar),
    /// A list of words.
    Choices(Words),
    /// A list of objects.
    Items(&'static [Field]),
    /// A map from a text to a value of one shape.
    Map(Grammar, &'static Shape),
    /// Somebody else's document, checked by its own table.
    Free(Free),
}

/// The words that a field accepts.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    pub eks: &'static [&'static str],
    /// Accepted in `tenon.dev` only.
    pub tenon: &'static [&'static str],
    pub any_case: bool,
    /// An unknown word is ignored by nodeadm, and therefore tolerated in its documents.
    pub tolerated: bool,
}

impl Words {
    pub const fn new(words: &'static [&'static str]) -> Self {
        Words { eks: words, tenon: &[], any_case: false, tolerated: false }
    }

    /// The words that a kind accepts.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &'static str> + '_ {
        let more = if kind == Kind::Tenon { self.tenon } else { &[] };
        self.eks.iter().chain(more).copied()
    }

    /// The canonical spelling of a word, if the kind accepts it.
    pub fn find(&self, kind: Kind, text: &str) -> Option<&'static str> {
        let same =
            |word: &&str| *word == text || (self.any_case && word.eq_ignore_ascii_case(text));
        self.of(kind).find(|word| same(word))
    }
}

/// Documents of other projects that a config may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Free {
    /// KubeletConfiguration v1beta1.
    Kubelet,
    /// OCI runtime spec.
    RuntimeSpec,
    /// Nobody's: `metadata`.
    Anything,
}

/// What happens when two documents set the same field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// Field by field.
    Fields,
    /// The later non-empty text wins; `null` clears in `tenon.dev`.
    NonEmpty,
    /// The later value wins; `null` clears.
    Replace,
    /// Once true it stays true in `node.eks.aws`; the later value wins in `tenon.dev`.
    Latch,
    /// The later non-empty list replaces; `[]` clears in `tenon.dev`.
    List,
    /// Lists are joined, duplicates kept.
    Append,
    /// By key, deep; `null` deletes a key in `tenon.dev`.
    Keys,
    /// By key, the later non-empty value wins.
    KeysNonEmpty,
    /// Objects merge deep, anything else replaces, `null` and `[]` included.
    Deep,
    /// TOML tables merge deep; text given once stays as written.
    Toml,
    /// Items with the same identity replace each other in place, new ones are added.
    Identity(&'static [&'static str]),
}

impl Merge {
    /// The rule in words, for the reference.
    pub fn doc(self) -> &'static str {
        match self {
            Merge::Fields => "field by field",
            Merge::NonEmpty => "the later non-empty value wins; `null` clears in `tenon.dev`",
            Merge::Replace => "the later value wins; `null` clears",
            Merge::Latch => "`true` stays in `node.eks.aws`; the later value wins in `tenon.dev`",
            Merge::List => "the later non-empty list replaces; `[]` clears in `tenon.dev`",
            Merge::Append => "lists are joined in order",
            Merge::Keys => "by key, deep; `null` deletes a key in `tenon.dev`",
            Merge::KeysNonEmpty => "by key, the later non-empty value wins",
            Merge::Deep => "objects merge deep; any other value replaces",
            Merge::Toml => {
                "tables merge deep; arrays replace; given once, the text stays as written"
            }
            Merge::Identity(_) => "by identity: the same one replaces in place, new ones are added",
        }
    }
}

impl Field {
    /// A field of both kinds, with the merge rule that its shape suggests.
    pub const fn new(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        let merge = match shape {
            Shape::Object(_) => Merge::Fields,
            Shape::Text(_) | Shape::Choice(_) | Shape::ChoiceOrInt(_) => Merge::NonEmpty,
            Shape::Bool | Shape::Int(..) => Merge::Replace,
            Shape::Texts(_) | Shape::Choices(_) | Shape::Items(_) => Merge::List,
            Shape::Map(..) => Merge::Keys,
            Shape::Free(_) => Merge::Deep,
        };
        Field {
            name,
            shape,
            merge,
            tenon_only: false,
            required: false,
            sensitive: false,
            default: "",
            doc,
            example: "",
        }
    }

    pub const fn merge(mut self, merge: Merge) -> Self {
        self.merge = merge;
        self
    }

    pub const fn tenon(mut self) -> Self {
        self.tenon_only = true;
        self
    }

    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    pub const fn sensitive(mut self) -> Self {
        self.sensitive = true;
        self
    }

    pub const fn default(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }

    pub const fn example(mut self, example: &'static str) -> Self {
        self.example = example;
        self
    }

    /// True when documents of this kind may set the field.
    pub fn in_kind(&self, kind: Kind) -> bool {
        kind == Kind::Tenon || !self.tenon_only
    }

    /// The fields below this one; empty for a leaf.
    pub fn children(&self) -> &'static [Field] {
        match self.shape {
            Shape::Object(fields) | Shape::Items(fields) => fields,
            _ => &[],
        }
    }
}

impl Shape {
    /// The type in words.
    pub fn doc(&self) -> String {
        match self {
            Shape::Object(_) => "object".into(),
            Shape::Text(grammar) => grammar.doc().into(),
            Shape::Bool => "true or false".into(),
            Shape::Int(low, high) => format!("integer from {low} to {high}"),
            Shape::Choice(words) => listed(words),
            Shape::ChoiceOrInt(words) => format!("{}, or an integer from 1", listed(words)),
            Shape::Texts(grammar) => format!("list; each entry: {}", grammar.doc()),
            Shape::Choices(words) => format!("list of {}", listed(words)),
            Shape::Items(_) => "list of objects".into(),
            Shape::Map(key, value) => format!("map from {} to {}", key.doc(), value.doc()),
            Shape::Free(Free::Kubelet) => "object: KubeletConfiguration v1beta1".into(),
            Shape::Free(Free::RuntimeSpec) => "object: OCI runtime spec".into(),
            Shape::Free(Free::Anything) => "object, free form".into(),
        }
    }
}

fn listed(words: &Words) -> String {
    let mut names: Vec<_> = words.eks.iter().map(|word| format!("`{word}`")).collect();
    names.extend(words.tenon.iter().map(|word| format!("`{word}` (tenon.dev)")));
    names.join(", ")
}
