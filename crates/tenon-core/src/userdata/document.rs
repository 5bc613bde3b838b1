//! User data as a document, before it becomes bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::mime_write::{self, Part};
use super::size::{Piece, gzip};
use crate::yaml;

/// Files larger than this are written compressed where that is smaller.
const COMPRESS_ABOVE: usize = 512;

/// What the node is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    /// Nothing to say: the template has no user data at all.
    Empty,
    CloudConfig(CloudConfig),
    Mime(Vec<Part>),
    Toml(toml::Table),
    PowerShell(PowerShell),
    Ignition(Ignition),
    /// The user's own text, unchanged.
    Opaque(String),
}

/// Files, then commands.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CloudConfig {
    pub files: Vec<NodeFile>,
    /// Argument vectors.
    pub commands: Vec<Vec<String>>,
    /// Compress files where that is smaller.
    pub compress: bool,
}

/// A file on the node, owned by root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFile {
    pub path: String,
    pub mode: u32,
    pub content: String,
}

impl NodeFile {
    pub fn new(path: impl Into<String>, mode: u32, content: impl Into<String>) -> Self {
        NodeFile { path: path.into(), mode, content: content.into() }
    }
}

/// The lines between the tags, and what stands after them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerShell {
    pub body: String,
    /// Run again at each boot.
    pub persist: bool,
}

/// Files and units of an Ignition config.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ignition {
    pub files: Vec<NodeFile>,
    pub units: Vec<IgnitionUnit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IgnitionUnit {
    pub name: String,
    pub enabled: bool,
    pub contents: Option<String>,
    /// Name and contents.
    pub drop_ins: Vec<(String, String)>,
}

impl Document {
    /// The document as text, with a final newline; empty for [`Document::Empty`].
    pub fn text(&self) -> String {
        match self {
            Document::Empty => String::new(),
            Document::CloudConfig(config) => config.text(),
            Document::Mime(parts) => mime_write::message(parts),
            Document::Toml(table) => table.to_string(),
            Document::PowerShell(script) => script.text(),
            Document::Ignition(ignition) => ignition.text(),
            Document::Opaque(text) => text.clone(),
        }
    }

    /// What takes the space.
    pub fn pieces(&self) -> Vec<Piece> {
        match self {
            Document::Empty => Vec::new(),
            Document::CloudConfig(config) => {
                let commands = config.commands.iter().enumerate().map(|(index, words)| {
                    Piece::new(format!("runcmd[{index}]"), words.join(" ").as_bytes())
                });
                file_pieces(&config.files).chain(commands).collect()
            }
            Document::Mime(parts) => {
                parts.iter().map(|part| Piece::new(&part.role, part.body.as_bytes())).collect()
            }
            Document::Toml(table) => toml_pieces(table),
            Document::PowerShell(script) => {
                let lines = script.body.lines().enumerate();
                lines
                    .map(|(index, line)| Piece::new(format!("line {}", index + 1), line.as_bytes()))
                    .collect()
            }
            Document::Ignition(ignition) => file_pieces(&ignition.files).collect(),
            Document::Opaque(text) => vec![Piece::new("the whole text", text.as_bytes())],
        }
    }

    /// The files as the node would have them, where the document carries files.
    pub fn files(&self) -> &[NodeFile] {
        match self {
            Document::CloudConfig(config) => &config.files,
            Document::Ignition(ignition) => &ignition.files,
            _ => &[],
        }
    }
}

fn file_pieces(files: &[NodeFile]) -> impl Iterator<Item = Piece> + '_ {
    files.iter().map(|file| Piece::new(&file.path, file.content.as_bytes()))
}

/// One piece for each table under `settings`.
fn toml_pieces(table: &toml::Table) -> Vec<Piece> {
    let Some(toml::Value::Table(settings)) = table.get("settings") else { return Vec::new() };
    let piece = |(key, value): (&String, &toml::Value)| {
        Piece::new(format!("settings.{key}"), value.to_string().as_bytes())
    };
    settings.iter().map(piece).collect()
}

