//! The field table in words: `tenon explain FIELD` and the reference page.

use serde_json::{Value, json};

use super::fields;
use super::schema::{Field, Kind, Shape};
use crate::nearest::nearest;

/// What `tenon explain FIELD` says, or the path that was probably meant. The leading `spec.` may
/// be left out.
pub fn explain(path: &str) -> Result<Explained, Option<String>> {
    let path = path.trim_matches('.');
    let candidates = [path.to_owned(), format!("spec.{path}")];
    let found = candidates.iter().find_map(|path| Some((path, fields::find(path)?)));
    match found {
        Some((path, field)) => Ok(Explained { path: path.clone(), field }),
        None => Err(suggestion(path)),
    }
}

/// The nearest known path: by its whole, else by its last name.
fn suggestion(path: &str) -> Option<String> {
    let all = fields::all();
    let last = path.rsplit('.').next().unwrap_or(path);
    let paths = all.iter().map(|(known, _)| known.as_str());
    let whole = nearest(path, paths).map(str::to_owned);
    let by_name = || {
        let name = nearest(last, all.iter().map(|(_, field)| field.name))?;
        all.iter().find(|(_, field)| field.name == name).map(|(known, _)| known.clone())
    };
    whole.or_else(by_name)
}

/// A field and its path.
#[derive(Debug, Clone)]
pub struct Explained {
    pub path: String,
    field: &'static Field,
}

impl Explained {
    pub fn text(&self) -> String {
        let field = self.field;
        let mut text = format!("{}\n  {}\n\n", self.path, field.doc);
        let mut line = |name: &str, value: &str| {
            if !value.is_empty() {
                text.push_str(&format!("  {name:<8} {}\n", value.replace('\n', "\n           ")));
            }
        };
        line("type", &field.shape.doc());
        line("kinds", kinds(field));
        line("since", "v1alpha1");
        line("default", default(field));
        line("merge", field.merge.doc());
        if field.sensitive {
            line("secret", "its values are never shown");
        }
        line("example", field.example);
        let names: Vec<_> = field.children().iter().map(|child| child.name).collect();
        line("fields", &names.join(", "));
        text
    }

    pub fn to_json(&self) -> Value {
        let field = self.field;
        json!({
            "schema": "tenon.explain/1",
            "path": self.path,
            "type": field.shape.doc(),
            "kinds": Kind::ALL.iter().filter(|kind| field.in_kind(**kind)).map(|kind| kind.group()).collect::<Vec<_>>(),
            "since": "v1alpha1",
            "default": default(field),
            "merge": field.merge.doc(),
            "sensitive": field.sensitive,
            "description": field.doc,
            "example": field.example,
            "fields": field.children().iter().map(|child| child.name).collect::<Vec<_>>(),
        })
    }
}

fn default(field: &Field) -> &'static str {
    if field.required { "none: required" } else { field.default }
}

fn kinds(field: &Field) -> &'static str {
    if field.tenon_only { "tenon.dev" } else { "node.eks.aws, tenon.dev" }
}

/// The config reference as a Markdown page.
pub fn page() -> String {
    let mut text = String::from(
        "# Config reference\n\n\
         Generated from the field table; do not edit. `tenon explain FIELD` prints one entry.\n\n\
         Two kinds of document share these fields: `node.eks.aws/v1alpha1`, which reads what \
         nodeadm reads, and `tenon.dev/v1alpha1`, a strict superset. Fields marked *tenon.dev* \
         exist in the latter only.\n",
    );
    for (path, field) in fields::all() {
        if matches!(field.shape, Shape::Object(_)) {
            text.push_str(&format!("\n## `{path}`{}\n\n{}\n", mark(field), field.doc));
        } else {
            text.push_str(&entry(&path, field));
        }
    }
    text
}

fn mark(field: &Field) -> &'static str {
    if field.tenon_only { " *tenon.dev*" } else { "" }
}

fn entry(path: &str, field: &Field) -> String {
    let mut text = format!("\n### `{path}`{}\n\n{}\n\n", mark(field), field.doc);
    text.push_str(&format!("- Type: {}\n", field.shape.doc()));
    if !default(field).is_empty() {
        text.push_str(&format!("- Default: {}\n", default(field)));
    }
    text.push_str(&format!("- Merge: {}\n", field.merge.doc()));
    if !field.example.is_empty() {
        text.push_str(&format!("\n```yaml\n{}\n```\n", field.example));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explains_a_field_with_type_default_since_and_example() {
        let explained = explain("spec.kubelet.maxPods.mode").unwrap();
        let text = explained.text();
        for words in ["spec.kubelet.maxPods.mode", "`eni`", "default  eni", "since", "mode: fixed"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!(explain("kubelet.flags").unwrap().path, "spec.kubelet.flags");
        assert_eq!(explain("apiVersion").unwrap().path, "apiVersion");
        assert_eq!(
            explain("spec.hooks.postConfig.argv").unwrap().path,
            "spec.hooks.postConfig.argv"
        );
        assert_eq!(explain("spec.cluster.name").unwrap().to_json()["default"], "none: required");
    }

    #[test]
    fn a_wrong_path_gets_the_nearest_right_one() {
        assert_eq!(
            explain("spec.kublet.flags").unwrap_err().as_deref(),
            Some("spec.kubelet.flags")
        );
        assert_eq!(explain("maxPodz").unwrap_err().as_deref(), Some("spec.kubelet.maxPods"));
        assert_eq!(explain("zzzzzzzzzzz").unwrap_err(), None);
    }

    #[test]
    fn the_page_has_every_field() {
        let page = page();
        for (path, _) in fields::all() {
            assert!(page.contains(&format!("`{path}`")), "{path}");
        }
    }
}
