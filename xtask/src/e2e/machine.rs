//! A machine with systemd as process 1 (`e2e/machine.sh`), and its disk, which outlives a reboot.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::network::Network;
use super::stage::Stage;
use crate::checkout;
use crate::lab::{PAUSE, ROOT, must};

/// Starts on every machine of the lab.
const LAB: (&str, &str) = ("sysinit.target", "lab-host.service");

/// Units of the image that start at boot.
const WANTED: &[(&str, &str)] =
    &[("multi-user.target", "tenon-config.service"), ("graphical.target", "tenon-run.service")];

/// What of `e2e/image` stands for the cloud and for a machine.
const OF_THE_LAB: &[&str] =
    &["usr/lib/lab/host", "usr/lib/systemd/system/lab-host.service", "usr/bin/aws"];

/// The state that a machine writes, laid over the lab's root.
pub struct Disk {
    place: PathBuf,
    root: PathBuf,
    name: String,
}

impl Disk {
    /// A node image: Debian, the files of `e2e/image`, the tested binary, the sandbox image.
    pub fn new(stage: &Stage, name: &str) -> anyhow::Result<Self> {
        let disk = Disk::bare(stage, name, ROOT.ready(&stage.cache)?.join("root"), &["."])?;
        for (target, unit) in WANTED {
            disk.want(target, unit)?;
        }
        let upper = disk.upper();
        fs::copy(&stage.tenon, upper.join("usr/bin/tenon"))?;
        let pause = PAUSE.ready(&stage.cache)?.join("pause.tar");
        fs::copy(pause, upper.join("etc/eks/pause.tar"))?;
        fs::create_dir_all(upper.join("opt/cni"))?;
        symlink("/usr/lib/cni", upper.join("opt/cni/bin"))?;
        fs::create_dir_all(upper.join("etc/eks/nodeadm.d"))?;
        Ok(disk)
    }

    /// A node image that brings all that a node needs: the lab adds what stands for the cloud and
    /// for a machine, and nothing else. `root` may be several directories, the upper ones first.
    pub fn of_image(stage: &Stage, name: &str, root: PathBuf) -> anyhow::Result<Self> {
        Disk::bare(stage, name, root, OF_THE_LAB)
    }

    /// A disk with these files of `e2e/image` and the unit that every machine starts.
    fn bare(stage: &Stage, name: &str, root: PathBuf, files: &[&str]) -> anyhow::Result<Self> {
        let id = stage.place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let disk = Disk {
            place: stage.place.join(name),
            root,
            name: format!("{}-{name}", id.trim_start_matches("run-")),
        };
        fs::create_dir_all(disk.upper())?;
        let mut copy = Command::new("cp");
        copy.current_dir(checkout().join("e2e/image"));
        copy.args(["-r", "--parents", "--preserve=mode"]).args(files);
        must(copy.arg(disk.upper()))?;
        disk.want(LAB.0, LAB.1)?;
        Ok(disk)
    }

    fn want(&self, target: &str, unit: &str) -> anyhow::Result<()> {
        let wants = self.upper().join(format!("etc/systemd/system/{target}.wants"));
        fs::create_dir_all(&wants)?;
        Ok(symlink(format!("/usr/lib/systemd/system/{unit}"), wants.join(unit))?)
    }

    fn upper(&self) -> PathBuf {
        self.place.join("upper")
    }

    /// Writes a file before the machine boots.
    pub fn write(&self, path: &str, text: &str) -> anyhow::Result<()> {
        let path = self.upper().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// Writes a program before the machine boots.
    pub fn program(&self, path: &str, text: &str) -> anyhow::Result<()> {
        self.write(path, text)?;
        Ok(fs::set_permissions(self.upper().join(path), fs::Permissions::from_mode(0o755))?)
    }

    /// Removes a file before the machine boots.
    pub fn remove(&self, path: &str) -> anyhow::Result<()> {
        fs::remove_file(self.upper().join(path)).with_context(|| format!("removing {path}"))
    }

    /// Gives back the space of a machine that is gone.
    pub fn wipe(self) -> anyhow::Result<()> {
        fs::remove_dir_all(self.upper()).context("removing the disk of a machine")
    }

    /// Where a file of the machine lies before it boots.
    pub fn path(&self, path: &str) -> PathBuf {
        self.upper().join(path)
    }

    /// Takes a program from the host's side.
    pub fn install(&self, program: &Path, path: &str) -> anyhow::Result<()> {
        let to = self.upper().join(path);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(program, &to).with_context(|| format!("copying {}", program.display()))?;
        Ok(())
    }
}

/// A running machine. Dropped, it is gone at once, as if its power had failed.
pub struct Machine<'a> {
    disk: &'a Disk,
    guard: Child,
    init: String,
}

