//! A node that joined, and everything around it that can be broken.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::super::checks;
use super::super::control_plane::ControlPlane;
use super::super::shape::Shape;
use super::certificate::{self, Authority};
use super::table::Outside;
use crate::checkout;
use crate::e2e::machine::{Machine, text};
use crate::e2e::metadata::{Answers, Metadata};
use crate::e2e::network::Network;
use crate::e2e::stage::Stage;

const WEBHOOK: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const PODS: &str = "/api/v1/namespaces/default/pods";
const POD: &str = "wants-a-sandbox";

/// Answers every question for a name: there is no such name.
const NO_SUCH_NAME: &str = "
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(('10.0.0.1', 53))
while True:
    question, sender = server.recvfrom(512)
    end = 12
    while question[end]: end += question[end] + 1
    head = question[:2] + b'\\x81\\x83' + b'\\0\\1\\0\\0\\0\\0\\0\\0'
    server.sendto(head + question[12:end + 5], sender)
";

/// An API server whose clock, and whose certificate, are a day ahead of the node's.
const TOMORROW: &str = "
import http.server, ssl, sys, time
from email.utils import formatdate
class Answer(http.server.BaseHTTPRequestHandler):
    def date_time_string(self, timestamp=None): return formatdate(time.time() + 86400, usegmt=True)
    def do_GET(self):
        self.send_response(401)
        self.send_header('Content-Length', '0')
        self.end_headers()
    do_POST = do_GET
server = http.server.ThreadingHTTPServer(('10.0.0.3', 6553), Answer)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
";

pub struct Scene<'a> {
    pub stage: &'a Stage,
    pub network: &'a Network,
    pub plane: ControlPlane<'a>,
    pub shape: &'a Shape,
    pub machine: &'a Machine<'a>,
    pub user_data: &'a str,
    pub metadata: Option<Metadata>,
    /// Servers that live until the node is mended.
    pub servers: Vec<Child>,
}

