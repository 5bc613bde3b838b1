//! What a bundle of assets must look like: `bundle.json`, and every file that it lists.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::codes::stages as pages;
use crate::hex::sha256;
use crate::problem::Problem;

/// The index at the root of a bundle.
pub const INDEX: &str = "bundle.json";
/// Bytes and files that a bundle may have in all.
pub const LARGEST: u64 = 64 << 20;
pub const MOST_FILES: usize = 4096;
const SCHEMA: u64 = 1;
/// The parts that a bundle may have.
const PARTS: [&str; 4] = ["pki", "control-plane", "manifests", "addons"];
/// What `pki/` may hold: CA pairs and the keys of service accounts, no leaf.
const PKI: [&str; 8] = [
    "ca.crt",
    "ca.key",
    "front-proxy-ca.crt",
    "front-proxy-ca.key",
    "etcd/ca.crt",
    "etcd/ca.key",
    "sa.key",
    "sa.pub",
];

/// One file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub size: u64,
    pub mode: u32,
    pub sha256: String,
}

/// The index of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    pub cluster: String,
    pub files: BTreeMap<String, Entry>,
}

impl Index {
    /// Reads an index and holds it against every rule.
    pub fn decode(bytes: &[u8]) -> Result<Index, Problem> {
        let wrong = |what: &str| Problem::new(&pages::BAD_BUNDLE, what);
        let value: Value =
            serde_json::from_slice(bytes).map_err(|_| wrong("bundle.json is not JSON"))?;
        if value["schema"].as_u64() != Some(SCHEMA) {
            return Err(wrong("bundle.json has an unknown schema"));
        }
        let cluster = value["cluster"].as_str().unwrap_or_default().to_owned();
        let rows = value["files"].as_object().ok_or_else(|| wrong("bundle.json lists no files"))?;
        if rows.len() > MOST_FILES {
            return Err(wrong(&format!("the bundle has more than {MOST_FILES} files")));
        }
        let mut files = BTreeMap::new();
        let mut sum = 0_u64;
        for (path, row) in rows {
            check_path(path)?;
            let size = row["size"].as_u64().ok_or_else(|| wrong("a file has no size"))?;
            let mode = row["mode"].as_u64().and_then(|mode| u32::try_from(mode).ok());
            let digest = row["sha256"].as_str().filter(|digest| digest.len() == 64);
            sum = sum.saturating_add(size);
            files.insert(
                path.clone(),
                Entry {
                    size,
                    mode: mode
                        .filter(|mode| mode & !0o777 == 0)
                        .ok_or_else(|| wrong("a file has no plain mode"))?,
                    sha256: digest.ok_or_else(|| wrong("a file has no sha256"))?.to_owned(),
                },
            );
        }
        if sum > LARGEST {
            return Err(wrong(&format!("the bundle has more than {LARGEST} bytes")));
        }
        Ok(Index { cluster, files })
    }

    /// The text of an index; the same files give the same bytes.
    pub fn encode(&self) -> Vec<u8> {
        let row =
            |entry: &Entry| json!({"size": entry.size, "mode": entry.mode, "sha256": entry.sha256});
        let files: serde_json::Map<String, Value> =
            self.files.iter().map(|(path, entry)| (path.clone(), row(entry))).collect();
        let value = json!({"schema": SCHEMA, "cluster": self.cluster, "files": files});
        format!("{value:#}\n").into_bytes()
    }

    /// True when the bundle has something in a part.
    pub fn has(&self, part: &str) -> bool {
        self.files.keys().any(|path| path.starts_with(&format!("{part}/")))
    }
}

/// The digest by which a config pins a bundle.
pub fn digest(index: &[u8]) -> String {
    format!("sha256:{}", sha256(index))
}

/// Refuses a name that is not one of a bundle's own.
pub fn check_path(path: &str) -> Result<(), Problem> {
    let wrong = |what: &str| Err(Problem::new(&pages::BAD_BUNDLE, what));
    let shown = |path: &str| path.chars().filter(|c| !c.is_control()).take(100).collect::<String>();
    let parts: Vec<&str> = path.split('/').collect();
    let plain =
        |part: &&str| !part.is_empty() && *part != "." && *part != ".." && part.len() <= 255;
    if path.starts_with('/') || !parts.iter().all(plain) || path.chars().any(char::is_control) {
        return wrong(&format!(
            "a file's path is not plain or leads out of the bundle: {}",
            shown(path)
        ));
    }
    match path.split_once('/') {
        Some(("pki", rest)) if !PKI.contains(&rest) => {
            wrong(&format!("pki/ holds more than CA pairs and sa keys: {}", shown(path)))
        }
        Some((part, _)) if PARTS.contains(&part) => Ok(()),
        _ => wrong(&format!("a file lies in no part of a bundle: {}", shown(path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_reads_back_and_has_one_digest() {
        let entry = Entry { size: 3, mode: 0o644, sha256: sha256(b"abc") };
        let index =
            Index { cluster: "prod".into(), files: [("addons/a.yaml".into(), entry)].into() };
        let bytes = index.encode();
        assert_eq!(Index::decode(&bytes).unwrap(), index);
        assert!(index.has("addons") && !index.has("pki"));
        assert_eq!(digest(&bytes), digest(&index.encode()));
    }

    #[test]
    fn hostile_names_and_odd_parts_are_refused() {
        for path in [
            "/etc/passwd",
            "addons/../../x",
            "addons//x",
            "..",
            "addons/./x",
            "other/x",
            "x",
            "pki/apiserver.key",
            "pki/admin.conf",
            "addons/\u{1b}x",
            "addons/",
        ] {
            assert!(check_path(path).is_err(), "{path}");
        }
        for path in [
            "addons/10-cni.yaml",
            "pki/etcd/ca.key",
            "manifests/deep/er/x.yaml",
            "control-plane/kube-apiserver.json",
        ] {
            assert!(check_path(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn an_index_that_breaks_a_rule_is_refused() {
        let good = r#"{"schema":1,"cluster":"c","files":{"addons/a":{"size":1,"mode":420,"sha256":"0000000000000000000000000000000000000000000000000000000000000000"}}}"#;
        assert!(Index::decode(good.as_bytes()).is_ok());
        for (from, to) in [
            ("\"schema\":1", "\"schema\":2"),
            ("420", "2541"),
            ("\"size\":1", "\"size\":99999999999"),
            ("0000\"", "\""),
            ("addons/a", "../a"),
        ] {
            let text = good.replacen(from, to, 1);
            assert_eq!(Index::decode(text.as_bytes()).unwrap_err().exit(), 3, "{to}");
        }
    }
}
