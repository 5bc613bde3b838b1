//! How a client reaches an API server: kubeconfigs read and written.
//!
//! One cluster and one user, those of the current context. Certificates and keys may stand in
//! the file or be named by path; reading those files is the caller's.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::codes::cluster::BAD_KUBECONFIG;
use crate::problem::{Place, Problem};
use crate::secret::Secret;
use crate::tree::Dialect;
use crate::yaml;

/// A server, whom to trust for it, and who is asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubeconfig {
    /// Name of the cluster entry.
    pub cluster: String,
    /// `https://HOST:PORT`, without a slash at its end.
    pub server: String,
    /// Whose certificates to trust; None means those that everybody trusts.
    pub authority: Option<Material>,
    /// Name of the user entry.
    pub user: String,
    pub credential: Credential,
    pub namespace: Option<String>,
}

/// PEM text, in the file itself or beside it. Prints its kind only: it may be a key.
#[derive(Clone, PartialEq, Eq)]
pub enum Material {
    Inline(Vec<u8>),
    File(String),
}

impl fmt::Debug for Material {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Material::Inline(_) => out.write_str("[redacted]"),
            Material::File(path) => out.write_str(path),
        }
    }
}

/// How the user proves who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    None,
    Token(Secret),
    TokenFile(String),
    Certificate {
        certificate: Material,
        key: Material,
    },
    /// A program prints an ExecCredential.
    Exec {
        api_version: String,
        command: String,
        arguments: Vec<String>,
        variables: Vec<(String, String)>,
    },
}

impl Kubeconfig {
    /// A kubeconfig whose CA stands in the file, named as the Kubernetes world names such things.
    pub fn new(
        cluster: &str,
        server: &str,
        authority: Vec<u8>,
        user: &str,
        credential: Credential,
    ) -> Self {
        Kubeconfig {
            cluster: cluster.to_owned(),
            server: server.trim_end_matches('/').to_owned(),
            authority: Some(Material::Inline(authority)),
            user: user.to_owned(),
            credential,
            namespace: None,
        }
    }

    /// The document as YAML, the same bytes for the same values.
    pub fn write(&self) -> String {
        let mut cluster = json!({"server": self.server});
        if let Some(authority) = &self.authority {
            put(&mut cluster, "certificate-authority", authority);
        }
        let name = format!("{}@{}", self.user, self.cluster);
        let mut context = json!({"cluster": self.cluster, "user": self.user});
        if let Some(namespace) = &self.namespace {
            context["namespace"] = json!(namespace);
        }
        yaml::emit(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.cluster, "cluster": cluster}],
            "contexts": [{"name": name, "context": context}],
            "current-context": name,
            "users": [{"name": self.user, "user": self.credential.write()}],
        }))
    }
}

impl Credential {
    fn write(&self) -> Value {
        match self {
            Credential::None => json!({}),
            Credential::Token(token) => json!({"token": token.expose()}),
            Credential::TokenFile(path) => json!({"tokenFile": path}),
            Credential::Certificate { certificate, key } => {
                let mut user = json!({});
                put(&mut user, "client-certificate", certificate);
                put(&mut user, "client-key", key);
                user
            }
            Credential::Exec { api_version, command, arguments, variables } => {
                let variable =
                    |(name, value): &(String, String)| json!({"name": name, "value": value});
                json!({"exec": {
                    "apiVersion": api_version,
                    "command": command,
                    "args": arguments,
                    "env": variables.iter().map(variable).collect::<Vec<_>>(),
                    "interactiveMode": "Never",
                }})
            }
        }
    }
}

/// Puts `KEY-data` or `KEY`.
fn put(object: &mut Value, key: &str, material: &Material) {
    match material {
        Material::Inline(bytes) => object[format!("{key}-data")] = json!(STANDARD.encode(bytes)),
        Material::File(path) => object[key] = json!(path),
    }
}

/// Reads the cluster and the user of the current context. `source` is named in problems.
pub fn read(text: &str, source: &str) -> Result<Kubeconfig, Problem> {
    let place = Place { source: source.to_owned(), ..Place::default() };
    let trees = yaml::parse(text).map_err(|syntax| syntax.problem(&place, text))?;
    let Some(tree) = trees.first() else { return Err(refuse(source, "", "it is empty")) };
    Reader { json: tree.to_json(Dialect::Yaml12), source }.kubeconfig()
}

