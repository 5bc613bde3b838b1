//! Add-ons: objects that the user wants in a new cluster, in the order in which they can be
//! applied, and what it means that one of them is ready.

use serde_json::{Value, json};

use crate::codes::control_plane as pages;
use crate::problem::{Place, Problem};
use crate::tree::Dialect;
use crate::yaml;

/// Says from which file an object came.
pub const LABEL: &str = "tenon/addon";
/// `"false"`: nobody waits for this object.
const WAIT: &str = "tenon/wait";
/// The condition that makes a custom resource ready.
const READY_WHEN: &str = "tenon/ready-when";

/// One object of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Addon {
    pub file: String,
    /// From 1.
    pub document: usize,
    pub object: Value,
}

/// Whether an object does its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// Not yet, and why.
    Waiting(String),
    /// Never, and why.
    Broken(String),
}

impl Addon {
    pub fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// `Deployment web/front of 10-web.yaml`
    pub fn title(&self) -> String {
        let namespace = self.object["metadata"]["namespace"].as_str();
        let place = namespace.map_or_else(String::new, |namespace| format!("{namespace}/"));
        format!("{} {place}{} of {}", self.kind(), self.name(), self.file)
    }

    pub fn is_crd(&self) -> bool {
        self.kind() == "CustomResourceDefinition"
    }

    /// False when the object itself says that nobody waits for it.
    pub fn is_waited_for(&self) -> bool {
        self.object["metadata"]["annotations"][WAIT] != "false"
    }

    /// Namespaces first, then the kinds that others are made of, then the rest.
    fn rank(&self) -> u8 {
        match self.kind() {
            "Namespace" => 0,
            "CustomResourceDefinition" => 1,
            _ => 2,
        }
    }
}

/// Reads every object of a file and labels it. Lists are taken apart.
pub fn read(file: &str, text: &str) -> Result<Vec<Addon>, Problem> {
    let place = Place { source: file.to_owned(), ..Place::default() };
    let trees = yaml::parse(text).map_err(|syntax| syntax.problem(&place, text))?;
    let mut found = Vec::new();
    for (index, tree) in trees.iter().enumerate() {
        let document = index + 1;
        let value = tree.to_json(Dialect::Yaml11);
        let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
        let objects = match (&value, value["items"].as_array()) {
            (Value::Null, _) => Vec::new(),
            (_, Some(items)) if is_list => items.clone(),
            _ => vec![value],
        };
        for object in objects {
            found.push(checked(file, document, object)?);
        }
    }
    Ok(found)
}

fn checked(file: &str, document: usize, mut object: Value) -> Result<Addon, Problem> {
    for path in ["/apiVersion", "/kind", "/metadata/name"] {
        if object.pointer(path).and_then(Value::as_str).is_none_or(str::is_empty) {
            let field = path.trim_start_matches('/').replace('/', ".");
            let what = format!("document {document} of {file} has no `{field}`");
            return Err(Problem::new(&pages::BAD_MANIFEST, what));
        }
    }
    let labels = &mut object["metadata"]["labels"];
    if !labels.is_object() {
        *labels = json!({});
    }
    labels[LABEL] = stem(file).into();
    Ok(Addon { file: file.to_owned(), document, object })
}

/// The file's name as a label can hold it.
fn stem(file: &str) -> String {
    let name = file.rsplit('/').next().unwrap_or(file);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let fits = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let text: String = stem.chars().take(63).map(fits).collect();
    text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

/// Puts objects into the order in which they are applied: namespaces, custom resource definitions,
/// then the rest by file and document.
pub fn order(addons: &mut [Addon]) {
    // Stable: within a file the order of writing stays.
    addons.sort_by(|one, other| {
        (one.rank(), &one.file, one.document).cmp(&(other.rank(), &other.file, other.document))
    });
}

/// What the cluster's own copy of an object says.
pub fn readiness(live: &Value) -> Readiness {
    let condition = live["metadata"]["annotations"][READY_WHEN].as_str();
    if let Some(condition) = condition {
        return by_condition(live, condition);
    }
    match live["kind"].as_str().unwrap_or_default() {
        "Deployment" => rolled_out(live, &["updatedReplicas", "availableReplicas", "replicas"]),
        "StatefulSet" => rolled_out(live, &["updatedReplicas", "readyReplicas"]),
        "DaemonSet" => daemon_set(live),
        "Job" if by_condition(live, "Failed") == Readiness::Ready => {
            Readiness::Broken("the job failed".into())
        }
        "Job" => by_condition(live, "Complete"),
        "APIService" => by_condition(live, "Available"),
        "CustomResourceDefinition" => by_condition(live, "Established"),
        _ => Readiness::Ready,
    }
}

fn by_condition(live: &Value, wanted: &str) -> Readiness {
    let conditions = live["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == wanted);
    match found {
        Some(condition) if condition["status"] == "True" => Readiness::Ready,
        Some(condition) => {
            let reason = condition["reason"].as_str().unwrap_or("no reason given");
            Readiness::Waiting(format!("condition {wanted} is not true: {reason}"))
        }
        None => Readiness::Waiting(format!("condition {wanted} is not there yet")),
    }
}

/// True once the controller has seen what was applied.
fn is_observed(live: &Value) -> bool {
    let seen = live["status"]["observedGeneration"].as_i64().unwrap_or(0);
    seen >= live["metadata"]["generation"].as_i64().unwrap_or(0)
}

fn rolled_out(live: &Value, counts: &[&str]) -> Readiness {
    if !is_observed(live) {
        return Readiness::Waiting("its controller has not seen it yet".into());
    }
    let wanted = live["spec"]["replicas"].as_i64().unwrap_or(1);
    let found = |name: &&&str| live["status"][**name].as_i64().unwrap_or(0) != wanted;
    match counts.iter().find(found) {
        None => Readiness::Ready,
        Some(name) => {
            let count = live["status"][*name].as_i64().unwrap_or(0);
            Readiness::Waiting(format!("{name} is {count} of {wanted}"))
        }
    }
}

fn daemon_set(live: &Value) -> Readiness {
    let count = |name: &str| live["status"][name].as_i64().unwrap_or(0);
    let wanted = count("desiredNumberScheduled");
    if !is_observed(live) {
        return Readiness::Waiting("its controller has not seen it yet".into());
    }
    let behind =
        ["updatedNumberScheduled", "numberAvailable"].into_iter().find(|it| count(it) != wanted);
    behind.map_or(Readiness::Ready, |name| {
        Readiness::Waiting(format!("{name} is {} of {wanted}", count(name)))
    })
}
