//! etcd, API server, controller manager and scheduler in `infra`, and a way to ask them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::super::lab::spawn_logged;
use super::super::network::{INFRA, Network};
use super::super::stage::Stage;
use super::pki::Pki;
use super::shape::Shape;
use crate::lab::ETCD;

/// What the node shows to the API server, as `aws eks get-token` would give it.
pub const TOKEN: &str = "lab-node-token";

/// A token whose user is in none of a node's groups.
const STRANGER: &str = "lab-stranger-token";

/// The running control plane. Its processes end with it, at the latest with the stage.
pub struct ControlPlane<'a> {
    network: &'a Network,
    place: PathBuf,
    pub pki: Pki,
    daemons: Vec<(&'static str, Child)>,
    /// Every wait takes so many times as long: an emulated machine is slow.
    patience: u64,
}

impl<'a> ControlPlane<'a> {
    /// Starts everything and waits until the API answers.
    pub fn start(stage: &Stage, network: &'a Network, shape: &Shape) -> anyhow::Result<Self> {
        let place = stage.place.join("control-plane");
        fs::create_dir_all(&place)?;
        let pki = Pki::new(&place.join("pki"))?;
        let tokens = format!(
            "{TOKEN},system:node:{},lab-node,\"system:bootstrappers,system:nodes\"\n\
             {STRANGER},stranger,stranger,strangers\n",
            shape.node()
        );
        fs::write(place.join("tokens.csv"), tokens)?;
        let mut plane =
            ControlPlane { network, place, pki, daemons: Vec::new(), patience: shape.patience };
        let etcd = ETCD.ready(&stage.cache)?.join("usr/bin/etcd");
        plane.start_etcd(&etcd)?;
        plane.start_api_server(shape)?;
        plane.wait_until("the API server is ready", 90, |plane| {
            Ok(plane.get("/readyz").is_ok().then_some(()))
        })?;
        plane.start_controller_manager(&shape.kubernetes)?;
        plane.start_scheduler(&shape.kubernetes)?;
        plane.wait_until("the default service account is there", 60, |plane| {
            let path = "/api/v1/namespaces/default/serviceaccounts/default";
            Ok(plane.get(path).is_ok().then_some(()))
        })?;
        Ok(plane)
    }

    fn start_etcd(&mut self, program: &Path) -> anyhow::Result<()> {
        let data = format!("--data-dir={}", self.place.join("etcd").display());
        self.daemon("etcd", program, &[data, "--unsafe-no-fsync".into()])
    }

    fn start_api_server(&mut self, shape: &Shape) -> anyhow::Result<()> {
        let pki = |name: &str| self.pki.path(name);
        let tokens = self.place.join("tokens.csv").display().to_string();
        let options = [
            ("etcd-servers", "http://127.0.0.1:2379".to_owned()),
            ("advertise-address", shape.api_server().into()),
            ("service-cluster-ip-range", shape.services().into()),
            ("authorization-mode", "Node,RBAC".into()),
            ("enable-admission-plugins", "NodeRestriction".into()),
            ("allow-privileged", "true".into()),
            ("token-auth-file", tokens),
            ("client-ca-file", pki("ca.crt")),
            ("tls-cert-file", pki("apiserver.crt")),
            ("tls-private-key-file", pki("apiserver.key")),
            ("service-account-issuer", "https://kubernetes.default.svc".into()),
            ("service-account-key-file", pki("accounts.pub")),
            ("service-account-signing-key-file", pki("accounts.key")),
            ("kubelet-client-certificate", pki("kubelet-client.crt")),
            ("kubelet-client-key", pki("kubelet-client.key")),
            ("kubelet-certificate-authority", pki("ca.crt")),
            ("kubelet-preferred-address-types", "InternalIP,Hostname".into()),
        ];
        self.daemon("kube-apiserver", &shape.kubernetes.join("kube-apiserver"), &flags(&options))
    }

