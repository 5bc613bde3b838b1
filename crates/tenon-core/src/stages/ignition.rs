//! The first-boot config: files, units and the binary itself, in one Ignition document.
//!
//! Whatever stands here is user data, and user data can be read from the metadata service by any
//! process of the machine. So no private key and no credential of a long life may be in it.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::machine::Machine;
use super::units::{self, Unit};
use super::{mappings, paths};
use crate::codes::stages as pages;
use crate::problem::{Finding, Place, Problem};

/// The versions of the specification. All fields used here exist in every one of them.
pub const SPECS: [&str; 7] = ["3.0.0", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0", "3.6.0"];
/// The largest user data of an EC2 instance.
const EC2_LIMIT: usize = 16 << 10;
/// The longest life of a token in user data.
const LONGEST_TOKEN_HOURS: u32 = 24;

const SYSCTL: &str = "net.ipv4.ip_forward = 1
net.ipv6.conf.all.forwarding = 1
net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
fs.inotify.max_user_watches = 524288
fs.inotify.max_user_instances = 8192
";

/// The operating system that reads the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Os {
    Flatcar,
    FedoraCoreos,
    Generic,
}

impl Os {
    /// Where the binary goes: `/usr/local` of Flatcar is read-only.
    pub fn binary(self) -> &'static str {
        match self {
            Os::Flatcar => "/opt/bin/tenon",
            _ => "/usr/local/bin/tenon",
        }
    }

    /// Where a further CA certificate is picked up at boot.
    fn authority(self, number: usize) -> String {
        match self {
            Os::Flatcar => format!("/etc/ssl/certs/tenon-{number}.pem"),
            Os::FedoraCoreos => format!("/etc/pki/ca-trust/source/anchors/tenon-{number}.pem"),
            Os::Generic => format!("/usr/local/share/ca-certificates/tenon-{number}.crt"),
        }
    }
}

/// The binary as a remote file.
#[derive(Debug, Clone)]
pub struct Remote<'a> {
    pub url: &'a str,
    /// 128 hexadecimal digits.
    pub sha512: &'a str,
}

/// What is rendered.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub machine: &'a Machine,
    /// The text of the machine's config, as it is put on the machine.
    pub text: &'a str,
    pub spec: &'a str,
    pub systemd: u32,
    pub os: Os,
    pub binary: Option<Remote<'a>>,
    /// RuntimeMappings document in place of the built-in one.
    pub mappings: Option<&'a str>,
    /// ExtensionCatalogue document.
    pub catalogue: Option<&'a str>,
}

/// A file before it is encoded.
struct File {
    path: String,
    mode: u32,
    body: Vec<u8>,
}

/// The config as one line of JSON, with what is worth a warning; or every reason against it.
pub fn render(request: &Request<'_>) -> Result<(String, Vec<Finding>), Vec<Finding>> {
    let mut findings = safe(request);
    let target = units::Target {
        role: request.machine.role,
        systemd: request.systemd,
        binary: request.os.binary(),
        assets: units::Assets::of(request.machine),
    };
    let mut list: Vec<Value> = units::render(&target).iter().map(unit).collect();
    let mut files: Vec<Value> = files(request).iter().map(file).collect();
    match request.os {
        Os::Flatcar => list.push(json!({"name": "locksmithd.service", "mask": true})),
        Os::FedoraCoreos => files.push(file(&File {
            path: "/etc/zincati/config.d/90-tenon.toml".into(),
            mode: 0o644,
            body: b"[updates]\nenabled = false\n".to_vec(),
        })),
        Os::Generic => {}
    }
    if let Some(remote) = &request.binary {
        files.push(json!({
            "path": request.os.binary(),
            "mode": 0o755,
            "overwrite": true,
            "contents": {
                "source": remote.url,
                "verification": {"hash": format!("sha512-{}", remote.sha512)},
            },
        }));
    }
    let config = json!({
        "ignition": {"version": request.spec},
        "storage": {"files": files},
        "systemd": {"units": list},
    });
    findings.extend(check(&config));
    if findings.iter().any(|finding| finding.stops(false)) {
        return Err(findings);
    }
    let text = format!("{config}\n");
    if text.len() > EC2_LIMIT {
        let what = format!("the config has {} bytes; EC2 takes {EC2_LIMIT}", text.len());
        findings.push(Finding::warning(Problem::new(&pages::IGNITION_LARGE, what)));
    }
    Ok((text, findings))
}

/// Secrets that must not be in user data, and what this version cannot do for a role or OS.
fn safe(request: &Request<'_>) -> Vec<Finding> {
    let machine = request.machine;
    let mut findings = Vec::new();
    let mut refuse = |page, path: &str, what: &str, fix: &str| {
        let problem = Problem::new(page, what).at(Place::field(path)).fix(fix);
        findings.push(Finding::error(problem));
    };
    let unsafe_page = &pages::UNSAFE_IN_USER_DATA;
    if machine.token.as_ref().is_some_and(|token| token.ttl_hours > LONGEST_TOKEN_HOURS) {
        let fix = "make a token that lives at most 24 hours and set ttlHours";
        refuse(unsafe_page, "spec.bootstrapToken", "the token lives longer than 24 hours", fix);
    }
    let proxy = machine.proxy.as_ref();
    let urls = proxy.into_iter().flat_map(|proxy| [&proxy.http, &proxy.https]).flatten();
    if urls.into_iter().any(|url| url.expose().contains('@')) {
        let fix = "use a proxy that needs no password, or write the variables from the image";
        refuse(unsafe_page, "spec.proxy", "the proxy's address holds a password", fix);
    }
    let marks = ["PRIVATE KEY-----", "UFJJVkFURSBLRVkt", "QUklWQVRFIEtFWS0t", "BSSVZBVEUgS0VZLS0t"];
    let texts = [Some(request.text), request.mappings, request.catalogue];
    if texts.into_iter().flatten().any(|text| marks.iter().any(|mark| text.contains(mark))) {
        let fix = "put private keys into pki/ of the asset bundle";
        refuse(unsafe_page, "spec", "the config holds a private key", fix);
    }
    if request.os == Os::FedoraCoreos && !machine.time_servers.is_empty() {
        let fix = "configure chrony in the image";
        refuse(
            &pages::NOT_SUPPORTED,
            "spec.timeServers",
            "Fedora CoreOS keeps time with chrony",
            fix,
        );
    }
    findings
}

