//! The live probes, each with its deadline, in three lanes beside each other: the API server,
//! the platform, this machine.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tenon_core::doctor::{
    Access, Clock, Credentials, Endpoint, Identity, NodeAnswer, Probes, Reach, Snapshot, Trust,
    View,
};
use tenon_core::kubeconfig::{Credential, Kubeconfig};
use tenon_core::problem::Problem;
use time::format_description::well_known::Rfc2822;

use super::metadata;
use super::reach::{self, Answer, EACH, Goal, Proxy, look_up};
use crate::cluster::{ApiError, Client, read_kubeconfig};
use crate::collect::Source;
use crate::command;
use crate::gather::background;
use crate::gather::environment::Environment;
use crate::root::Root;
use crate::stop;

/// Where distributions keep the authorities that programs believe.
const BUNDLES: &[&str] =
    &["/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/certs/ca-certificates.crt"];
const BUNDLE_CAP: u64 = 4 << 20;
/// Ports of this machine: the kubelet's, and the CNI's address manager.
const PORTS: &[u16] = &[10250, 61679];
/// A credential program may sign, ask the metadata service, and start a slow interpreter.
const EXEC: Duration = Duration::from_secs(10);

const SERVICE_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the lane to the API server works with, owned by its thread.
pub(super) struct Api {
    endpoint: Endpoint,
    authority: Option<Vec<u8>>,
    pub(super) proxy: Option<Proxy>,
    /// The kubelet goes through it.
    pub(super) uses_proxy: bool,
    node_name: Option<String>,
    kubeconfig: String,
    /// What the kubelet's own programs see.
    environment: Vec<(String, String)>,
}

/// What a lane found: fills in its own part.
pub(super) type Filling = Box<dyn FnOnce(&mut Probes) + Send>;

