//! What an Ignition config holds, and what is refused.

use super::*;
use crate::stages::load;

const BASE: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: worker
  cluster: {name: prod, endpoint: \"https://api.example:6443\", kubernetesVersion: v1.34.2}
  bootstrapToken: {token: abcdef.0123456789abcdef, ttlHours: 8}
  assets: {source: push}
";

fn request<'a>(machine: &'a Machine, text: &'a str) -> Request<'a> {
    Request {
        machine,
        text,
        spec: "3.3.0",
        systemd: 252,
        os: Os::Flatcar,
        binary: None,
        mappings: None,
        catalogue: None,
    }
}

fn slugs(text: &str, change: impl FnOnce(&mut Request<'_>)) -> Vec<&'static str> {
    let machine = load(text, "x").unwrap();
    let mut request = request(&machine, text);
    change(&mut request);
    let findings = render(&request).err().unwrap_or_default();
    findings.iter().map(|finding| finding.problem.page.slug).collect()
}

#[test]
fn a_worker_gets_its_files_units_and_binary() {
    let machine = load(BASE, "x").unwrap();
    let digits = "ab".repeat(64);
    let mut request = request(&machine, BASE);
    request.binary = Some(Remote { url: "https://example.org/tenon", sha512: &digits });
    let (text, findings) = render(&request).unwrap();
    assert!(findings.is_empty() && text.len() < EC2_LIMIT, "{}", text.len());
    let config: Value = serde_json::from_str(&text).unwrap();
    let paths: Vec<_> =
        list(&config, "/storage/files").map(|f| f["path"].as_str().unwrap()).collect();
    for path in [
        "/etc/tenon/config.yaml",
        "/etc/tenon/kubelet.default.env",
        "/etc/tenon/runtime-mappings.yaml",
        "/etc/sysctl.d/90-tenon.conf",
        "/opt/bin/tenon",
    ] {
        assert!(paths.contains(&path), "{path}");
    }
    assert!(!paths.contains(&paths::KUBELET_ENV), "nothing may open the gate early");
    let secret = list(&config, "/storage/files").find(|f| f["path"] == paths::CONFIG).unwrap();
    assert_eq!(secret["mode"], 0o600);
    let masked = list(&config, "/systemd/units").find(|unit| unit["name"] == "locksmithd.service");
    assert_eq!(masked.unwrap()["mask"], true);
    assert_eq!(text, render(&request).unwrap().0, "the same bytes again");
}

#[test]
fn secrets_of_a_long_life_and_bad_options_are_refused() {
    assert_eq!(
        slugs(&BASE.replace("ttlHours: 8", "ttlHours: 48"), |_| {}),
        ["unsafe-in-user-data"]
    );
    let proxy = format!("{BASE}  proxy: {{https: \"http://me:word@proxy:3128\"}}\n");
    assert_eq!(slugs(&proxy, |_| {}), ["unsafe-in-user-data"]);
    let key = format!("{BASE}# -----BEGIN PRIVATE KEY-----\n");
    assert_eq!(slugs(&key, |_| {}), ["unsafe-in-user-data"]);
    let short = Remote { url: "ftp://example.org/tenon", sha512: "ab" };
    assert_eq!(
        slugs(BASE, |request| request.binary = Some(short)),
        ["bad-ignition", "bad-ignition"]
    );
}

#[test]
fn proxy_and_time_reach_the_services() {
    let text = format!(
        "{BASE}  proxy: {{https: \"http://proxy:3128\", noProxy: [.corp]}}\n  timeServers: [ntp.corp.example]\n"
    );
    let machine = load(&text, "x").unwrap();
    let line = proxy_environment(&machine).unwrap();
    assert_eq!(
        line,
        "[Manager]\nDefaultEnvironment=\"HTTPS_PROXY=http://proxy:3128\" \"NO_PROXY=.corp\"\n"
    );
    let files = files(&request(&machine, &text));
    assert!(files.iter().any(|file| file.body == b"[Time]\nNTP=ntp.corp.example\n"));
}
