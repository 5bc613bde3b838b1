//! What a run leaves for the next one: the record of this generation, and the files that the
//! run replaced.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::codes;
use crate::facts::LastRun;
use crate::problem::Problem;

/// The schema this binary writes, and the newest it reads.
pub const SCHEMA: u32 = 1;

/// Where the record lies.
pub const RECORD_PATH: &str = "/var/lib/tenon/record.json";
/// Where the replaced files of earlier generations lie, one file each, named by number.
pub const GENERATIONS_PATH: &str = "/var/lib/tenon/generations";

/// The state that the last run made true. Written after everything it describes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub schema: u32,
    /// Version of the binary that wrote it.
    pub version: String,
    pub instance_id: String,
    /// Counts the runs that changed files.
    pub generation: u64,
    /// Hash of the config without its secrets.
    pub config_hash: String,
    /// Hash of the plan with its secrets; never leaves this file.
    pub plan_hash: String,
    /// Every managed file with what was written.
    #[serde(default)]
    pub files: BTreeMap<String, FileMark>,
    /// What each unit was last started with.
    #[serde(default)]
    pub units: BTreeMap<String, UnitMark>,
    /// Mount index of each instance store disk, by serial.
    #[serde(default)]
    pub disk_indexes: BTreeMap<String, u32>,
    /// Content hash of each hook that ran once for this instance, by name.
    #[serde(default)]
    pub hooks: BTreeMap<String, String>,
    /// What the node runs with although it should not: shown by `status` until it is mended.
    #[serde(default)]
    pub warnings: Vec<LastingWarning>,
}

/// A warning that outlives the run which found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastingWarning {
    pub code: String,
    pub what: String,
    pub fix: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    pub sha256: String,
    pub mode: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnitMark {
    /// Hash over paths and contents of its inputs.
    pub input_hash: String,
    /// The inputs as the plan names them.
    pub inputs: Vec<String>,
}

/// The content that a run replaced, so that `undo` can bring it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Generation {
    pub schema: u32,
    /// The generation that this content belongs to.
    pub number: u64,
    /// The instance that it was saved on.
    pub instance_id: String,
    /// Its record; None before the first run.
    pub record: Option<Record>,
    pub files: BTreeMap<String, Saved>,
}

/// What stood at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "was", rename_all = "lowercase")]
pub enum Saved {
    Absent,
    File {
        mode: u32,
        #[serde(with = "as_base64")]
        body: Vec<u8>,
    },
}

impl Record {
    pub fn decode(bytes: &[u8]) -> Result<Self, Problem> {
        decode(bytes, RECORD_PATH)
    }

    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// The record, if it was made on this instance. One from another instance came with the
    /// image: it says nothing about this machine.
    pub fn of_instance(self, instance_id: &str) -> Option<Self> {
        (self.instance_id == instance_id).then_some(self)
    }

    /// The part that the plan depends on.
    pub fn last_run(&self) -> LastRun {
        let files = self.files.iter().map(|(path, mark)| (path.clone(), mark.sha256.clone()));
        LastRun {
            instance_id: self.instance_id.clone(),
            files: files.collect(),
            disk_indexes: self.disk_indexes.clone(),
        }
    }
}

impl Generation {
    pub fn path(number: u64) -> String {
        format!("{GENERATIONS_PATH}/{number}")
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Problem> {
        decode(bytes, GENERATIONS_PATH)
    }

    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("maps with text keys always encode");
    bytes.push(b'\n');
    bytes
}

fn decode<T: for<'de> Deserialize<'de>>(bytes: &[u8], path: &str) -> Result<T, Problem> {
    let damaged = |error: serde_json::Error| {
        let what = format!("{path} is not a record: line {}", error.line());
        Problem::new(&codes::host::STATE_DAMAGED, what)
    };
    let value: Value = serde_json::from_slice(bytes).map_err(damaged)?;
    let schema = value.get("schema").and_then(Value::as_u64).unwrap_or_default();
    if schema > u64::from(SCHEMA) {
        let what = format!("{path} has schema {schema}; this binary reads up to {SCHEMA}");
        return Err(Problem::new(&codes::host::STATE_TOO_NEW, what));
    }
    serde_json::from_value(value).map_err(damaged)
}

mod as_base64 {
    use super::{Engine, STANDARD};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(body: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(body))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(input)?;
        STANDARD.decode(text).map_err(|_| D::Error::custom("not base64"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let mark = FileMark { sha256: "ab".into(), mode: 0o600 };
        Record {
            schema: SCHEMA,
            version: "0.1.0".into(),
            instance_id: "i-1".into(),
            generation: 3,
            files: [("/etc/a".to_owned(), mark)].into(),
            ..Record::default()
        }
    }

    #[test]
    fn reads_what_it_writes() {
        assert_eq!(Record::decode(&record().encode()).unwrap(), record());
        let saved = Saved::File { mode: 0o600, body: vec![0, 255, 10] };
        let files = [("/a".to_owned(), saved), ("/b".to_owned(), Saved::Absent)].into();
        let (number, instance_id) = (2, "i-1".to_owned());
        let old = Generation { schema: SCHEMA, number, instance_id, record: Some(record()), files };
        assert_eq!(Generation::decode(&old.encode()).unwrap(), old);
    }

    #[test]
    fn row_44_newer_state_is_refused() {
        let text = r#"{"schema": 2, "shape": "unknown"}"#;
        assert_eq!(Record::decode(text.as_bytes()).unwrap_err().page.code, "TN12001");
        for damaged in ["", "{", "[]", r#"{"schema": 1}"#] {
            let problem = Record::decode(damaged.as_bytes()).unwrap_err();
            assert_eq!(problem.page.code, "TN12002", "{damaged:?}");
        }
    }

    #[test]
    fn row_46_a_record_of_another_instance_is_no_record() {
        assert_eq!(record().of_instance("i-2"), None);
        assert_eq!(record().of_instance("i-1"), Some(record()));
        assert_eq!(record().last_run().files["/etc/a"], "ab");
    }
}