/// Runs every probe that this machine allows, within the budget.
pub(super) fn run(source: &Source, node: &mut Snapshot, end: Instant) -> Result<(), Problem> {
    let Some(root) = source.root_handle() else { return Ok(()) };
    let base = metadata::endpoint(&Environment::of_process(), is_ec2(root, node));
    let bundle = BUNDLES.iter().find_map(|path| root.read(path, BUNDLE_CAP).ok().flatten());
    let (send, receive) = mpsc::channel();
    lane(&send, this_machine);
    if let Some(api) = Api::of(node) {
        tracing::info!(host = api.endpoint.host, "asking the API server");
        lane(&send, move || api.ask());
    }
    if let Some(base) = base {
        tracing::info!("asking the metadata service and the regional services");
        lane(&send, move || platform(&base, bundle.as_deref()));
    }
    drop(send);
    loop {
        stop::check()?;
        let left = end.saturating_duration_since(Instant::now());
        match receive.recv_timeout(left.min(stop::SLICE)) {
            Ok(fill) => fill(&mut node.probes),
            // Every lane has ended; or what has not answered by now stays unknown.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The machine says so itself, or its bootstrap has seen a metadata service.
fn is_ec2(root: &Root, node: &Snapshot) -> bool {
    let says = |path: &str, word: &str| {
        root.read_text(path).ok().flatten().is_some_and(|text| text.starts_with(word))
    };
    says("/sys/class/dmi/id/sys_vendor", "Amazon EC2")
        || says("/sys/hypervisor/uuid", "ec2")
        || View::new(node, None).status["instance"]["id"].is_string()
}

/// Starts a lane on a thread that is left behind when the budget is spent.
fn lane(send: &mpsc::Sender<Filling>, work: impl FnOnce() -> Filling + Send + 'static) {
    let send = send.clone();
    // Nobody listens any more when the budget is spent; that send may fail.
    std::thread::spawn(move || drop(send.send(work())));
}

impl Api {
    /// Reads from the node's own files whom it would ask, and how.
    pub(super) fn of(node: &Snapshot) -> Option<Api> {
        let view = View::new(node, None);
        let endpoint = view.api.clone()?;
        let url =
            ["HTTPS_PROXY", "https_proxy"].iter().find_map(|name| view.environment.get(*name));
        Some(Api {
            authority: view.authority().and_then(|(_, pem)| pem.ok()).map(String::into_bytes),
            proxy: url.and_then(|url| Proxy::parse(url)),
            uses_proxy: view.uses_proxy(&endpoint.host),
            node_name: view.node_name().map(str::to_owned),
            kubeconfig: view.kubeconfig_path.clone(),
            environment: environment(&view),
            endpoint,
        })
    }

    /// The chain to the API server, layer by layer.
    pub(super) fn ask(&self) -> Filling {
        let mut found = Probes { uses_proxy: self.uses_proxy, ..Probes::default() };
        let begun = Instant::now();
        let lookup = look_up(&self.endpoint.host).ok();
        took(&mut found, "dns", begun);
        let addresses = lookup.as_ref().map(|lookup| lookup.addresses.clone()).unwrap_or_default();
        let goal = Goal {
            host: &self.endpoint.host,
            port: self.endpoint.port,
            addresses: &addresses,
            proxy: None,
            authority: self.authority.as_deref(),
            path: Some("/livez"),
        };
        let begun = Instant::now();
        let (direct, answer) = reach::reach(&goal);
        took(&mut found, "tcp", begun);
        let proxied =
            self.proxy.as_ref().map(|proxy| reach::reach(&Goal { proxy: Some(proxy), ..goal }));
        let (proxied, proxied_answer) = proxied.unzip();
        let answer = if self.uses_proxy { proxied_answer.flatten() } else { answer };
        let way = if self.uses_proxy { proxied.as_ref() } else { Some(&direct) };
        let trusted = way.is_some_and(|way| way.trust == Some(Trust::Good) && way.is_up());
        found.clock_offset_s = answer.as_ref().and_then(clock_offset);
        found.anonymous = answer.map(anonymous);
        (found.lookup, found.direct, found.proxied) = (lookup, Some(direct), proxied);
        if trusted {
            self.authenticate(&mut found);
        }
        Box::new(move |probes| {
            let Probes { metadata, services, ports, clock, took_ms, .. } = std::mem::take(probes);
            found.took_ms.extend(took_ms);
            *probes = Probes { metadata, services, ports, clock, ..found };
        })
    }

    /// Asks as the kubelet would: who am I, what is my Node object, which version are you.
    fn authenticate(&self, found: &mut Probes) {
        let begun = Instant::now();
        let client = match self.client() {
            Ok((client, kind)) => {
                found.credentials = Some(Credentials { kind, usable: true, detail: String::new() });
                client.within(EACH)
            }
            Err((kind, detail)) => {
                found.credentials = Some(Credentials { kind, usable: false, detail });
                return;
            }
        };
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let answer = client.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review);
        found.authenticated = access(&answer);
        found.identity = answer.ok().map(|review| identity(&review));
        if let Some(name) = &self.node_name {
            found.node = node_object(name, client.get(&format!("/api/v1/nodes/{name}")));
        }
        let version = client.get("/version").ok();
        found.server_version = version.and_then(|v| v["gitVersion"].as_str().map(str::to_owned));
        took(found, "authn", begun);
    }

    /// A client with the kubelet's own credentials; its credential program has a deadline.
    fn client(&self) -> Result<(Client, String), (String, String)> {
        let unusable = |kind: &str, problem: &Problem| {
            let cause =
                problem.causes.first().map(|cause| format!(": {cause}")).unwrap_or_default();
            (kind.to_owned(), format!("{}{cause}", problem.what))
        };
        let root =
            Root::open(Path::new("/")).map_err(|error| (String::new(), error.to_string()))?;
        let read = read_kubeconfig(&root, &self.kubeconfig);
        let mut config = read.map_err(|problem| unusable("", &problem))?;
        if let Credential::Exec { variables, .. } = &mut config.credential {
            // What the kubeconfig itself sets comes last and wins.
            let own = std::mem::replace(variables, self.environment.clone());
            variables.extend(own);
        }
        let kind = kind(&config);
        let proxy = self.proxy.as_ref().filter(|_| self.uses_proxy);
        let proxy = proxy.and_then(Proxy::for_client);
        let opened = background::wait_for(Instant::now() + EXEC, move || {
            Client::through(proxy, &config, &root)
        });
        match opened {
            Ok(Some(Ok(client))) => Ok((client, kind.to_owned())),
            Ok(Some(Err(problem))) | Err(problem) => Err(unusable(kind, &problem)),
            Ok(None) => {
                Err((kind.to_owned(), format!("no credentials within {} s", EXEC.as_secs())))
            }
        }
    }
}

/// The variables of the kubelet's unit, and the search path that systemd gives services.
fn environment(view: &View) -> Vec<(String, String)> {
    let path = ("PATH".to_owned(), SERVICE_PATH.to_owned());
    let unit = view.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
    std::iter::once(path).chain(unit).collect()
}

fn took(found: &mut Probes, name: &str, begun: Instant) {
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    found.took_ms.insert(name.to_owned(), ms);
}

fn kind(config: &Kubeconfig) -> &'static str {
    match config.credential {
        Credential::None => "none",
        Credential::Token(_) | Credential::TokenFile(_) => "token",
        Credential::Certificate { .. } => "certificate",
        Credential::Exec { .. } => "exec",
    }
}

fn anonymous(answer: Answer) -> Access {
    Access { status: answer.status, message: String::new(), kubernetes: answer.kubernetes }
}

/// Server's clock minus ours, from the `Date` header.
fn clock_offset(answer: &Answer) -> Option<i64> {
    let date = answer.date.replace("GMT", "+0000");
    let server = time::OffsetDateTime::parse(&date, &Rfc2822).ok()?.unix_timestamp();
    let own = i64::try_from(super::now_us()? / 1_000_000).ok()?;
    Some(server - own)
}

/// The status of an answer; None when there was none.
fn access(answer: &Result<Value, ApiError>) -> Option<Access> {
    let (status, message) = match answer {
        Ok(_) => (200, String::new()),
        Err(error) => (error.code()?, error.summary()),
    };
    Some(Access { status, message, kubernetes: true })
}

fn identity(review: &Value) -> Identity {
    let user = &review["status"]["userInfo"];
    let groups = user["groups"].as_array().into_iter().flatten();
    Identity {
        user: user["username"].as_str().unwrap_or_default().to_owned(),
        groups: groups.filter_map(|group| group.as_str().map(str::to_owned)).collect(),
    }
}

fn node_object(name: &str, answer: Result<Value, ApiError>) -> Option<NodeAnswer> {
    let node = match &answer {
        Ok(node) => node,
        Err(error) => {
            let status = error.code()?;
            return Some(NodeAnswer { status, name: name.to_owned(), ..NodeAnswer::default() });
        }
    };
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
    let of = |key: &str| ready.and_then(|ready| ready[key].as_str()).unwrap_or_default().to_owned();
    Some(NodeAnswer {
        status: 200,
        name: name.to_owned(),
        provider_id: node["spec"]["providerID"].as_str().unwrap_or_default().to_owned(),
        ready: ready.map(|ready| ready["status"] == "True"),
        reason: of("reason"),
        message: of("message"),
    })
}

/// The metadata service, and the services of the region that it names.
fn platform(base: &str, bundle: Option<&[u8]>) -> Filling {
    let begun = Instant::now();
    let metadata = metadata::ask(base);
    let services = services(&metadata.region, bundle);
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Box::new(move |probes| {
        probes.took_ms.insert("platform".to_owned(), ms);
        (probes.metadata, probes.services) = (Some(metadata), services);
    })
}

fn services(region: &str, bundle: Option<&[u8]>) -> BTreeMap<String, Reach> {
    if region.is_empty() {
        return BTreeMap::new();
    }
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    let hosts = [
        ("ec2", format!("ec2.{region}.{domain}")),
        ("ecr", format!("api.ecr.{region}.{domain}")),
        ("s3", format!("s3.{region}.{domain}")),
        ("sts", format!("sts.{region}.{domain}")),
    ];
    std::thread::scope(|scope| {
        let asked = hosts.map(|(name, host)| {
            let thread = scope.spawn(move || {
                let addresses = look_up(&host).map(|lookup| lookup.addresses).unwrap_or_default();
                let goal = Goal {
                    host: &host,
                    port: 443,
                    addresses: &addresses,
                    proxy: None,
                    authority: bundle,
                    path: None,
                };
                reach::reach(&goal).0
            });
            (name, thread)
        });
        let answers = asked
            .into_iter()
            .filter_map(|(name, thread)| Some((name.to_owned(), thread.join().ok()?)));
        answers.collect()
    })
}

/// What can be asked of this machine itself: ports, and who keeps its clock.
fn this_machine() -> Filling {
    let listens = |port: u16| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        TcpStream::connect_timeout(&address, EACH).is_ok()
    };
    let ports: BTreeMap<_, _> = PORTS.iter().map(|port| (*port, listens(*port))).collect();
    let argv = ["chronyc", "-c", "-n", "tracking"].map(str::to_owned);
    let output = command::must(&argv, EACH, &[]).ok();
    let clock = output.and_then(|output| clock(&String::from_utf8_lossy(&output.stdout)));
    Box::new(move |probes| (probes.ports, probes.clock) = (ports, clock))
}

/// `chronyc -c tracking`: reference id, its name, stratum, time, offset in seconds, …
fn clock(line: &str) -> Option<Clock> {
    let words: Vec<_> = line.trim().split(',').collect();
    let [_, reference, stratum, _, offset, ..] = words[..] else { return None };
    let offset: f64 = offset.parse().ok()?;
    Some(Clock {
        synchronised: stratum != "0" && !reference.is_empty(),
        reference: reference.to_owned(),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "an offset of 292 million years is off enough"
        )]
        offset_ms: (offset * 1000.0) as i64,
    })
}