impl<'a> Machine<'a> {
    /// Boots and returns as soon as process 1 is there and where it belongs.
    pub fn boot(disk: &'a Disk, network: &Network) -> anyhow::Result<Self> {
        let console = File::options()
            .create(true)
            .append(true)
            .open(disk.place.join("console.log"))
            .context("opening the console")?;
        let guard = Command::new(checkout().join("e2e/machine.sh"))
            .arg(&disk.name)
            .args([&disk.place, &disk.root, &network.node])
            .stdin(Stdio::null())
            .stdout(console.try_clone()?)
            .stderr(console)
            .spawn()
            .context("starting e2e/machine.sh")?;
        let mut machine = Machine { disk, guard, init: String::new() };
        machine.init = machine.find_init()?;
        machine.must_be_apart()?;
        Ok(machine)
    }

    fn find_init(&mut self) -> anyhow::Result<String> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(init) = self.init_now() {
                return Ok(init);
            }
            if let Some(status) = self.guard.try_wait()? {
                bail!("the machine ended at once ({status}): {}", self.console());
            }
            ensure!(Instant::now() < deadline, "no process 1 in 30 s: {}", self.console());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The child of nspawn that calls itself systemd.
    fn init_now(&self) -> Option<String> {
        let nspawn = fs::read_to_string(self.disk.place.join("nspawn")).ok()?;
        let nspawn = nspawn.trim();
        let children = fs::read_to_string(format!("/proc/{nspawn}/task/{nspawn}/children")).ok()?;
        let is_init = |pid: &&str| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "systemd\n")
        };
        children.split_whitespace().find(is_init).map(str::to_owned)
    }

    /// A manager outside its own cgroup would collect the host's processes.
    fn must_be_apart(&self) -> anyhow::Result<()> {
        let name = format!("/tenon-{}", self.disk.name);
        let place = fs::read_to_string(format!("/proc/{}/cgroup", self.init))?;
        let stray = place.lines().find(|line| !line.contains(&name));
        ensure!(stray.is_none(), "process 1 is in the host's cgroup: {stray:?}");
        Ok(())
    }

    pub fn console(&self) -> String {
        fs::read_to_string(self.disk.place.join("console.log")).unwrap_or_default()
    }

    /// Runs a command inside, for two minutes at most.
    pub fn run(&self, words: &[&str]) -> anyhow::Result<Output> {
        self.run_within(120, words)
    }

    /// Runs a command inside, for so many seconds at most.
    pub fn run_within(&self, seconds: u64, words: &[&str]) -> anyhow::Result<Output> {
        Command::new("timeout")
            .args([&seconds.to_string(), "nsenter", "--target", &self.init, "--all", "env", "-i"])
            .args(["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TERM=dumb"])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("running {words:?} in the machine"))
    }

    /// Runs a command inside that must succeed, and gives what it printed.
    pub fn must(&self, words: &[&str]) -> anyhow::Result<String> {
        let output = self.run(words)?;
        ensure!(output.status.success(), "{words:?}: {}\n{}", output.status, text(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A property of a unit.
    pub fn property(&self, unit: &str, name: &str) -> anyhow::Result<String> {
        let shown = self.must(&["systemctl", "show", "--value", "--property", name, unit])?;
        Ok(shown.trim().to_owned())
    }

    /// Waits until the boot is over; every unit must have done its work.
    pub fn settled(&self) -> anyhow::Result<()> {
        let state = self.wait_for_boot()?;
        if state != "running" {
            let failed = self.must(&["systemctl", "--failed", "--plain", "--no-legend"])?;
            let names = failed.lines().filter_map(|line| line.split_whitespace().next());
            let units = names.flat_map(|name| ["-u", name]);
            let words = ["journalctl", "--no-pager", "-n", "60"].into_iter().chain(units);
            let story = self.must(&words.collect::<Vec<_>>())?;
            bail!("the machine is {state}: {failed}\n{story}");
        }
        Ok(())
    }

    /// Waits until the boot is over and gives the state of the system.
    pub fn wait_for_boot(&self) -> anyhow::Result<String> {
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            // Before the manager listens there is nobody to ask.
            let output = self.run(&["systemctl", "is-system-running", "--wait"])?;
            let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if ["running", "degraded"].contains(&state.as_str()) {
                return Ok(state);
            }
            ensure!(Instant::now() < deadline, "no boot in 120 s: {state} {}", self.console());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Shuts down as a power button does, and waits.
    pub fn power_off(mut self) -> anyhow::Result<()> {
        must(Command::new("kill").args(["-s", "RTMIN+4", &self.init]))?;
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.guard.try_wait()?.is_none() {
            ensure!(Instant::now() < deadline, "no power off in 60 s: {}", self.console());
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        if let Ok(None) = self.guard.try_wait() {
            // Nobody drops a machine that is well: its story is kept for the reader.
            if let Ok(journal) = self.run(&["journalctl", "--no-pager", "--lines", "1000"]) {
                let _ = fs::write(self.disk.place.join("journal.log"), text(&journal));
            }
            let guard = self.guard.id().to_string();
            // What it does not take with it goes with the stage.
            let _ = Command::new("kill").args(["-s", "TERM", &guard]).output();
            let _ = self.guard.wait();
        }
    }
}

/// Both streams of a command.
pub fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat()).into()
}
