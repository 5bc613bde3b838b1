//! What `harden --fix` may change: modes, owners, and settings through one drop-in of its own.
//!
//! Nothing here needs a decision: whatever does has no [`Mend`] and stays a finding.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::kubelet::{self, Effective};
use super::snapshot::{Look, Snapshot};
use super::{Finding, State};
use crate::kube_version::{self, Version};
use crate::plan::json_text::{Json, pretty};
use crate::plan::kubelet::{API_VERSION, ENVIRONMENT_PATH, KIND};
use crate::plan::kubelet_args::VARIABLE;

/// The drop-in's name: the kubelet reads drop-ins by name, and the last one wins.
pub const HARDEN_NAME: &str = "99-tenon-harden.conf";
/// A 1.29 kubelet reads a drop-in directory only with this variable.
const ALPHA_SWITCH: &str = "KUBELET_CONFIG_DROPIN_DIR_ALPHA=on\n";

/// What would end a finding.
#[derive(Debug, Clone, PartialEq)]
pub enum Mend {
    /// Take the bits away that are not in `widest`.
    Mode { paths: Vec<String>, widest: u32 },
    /// Give to root:root.
    Owner { paths: Vec<String> },
    /// Set in the drop-in.
    Setting { field: String, value: Value },
}

/// A new mode or owner for what is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dress {
    pub mode: Option<u32>,
    pub to_root: bool,
}

/// A file to write whole, with mode 0600 unless it has a narrower one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub path: String,
    pub body: Vec<u8>,
    pub is_new: bool,
    pub because: String,
}

/// Everything that one run of `harden --fix` does.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Mending {
    pub dresses: BTreeMap<String, Dress>,
    /// In the order of writing.
    pub writes: Vec<Write>,
    /// What could be set but not by us, and why.
    pub refused: Vec<String>,
}

impl Mending {
    pub fn is_empty(&self) -> bool {
        self.dresses.is_empty() && self.writes.is_empty()
    }

    /// Settings take effect when the kubelet is started again.
    pub fn needs_restart(&self) -> bool {
        !self.writes.is_empty()
    }

    /// One line per change, for the plan that is shown first.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, dress) in &self.dresses {
            lines.extend(dress.mode.map(|mode| format!("~ {path}   mode {mode:04o}")));
            lines.extend(dress.to_root.then(|| format!("~ {path}   owner root:root")));
        }
        for write in &self.writes {
            let mark = if write.is_new { '+' } else { '~' };
            lines.push(format!("{mark} {}   {}", write.path, write.because));
        }
        lines
    }

    pub fn to_json(&self) -> Value {
        json!({"changes": self.lines(), "refused": self.refused, "restart": self.needs_restart()})
    }
}

/// Gathers what the findings allow to be mended.
pub fn plan(snapshot: &Snapshot, findings: &[Finding]) -> Mending {
    let mut mending = Mending::default();
    let mut settings = BTreeMap::new();
    for finding in findings {
        let due = matches!(finding.state, State::Fail | State::Warn | State::Exception);
        match finding.mend.as_ref().filter(|_| due) {
            None => {}
            Some(Mend::Mode { paths, widest }) => {
                paths.iter().for_each(|path| narrow(snapshot, &mut mending, path, *widest));
            }
            Some(Mend::Owner { paths }) => {
                for path in paths {
                    mending.dresses.entry(path.clone()).or_default().to_root = true;
                }
            }
            Some(Mend::Setting { field, value }) => _ = settings.insert(field, value),
        }
    }
    if !settings.is_empty() {
        set(snapshot, &settings, &mut mending);
    }
    mending
}

fn narrow(snapshot: &Snapshot, mending: &mut Mending, path: &str, widest: u32) {
    let Look::There(seen) = snapshot.look(path) else { return };
    let Some(stat) = seen.stat else { return };
    let dress = mending.dresses.entry(path.to_owned()).or_default();
    dress.mode = Some(dress.mode.unwrap_or(stat.mode) & widest);
}

