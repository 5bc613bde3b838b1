//! Links on a pretended machine, against the simulated metadata service and a pretended networkd.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_core::Stream;
use tenon_core::plan::network::Manager;
use zbus::connection::Builder;
use zbus::message::Type;
use zbus::{Connection, Guid, Message, MessageStream, ObjectPath, Variant, block_on};

use super::*;
use crate::apply::Lock;
use crate::gather::imds::Options;
use crate::gather::imds::endpoint::Endpoint;
use crate::gather::imds::pace::Patience;
use crate::simulator::Simulator;
use crate::simulator::faults::{Faults, Rule};
use crate::simulator::profile::Profile;

const SECOND: &str = "0a:00:00:00:00:02";

struct Bench {
    dir: tempfile::TempDir,
    root: Root,
    lock: Lock,
    simulator: Simulator,
    profile: Profile,
}

impl Bench {
    fn new(rules: impl Into<Vec<Rule>>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let lock = Lock::take(&root, Duration::ZERO).unwrap();
        let profile = Profile::new("m5.large");
        let simulator = Simulator::start(&profile, Faults::of(rules)).unwrap();
        for (leaf, value) in
            [("device-number", "2"), ("network-card", "1"), ("local-ipv4s", "10.0.1.5\n10.0.1.6")]
        {
            simulator.set(&format!("meta-data/network/interfaces/macs/{SECOND}/{leaf}"), value);
        }
        let bench = Bench { dir, root, lock, simulator, profile };
        bench.link("ens5", 2, &bench.profile.mac, Some("ena"));
        bench.link("ens6", 3, SECOND, Some("ena"));
        bench
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.path().join(path.trim_start_matches('/'))).ok()
    }

    fn link(&self, name: &str, index: u32, mac: &str, driver: Option<&str>) {
        self.write(&format!("sys/class/net/{name}/address"), &format!("{mac}\n"));
        self.write(&format!("sys/class/net/{name}/ifindex"), &format!("{index}\n"));
        if let Some(driver) = driver {
            let device = self.dir.path().join(format!("sys/class/net/{name}/device"));
            std::fs::create_dir_all(&device).unwrap();
            symlink(format!("../../../../bus/pci/drivers/{driver}"), device.join("driver"))
                .unwrap();
        }
    }

    fn state(&self, index: u32, state: &str) {
        self.write(&format!("run/systemd/netif/links/{index}"), &format!("ADMIN_STATE={state}\n"));
    }

    fn imds(&self) -> Imds {
        let patience = Patience { missing: Duration::from_millis(30), ..Patience::default() };
        let endpoints = vec![Endpoint::at(self.simulator.address())];
        Imds::new(Options { endpoints, patience, allow_version_1: false })
    }

    fn add(&self, name: &str) -> Result<Manager, Problem> {
        udev::add(&self.root, &self.lock, &mut self.imds(), name)
    }

    fn identity(&self) -> Identity {
        identify(&mut self.imds()).unwrap()
    }

    fn stored(&self, name: &str) -> Option<String> {
        self.read(&format!("etc/eks/nodeadm/udev-net-manager/{}/{name}", self.profile.id))
    }
}

#[test]
fn a_link_before_the_node_runs_belongs_to_systemd() {
    let bench = Bench::new([]);
    assert_eq!(bench.add("ens6").unwrap(), Manager::Systemd);
    assert_eq!(bench.stored("ens6").as_deref(), Some("io.systemd.Network"));
    let text = bench.read("run/systemd/network/70-eks-ens6.network").unwrap();
    assert!(text.contains(&format!("PermanentMACAddress={SECOND}\n")), "{text}");
    assert!(text.contains("From=10.0.1.5\nTable=10102\n"), "{text}");
    assert_eq!(bench.read("run/systemd/network/80-ec2.network.d/10-eks-disable.conf"), None);
}

