//! A virtual machine with a kernel of its own: what namespaces of the host cannot show. QEMU
//! emulates every instruction, since no host of the lab can be counted on to have more.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::network::{Network, TAP};
use crate::lab::must;

/// Both serial lines of the machine are files: the console, and what the machine reports.
const CONSOLE: &str = "console.log";
const REPORT: &str = "report.log";
/// The machine's last line.
pub const END: &str = "END OF REPORT";

/// A running machine. Dropped, it is gone at once, as if its power had failed.
pub struct Vm {
    place: PathBuf,
    child: Child,
}

impl Vm {
    /// Makes a disk of a root file system and boots the kernel that lies in it.
    pub fn boot(
        place: &Path,
        network: &Network,
        root: &Path,
        mac: &str,
        arguments: &str,
    ) -> anyhow::Result<Vm> {
        let disk = place.join("disk.img");
        must(
            Command::new("mke2fs").args(["-q", "-t", "ext4", "-d"]).args([root, &disk]).arg("4G"),
        )?;
        let own = |name: &str| format!("file:{}", place.join(name).display());
        let boot = root.join("boot");
        let drive = format!("file={},if=virtio,format=raw,cache=unsafe", disk.display());
        let child = network
            .in_infra("qemu-system-x86_64")
            .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-m", "3072", "-smp", "2"])
            .args(["-nodefaults", "-no-user-config", "-nographic", "-no-reboot"])
            .args(["-serial", &own(CONSOLE), "-serial", &own(REPORT)])
            .arg("-kernel")
            .arg(begins(&boot, "vmlinuz-")?)
            .arg("-initrd")
            .arg(begins(&boot, "initrd.img-")?)
            .arg("-append")
            .arg(format!("root=/dev/vda rw console=ttyS0 net.ifnames=0 {arguments}"))
            .args(["-drive", &drive, "-device", "virtio-rng-pci"])
            .args(["-netdev", &format!("tap,id=eth,ifname={TAP},script=no,downscript=no")])
            .args(["-device", &format!("virtio-net-pci,netdev=eth,mac={mac}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("starting QEMU")?;
        Ok(Vm { place: place.to_owned(), child })
    }

    /// Waits for the machine's report.
    pub fn report(&mut self, seconds: u64) -> anyhow::Result<String> {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        loop {
            // A line may be cut in the middle of a character while it is being written.
            let bytes = fs::read(self.place.join(REPORT)).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes).replace('\r', "");
            if text.lines().any(|line| line == END) {
                return Ok(text);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the machine ended ({status}): {}", self.console());
            }
            ensure!(Instant::now() < deadline, "no report in {seconds} s: {}", self.console());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// What is known of a machine that does not do as it should.
    pub fn story(&self) -> String {
        let report = fs::read(self.place.join(REPORT)).unwrap_or_default();
        format!("{}\n{}", self.console(), String::from_utf8_lossy(&report))
    }

    fn console(&self) -> String {
        let bytes = fs::read(self.place.join(CONSOLE)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The one file whose name begins so.
fn begins(directory: &Path, prefix: &str) -> anyhow::Result<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path());
        }
    }
    ensure!(found.len() == 1, "{} has {} files {prefix}*", directory.display(), found.len());
    Ok(found.remove(0))
}
