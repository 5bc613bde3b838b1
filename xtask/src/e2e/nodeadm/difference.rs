//! Two trees compared by meaning: values, not texts; who may read a file, and whose it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What a program left: `type`, `mode`, `owner` and `value` by path, as `e2e/nodeadm/read.py` tells.
pub type Tree = BTreeMap<String, Value>;

/// The only entry of a tree whose program refused its input.
pub const REFUSED: &str = "exit status";

/// Longest value that is shown whole.
const SHOWN: usize = 70;

/// One thing that is not the same. Its place and field name it; the values are part of it, so that
/// a listed difference cannot grow unseen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    place: String,
    field: String,
    theirs: Option<String>,
    ours: Option<String>,
}

impl Difference {
    /// The row of the table in which the difference is listed.
    pub fn row(&self) -> String {
        let cell = |text: &str| format!("`{}`", text.replace('|', "\\|").replace('`', "'"));
        let side = |value: &Option<String>| value.as_deref().map_or("–".into(), cell);
        let field = if self.field.is_empty() { "–".into() } else { cell(&self.field) };
        let (theirs, ours) = (side(&self.theirs), side(&self.ours));
        format!("| {} | {field} | {theirs} | {ours} |", cell(&self.place))
    }
}

/// Everything in which the trees differ. Where a program refused its input, only that is told.
pub fn compare(theirs: &Tree, ours: &Tree) -> BTreeSet<Difference> {
    let mut found = Found::default();
    let failed = |tree: &Tree| tree.get(REFUSED).cloned();
    if failed(theirs).is_some() || failed(ours).is_some() {
        let status =
            |tree: &Tree| failed(tree).map_or(Value::from(0), |entry| entry["value"].clone());
        found.values(REFUSED, "", &status(theirs), &status(ours));
        return found.0;
    }
    for place in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        match (theirs.get(place), ours.get(place)) {
            (Some(theirs), Some(ours)) => found.entries(place, theirs, ours),
            (theirs, ours) => found.add(place, "", theirs.map(summary), ours.map(summary)),
        }
    }
    found.0
}

/// What a path is, for a reader who wants no content.
fn summary(entry: &Value) -> String {
    let words = ["type", "mode"].map(|name| entry[name].as_str().unwrap_or_default());
    words.join(" ").trim().to_owned()
}

#[derive(Default)]
struct Found(BTreeSet<Difference>);

impl Found {
    fn add(&mut self, place: &str, field: &str, theirs: Option<String>, ours: Option<String>) {
        let (place, field) = (place.to_owned(), field.to_owned());
        self.0.insert(Difference { place, field, theirs, ours });
    }

    fn entries(&mut self, place: &str, theirs: &Value, ours: &Value) {
        for name in ["type", "mode", "owner"] {
            self.values(place, &format!("({name})"), &theirs[name], &ours[name]);
        }
        self.values(place, "", &theirs["value"], &ours["value"]);
    }

    fn values(&mut self, place: &str, field: &str, theirs: &Value, ours: &Value) {
        match (theirs, ours) {
            _ if theirs == ours => {}
            (Value::Object(one), Value::Object(other)) => {
                for key in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
                    let field = below(field, key);
                    match (one.get(key), other.get(key)) {
                        (Some(one), Some(other)) => self.values(place, &field, one, other),
                        (one, other) => self.add(place, &field, one.map(shown), other.map(shown)),
                    }
                }
            }
            (Value::Array(one), Value::Array(other)) => self.lists(place, field, one, other),
            _ => self.add(place, field, Some(shown(theirs)), Some(shown(ours))),
        }
    }

    /// Lists of objects by position; other lists by what only one of them has, else by order.
    fn lists(&mut self, place: &str, field: &str, theirs: &[Value], ours: &[Value]) {
        let nested = theirs.iter().chain(ours).any(Value::is_object);
        if nested && theirs.len() == ours.len() {
            for (at, (one, other)) in theirs.iter().zip(ours).enumerate() {
                self.values(place, &format!("{field}[{at}]"), one, other);
            }
            return;
        }
        let item = format!("{field}[]");
        let before = self.0.len();
        for value in lacking(theirs, ours) {
            self.add(place, &item, Some(shown(value)), None);
        }
        for value in lacking(ours, theirs) {
            self.add(place, &item, None, Some(shown(value)));
        }
        if self.0.len() == before {
            let whole = |list: &[Value]| Some(shown(&Value::from(list.to_vec())));
            self.add(place, &format!("{field} (order)"), whole(theirs), whole(ours));
        }
    }
}

fn lacking<'a>(list: &'a [Value], other: &'a [Value]) -> impl Iterator<Item = &'a Value> {
    list.iter().filter(|value| !other.contains(value))
}

fn below(field: &str, key: &str) -> String {
    let key = if key.contains('.') { format!("\"{key}\"") } else { key.to_owned() };
    if field.is_empty() { key } else { format!("{field}.{key}") }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(theirs: Value, ours: Value) -> Vec<String> {
        let tree = |value| serde_json::from_value::<Tree>(value).unwrap();
        compare(&tree(theirs), &tree(ours)).iter().map(Difference::row).collect()
    }

    #[test]
    fn equal_meaning_is_no_difference() {
        let tree = json!({"/a": {"type": "file", "mode": "0644", "value": {"x": [1, {"y": 2}]}}});
        assert!(rows(tree.clone(), tree).is_empty());
    }

    #[test]
    fn each_leaf_is_named_by_its_path() {
        let theirs =
            json!({"/a": {"mode": "0644", "value": {"x": {"y.z": 1, "same": 1}, "old": "v|w"}}});
        let ours = json!({"/a": {"mode": "0600", "value": {"x": {"y.z": 2, "same": 1}}}});
        let expected = [
            "| `/a` | `(mode)` | `\"0644\"` | `\"0600\"` |",
            "| `/a` | `old` | `\"v\\|w\"` | – |",
            "| `/a` | `x.\"y.z\"` | `1` | `2` |",
        ];
        assert_eq!(rows(theirs, ours), expected);
    }

    #[test]
    fn lists_differ_by_items_then_by_order_then_by_position() {
        let of = |value: Value| json!({"/a": {"value": value}});
        let items = rows(of(json!(["a", "b"])), of(json!(["b", "c"])));
        assert_eq!(items, ["| `/a` | `[]` | – | `\"c\"` |", "| `/a` | `[]` | `\"a\"` | – |"]);
        let order = rows(of(json!(["a", "b"])), of(json!(["b", "a"])));
        assert_eq!(order, ["| `/a` | ` (order)` | `[\"a\",\"b\"]` | `[\"b\",\"a\"]` |"]);
        let position = rows(of(json!([{"n": 1}])), of(json!([{"n": 2}])));
        assert_eq!(position, ["| `/a` | `[0].n` | `1` | `2` |"]);
    }

    #[test]
    fn a_path_of_one_side_is_told_without_its_content() {
        let ours = json!({"/a": {"type": "file", "mode": "0600", "value": ["secret"]}});
        assert_eq!(rows(json!({}), ours), ["| `/a` | – | – | `file 0600` |"]);
    }

    #[test]
    fn a_refused_input_is_the_only_difference() {
        let theirs = json!({"exit status": {"value": 1}});
        let ours = json!({"/a": {"type": "file", "mode": "0600"}});
        assert_eq!(rows(theirs, ours), ["| `exit status` | – | `1` | `0` |"]);
    }
}
