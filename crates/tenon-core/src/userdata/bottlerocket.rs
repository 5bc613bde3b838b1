//! Bottlerocket: one TOML document of settings, never anything else.

use toml::{Table, Value};

use super::{Cluster, Document, Draft, Group, Options, al2023, bottlerocket_map};
use crate::codes::userdata as pages;
use crate::problem::{Finding, Problem};

/// Settings that EKS or the group resource decides on a managed group with an EKS image.
const EKS_OWNED: [&str; 6] = [
    "api-server",
    "cluster-certificate",
    "cluster-name",
    "cluster-dns-ip",
    "node-labels",
    "node-taints",
];
/// Directories bound to instance storage, for versions that do not know them by themselves.
const BOUND: [&str; 3] = ["/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"];

pub(crate) fn draft(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<Draft> {
    let mut settings = Settings { table: group.bottlerocket.settings.clone(), group, findings };
    if group.joined_by_eks() {
        settings.refuse_owned();
    }
    settings.identity(cluster);
    settings.node(cluster);
    settings.kubelet();
    settings.host(options);
    settings.stack();
    let table = settings.table;
    let mut document = Table::new();
    document.insert("settings".into(), Value::Table(table));
    let mut draft = Draft::from(Document::Toml(document));
    if group.signal.is_some() {
        draft.notes.push(
            "Bottlerocket signals the result of its own boot, which is weaker than a healthy kubelet".into(),
        );
    }
    Some(draft)
}

/// The settings while they are put together.
struct Settings<'a> {
    table: Table,
    group: &'a Group,
    findings: &'a mut Vec<Finding>,
}

