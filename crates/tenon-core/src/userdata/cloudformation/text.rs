//! A template as text: sections in their order, everything below sorted.

use serde_json::{Map, Value, json};

use crate::userdata::cluster::{STAND_IN, stand_in};
use crate::yaml;

/// A whole template.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// In the order they are written; empty ones are left out.
    pub sections: Vec<(&'static str, Value)>,
}

impl Template {
    /// As JSON, the canonical form.
    pub fn json(&self) -> String {
        let sections: Vec<_> = self
            .present()
            .map(|(name, value)| {
                let body = format!("{value:#}").replace('\n', "\n  ");
                format!("  \"{name}\": {body}")
            })
            .collect();
        format!("{{\n{}\n}}\n", sections.join(",\n"))
    }

    /// As YAML: the same tree.
    pub fn yaml(&self) -> String {
        self.present().map(|(name, value)| yaml::emit(&json!({name: value}))).collect()
    }

    /// The tree itself.
    pub fn value(&self) -> Value {
        Value::Object(
            self.present().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        )
    }

    fn present(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        let empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
        self.sections
            .iter()
            .filter(move |(_, value)| !empty(value))
            .map(|(name, value)| (*name, value))
    }
}

/// Parameters that user data may hold, what they are in a template, and their greatest length.
const REFERENCES: [(&str, &str, usize); 8] = [
    ("ClusterName", "ClusterName", 100),
    ("ClusterEndpoint", "ClusterEndpoint", 261),
    ("ClusterCertificateAuthority", "ClusterCertificateAuthority", 4096),
    ("ServiceCidr", "ServiceCidr", 43),
    ("NodeGroupName", "NodeGroupName", 63),
    ("StackName", "AWS::StackName", 128),
    ("Region", "AWS::Region", 25),
    ("SignalTimeout", "SignalTimeout", 11),
];

/// Text with stand-ins as a template of `Fn::Sub`: what looks like a reference in it is written
/// `${!`, so that it reaches the node as it is.
pub fn substitution(text: &str) -> String {
    let mut sub = text.replace("${", "${!");
    for (name, reference, _) in REFERENCES {
        sub = sub.replace(&stand_in(name), &format!("${{{reference}}}"));
    }
    sub
}

/// The size of the text with every parameter at its greatest length.
pub fn greatest_size(text: &str) -> usize {
    let grown = |size: usize, (name, _, length): (&str, &str, usize)| {
        let stand_in = stand_in(name);
        let count = text.matches(&stand_in).count();
        size + count * length - count * stand_in.len()
    };
    REFERENCES.into_iter().fold(text.len(), grown)
}

/// False for text with a reference inside a reference, or with `${!`: implementations of
/// `Fn::Sub` read those in different ways.
pub fn is_plain(text: &str) -> bool {
    let mut references = text.split("${").skip(1).peekable();
    while let Some(reference) = references.next() {
        let nested = !reference.contains('}') && references.peek().is_some();
        if reference.starts_with('!') || nested {
            return false;
        }
    }
    true
}

/// True when the text holds a stand-in, which only generated text may.
pub fn has_stand_in(text: &str) -> bool {
    text.contains(STAND_IN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_scripts_survive() {
        let text = format!("echo ${{HOME}} {}", stand_in("ClusterName"));
        assert_eq!(substitution(&text), "echo ${!HOME} ${ClusterName}");
    }

    #[test]
    fn scripts_are_plain_for_substitution() {
        let scripts = [
            include_str!("../scripts/bootstrap.al2.sh"),
            include_str!("../scripts/bootstrap.ubuntu.sh"),
            include_str!("../scripts/helper.sh"),
            include_str!("../scripts/max-pods.sh"),
            include_str!("../scripts/signal.sh"),
        ];
        assert!(scripts.into_iter().all(is_plain));
        for text in ["${!x}", "${a:-${b}}", "${a:-x${b}}"] {
            assert!(!is_plain(text), "{text}");
        }
        assert!(is_plain("${a} ${b} {c} $(d) ${e:-x}"));
    }

    #[test]
    fn the_greatest_size_counts_every_use() {
        let name = stand_in("ClusterName");
        assert_eq!(greatest_size(&format!("{name}{name}x")), 201);
        assert_eq!(greatest_size("abc"), 3);
    }

    #[test]
    fn sections_keep_their_order() {
        let template = Template {
            sections: vec![("B", json!({"x": 1})), ("A", json!({})), ("C", json!("t"))],
        };
        assert_eq!(template.json(), "{\n  \"B\": {\n    \"x\": 1\n  },\n  \"C\": \"t\"\n}\n");
        assert_eq!(template.yaml(), "B:\n  x: 1\nC: t\n");
    }
}