#[test]
fn the_primary_link_disables_the_image_default_and_asks_for_no_addresses() {
    let bench = Bench::new([]);
    assert_eq!(bench.add("ens5").unwrap(), Manager::Systemd);
    let drop_in = bench.read("run/systemd/network/80-ec2.network.d/10-eks-disable.conf");
    assert_eq!(drop_in.as_deref(), Some("[Match]\nName=none\n"));
    assert_eq!(bench.simulator.count("/local-ipv4s"), 0);
}

#[test]
fn a_link_of_a_running_node_belongs_to_the_cni_and_stays_with_its_first_owner() {
    let bench = Bench::new([]);
    bench.add("ens5").unwrap();
    bench.write("run/nodeadm/init", "");
    assert_eq!(bench.add("ens6").unwrap(), Manager::Cni);
    assert_eq!(bench.stored("ens6").as_deref(), Some("cni"));
    assert_eq!(bench.read("run/systemd/network/70-eks-ens6.network"), None);
    assert_eq!(bench.add("ens5").unwrap(), Manager::Systemd, "as stored before");
}

#[test]
fn absent_values_are_defaults_but_other_failures_are_errors() {
    let absent = |leaf: &str| Rule { status: Some(404), ..Rule::on(&format!("*/{SECOND}/{leaf}")) };
    let bench = Bench::new([absent("network-card"), absent("local-ipv4s")]);
    bench.add("ens6").unwrap();
    let text = bench.read("run/systemd/network/70-eks-ens6.network").unwrap();
    assert!(text.contains("Table=10002\n") && !text.contains("RoutingPolicyRule"), "{text}");
    let bench = Bench::new([Rule { status: Some(400), ..Rule::on("*/local-ipv4s") }]);
    assert_eq!(bench.add("ens6").unwrap_err().exit(), 5);
    assert_eq!(bench.read("run/systemd/network/70-eks-ens6.network"), None);
}

#[test]
fn removing_deletes_the_file_and_may_be_repeated() {
    let bench = Bench::new([]);
    bench.add("ens6").unwrap();
    for _ in 0..2 {
        udev::remove(&bench.root, &bench.lock, "ens6").unwrap();
        assert_eq!(bench.read("run/systemd/network/70-eks-ens6.network"), None);
    }
}

#[test]
fn an_unknown_link_is_named() {
    let problem = Bench::new([]).add("ens9").unwrap_err();
    assert_eq!((problem.page.code, problem.exit()), ("TN05027", 5));
}

#[test]
fn waiting_ends_when_every_interface_of_the_node_is_ready() {
    let bench = Bench::new([]);
    bench.link("docker0", 4, "02:42:00:00:00:01", None);
    bench.state(2, "configured");
    bench.state(3, "unmanaged");
    bench.state(4, "degraded");
    let links = wait::wait(&bench.root, &bench.identity(), Duration::ZERO).unwrap();
    let waited: Vec<_> = links.iter().map(|link| (link.name.as_str(), link.wanted)).collect();
    let expected = [("docker0", None), ("ens5", Some("configured")), ("ens6", Some("unmanaged"))];
    assert_eq!(waited, expected);
}

#[test]
fn a_link_stored_for_systemd_must_be_configured_and_the_error_names_it() {
    let bench = Bench::new([]);
    bench.add("ens6").unwrap();
    bench.state(2, "configured");
    bench.state(3, "configuring");
    let problem =
        wait::wait(&bench.root, &bench.identity(), Duration::from_millis(20)).unwrap_err();
    assert_eq!((problem.page.code, problem.exit()), ("TN09101", 9));
    assert_eq!(problem.causes, ["ens6 is configuring, not configured"]);
}

#[test]
fn without_the_primary_link_the_network_is_not_ready() {
    let bench = Bench::new([]);
    std::fs::remove_dir_all(bench.dir.path().join("sys/class/net/ens5")).unwrap();
    bench.state(3, "unmanaged");
    let problem = wait::wait(&bench.root, &bench.identity(), Duration::ZERO).unwrap_err();
    assert!(problem.causes[0].contains("primary"), "{problem:?}");
}