fn refuse(source: &str, path: &str, what: &str) -> Problem {
    let place = Place { source: source.to_owned(), path: path.to_owned(), ..Place::default() };
    Problem::new(&BAD_KUBECONFIG, format!("the kubeconfig cannot be used: {what}")).at(place)
}

/// The entry of a list that has this name; without a name, the only entry.
pub(crate) fn entry<'a>(json: &'a Value, list: &str, name: Option<&str>) -> Option<&'a Value> {
    let entries = json[list].as_array()?;
    match name {
        Some(name) => entries.iter().find(|entry| entry["name"] == name),
        None if entries.len() == 1 => entries.first(),
        None => None,
    }
}

/// The current context, if one is named and present.
pub(crate) fn current_context(json: &Value) -> Option<&Value> {
    let name = json["current-context"].as_str()?;
    Some(&entry(json, "contexts", Some(name))?["context"])
}

struct Reader<'a> {
    json: Value,
    source: &'a str,
}

impl Reader<'_> {
    fn kubeconfig(&self) -> Result<Kubeconfig, Problem> {
        let null = Value::Null;
        let context = current_context(&self.json).unwrap_or(&null);
        let cluster = self.named("clusters", &context["cluster"])?;
        // The public kubeconfig of a cluster names nobody.
        let nobody =
            context["user"].is_null() && self.json["users"].as_array().is_none_or(Vec::is_empty);
        let user = if nobody { &null } else { self.named("users", &context["user"])? };
        let body = &cluster["cluster"];
        if body["insecure-skip-tls-verify"] == true {
            return Err(self.refuse("clusters", "it asks for no check of the server's certificate"));
        }
        let server = text(&body["server"])
            .filter(|server| server.starts_with("https://"))
            .ok_or_else(|| self.refuse("clusters.cluster.server", "no https:// address"))?;
        Ok(Kubeconfig {
            cluster: text(&cluster["name"]).unwrap_or_default(),
            server: server.trim_end_matches('/').to_owned(),
            authority: self.material(body, "certificate-authority")?,
            user: text(&user["name"]).unwrap_or_default(),
            credential: self.credential(&user["user"])?,
            namespace: text(&context["namespace"]),
        })
    }

    fn refuse(&self, path: &str, what: &str) -> Problem {
        refuse(self.source, path, what)
    }

    fn named(&self, list: &str, name: &Value) -> Result<&Value, Problem> {
        entry(&self.json, list, name.as_str()).ok_or_else(|| {
            self.refuse(list, "the current context does not lead to exactly one entry")
        })
    }

    fn material(&self, object: &Value, key: &str) -> Result<Option<Material>, Problem> {
        let data = format!("{key}-data");
        if let Some(encoded) = text(&object[&data]) {
            let dense: String = encoded.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            let bytes = STANDARD.decode(dense).map_err(|_| self.refuse(&data, "not base64"))?;
            return Ok(Some(Material::Inline(bytes)));
        }
        Ok(text(&object[key]).map(|path| Material::File(self.beside(path))))
    }

    /// A relative path counts from the directory of the kubeconfig.
    fn beside(&self, path: String) -> String {
        match self.source.rsplit_once('/') {
            Some((directory, _)) if !path.starts_with('/') => format!("{directory}/{path}"),
            _ => path,
        }
    }

    fn credential(&self, user: &Value) -> Result<Credential, Problem> {
        let certificate = self.material(user, "client-certificate")?;
        let key = self.material(user, "client-key")?;
        match (certificate, key) {
            (Some(certificate), Some(key)) => {
                return Ok(Credential::Certificate { certificate, key });
            }
            (None, None) => {}
            _ => return Err(self.refuse("users.user", "a client certificate without its key")),
        }
        // As client-go has it: the file wins over the token beside it.
        if let Some(path) = text(&user["tokenFile"]) {
            return Ok(Credential::TokenFile(self.beside(path)));
        }
        if let Some(token) = text(&user["token"]) {
            return Ok(Credential::Token(Secret::new(token)));
        }
        if user["exec"].is_object() {
            return self.exec(&user["exec"]);
        }
        match user.as_object().is_none_or(|user| user.is_empty()) {
            true => Ok(Credential::None),
            false => Err(self.refuse("users.user", "a kind of credential that is not known here")),
        }
    }

    fn exec(&self, exec: &Value) -> Result<Credential, Problem> {
        let command = text(&exec["command"])
            .ok_or_else(|| self.refuse("users.user.exec.command", "no program is named"))?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let pair = |value: &Value| Some((text(&value["name"])?, text(&value["value"])?));
        Ok(Credential::Exec {
            api_version: text(&exec["apiVersion"]).unwrap_or_default(),
            command,
            arguments: list(&exec["args"]).iter().filter_map(text).collect(),
            variables: list(&exec["env"]).iter().filter_map(pair).collect(),
        })
    }
}

