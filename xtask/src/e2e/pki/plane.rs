//! A root with Tenon's certificates, and the daemons that use them.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::anyhow;
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;
use tenon_host::cluster::{self, Auth, Client, Look, Trust, wait_until};
use tenon_host::root::Root;

use super::super::lab::spawn_logged;
use super::{Lab, NODE, must_tenon};
use crate::lab::{ETCD, KUBERNETES_1_34};

const PATIENCE: Duration = Duration::from_secs(90);

/// The root, the ports and what runs.
pub struct Plane {
    pub place: PathBuf,
    pub root: Root,
    pub port: u16,
    pub etcd: u16,
    peer: u16,
    daemons: Vec<Child>,
}

impl Drop for Plane {
    fn drop(&mut self) {
        for child in &mut self.daemons {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that was free a moment ago.
fn port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

pub fn told(problem: Problem) -> anyhow::Error {
    anyhow!("{}", problem.render("error"))
}

impl Plane {
    /// Makes the certificates; a second run changes nothing.
    pub fn prepare(lab: &Lab, place: &Path) -> anyhow::Result<Self> {
        let directory = place.join("root");
        fs::create_dir_all(&directory)?;
        let (port, etcd, peer) = (port()?, port()?, port()?);
        let identity = format!(
            "--advertise-address 127.0.0.1 --endpoint 127.0.0.1:{port} --node-name {NODE} --san lb.example.com"
        );
        must_tenon(lab, &directory, &format!("pki init {identity}"))?;
        let again = must_tenon(lab, &directory, &format!("pki init {identity}"))?;
        anyhow::ensure!(again.lines().all(|line| line.starts_with("kept")), "{again}");
        must_tenon(lab, &directory, &format!("pki check {identity}"))?;
        let root = Root::open(&directory)?;
        Ok(Plane { place: place.to_owned(), root, port, etcd, peer, daemons: Vec::new() })
    }

    pub fn pki(&self, name: &str) -> String {
        self.kubernetes(&format!("pki/{name}"))
    }

    pub fn kubernetes(&self, name: &str) -> String {
        self.root.join("etc/kubernetes").join(name).display().to_string()
    }

    fn daemon(
        &mut self,
        name: &str,
        program: &Path,
        options: &[(&str, String)],
    ) -> anyhow::Result<()> {
        let words = options.iter().map(|(name, value)| format!("--{name}={value}"));
        let mut command = Command::new(program);
        command.args(words);
        self.daemons.push(spawn_logged(command, &self.place, name)?);
        Ok(())
    }

    fn wait<T>(
        &self,
        name: &str,
        look: impl FnMut() -> Result<Look<T>, cluster::ApiError>,
    ) -> anyhow::Result<T> {
        wait_until(&format!("{name} is ready"), PATIENCE, look).map_err(|problem| {
            let log = fs::read_to_string(self.place.join(format!("{name}.log")));
            let log = log.unwrap_or_default();
            let lines: Vec<_> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(15)..].join("\n");
            told(problem).context(tail)
        })
    }

    /// A client of etcd's gateway with a pair of the table, trusting etcd's CA.
    pub fn etcd_client(&self, pair: Option<&str>) -> anyhow::Result<Client> {
        let auth = match pair {
            None => Auth::None,
            Some(name) => Auth::Certificate {
                chain: fs::read(self.pki(&format!("{name}.crt")))?,
                key: Secret::new(fs::read_to_string(self.pki(&format!("{name}.key")))?),
            },
        };
        let trust = Trust::Authority(fs::read(self.pki("etcd/ca.crt"))?);
        let url = format!("https://127.0.0.1:{}", self.etcd);
        Ok(Client::new(&url, &trust, &auth).map_err(told)?.within(Duration::from_secs(5)))
    }

    pub fn start_etcd(mut self, lab: &Lab) -> anyhow::Result<Self> {
        let program = ETCD.ready(&lab.cache)?.join("usr/bin/etcd");
        let (client, peer) = (
            format!("https://127.0.0.1:{}", self.etcd),
            format!("https://127.0.0.1:{}", self.peer),
        );
        let options = [
            ("name", NODE.to_owned()),
            ("data-dir", self.place.join("etcd").display().to_string()),
            ("listen-client-urls", client.clone()),
            ("advertise-client-urls", client),
            ("listen-peer-urls", peer.clone()),
            ("initial-advertise-peer-urls", peer.clone()),
            ("initial-cluster", format!("{NODE}={peer}")),
            ("cert-file", self.pki("etcd/server.crt")),
            ("key-file", self.pki("etcd/server.key")),
            ("trusted-ca-file", self.pki("etcd/ca.crt")),
            ("client-cert-auth", "true".into()),
            ("peer-cert-file", self.pki("etcd/peer.crt")),
            ("peer-key-file", self.pki("etcd/peer.key")),
            ("peer-trusted-ca-file", self.pki("etcd/ca.crt")),
            ("peer-client-cert-auth", "true".into()),
            ("unsafe-no-fsync", "true".into()),
        ];
        self.daemon("etcd", &program, &options)?;
        let client = self.etcd_client(Some("etcd/healthcheck-client"))?;
        self.wait("etcd", || {
            client.create("/v3/maintenance/status", &serde_json::json!({})).map(Look::Ready)
        })?;
        Ok(self)
    }

    pub fn start_api_server(&mut self, lab: &Lab) -> anyhow::Result<()> {
        let pki = |name: &str| self.pki(name);
        let options = [
            ("advertise-address", "127.0.0.1".to_owned()),
            ("bind-address", "127.0.0.1".into()),
            ("secure-port", self.port.to_string()),
            // Loopback is no address for the `kubernetes` Service.
            ("endpoint-reconciler-type", "none".into()),
            ("service-cluster-ip-range", "10.96.0.0/12".into()),
            ("authorization-mode", "Node,RBAC".into()),
            ("enable-admission-plugins", "NodeRestriction".into()),
            ("enable-bootstrap-token-auth", "true".into()),
            ("client-ca-file", pki("ca.crt")),
            ("etcd-servers", format!("https://127.0.0.1:{}", self.etcd)),
            ("etcd-cafile", pki("etcd/ca.crt")),
            ("etcd-certfile", pki("apiserver-etcd-client.crt")),
            ("etcd-keyfile", pki("apiserver-etcd-client.key")),
            ("kubelet-client-certificate", pki("apiserver-kubelet-client.crt")),
            ("kubelet-client-key", pki("apiserver-kubelet-client.key")),
            ("proxy-client-cert-file", pki("front-proxy-client.crt")),
            ("proxy-client-key-file", pki("front-proxy-client.key")),
            ("requestheader-client-ca-file", pki("front-proxy-ca.crt")),
            ("requestheader-allowed-names", "front-proxy-client".into()),
            ("service-account-issuer", "https://kubernetes.default.svc.cluster.local".into()),
            ("service-account-key-file", pki("sa.pub")),
            ("service-account-signing-key-file", pki("sa.key")),
            ("tls-cert-file", pki("apiserver.crt")),
            ("tls-private-key-file", pki("apiserver.key")),
        ];
        let program = KUBERNETES_1_34.ready(&lab.cache)?.join("kube-apiserver");
        self.daemon("kube-apiserver", &program, &options)?;
        let client = self.client("super-admin.conf")?;
        self.wait("kube-apiserver", || client.text("/readyz").map(Look::Ready))?;
        Ok(())
    }

    pub fn start_controller_manager(&mut self, lab: &Lab) -> anyhow::Result<()> {
        let options = [
            ("kubeconfig", self.on_port("controller-manager.conf")?),
            ("leader-elect", "false".into()),
            ("secure-port", "0".into()),
            ("use-service-account-credentials", "true".into()),
            ("controllers", "*,bootstrapsigner,tokencleaner".into()),
            ("service-account-private-key-file", self.pki("sa.key")),
            ("root-ca-file", self.pki("ca.crt")),
            ("cluster-signing-cert-file", self.pki("ca.crt")),
            ("cluster-signing-key-file", self.pki("ca.key")),
        ];
        let program = KUBERNETES_1_34.ready(&lab.cache)?.join("kube-controller-manager");
        self.daemon("kube-controller-manager", &program, &options)?;
        let client = self.client("super-admin.conf")?;
        let account = "/api/v1/namespaces/default/serviceaccounts/default";
        self.wait("kube-controller-manager", || match client.find(account)? {
            Some(_) => Ok(Look::Ready(())),
            None => Ok(Look::NotYet("no default service account".into())),
        })
    }

    /// A copy of a kubeconfig of this node, which has the usual port, with the test's port.
    fn on_port(&self, name: &str) -> anyhow::Result<String> {
        let text = fs::read_to_string(self.kubernetes(name))?;
        let path = self.place.join(name);
        fs::write(&path, text.replace(":6443", &format!(":{}", self.port)))?;
        Ok(path.display().to_string())
    }

    /// A client with a kubeconfig of this node.
    pub fn client(&self, name: &str) -> anyhow::Result<Client> {
        let host = Root::open(Path::new("/"))?;
        Client::open(&host, &self.on_port(name)?).map_err(told)
    }
}