/// networkd on a pretended bus.
#[derive(Clone, Default)]
struct FakeNetworkd {
    states: Arc<Mutex<BTreeMap<String, &'static str>>>,
    asked: Arc<Mutex<u32>>,
}

impl FakeNetworkd {
    fn serve(bench: &Bench) -> Self {
        let fake = FakeNetworkd::default();
        let socket = bench.dir.path().join("run/dbus/system_bus_socket");
        std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let listener = UnixListener::bind(socket).unwrap();
        let server = fake.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // An error is a client that went away.
                let _ = block_on(server.talk(stream.unwrap()));
            }
        });
        fake
    }

    fn set(&self, name: &str, state: &'static str) {
        self.states.lock().unwrap().insert(name.into(), state);
    }

    async fn talk(&self, stream: UnixStream) -> zbus::Result<()> {
        let server = Builder::unix_stream(stream).server(Guid::generate()).p2p();
        let connection = server.build().await?;
        let mut messages = MessageStream::from(&connection);
        while let Some(message) =
            poll_fn(|context| Pin::new(&mut messages).poll_next(context)).await
        {
            let message = message?;
            if message.message_type() == Type::MethodCall {
                self.answer(&connection, &message).await?;
            }
        }
        Ok(())
    }

    async fn answer(&self, connection: &Connection, call: &Message) -> zbus::Result<()> {
        let header = call.header();
        let link =
            |name: &str| ObjectPath::try_from(format!("/org/freedesktop/network1/link/{name}"));
        match header.member().map(ToString::to_string).unwrap_or_default().as_str() {
            "Hello" => connection.reply(&header, &":1.7").await,
            "ListLinks" => {
                let names: Vec<String> = self.states.lock().unwrap().keys().cloned().collect();
                let rows: Result<Vec<_>, _> = names
                    .iter()
                    .map(|name| link(name).map(|path| (1_i32, name.as_str(), path)))
                    .collect();
                connection.reply(&header, &rows?).await
            }
            "Get" => {
                let path = header.path().map(ToString::to_string).unwrap_or_default();
                let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                let state = self.states.lock().unwrap().get(&name).copied().unwrap_or_default();
                let turn = {
                    let mut asked = self.asked.lock().unwrap();
                    *asked += 1;
                    *asked
                };
                connection.reply(&header, &Variant::from(state)).await?;
                // After the second look the primary link comes up, and that is announced.
                if turn == 4 {
                    self.set("ens5", "configured");
                    self.announce(connection).await?;
                }
                Ok(())
            }
            _ => connection.reply(&header, &()).await,
        }
    }

    async fn announce(&self, connection: &Connection) -> zbus::Result<()> {
        let path = "/org/freedesktop/network1/link/ens5";
        let interface = "org.freedesktop.DBus.Properties";
        let body = (
            "org.freedesktop.network1.Link",
            BTreeMap::<&str, Variant<'_>>::new(),
            Vec::<&str>::new(),
        );
        connection.emit_signal(None::<&str>, path, interface, "PropertiesChanged", &body).await
    }
}

#[test]
fn states_come_over_the_bus_and_a_change_is_seen() {
    let bench = Bench::new([]);
    // The files say otherwise: they must not be read while the bus answers.
    bench.state(2, "failed");
    let networkd = FakeNetworkd::serve(&bench);
    networkd.set("ens5", "configuring");
    networkd.set("ens6", "unmanaged");
    let links = wait::wait(&bench.root, &bench.identity(), Duration::from_secs(30)).unwrap();
    assert!(links.iter().all(wait::Link::is_ready), "{links:?}");
    assert_eq!(*networkd.asked.lock().unwrap(), 6, "three looks at two links");
}
