//! `tenon userdata render`, `cloudformation`, `launch-template` from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn tenon(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples"))
        .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
        .output()
        .unwrap()
}

fn render(more: &[&str]) -> Output {
    let common = ["userdata", "render", "--cluster-json", "cluster.json"];
    tenon(&[&common[..], more].concat())
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(output: &Output, code: &str) {
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains(code), "{text}");
}

#[test]
fn the_answer_is_alone_on_standard_output() {
    let output = render(&["-f", "cluster.yaml", "--group", "rocket"]);
    assert!(stdout(&output).starts_with("[settings]\n"));
    let story = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(story.contains("of 16,384 bytes"), "{story}");
}

#[test]
fn forms_hold_the_same_bytes() {
    use base64::Engine;
    let arguments = ["-f", "cluster.yaml", "--group", "workers", "--output"];
    let form = |name: &str| stdout(&render(&[&arguments[..], &[name]].concat()));
    let raw = form("raw");
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    assert_eq!(decode(&form("base64")), raw.as_bytes());
    let json: Value = serde_json::from_str(&form("json")).unwrap();
    assert_eq!(json["user_data"], raw);
    assert!(json.as_object().unwrap().values().all(Value::is_string));
    let data: Value = serde_json::from_str(&form("launch-template-data")).unwrap();
    assert_eq!(decode(data["UserData"].as_str().unwrap()), raw.as_bytes());
    assert_eq!(data["MetadataOptions"]["HttpTokens"], "required");
}

#[test]
fn all_groups_go_to_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    stdout(&render(&["-f", "cluster.yaml", "--out-dir", path]));
    for name in ["workers", "rocket"] {
        assert!(directory.path().join(name).metadata().unwrap().len() > 100, "{name}");
    }
}

#[test]
fn files_are_laid_out_as_on_the_node() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let mode =
        ["--family", "AmazonLinux2023", "--mode", "self-contained", "--instance-type", "m5.large"];
    stdout(&render(&[&mode[..], &["--output", "files", "--out-dir", path]].concat()));
    let kubeconfig = directory.path().join("etc/tenon/kubeconfig.yaml");
    assert_eq!(kubeconfig.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(directory.path().join("opt/tenon/bootstrap.sh").exists());
}

#[test]
fn bad_input_has_its_code_and_no_output() {
    refused(&render(&["--family", "AmazonLinux203"]), "TN03410");
    refused(&render(&["--family", "Flatcar", "--mode", "native"]), "TN03405");
    refused(&render(&["--ami", "ami-0123456789abcdef0"]), "TN03411");
    refused(&render(&["--label", "a b=c"]), "TN03415");
    refused(&render(&["--taint", "a=b:Never"]), "TN03417");
    refused(&render(&["--cluster", "another"]), "TN03414");
    refused(&render(&["-f", "cluster.yaml", "--label", "a=b"]), "TN03414");
    refused(&tenon(&["userdata", "render", "--family", "AmazonLinux2"]), "TN03412");
}

#[test]
fn no_value_is_echoed() {
    let output = render(&["--label", "a=hunter2 canary", "--endpoint", "https://canary.example"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && !text.contains("canary"), "{text}");
}

#[test]
fn templates_are_json_or_the_same_yaml() {
    let arguments = [
        "cloudformation",
        "-f",
        "cluster.yaml",
        "--cluster-json",
        "cluster.json",
        "--group",
        "workers",
    ];
    let json: Value = serde_json::from_str(&stdout(&tenon(&arguments))).unwrap();
    let yaml = stdout(&tenon(&[&arguments[..], &["--format", "yaml"]].concat()));
    let tree = tenon_core::yaml::parse(&yaml).unwrap().remove(0);
    assert_eq!(tree.to_json(tenon_core::tree::Dialect::Yaml12), json);
    let first: Vec<_> = yaml
        .lines()
        .filter(|line| !line.starts_with(' ') && !line.is_empty())
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(
        first,
        [
            "AWSTemplateFormatVersion",
            "Description",
            "Parameters",
            "Conditions",
            "Resources",
            "Outputs"
        ]
    );
}

#[test]
fn a_baked_template_must_know_its_stack() {
    let arguments = [
        "cloudformation",
        "-f",
        "cluster.yaml",
        "--cluster-json",
        "cluster.json",
        "--group",
        "workers",
        "--baked",
    ];
    refused(&tenon(&arguments), "TN03431");
    stdout(&tenon(&[&arguments[..], &["--stack-name", "my-nodes"]].concat()));
}

/// bash reads back what the environment file was given, through the whole document.
#[test]
fn bash_reads_the_environment_file_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    stdout(&render(&[
        "--family",
        "AmazonLinux2",
        "--label",
        "team=web",
        "--taint",
        "a=b:NoSchedule",
        "--output",
        "files",
        "--out-dir",
        path,
    ]));
    let script = ". \"$1\"; printf '%s|%s|%s' \"$CLUSTER_NAME\" \"$NODE_LABELS\" \"$NODE_TAINTS\"";
    let env = directory.path().join("etc/eksctl/kubelet.env");
    let output = Command::new("bash").args(["-euc", script, "bash"]).arg(env).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ironman-2022|team=web|a=b:NoSchedule");
}

/// Answers one request with the example cluster and gives the request back.
fn eks_once(listener: TcpListener) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "the request ends early");
        request.extend_from_slice(&buffer[..count]);
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/cluster.json");
    let body = std::fs::read_to_string(path).unwrap();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    String::from_utf8(request).unwrap()
}

#[test]
fn the_cluster_can_be_asked_of_eks() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || eks_once(listener));
    let group = ["--family", "AmazonLinux2023", "--kind", "self-managed", "--name", "ng"];
    let output = Command::new(env!("CARGO_BIN_EXE_tenon"))
        .args(["userdata", "render", "--cluster", "ironman-2022", "--region", "eu-west-1"])
        .args(group)
        .arg("--from-eks")
        .env("AWS_ENDPOINT_URL_EKS", endpoint)
        .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .output()
        .unwrap();
    let request = server.join().unwrap();
    assert!(request.starts_with("GET /clusters/ironman-2022 HTTP/1.1\r\n"), "{request}");
    assert!(request.to_lowercase().contains("authorization: aws4-hmac-sha256 "), "{request}");
    assert!(stdout(&output).contains("cidr: \"10.100.0.0/16\""), "{output:?}");
}