impl Settings<'_> {
    /// The table at a path of keys, made where it is missing. A value of another type in the
    /// user's settings is a finding, and an empty table stands in for it.
    fn at(&mut self, path: &[&str]) -> &mut Table {
        let group = self.group;
        let mut table = &mut self.table;
        for key in path {
            let entry =
                table.entry((*key).to_owned()).or_insert_with(|| Value::Table(Table::new()));
            if !entry.is_table() {
                let what = format!("settings.{} is not a table", path.join("."));
                let problem =
                    Problem::new(&pages::BAD_VALUE, what).at(group.at("bottlerocket.settings"));
                self.findings.push(Finding::error(problem));
                *entry = Value::Table(Table::new());
            }
            table = entry.as_table_mut().expect("it was made a table above");
        }
        table
    }

    fn conflict(&mut self, path: &[&str], why: &str) {
        let field = format!("bottlerocket.settings.{}", path.join("."));
        let what = format!("settings.{} {why}", path.join("."));
        let problem = Problem::new(&pages::TWO_VALUES, what).at(self.group.at(&field));
        self.findings.push(Finding::error(problem));
    }

    /// Sets a value; a different one of the user's is an error.
    fn set(&mut self, path: &[&str], value: Value) {
        let Some((key, parents)) = path.split_last() else { return };
        let table = self.at(parents);
        let differs = table.get(*key).is_some_and(|given| *given != value);
        if differs {
            return self.conflict(path, "differs from the value that the group or the cluster has");
        }
        table.insert((*key).to_owned(), value);
    }

    fn refuse_owned(&mut self) {
        let Some(Value::Table(kubernetes)) = self.table.get("kubernetes") else { return };
        let given: Vec<_> =
            EKS_OWNED.into_iter().filter(|key| kubernetes.contains_key(*key)).collect();
        for key in given {
            self.conflict(
                &["kubernetes", key],
                "belongs to EKS in a managed group on an EKS image",
            );
        }
    }

    fn identity(&mut self, cluster: &Cluster) {
        let pairs = [
            ("api-server", &cluster.endpoint),
            ("cluster-certificate", &cluster.certificate_authority),
            ("cluster-name", &cluster.name),
        ];
        for (key, value) in pairs {
            if let Some(value) = value {
                self.set(&["kubernetes", key], Value::from(value.as_str()));
            }
        }
    }

    /// DNS, labels, taints and the pod limit.
    fn node(&mut self, cluster: &Cluster) {
        let group = self.group;
        if !group.joined_by_eks() {
            if let Some(dns) = al2023::dns(cluster, group, self.findings) {
                self.set(&["kubernetes", "cluster-dns-ip"], Value::from(dns));
            }
            for (key, value) in &group.labels {
                self.set(&["kubernetes", "node-labels", key], Value::from(value.as_str()));
            }
            self.taints();
        }
        if let Some(pods) = group.max_pods {
            self.set(&["kubernetes", "max-pods"], Value::from(i64::from(pods)));
        }
    }

    /// `key = ["value:Effect", …]`; one entry alone is written without the list.
    fn taints(&mut self) {
        for taint in &self.group.taints {
            let text = Value::from(format!("{}:{}", taint.value, taint.effect));
            let table = self.at(&["kubernetes", "node-taints"]);
            match table.get_mut(&taint.key) {
                None => {
                    table.insert(taint.key.clone(), text);
                }
                Some(given) if *given == text => {}
                Some(Value::Array(list)) if list.contains(&text) => {}
                Some(Value::Array(list)) => list.push(text),
                Some(given) => *given = Value::Array(vec![given.clone(), text]),
            }
        }
    }

    fn kubelet(&mut self) {
        for (field, value) in &self.group.kubelet_config {
            match bottlerocket_map::setting(field, value) {
                Some((key, value)) => self.set(&["kubernetes", &key], value),
                None => {
                    let what = format!(
                        "kubeletExtraConfig.{field} is not available on Bottlerocket; use bottlerocket.settings"
                    );
                    let field = format!("kubeletExtraConfig.{field}");
                    let problem = Problem::new(&pages::NOT_AVAILABLE, what)
                        .at(self.group.at(&field))
                        .fix("write the setting of the same meaning under bottlerocket.settings");
                    self.findings.push(Finding::error(problem));
                }
            }
        }
    }

    /// Admin container, commands at boot, proxy.
    fn host(&mut self, options: &Options) {
        let group = self.group;
        if let Some(enabled) = group.bottlerocket.enable_admin_container {
            let path = ["host-containers", "admin", "enabled"];
            if self.at(&path[..2]).contains_key(path[2]) {
                return self.conflict(&path, "is set by enableAdminContainer too");
            }
            self.set(&path, Value::from(enabled));
        }
        if group.instance_store.is_some() {
            self.boot_commands("000-mount-instance-storage", storage_commands(options), "always");
        }
        for (index, text) in group.pre_commands.iter().enumerate() {
            if let Some(words) = api_call(text) {
                self.boot_commands(&format!("{:03}-pre-bootstrap", index + 1), vec![words], "once");
            }
        }
        let Some(proxy) = &group.proxy else { return };
        if proxy.http.is_some() && proxy.https.is_none() {
            let what =
                "proxy.http is not available on Bottlerocket; use proxy.https, which serves both";
            let problem = Problem::new(&pages::NOT_AVAILABLE, what).at(group.at("proxy.http"));
            self.findings.push(Finding::error(problem));
        }
        if let Some(url) = &proxy.https {
            self.set(&["network", "https-proxy"], Value::from(url.as_str()));
        }
        if !proxy.no_proxy.is_empty() {
            self.set(&["network", "no-proxy"], strings(&proxy.no_proxy));
        }
    }

    fn boot_commands(&mut self, name: &str, commands: Vec<Vec<String>>, mode: &str) {
        let commands = commands.iter().map(|words| strings(words)).collect();
        let mut table = Table::new();
        table.insert("commands".into(), Value::Array(commands));
        table.insert("essential".into(), Value::from(true));
        table.insert("mode".into(), Value::from(mode));
        self.set(&["bootstrap-commands", name], Value::Table(table));
    }

    fn stack(&mut self) {
        let Some(signal) = &self.group.signal else { return };
        self.set(&["cloudformation", "logical-resource-id"], Value::from(signal.resource.as_str()));
        self.set(&["cloudformation", "should-signal"], Value::from(true));
        self.set(&["cloudformation", "stack-name"], Value::from(signal.stack.as_str()));
    }
}

fn strings(words: &[String]) -> Value {
    Value::Array(words.iter().map(|word| Value::from(word.as_str())).collect())
}

fn storage_commands(options: &Options) -> Vec<Vec<String>> {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut bind = words(&["apiclient", "ephemeral-storage", "bind"]);
    if !options.bottlerocket_finds_directories {
        bind.push("--dirs".into());
        bind.extend(words(&BOUND));
    }
    vec![words(&["apiclient", "ephemeral-storage", "init"]), bind]
}

/// The words of a command that is a plain call of `apiclient`: no shell is needed to read it.
pub fn api_call(text: &str) -> Option<Vec<String>> {
    let plain =
        |word: &str| word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&b));
    let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
    let fine = words[0] == "apiclient" && words.len() > 1;
    (fine && words.iter().all(|word| !word.is_empty() && plain(word))).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_calls_are_calls() {
        assert_eq!(api_call("apiclient set motd=hello").unwrap().len(), 3);
        for text in [
            "apiclient",
            "apiclient  x",
            "echo hi",
            "apiclient set a=$(x)",
            "apiclient x; y",
            "apiclient x\ny",
            "apiclient 'x'",
        ] {
            assert_eq!(api_call(text), None, "{text:?}");
        }
    }
}
