//! Kinds and their paths, from the server's own discovery.

use serde_json::Value;
use tenon_core::codes::cluster::BAD_OBJECT;
use tenon_core::problem::{Place, Problem};

use super::client::{Client, encode};
use super::error::ApiError;

/// One kind that the server knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub api_version: String,
    pub kind: String,
    /// As in the path: `deployments`.
    pub plural: String,
    pub namespaced: bool,
}

impl Resource {
    /// The path of the collection; cluster-wide kinds have no namespace.
    pub fn collection(&self, namespace: &str) -> String {
        let group = group_path(&self.api_version);
        match self.namespaced {
            true => format!("{group}/namespaces/{}/{}", encode(namespace), self.plural),
            false => format!("{group}/{}", self.plural),
        }
    }

    /// The path of one object.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{}", self.collection(namespace), encode(name))
    }
}

/// `v1` is below `/api`, everything with a group below `/apis`.
fn group_path(api_version: &str) -> String {
    match api_version.split_once('/') {
        Some((group, version)) => format!("/apis/{}/{}", encode(group), encode(version)),
        None => format!("/api/{}", encode(api_version)),
    }
}

impl Client {
    /// The kind, asked for once per group and version.
    pub fn resource(&self, api_version: &str, kind: &str) -> Result<Resource, ApiError> {
        let unknown =
            || ApiError::UnknownKind { api_version: api_version.into(), kind: kind.into() };
        let known = self.known(api_version);
        let list = match known {
            Some(list) => list,
            None => match self.find(&group_path(api_version))? {
                Some(answer) => self.learn(api_version, &answer),
                None => return Err(unknown()),
            },
        };
        list.into_iter().find(|resource| resource.kind == kind).ok_or_else(unknown)
    }

    /// Forgets what is known about kinds, after definitions were added.
    pub fn refresh_resources(&self) {
        if let Ok(mut known) = self.resources.lock() {
            known.clear();
        }
    }

    /// The path of an object that says what it is. Without a namespace it is in `default`.
    pub fn path_of(&self, object: &Value) -> Result<String, ApiError> {
        let field = |path: &str| {
            let value = path.split('.').fold(object, |value, key| &value[key]);
            let text = value.as_str().filter(|text| !text.is_empty());
            text.ok_or_else(|| {
                let what = format!("an object without {path} cannot be sent");
                Problem::new(&BAD_OBJECT, what).at(Place::field(path))
            })
        };
        let resource = self.resource(field("apiVersion")?, field("kind")?)?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        Ok(resource.path(namespace, field("metadata.name")?))
    }

    fn known(&self, api_version: &str) -> Option<Vec<Resource>> {
        self.resources.lock().ok()?.get(api_version).cloned()
    }

    fn learn(&self, api_version: &str, answer: &Value) -> Vec<Resource> {
        let entries = answer["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
        let resource = |entry: &Value| {
            let plural = entry["name"].as_str()?;
            // `pods/log` is a part of another resource.
            (!plural.contains('/')).then(|| Resource {
                api_version: api_version.to_owned(),
                kind: entry["kind"].as_str().unwrap_or_default().to_owned(),
                plural: plural.to_owned(),
                namespaced: entry["namespaced"] == true,
            })
        };
        let list: Vec<_> = entries.iter().filter_map(resource).collect();
        if let Ok(mut known) = self.resources.lock() {
            known.insert(api_version.to_owned(), list.clone());
        }
        list
    }
}