/// Text that is not empty.
fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(credential: Credential) -> Kubeconfig {
        Kubeconfig::new("kubernetes", "https://10.0.0.1:6443/", b"CA".to_vec(), "me", credential)
    }

    #[test]
    fn what_is_written_reads_back() {
        let inline = |text: &str| Material::Inline(text.as_bytes().to_vec());
        let credentials = [
            Credential::None,
            Credential::Token(Secret::new("abcdef.0123456789abcdef")),
            Credential::TokenFile("/run/token".into()),
            Credential::Certificate { certificate: inline("C"), key: inline("K") },
            Credential::Certificate {
                certificate: Material::File("/a.crt".into()),
                key: Material::File("/a.key".into()),
            },
            Credential::Exec {
                api_version: "client.authentication.k8s.io/v1".into(),
                command: "tenon".into(),
                arguments: vec!["eks-token".into(), "--cluster-name".into(), "no".into()],
                variables: vec![("A".into(), "b".into())],
            },
        ];
        for credential in credentials {
            let written = with(credential);
            let text = written.write();
            assert_eq!(read(&text, "/etc/kubernetes/admin.conf").unwrap(), written);
            assert_eq!(text, written.write());
        }
    }

    #[test]
    fn the_current_context_chooses_and_paths_count_from_the_file() {
        let text = "current-context: x\ncontexts: [{name: x, context: {cluster: b, user: u}}]\nclusters:\n- {name: a, cluster: {server: https://a}}\n- {name: b, cluster: {server: https://b, certificate-authority: pki/ca.crt}}\nusers: [{name: u, user: {tokenFile: token}}]\n";
        let read = read(text, "/etc/kubernetes/x.conf").unwrap();
        assert_eq!(read.server, "https://b");
        assert_eq!(read.authority, Some(Material::File("/etc/kubernetes/pki/ca.crt".into())));
        assert_eq!(read.credential, Credential::TokenFile("/etc/kubernetes/token".into()));
    }

    #[test]
    fn the_public_kubeconfig_of_a_cluster_has_no_user() {
        let text = "clusters: [{name: '', cluster: {server: 'https://a:6443'}}]\ncontexts: null\ncurrent-context: ''\nusers: null\n";
        assert_eq!(read(text, "x").unwrap().credential, Credential::None);
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_its_values() {
        let whole = with(Credential::Token(Secret::new("canary"))).write();
        for (from, to) in [
            ("server: ", "other: "),
            ("https://", "http://"),
            ("users:", "persons:"),
            ("certificate-authority-data: Q0E=", "certificate-authority-data: canary!"),
            ("token:", "client-certificate:"),
            ("token:", "password:"),
            ("server: ", "insecure-skip-tls-verify: true\n      server: "),
        ] {
            let changed = whole.replace(from, to);
            assert_ne!(changed, whole, "{from}");
            let problem = read(&changed, "x").unwrap_err();
            assert_eq!(problem.exit(), 3, "{to}");
            assert!(!problem.render("error").contains("canary"), "{to}");
        }
    }

    #[test]
    fn keys_do_not_print() {
        let key = Material::Inline(b"canary".to_vec());
        let certificate = Material::File("/a".into());
        let printed = format!("{:?}", Credential::Certificate { certificate, key });
        assert!(!printed.contains("canary") && printed.contains("[redacted]"));
    }
}