/// Plans the drop-in, and the flag that has the kubelet read it.
fn set(snapshot: &Snapshot, settings: &BTreeMap<&String, &Value>, mending: &mut Mending) {
    let Ok((arguments, source)) = kubelet::arguments(snapshot) else { return };
    let kubelet = Effective::of(snapshot, arguments, source);
    if kubelet.drop_in_directory().is_none() {
        match with_directory(snapshot, &kubelet) {
            Ok(write) => mending.writes.push(write),
            Err(why) => return mending.refused.push(why),
        }
    }
    let path = format!("{}/{HARDEN_NAME}", kubelet.drop_in_home());
    let mut document = existing(snapshot, &path);
    for (field, value) in settings {
        place(&mut document, field, (*value).clone());
    }
    let names: Vec<&str> = settings.keys().map(|field| field.as_str()).collect();
    let body = pretty(&Json::from(Value::Object(document)), 4) + "\n";
    let because = format!("sets {}", names.join(", "));
    // The drop-in comes first: a kubelet started in between finds what its flag names.
    let is_new = !matches!(snapshot.look(&path), Look::There(_));
    mending.writes.insert(0, Write { path, body: body.into_bytes(), is_new, because });
}

/// The environment file with `--config-dir`, where the plan would put it.
fn with_directory(snapshot: &Snapshot, kubelet: &Effective) -> Result<Write, String> {
    if kubelet.source != ENVIRONMENT_PATH {
        let from = &kubelet.source;
        return Err(format!("the kubelet's flags come from {from}: add --config-dir there"));
    }
    let version = snapshot.kubelet_version.as_deref().and_then(Version::parse);
    let version = version.ok_or(
        "the kubelet's version is not known, so neither is the switch \
                                 that its drop-in directory needs",
    )?;
    let text = snapshot.text(ENVIRONMENT_PATH)?.unwrap_or_default();
    let flag = format!(" --config-dir={}", kubelet.drop_in_home());
    let mut body = String::new();
    if kube_version::DROP_IN_DIR_ALPHA.is_open(version) && !text.contains(ALPHA_SWITCH) {
        body.push_str(ALPHA_SWITCH);
    }
    for line in text.lines() {
        body.push_str(line);
        if line.starts_with(VARIABLE) {
            let config = kubelet.config.as_ref().map(|path| format!("--config={path}"));
            let after = config.and_then(|word| Some(body.rfind(&word)? + word.len()));
            body.insert_str(after.unwrap_or(body.len()), &flag);
        }
        body.push('\n');
    }
    let because = "has the kubelet read its drop-in directory".to_owned();
    let path = ENVIRONMENT_PATH.to_owned();
    Ok(Write { path, body: body.into_bytes(), is_new: false, because })
}

/// The drop-in as it stands, so that an earlier fix stays.
fn existing(snapshot: &Snapshot, path: &str) -> Map<String, Value> {
    let text = snapshot.text(path).ok().flatten();
    let parsed: Option<Map<_, _>> = text.and_then(|text| serde_json::from_str(&text).ok());
    let mut document = parsed.unwrap_or_default();
    document.insert("kind".to_owned(), json!(KIND));
    document.insert("apiVersion".to_owned(), json!(API_VERSION));
    document
}

/// Puts a value at a dotted path.
fn place(document: &mut Map<String, Value>, field: &str, value: Value) {
    match field.split_once('.') {
        None => _ = document.insert(field.to_owned(), value),
        Some((first, rest)) => {
            let below = document.entry(first).or_insert_with(|| json!({}));
            if let Value::Object(below) = below {
                place(below, rest, value);
            }
        }
    }
}

/// The paths that a mending touches.
pub fn touched(mending: &Mending) -> BTreeSet<&str> {
    let written = mending.writes.iter().map(|write| write.path.as_str());
    mending.dresses.keys().map(String::as_str).chain(written).collect()
}