    fn start_controller_manager(&mut self, programs: &Path) -> anyhow::Result<()> {
        let options = [
            ("kubeconfig", self.kubeconfig("controller-manager")?),
            ("leader-elect", "false".into()),
            ("use-service-account-credentials", "true".into()),
            ("service-account-private-key-file", self.pki.path("accounts.key")),
            ("root-ca-file", self.pki.path("ca.crt")),
            ("cluster-signing-cert-file", self.pki.path("ca.crt")),
            ("cluster-signing-key-file", self.pki.path("ca.key")),
        ];
        let program = programs.join("kube-controller-manager");
        self.daemon("kube-controller-manager", &program, &flags(&options))
    }

    fn start_scheduler(&mut self, programs: &Path) -> anyhow::Result<()> {
        let options =
            [("kubeconfig", self.kubeconfig("scheduler")?), ("leader-elect", "false".into())];
        self.daemon("kube-scheduler", &programs.join("kube-scheduler"), &flags(&options))
    }

    fn daemon(
        &mut self,
        name: &'static str,
        program: &Path,
        words: &[String],
    ) -> anyhow::Result<()> {
        let mut command = self.network.in_infra(program);
        command.args(words);
        self.daemons.push((name, spawn_logged(command, &self.place, name)?));
        Ok(())
    }

    /// Writes the kubeconfig of a component; JSON is YAML too.
    fn kubeconfig(&self, name: &str) -> anyhow::Result<String> {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": {
                "server": format!("https://{INFRA}:6443"),
                "certificate-authority": self.pki.path("ca.crt"),
            }}],
            "users": [{"name": name, "user": {
                "client-certificate": self.pki.path(&format!("{name}.crt")),
                "client-key": self.pki.path(&format!("{name}.key")),
            }}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": name}}],
            "current-context": "lab",
        });
        let path = self.place.join(format!("{name}.kubeconfig"));
        fs::write(&path, config.to_string())?;
        Ok(path.display().to_string())
    }

    pub fn get(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        self.ask("GET", path, None)
    }

    pub fn get_json(&self, path: &str) -> anyhow::Result<Value> {
        let body = self.get(path)?;
        serde_json::from_slice(&body).with_context(|| format!("the answer to {path}"))
    }

    /// Asks the API as its administrator.
    pub fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Vec<u8>> {
        let mut command = self.network.in_infra("curl");
        command.args(["--silent", "--show-error", "--fail-with-body", "--max-time", "20"]);
        command.args(["--cacert", &self.pki.path("ca.crt"), "--cert", &self.pki.path("admin.crt")]);
        command.args(["--key", &self.pki.path("admin.key"), "--request", method]);
        command.args(["--header", "Content-Type: application/json", "--noproxy", "*"]);
        if body.is_some() {
            command.args(["--data-binary", "@-"]);
        }
        command.arg(format!("https://{INFRA}:6443{path}"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting curl")?;
        if let (Some(mut stdin), Some(body)) = (child.stdin.take(), body) {
            stdin.write_all(body.to_string().as_bytes())?;
        }
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            bail!("{method} {path}: {}", String::from_utf8_lossy(&said));
        }
        Ok(output.stdout)
    }

    /// Asks again and again until there is an answer. A daemon that ended is an error at once.
    pub fn wait_until<T>(
        &mut self,
        what: &str,
        seconds: u64,
        mut look: impl FnMut(&Self) -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let seconds = seconds * self.patience;
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            for (name, child) in &mut self.daemons {
                if let Some(status) = child.try_wait()? {
                    let log = fs::read_to_string(self.place.join(format!("{name}.log")))?;
                    bail!("{name} ended with {status}: {}", tail(&log));
                }
            }
            ensure!(Instant::now() < deadline, "waited {seconds} s until {what}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for ControlPlane<'_> {
    fn drop(&mut self) {
        for (_, child) in &mut self.daemons {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn flags(options: &[(&str, String)]) -> Vec<String> {
    options.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

fn tail(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
