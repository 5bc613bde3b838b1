//! What the desk writes, before its real readers.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::ensure;

use super::Workshop;

const CONFIG: &str = "apiVersion: tenon.dev/v1alpha1
kind: MachineConfig
spec:
  role: worker
  cluster: {name: prod, endpoint: \"https://api.prod.example:6443\", kubernetesVersion: v1.34.2}
  bootstrapToken: {token: abcdef.0123456789abcdef}
  assets: {source: push}
  proxy: {https: \"http://proxy.corp:3128\", noProxy: [.corp]}
";
/// Links that must exist after Ignition and `preset-all`, by role.
const LINKS: &[(&str, &[&str])] = &[
    (
        "worker",
        &[
            "multi-user.target.wants/k8s-node-bootstrap.service",
            "kubelet.service.wants/k8s-node-bootstrap.service",
            "multi-user.target.wants/kubelet.service",
            "multi-user.target.wants/tenon-assets.path",
            "containerd.service.requires/tenon-runtime-reset.service",
        ],
    ),
    (
        "first-master",
        &[
            "multi-user.target.wants/tenon-bootstrap.path",
            "multi-user.target.wants/tenon-addons.path",
        ],
    ),
];

fn silent(output: &Output, name: &str) -> anyhow::Result<()> {
    let said =
        String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned();
    ensure!(output.status.success() && said.trim().is_empty(), "{name}: {}\n{said}", output.status);
    Ok(())
}

/// Every role, OS and version of the specification.
pub fn every_role_before_its_readers(workshop: &Workshop) -> anyhow::Result<usize> {
    let place = tempfile::tempdir()?;
    let config = place.path().join("machine.yaml");
    fs::write(&config, CONFIG)?;
    let mut cases = 0;
    for (role, links) in LINKS {
        for os in ["flatcar", "fcos", "generic"] {
            // Ignition of Debian reads up to 3.3.0.
            for (spec, systemd) in [("3.0", "252"), ("3.1", "252"), ("3.2", "254"), ("3.3", "257")]
            {
                let name = format!("{role}-{os}-{spec}");
                let text = render(
                    workshop,
                    &config,
                    &["--role", role, "--os", os, "--spec", spec, "--systemd", systemd],
                )?;
                let path = place.path().join(format!("{name}.ign"));
                fs::write(&path, text)?;
                silent(&Command::new(&workshop.validate).arg(&path).output()?, &name)?;
                cases += 1;
            }
        }
        applied(workshop, place.path(), role, links)?;
        verified(workshop, place.path(), &config, role)?;
        cases += 2;
    }
    Ok(cases)
}

fn render(workshop: &Workshop, config: &Path, options: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = Command::new(&workshop.tenon)
        .args(["-q", "ignition", "render", "-c"])
        .arg(config)
        .args(options)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}

/// Ignition writes the tree; enabling makes the links and no more for units without `[Install]`.
fn applied(workshop: &Workshop, place: &Path, role: &str, links: &[&str]) -> anyhow::Result<()> {
    let root = place.join(format!("root-{role}"));
    fs::create_dir_all(root.join("etc"))?;
    let apply = place.join("ignition-apply");
    if !apply.exists() {
        std::os::unix::fs::symlink(&workshop.ignition, &apply)?;
    }
    let output = Command::new(&apply)
        .args(["--offline", "--root"])
        .arg(&root)
        .arg(place.join(format!("{role}-generic-3.3.ign")))
        .output()?;
    ensure!(output.status.success(), "{role}: {}", String::from_utf8_lossy(&output.stderr));
    let enabled = Command::new("systemctl")
        .arg(format!("--root={}", root.display()))
        .arg("preset-all")
        .output()?;
    ensure!(enabled.status.success(), "{role}: {}", String::from_utf8_lossy(&enabled.stderr));
    let units = root.join("etc/systemd/system");
    for link in links {
        ensure!(units.join(link).symlink_metadata().is_ok(), "{role}: {link} is missing");
    }
    for never in ["tenon-bootstrap.service", "tenon-addons.service", "tenon-assets.service"] {
        let link = units.join("multi-user.target.wants").join(never);
        ensure!(link.symlink_metadata().is_err(), "{role}: {never} is enabled");
    }
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(root.join("etc/tenon/config.yaml"))?.permissions().mode() & 0o777;
    ensure!(mode == 0o600, "the config has mode {mode:o}");
    ensure!(!root.join("etc/kubernetes/kubelet.env").exists(), "the gate is open");
    Ok(())
}

/// systemd's own reader has nothing to say, cycles included.
fn verified(workshop: &Workshop, place: &Path, config: &Path, role: &str) -> anyhow::Result<()> {
    let directory = place.join(format!("units-{role}"));
    let output = Command::new(&workshop.tenon)
        .args(["-q", "units", "render", "--role", role, "-c"])
        .arg(config)
        .arg("--dir")
        .arg(&directory)
        .arg("--binary")
        .arg(&workshop.tenon)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The host has no kubelet; only its path is exchanged.
    let kubelet = directory.join("kubelet.service");
    let text = fs::read_to_string(&kubelet)?.replace("/usr/bin/kubelet", "/bin/true");
    fs::write(&kubelet, text)?;
    let mut verify = Command::new("systemd-analyze");
    verify.arg("--man=no").arg("verify");
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        if path.is_file() {
            verify.arg(path);
        }
    }
    silent(&verify.output()?, &format!("systemd-analyze verify, {role}"))
}
