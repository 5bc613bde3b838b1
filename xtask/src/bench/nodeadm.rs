//! nodeadm's config phase. It writes to absolute paths and asks the kubelet for its version, so it
//! runs in a root of its own with a shell that answers for the kubelet. It wants a bus although it
//! asks nothing on it.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::rows::{Row, Stand, clear, endpoint_variable, kubelet_words, put, row};
use crate::lab;

/// A message bus, started when it is first needed and gone with the bench.
#[derive(Default)]
pub struct Bus(RefCell<Option<Child>>);

impl Bus {
    fn address(&self) -> anyhow::Result<String> {
        let address = format!("unix:abstract=tenon-bench-{}", std::process::id());
        if self.0.borrow().is_none() {
            lab::install("dbus-daemon", "dbus-daemon")?;
            let child = Command::new("dbus-daemon")
                .args(["--session", "--nofork", "--print-address=1", "--address", &address])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .context("starting dbus-daemon")?;
            *self.0.borrow_mut() = Some(child);
            self.listens(&address)?;
        }
        Ok(address)
    }

    /// Waits until the abstract name is taken.
    fn listens(&self, address: &str) -> anyhow::Result<()> {
        let name = address.replace("unix:abstract=", "@");
        let deadline = Instant::now() + Duration::from_secs(10);
        while !fs::read_to_string("/proc/net/unix")?.contains(&name) {
            ensure!(Instant::now() < deadline, "no message bus in 10 s");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        if let Some(child) = self.0.get_mut() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub fn row_of(stand: &Stand, root: &Path, endpoint: &str) -> anyhow::Result<Row> {
    if !nix::unistd::geteuid().is_root() {
        bail!("nodeadm runs as root only");
    }
    let program = lab::NODEADM.place(&lab::cache_directory()?)?.join("nodeadm");
    ensure!(program.exists(), "not built: `cargo xtask lab nodeadm` builds it");
    furnish(root, &program)?;
    let words = ["chroot", &root.display().to_string(), "/nodeadm", "init", "--skip", "run"];
    let mut argv = words.map(str::to_owned).to_vec();
    argv.extend(["-c", "imds://user-data"].map(str::to_owned));
    let mut env = vec![endpoint_variable(endpoint)];
    let bus = stand.bus().address()?;
    let more = [("DBUS_SYSTEM_BUS_ADDRESS", bus.as_str()), ("USER", "root"), ("HOME", "/root")];
    env.extend(more.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let root = root.to_owned();
    Ok(row("nodeadm", argv, env, move || fresh(&root)))
}

/// Everything that does not change from run to run.
fn furnish(root: &Path, program: &Path) -> anyhow::Result<()> {
    clear(root)?;
    fs::create_dir_all(root)?;
    fs::copy(program, root.join("nodeadm"))?;
    let shell = fs::canonicalize("/bin/sh")?;
    let needed = Command::new("ldd").arg(&shell).output().context("starting ldd")?;
    let needed = String::from_utf8_lossy(&needed.stdout).into_owned();
    for library in needed.split_whitespace().filter(|word| word.starts_with('/')) {
        put(root, library.trim_start_matches('/'), &fs::read(library)?)
            .and_then(|path| executable(&path))?;
    }
    put(root, "bin/sh", &fs::read(&shell)?).and_then(|path| executable(&path))?;
    let kubelet = format!("#!/bin/sh\necho {}\n", kubelet_words());
    put(root, "bin/kubelet", kubelet.as_bytes()).and_then(|path| executable(&path))?;
    // Where device files work is not up to us; a file does for a child's standard input.
    put(root, "dev/null", b"")?;
    Ok(())
}

fn executable(path: &Path) -> anyhow::Result<()> {
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

/// A machine that was never bootstrapped.
fn fresh(root: &Path) -> anyhow::Result<()> {
    clear(&root.join("etc"))?;
    clear(&root.join("var"))?;
    put(root, "etc/eks/image-credential-provider/ecr-credential-provider", b"")?;
    fs::create_dir_all(root.join("var/lib/kubelet"))?;
    Ok(())
}