impl Scene<'_> {
    /// Runs a script inside with the lab's words.
    pub fn sh(&self, script: &str) -> anyhow::Result<()> {
        let words = fs::read_to_string(checkout().join("e2e/broken.sh"))?;
        self.machine.must(&["sh", "-c", &format!("{words}\n{script}")]).map(drop)
    }

    /// Waits for a text in a unit's journal.
    pub fn hear(&self, unit: &str, says: &str) -> anyhow::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(45);
        loop {
            let output =
                self.machine.run(&["journalctl", "--no-pager", "-o", "cat", "-u", unit])?;
            if text(&output).contains(says) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{unit} did not say `{says}`:\n{}", text(&output));
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Asks the doctor inside the machine.
    pub fn doctor(&self) -> anyhow::Result<Value> {
        let output = self.machine.run(&["tenon", "doctor", "--output", "json"])?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("the doctor said: {}", text(&output)))
    }

    /// Undoes what was done inside and outside, and waits until the node is well.
    pub fn mend(&mut self) -> anyhow::Result<()> {
        for mut server in self.servers.drain(..) {
            let _ = server.kill();
            let _ = server.wait();
        }
        for path in [format!("{WEBHOOK}/lab"), format!("{PODS}/{POD}?gracePeriodSeconds=0")] {
            // Most were never there.
            let _ = self.plane.ask("DELETE", &path, None);
        }
        self.serve(&Answers { user_data: self.user_data, ..Answers::default() })?;
        self.sh("mend")?;
        checks::becomes_ready(&mut self.plane, self.shape)
    }

    fn serve(&mut self, answers: &Answers) -> anyhow::Result<()> {
        // One listens at the address of the other.
        self.metadata = None;
        self.metadata = Some(Metadata::serve(self.stage, self.network, answers)?);
        Ok(())
    }

    pub fn outside(&mut self, act: Outside) -> anyhow::Result<()> {
        match act {
            Outside::ForgetNode => self.forget_node(),
            Outside::AnswerNames => self.python(NO_SUCH_NAME, &[]),
            Outside::SecondAddress => self.address("10.0.0.2/16"),
            Outside::RefuseTokens => self.refuse_tokens(),
            Outside::ServeFromTomorrow => self.serve_from_tomorrow(),
            Outside::Misspell => self.misspell(),
            Outside::StartPod => self.start_pod(),
            Outside::RefuseNodes => self.refuse_nodes(),
        }
    }

    fn forget_node(&mut self) -> anyhow::Result<()> {
        self.plane.ask("DELETE", &format!("/api/v1/nodes/{}", self.shape.node()), None).map(drop)
    }

    fn refuse_tokens(&mut self) -> anyhow::Result<()> {
        let faults = "rules: [{path: /latest/api/token, status: 403}]\n";
        self.serve(&Answers {
            user_data: self.user_data,
            faults: Some(faults),
            ..Answers::default()
        })
    }

    fn misspell(&mut self) -> anyhow::Result<()> {
        let user_data = self.user_data.replace("apiServerEndpoint", "apiServerEndpiont");
        self.serve(&Answers { user_data: &user_data, ..Answers::default() })
    }

    fn serve_from_tomorrow(&mut self) -> anyhow::Result<()> {
        self.address("10.0.0.3/16")?;
        let authority = Authority::read(
            Path::new(&self.plane.pki.path("ca.crt")),
            Path::new(&self.plane.pki.path("ca.key")),
        )?;
        let day = time::Duration::DAY;
        let leaf = authority.issue("kube-apiserver", Some("10.0.0.3"), day, day * 3)?;
        let (certificate, key) = leaf.write(&self.stage.place, "tomorrow")?;
        self.python(TOMORROW, &[&certificate, &key])
    }

    fn start_pod(&mut self) -> anyhow::Result<()> {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD},
            "spec": {
                "automountServiceAccountToken": false,
                "nodeName": self.shape.node(),
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "main", "image": "localhost/none:1", "imagePullPolicy": "Never"}],
            },
        });
        // It is there before the image goes, and is tried again and again.
        self.sh("systemctl stop kubelet")?;
        self.plane.ask("POST", PODS, Some(&pod)).map(drop)
    }

    fn refuse_nodes(&mut self) -> anyhow::Result<()> {
        let webhook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "lab"},
            "webhooks": [{
                "name": "nodes.lab.example",
                "clientConfig": {"url": "https://10.0.0.1:9/refuse"},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nodes"]}],
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": 1,
                "admissionReviewVersions": ["v1"],
            }],
        });
        self.plane.ask("POST", WEBHOOK, Some(&webhook))?;
        // The API server reads webhooks again about once a second.
        std::thread::sleep(Duration::from_millis(1500));
        self.forget_node()
    }

    fn address(&self, address: &str) -> anyhow::Result<()> {
        let words = ["address", "replace", address, "dev", "veth0"];
        crate::lab::must(self.network.in_infra("ip").args(words))
    }

    fn python(&mut self, script: &str, words: &[&str]) -> anyhow::Result<()> {
        let log = File::create(self.stage.place.join("python.log"))?;
        let server = self
            .network
            .in_infra("python3")
            .args(["-c", script])
            .args(words)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .context("starting python3")?;
        self.servers.push(server);
        std::thread::sleep(Duration::from_millis(400));
        Ok(())
    }
}

/// Files that breaks take from: another cluster's authority, a kubeconfig whose time is over.
pub fn spare_parts(scene_pki: &ControlPlane, node: &str) -> anyhow::Result<Vec<(String, String)>> {
    let stranger = Authority::new("another-cluster")?;
    let authority = Authority::read(
        Path::new(&scene_pki.pki.path("ca.crt")),
        Path::new(&scene_pki.pki.path("ca.key")),
    )?;
    let day = time::Duration::DAY;
    let expired = authority.issue(&format!("system:node:{node}"), None, -day * 3, -day)?;
    Ok(vec![
        ("etc/lab-other-ca.crt".into(), stranger.pem()),
        ("etc/lab-expired.kubeconfig".into(), certificate::kubeconfig(&expired)),
    ])
}
