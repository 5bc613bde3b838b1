//! What of the host an image's build could have changed, and must not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Where the image says which settings of the kernel it wants.
const SETTINGS: &str = "etc/sysctl.d/90-tenon.conf";

pub struct Snapshot {
    settings: BTreeMap<String, String>,
    /// Name and content of everything else.
    rest: Vec<(&'static str, String)>,
}

impl Snapshot {
    /// Takes the host's state. Its firewall is asked with the program of a root, since a host may
    /// have none.
    pub fn take(tools: &Path) -> anyhow::Result<Self> {
        let settings = output(Command::new("sysctl").args(["--all", "--ignore"]))?;
        let pairs = settings.lines().filter_map(|line| line.split_once(" = "));
        let files = ["/etc", "-printf", "%p %y %s %m %U:%G %T@\\n"];
        let rest = vec![
            ("nft", output(Command::new("chroot").arg(tools).args(["nft", "list", "ruleset"]))?),
            ("mounts", fs::read_to_string("/proc/self/mountinfo")?),
            ("modules", fs::read_to_string("/proc/modules").unwrap_or_default()),
            ("hostname", fs::read_to_string("/proc/sys/kernel/hostname")?),
            ("/etc", output(Command::new("find").args(files))?),
        ];
        let settings = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Ok(Snapshot { settings, rest })
    }

    /// Compares the host with what it was, as far as the image at `root` could have meant it:
    /// counters of the kernel move by themselves.
    pub fn must_be_as_it_was(&self, tools: &Path, root: &Path) -> anyhow::Result<()> {
        let now = Snapshot::take(tools)?;
        let wanted = fs::read_to_string(root.join(SETTINGS)).context(SETTINGS)?;
        let keys =
            wanted.lines().filter_map(|line| line.split_once('=')).map(|(key, _)| key.trim());
        for key in keys {
            let (was, is) = (self.settings.get(key), now.settings.get(key));
            ensure!(was == is, "the host's {key} was {was:?} and is {is:?}");
        }
        for ((name, was), (_, is)) in self.rest.iter().zip(&now.rest) {
            ensure!(was == is, "the host's {name} changed from\n{was}\nto\n{is}");
        }
        Ok(())
    }
}

fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