impl CloudConfig {
    pub fn text(&self) -> String {
        let mut map = Map::new();
        if !self.commands.is_empty() {
            map.insert("runcmd".into(), json!(self.commands));
        }
        if !self.files.is_empty() {
            let files: Vec<_> = self.files.iter().map(|file| self.entry(file)).collect();
            map.insert("write_files".into(), Value::from(files));
        }
        format!("#cloud-config\n{}", yaml::emit(&Value::Object(map)))
    }

    fn entry(&self, file: &NodeFile) -> Value {
        let mut entry = json!({
            "path": file.path,
            "owner": "root:root",
            "permissions": format!("0{:o}", file.mode),
        });
        match self.compressed(file) {
            Some(encoded) => {
                entry["encoding"] = json!("gz+b64");
                entry["content"] = json!(encoded);
            }
            None => entry["content"] = json!(file.content),
        }
        entry
    }

    fn compressed(&self, file: &NodeFile) -> Option<String> {
        let large = self.compress && file.content.len() > COMPRESS_ABOVE;
        let encoded = large.then(|| STANDARD.encode(gzip(file.content.as_bytes())))?;
        (encoded.len() < file.content.len()).then_some(encoded)
    }
}

impl PowerShell {
    fn text(&self) -> String {
        let persist = if self.persist { "<persist>true</persist>\n" } else { "" };
        format!("<powershell>\n{}</powershell>\n{persist}", self.body)
    }
}

impl Ignition {
    fn text(&self) -> String {
        let files: Vec<_> = self.files.iter().map(ignition_file).collect();
        let units: Vec<_> = self.units.iter().map(ignition_unit).collect();
        let mut config = json!({"ignition": {"version": "3.3.0"}});
        if !files.is_empty() {
            config["storage"] = json!({"files": files});
        }
        if !units.is_empty() {
            config["systemd"] = json!({"units": units});
        }
        format!("{config}\n")
    }
}

fn ignition_file(file: &NodeFile) -> Value {
    let raw = STANDARD.encode(&file.content);
    let packed = STANDARD.encode(gzip(file.content.as_bytes()));
    let mut contents = json!({"source": format!("data:;base64,{raw}")});
    if packed.len() + "\"compression\":\"gzip\",".len() < raw.len() {
        contents = json!({"source": format!("data:;base64,{packed}"), "compression": "gzip"});
    }
    json!({
        "path": file.path,
        "mode": file.mode,
        "overwrite": true,
        "user": {"name": "root"},
        "group": {"name": "root"},
        "contents": contents,
    })
}

fn ignition_unit(unit: &IgnitionUnit) -> Value {
    let mut json = json!({"name": unit.name});
    if unit.enabled {
        json["enabled"] = json!(true);
    }
    if let Some(contents) = &unit.contents {
        json["contents"] = json!(contents);
    }
    if !unit.drop_ins.is_empty() {
        let drop_ins = unit.drop_ins.iter();
        let list: Vec<_> =
            drop_ins.map(|(name, contents)| json!({"name": name, "contents": contents})).collect();
        json["dropins"] = json!(list);
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_content_are_absent() {
        let text = CloudConfig { commands: vec![vec!["/x".into()]], ..Default::default() }.text();
        assert_eq!(text, "#cloud-config\nruncmd:\n  - - /x\n");
    }

    #[test]
    fn large_files_are_compressed_where_that_is_smaller() {
        let file = |length| NodeFile::new("/x", 0o644, "a".repeat(length));
        let config = |length| CloudConfig {
            files: vec![file(length)],
            compress: true,
            ..Default::default()
        };
        assert!(!config(512).text().contains("gz+b64"));
        assert!(config(513).text().contains("gz+b64"));
    }

    #[test]
    fn ignition_modes_are_decimal() {
        let ignition = Ignition { files: vec![NodeFile::new("/x", 0o755, "hi")], units: vec![] };
        let value: Value = serde_json::from_str(&ignition.text()).unwrap();
        assert_eq!(value["storage"]["files"][0]["mode"], 493);
        assert_eq!(value["storage"]["files"][0]["contents"]["source"], "data:;base64,aGk=");
    }
}