fn files(request: &Request<'_>) -> Vec<File> {
    let machine = request.machine;
    let version = &machine.cluster.kubernetes_version;
    let mut list = Vec::new();
    let mut add = |path: &str, mode: u32, body: &str| {
        list.push(File { path: path.into(), mode, body: body.as_bytes().to_vec() });
    };
    add(paths::CONFIG, 0o600, request.text);
    add(paths::DEFAULT_ENV, 0o644, &format!("KUBERNETES_VERSION={version}\n"));
    add(&machine.runtime.mappings, 0o644, request.mappings.unwrap_or(mappings::DEFAULT));
    if let Some(catalogue) = request.catalogue {
        add(&machine.runtime.catalogue, 0o644, catalogue);
    }
    add("/etc/sysctl.d/90-tenon.conf", 0o644, SYSCTL);
    add("/etc/modules-load.d/tenon.conf", 0o644, "overlay\nbr_netfilter\n");
    if let Some(text) = proxy_environment(machine) {
        add("/etc/systemd/system.conf.d/10-tenon-proxy.conf", 0o644, &text);
    }
    if !machine.time_servers.is_empty() {
        let text = format!("[Time]\nNTP={}\n", machine.time_servers.join(" "));
        add("/etc/systemd/timesyncd.conf.d/10-tenon.conf", 0o644, &text);
    }
    for (number, pem) in machine.ca_certificates.iter().enumerate() {
        let path = request.os.authority(number);
        list.push(File { path, mode: 0o644, body: pem.clone() });
    }
    list
}

/// `DefaultEnvironment=` with the proxy, for every service of the machine.
fn proxy_environment(machine: &Machine) -> Option<String> {
    let proxy = machine.proxy.as_ref()?;
    let no_proxy = proxy.no_proxy.join(",");
    let pairs = [
        ("HTTP_PROXY", proxy.http.as_ref().map(|url| url.expose())),
        ("HTTPS_PROXY", proxy.https.as_ref().map(|url| url.expose())),
        ("NO_PROXY", Some(no_proxy.as_str()).filter(|list| !list.is_empty())),
    ];
    let words: Vec<String> = pairs
        .into_iter()
        .filter_map(|(name, value)| Some(format!("\"{name}={}\"", value?.replace('%', "%%"))))
        .collect();
    Some(format!("[Manager]\nDefaultEnvironment={}\n", words.join(" ")))
}

fn file(file: &File) -> Value {
    json!({
        "path": file.path,
        "mode": file.mode,
        "overwrite": true,
        "contents": {"source": format!("data:;base64,{}", STANDARD.encode(&file.body))},
    })
}

fn unit(unit: &Unit) -> Value {
    let mut map = Map::new();
    map.insert("name".into(), unit.name.into());
    map.insert("contents".into(), unit.body.as_str().into());
    if let Some(enabled) = unit.enabled {
        map.insert("enabled".into(), enabled.into());
    }
    if !unit.drop_ins.is_empty() {
        let list = unit.drop_ins.iter();
        let list = list.map(|(name, text)| json!({"name": name, "contents": text}));
        map.insert("dropins".into(), Value::Array(list.collect()));
    }
    Value::Object(map)
}

/// What Ignition would refuse, with its position in the document.
fn check(config: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut refuse = |place: String, what: &str| {
        let problem = Problem::new(&pages::BAD_IGNITION, what).at(Place::field(place));
        findings.push(Finding::error(problem));
    };
    let mut seen = BTreeSet::new();
    for (index, file) in list(config, "/storage/files").enumerate() {
        let place = format!("storage.files[{index}]");
        let path = file["path"].as_str().unwrap_or_default();
        if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
            refuse(format!("{place}.path"), "the path is not absolute");
        }
        if !seen.insert(path) {
            refuse(format!("{place}.path"), "another file has the same path");
        }
        let hash = file.pointer("/contents/verification/hash").and_then(Value::as_str);
        let digits = hash.map(|hash| hash.trim_start_matches("sha512-"));
        let is_hex =
            |digits: &str| digits.len() == 128 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        if digits.is_some_and(|digits| !is_hex(digits)) {
            refuse(format!("{place}.contents.verification.hash"), "a sha512 has 128 digits");
        }
        let source = file.pointer("/contents/source").and_then(Value::as_str).unwrap_or_default();
        let fine = ["data:", "https://", "s3://", "http://", "tftp://", "gs://"];
        if !fine.iter().any(|scheme| source.starts_with(scheme)) {
            refuse(format!("{place}.contents.source"), "Ignition cannot fetch such an address");
        }
    }
    findings
}

fn list<'a>(config: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    config.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
#[path = "ignition_tests.rs"]
mod tests;
