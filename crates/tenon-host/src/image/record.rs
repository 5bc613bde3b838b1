//! What the last apply did, kept in the root: a hash of each item, and of each file whose content
//! the plan does not tell. It is written last, so a root with a record was made whole.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tenon_core::codes::image::RECORD_DAMAGED;
use tenon_core::hex::sha256;
use tenon_core::image::item::Item;
use tenon_core::problem::Problem;

use crate::apply::directories::unreadable;
use crate::root::Root;

pub const PATH: &str = "/usr/lib/tenon/image/record.json";
pub const PLAN: &str = "/usr/lib/tenon/image/plan.json";
/// The plan holds the content of files that root alone may read.
pub const MODE: u32 = 0o600;
const SCHEMA: &str = "tenon.image-record/1";
const CAP: u64 = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    pub plan_hash: String,
    /// By the name of the item.
    pub items: BTreeMap<String, Entry>,
    /// What the kernel had before `--live` changed it, by name.
    pub before_live: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Of the item itself.
    pub hash: String,
    /// Of the inputs of a command.
    pub inputs: Option<String>,
    /// sha256 of unpacked files and of outputs, by path.
    pub files: BTreeMap<String, String>,
}

/// The name of an item: kind and key.
pub fn name(item: &Item) -> String {
    let (kind, key) = item.act.name();
    format!("{kind} {key}")
}

/// Names what an item asks for.
pub fn item_hash(item: &Item) -> String {
    sha256(item.act.to_json().to_string().as_bytes())
}

impl Record {
    /// Reads the record of a root; an empty one if there is none.
    pub fn load(root: &Root) -> Result<Record, Problem> {
        let Some(bytes) = root.read(PATH, CAP).map_err(|error| unreadable(PATH, error))? else {
            return Ok(Record::default());
        };
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if value["schema"] != SCHEMA {
            return Err(Problem::new(&RECORD_DAMAGED, format!("{PATH} is not of schema {SCHEMA}")));
        }
        let items = value["items"].as_object().into_iter().flatten();
        Ok(Record {
            plan_hash: value["planHash"].as_str().unwrap_or_default().to_owned(),
            items: items.map(|(name, value)| (name.clone(), Entry::from_json(value))).collect(),
            before_live: texts(&value["beforeLive"]),
        })
    }

    pub fn to_json(&self) -> Value {
        let entry = |(name, entry): (&String, &Entry)| (name.clone(), entry.to_json());
        json!({
            "schema": SCHEMA,
            "planHash": self.plan_hash,
            "items": self.items.iter().map(entry).collect::<serde_json::Map<_, _>>(),
            "beforeLive": self.before_live,
        })
    }

    /// What is recorded of exactly this item.
    pub fn of(&self, item: &Item) -> Option<&Entry> {
        self.items.get(&name(item)).filter(|entry| entry.hash == item_hash(item))
    }
}

impl Entry {
    fn from_json(value: &Value) -> Entry {
        Entry {
            hash: value["hash"].as_str().unwrap_or_default().to_owned(),
            inputs: value["inputs"].as_str().map(str::to_owned),
            files: texts(&value["files"]),
        }
    }

    fn to_json(&self) -> Value {
        let mut value = json!({"hash": self.hash});
        if let Some(inputs) = &self.inputs {
            value["inputs"] = json!(inputs);
        }
        if !self.files.is_empty() {
            value["files"] = json!(self.files);
        }
        value
    }
}

fn texts(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}
