//! Two trees compared by meaning: values, not texts; who may read a file, and whose it is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What a program left: `type`, `mode`, `owner` and `value` by path, as `e2e/nodeadm/read.py` tells.
pub type Tree = BTreeMap<String, Value>;

/// The only entry of their tree where they refused the input; Tenon may not.
pub const REFUSED: &str = "exit status";

/// Files of the same purpose under another name: theirs, ours.
const RENAMED: &[(&str, &str)] = &[(
    "/etc/kubernetes/kubelet/config.json.d/00-nodeadm.conf",
    "/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf",
)];

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
    /// Tells the difference apart from one between the two programs.
    pub fn after_nodeadm(mut self) -> Self {
        self.place = format!("after nodeadm: {}", self.place);
        self
    }

    /// The row of the table in which the difference is listed, with the cases that show it.
    pub fn row(&self, cases: &str) -> String {
        let cell = |text: &str| format!("`{}`", text.replace('|', "\\|").replace('`', "'"));
        let side = |value: &Option<String>| value.as_deref().map_or("–".into(), cell);
        let field = if self.field.is_empty() { "–".into() } else { cell(&self.field) };
        let (theirs, ours) = (side(&self.theirs), side(&self.ours));
        format!("| {} | {field} | {theirs} | {ours} | {cases} |", cell(&self.place))
    }
}

/// Everything in which the trees differ. Where they refused the input, only that is told.
pub fn compare(theirs: &Tree, ours: &Tree) -> BTreeSet<Difference> {
    let mut found = Found::default();
    if let Some(status) = theirs.get(REFUSED) {
        found.values(REFUSED, "", &status["value"], &Value::from(0));
        return found.0;
    }
    for place in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
        match (theirs.get(place), ours.get(place)) {
            (Some(theirs), Some(ours)) => found.entries(place, theirs, ours),
            (theirs, ours) => found.add(place, "", theirs.map(summary), ours.map(summary)),
        }
    }
    for (old, new) in RENAMED.iter().filter(|(_, new)| !theirs.contains_key(*new)) {
        if let (Some(theirs), Some(ours)) = (theirs.get(*old), ours.get(*new)) {
            found.entries(new, theirs, ours);
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

    /// Lists of objects by position; other lists by what only one of them has, and by
    /// the order of the rest.
    fn lists(&mut self, place: &str, field: &str, theirs: &[Value], ours: &[Value]) {
        let nested = theirs.iter().chain(ours).any(Value::is_object);
        if nested && theirs.len() == ours.len() {
            for (at, (one, other)) in theirs.iter().zip(ours).enumerate() {
                self.values(place, &format!("{field}[{at}]"), one, other);
            }
            return;
        }
        let item = format!("{field}[]");
        for value in split(theirs, ours).1 {
            self.add(place, &item, Some(shown(value)), None);
        }
        for value in split(ours, theirs).1 {
            self.add(place, &item, None, Some(shown(value)));
        }
        if split(theirs, ours).0 != split(ours, theirs).0 {
            let whole = |list: &[Value]| Some(shown(&Value::from(list.to_vec())));
            self.add(place, &format!("{field} (order)"), whole(theirs), whole(ours));
        }
    }
}

/// What the other list has too, and what it lacks.
fn split<'a>(list: &'a [Value], other: &[Value]) -> (Vec<&'a Value>, Vec<&'a Value>) {
    list.iter().partition(|value| other.contains(value))
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
        compare(&tree(theirs), &tree(ours)).iter().map(|found| found.row("all")).collect()
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
            "| `/a` | `(mode)` | `\"0644\"` | `\"0600\"` | all |",
            "| `/a` | `old` | `\"v\\|w\"` | – | all |",
            "| `/a` | `x.\"y.z\"` | `1` | `2` | all |",
        ];
        assert_eq!(rows(theirs, ours), expected);
    }

    #[test]
    fn lists_differ_by_items_then_by_order_then_by_position() {
        let of = |value: Value| json!({"/a": {"value": value}});
        let items = rows(of(json!(["a", "b"])), of(json!(["b", "c"])));
        assert_eq!(
            items,
            ["| `/a` | `[]` | – | `\"c\"` | all |", "| `/a` | `[]` | `\"a\"` | – | all |"]
        );
        let order = rows(of(json!(["a", "b"])), of(json!(["b", "a"])));
        assert_eq!(order, ["| `/a` | ` (order)` | `[\"a\",\"b\"]` | `[\"b\",\"a\"]` | all |"]);
        let position = rows(of(json!([{"n": 1}])), of(json!([{"n": 2}])));
        assert_eq!(position, ["| `/a` | `[0].n` | `1` | `2` | all |"]);
    }

    #[test]
    fn a_path_of_one_side_is_told_without_its_content() {
        let ours = json!({"/a": {"type": "file", "mode": "0600", "value": ["secret"]}});
        assert_eq!(rows(json!({}), ours), ["| `/a` | – | – | `file 0600` | all |"]);
    }

    #[test]
    fn a_renamed_file_is_compared_with_its_old_self() {
        let drop_in = |name: &str, mode: &str| {
            let path = format!("/etc/kubernetes/kubelet/config.json.d/{name}-nodeadm.conf");
            json!({path: {"type": "file", "mode": mode, "value": {"maxPods": 1}}})
        };
        let found = rows(drop_in("00", "0644"), drop_in("40", "0600"));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(
            found.iter().any(|row| row.ends_with("| `(mode)` | `\"0644\"` | `\"0600\"` | all |"))
        );
    }

    #[test]
    fn a_refused_input_is_the_only_difference() {
        let theirs = json!({"exit status": {"value": 1}});
        let ours = json!({"/a": {"type": "file", "mode": "0600"}});
        assert_eq!(rows(theirs, ours), ["| `exit status` | – | `1` | `0` | all |"]);
    }
}
