//! A real dbus-daemon, with an update-engine and a logind that follow a script.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::*;

/// The bus of one machine. Dropped, it ends.
pub struct Bus {
    daemon: Child,
    /// Calls that change something: `AttemptUpdate`, `Reboot`.
    pub log: Arc<Mutex<Vec<String>>>,
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// What the services do.
#[derive(Clone, Default)]
pub struct Script {
    /// The status before the attempt.
    pub first: (i64, &'static str, &'static str),
    /// What an attempt leads to, one after another.
    pub then: Vec<(i64, &'static str, &'static str)>,
    pub reboot_refused: bool,
}

impl Bus {
    pub fn start(root: &Path, script: Script) -> Self {
        fs::create_dir_all(root.join("run/dbus")).unwrap();
        let socket = root.join("run/dbus/system_bus_socket");
        let config = root.join("run/dbus/bus.conf");
        let text = format!(
            "<busconfig><type>system</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/>\
             <allow send_destination=\"*\" eavesdrop=\"false\"/><allow receive_type=\"signal\"/>\
             <allow receive_type=\"method_call\"/><allow receive_type=\"method_return\"/>\
             <allow receive_type=\"error\"/></policy></busconfig>",
            socket.display()
        );
        fs::write(&config, text).unwrap();
        let daemon = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--nopidfile"])
            .stdout(Stdio::null())
            .spawn()
            .expect("dbus-daemon of the package dbus");
        let end = Instant::now() + Duration::from_secs(10);
        while UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < end, "the bus did not come up");
            std::thread::sleep(Duration::from_millis(5));
        }
        let bus = Bus { daemon, log: Arc::default() };
        for name in [UPDATE.0, LOGIN.0] {
            let (stream, script, log) =
                (UnixStream::connect(&socket).unwrap(), script.clone(), Arc::clone(&bus.log));
            let (ready, wait) = mpsc::channel();
            std::thread::spawn(move || serve(stream, name, &script, &log, &ready));
            wait.recv_timeout(Duration::from_secs(10)).expect("the service has its name");
        }
        bus
    }

    pub fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

type Body = (i64, f64, String, String, i64);

fn body((last_checked, operation, version): (i64, &str, &str)) -> Body {
    (last_checked, 0.5, format!("UPDATE_STATUS_{operation}"), version.to_owned(), 1)
}

fn serve(
    stream: UnixStream,
    name: &'static str,
    script: &Script,
    log: &Mutex<Vec<String>>,
    ready: &mpsc::Sender<()>,
) {
    // An error is the end of the bus, which is the end of the service.
    let _ = block_on(async {
        let connection = Builder::unix_stream(stream).build().await?;
        let mut messages = MessageStream::from(&connection);
        let bus = "org.freedesktop.DBus";
        let path = "/org/freedesktop/DBus";
        connection.call_method(Some(bus), path, Some(bus), "RequestName", &(name, 4_u32)).await?;
        ready.send(()).unwrap();
        let mut now = body(script.first);
        while let Some(message) =
            poll_fn(|context| Pin::new(&mut messages).poll_next(context)).await
        {
            let message = message?;
            if message.message_type() != Type::MethodCall {
                continue;
            }
            let header = message.header();
            let member = header.member().map(ToString::to_string).unwrap_or_default();
            match member.as_str() {
                "GetStatus" => connection.reply(&header, &now).await?,
                "AttemptUpdate" => {
                    log.lock().unwrap().push(member);
                    connection.reply(&header, &()).await?;
                    for status in &script.then {
                        now = body(*status);
                        let (_, path, interface) = UPDATE;
                        connection
                            .emit_signal(None::<&str>, path, interface, "StatusUpdate", &now)
                            .await?;
                    }
                }
                "Reboot" if script.reboot_refused => {
                    log.lock().unwrap().push("refused".into());
                    let error = "org.freedesktop.DBus.Error.AccessDenied";
                    connection.reply_error(&header, error, &"not now").await?;
                }
                _ => {
                    log.lock().unwrap().push(member);
                    connection.reply(&header, &()).await?;
                }
            }
        }
        Ok::<(), zbus::Error>(())
    });
}

fn short() -> Patience {
    Patience { whole: Duration::from_secs(20), still: Duration::from_millis(300) }
}

fn play(script: Script, patience: Patience) -> (Result<Option<String>, Problem>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    let bus = Bus::start(dir.path(), script);
    (update(&root, patience), bus.log())
}

#[test]
fn an_update_is_followed_from_idle_to_its_version() {
    let script = Script {
        first: (5, "IDLE", ""),
        then: vec![
            (5, "IDLE", ""),
            (6, "CHECKING_FOR_UPDATE", ""),
            (6, "DOWNLOADING", "4593.2.0"),
            (6, "UPDATED_NEED_REBOOT", "4593.2.0"),
        ],
        ..Script::default()
    };
    let (ended, log) = play(script, Patience::default());
    assert_eq!(ended.unwrap().as_deref(), Some("4593.2.0"));
    assert_eq!(log, ["AttemptUpdate"]);
}

#[test]
fn idle_after_a_check_is_no_update() {
    let then = vec![(6, "CHECKING_FOR_UPDATE", ""), (6, "IDLE", "")];
    let (ended, _) =
        play(Script { first: (5, "IDLE", ""), then, ..Script::default() }, Patience::default());
    assert_eq!(ended.unwrap(), None);
}

#[test]
fn a_pending_update_is_adopted_without_an_attempt() {
    let script = Script { first: (5, "UPDATED_NEED_REBOOT", "4593.2.0"), ..Script::default() };
    let (ended, log) = play(script, Patience::default());
    assert_eq!(ended.unwrap().as_deref(), Some("4593.2.0"));
    assert!(log.is_empty());
}

#[test]
fn an_error_event_and_a_stall_are_failed_attempts() {
    let then = vec![(6, "DOWNLOADING", ""), (6, "REPORTING_ERROR_EVENT", "")];
    let (ended, _) =
        play(Script { first: (5, "IDLE", ""), then, ..Script::default() }, Patience::default());
    assert_eq!(ended.unwrap_err().page.slug, "os-update-failed");
    let then = vec![(6, "DOWNLOADING", "")];
    let (ended, _) = play(Script { first: (5, "IDLE", ""), then, ..Script::default() }, short());
    assert_eq!(ended.unwrap_err().page.slug, "os-update-stalled");
}

#[test]
fn without_a_bus_the_attempt_is_repeated_later() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    assert_eq!(update(&root, short()).unwrap_err().exit(), 10);
    assert_eq!(pending_update(&root), None);
}
