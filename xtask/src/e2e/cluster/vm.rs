//! An image in a virtual machine: it boots its own kernel, with cgroups of the second version alone,
//! asks the metadata service, joins the control plane and runs a pod. What it then says of itself
//! comes over a serial line (`e2e/vm-report.sh`).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::checks;
use super::control_plane::{ControlPlane, TOKEN};
use super::shape::Shape;
use super::{base64, pod_network};
use crate::checkout;
use crate::e2e::metadata::{Answers, Metadata};
use crate::e2e::network::{INFRA, Network};
use crate::e2e::stage::Stage;
use crate::e2e::vm::Vm;
use crate::lab::KUBERNETES_1_34;

/// Nothing here is owed to the lab: the kernel is the machine's own.
const USER_DATA: &str = "apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: lab
    apiServerEndpoint: https://{endpoint}:6443
    certificateAuthority: {authority}
    cidr: {services}
";

/// The machine's address, which a cloud would give it by DHCP, and its report.
const UNITS: &[(&str, &str, &str)] = &[
    (
        "lab-network.service",
        "sysinit.target",
        "[Unit]\nDefaultDependencies=no\nAfter=systemd-udev-settle.service nftables.service\n\
         Wants=systemd-udev-settle.service\nBefore=network.target\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n\
         ExecStart=/usr/sbin/ip link set lo up\nExecStart=/usr/sbin/ip address add {address}/16 dev eth0\n\
         ExecStart=/usr/sbin/ip link set eth0 up\nExecStart=/usr/sbin/ip route add default via {infra}\n",
    ),
    (
        "lab-report.service",
        "graphical.target",
        "[Unit]\nAfter=tenon-run.service\n\n[Service]\nExecStart=/usr/lib/lab/report\n",
    ),
];

/// Plays the scenario on a copy of an image, to which what belongs to the lab is added.
pub fn run(stage: &Stage, image: &Path) -> anyhow::Result<usize> {
    let shape = Shape::new("1.34", KUBERNETES_1_34.ready(&stage.cache)?).with_patience(8);
    let network = Network::lay_tap(stage)?;
    let mut plane = ControlPlane::start(stage, &network, &shape)?;
    let authority = base64(&fs::read(plane.pki.path("ca.crt"))?);
    let user_data = USER_DATA
        .replace("{endpoint}", shape.endpoint())
        .replace("{services}", shape.services())
        .replace("{authority}", &authority);
    let answers = Answers { user_data: &user_data, ..Answers::default() };
    let _service = Metadata::serve(stage, &network, &answers)?;
    dress(image, &shape)?;

    let place = stage.place.join("vm");
    fs::create_dir(&place)?;
    let arguments = kernel_arguments(image)?;
    let start = Instant::now();
    let mut vm = Vm::boot(&place, &network, image, &shape.instance.mac, &arguments)?;
    checks::becomes_ready(&mut plane, &shape).with_context(|| vm.story())?;
    println!("  emulated boot to Ready: {:.0} s", start.elapsed().as_secs_f64());
    checks::serving_certificate(&mut plane, shape.node())?;
    let cases = checks::of_a_pod(&mut plane, &shape).with_context(|| vm.story())?;
    println!("  the pod runs after {:.0} s", start.elapsed().as_secs_f64());
    let report = vm.report(600)?;
    println!("  the report is there after {:.0} s", start.elapsed().as_secs_f64());
    Ok(cases + 1 + judge(&report)?)
}

/// What the lab adds: the token, a network for pods, the address, the report.
fn dress(image: &Path, shape: &Shape) -> anyhow::Result<()> {
    let write = |path: &str, text: &str, mode: u32| -> anyhow::Result<()> {
        let path = image.join(path);
        fs::create_dir_all(path.parent().context("a path without a directory")?)?;
        fs::write(&path, text)?;
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
    };
    let of_the_lab = |path: &str| fs::read_to_string(checkout().join(path));
    write("etc/cloud/cloud-init.disabled", "", 0o644)?;
    write("etc/lab-token", TOKEN, 0o600)?;
    let provider = "etc/eks/image-credential-provider/ecr-credential-provider";
    if !image.join(provider).exists() {
        write(provider, &of_the_lab(&format!("e2e/image/{provider}"))?, 0o755)?;
    }
    write("usr/bin/aws", &of_the_lab("e2e/image/usr/bin/aws")?, 0o755)?;
    write("usr/lib/lab/report", &of_the_lab("e2e/vm-report.sh")?, 0o755)?;
    write("etc/cni/net.d/10-lab.conflist", &pod_network(shape).to_string(), 0o644)?;
    let address = shape.address()?.to_string();
    for (name, target, text) in UNITS {
        let text = text.replace("{address}", &address).replace("{infra}", INFRA);
        write(&format!("etc/systemd/system/{name}"), &text, 0o644)?;
        let wants = image.join(format!("etc/systemd/system/{target}.wants"));
        fs::create_dir_all(&wants)?;
        symlink(format!("/etc/systemd/system/{name}"), wants.join(name))?;
    }
    Ok(())
}

/// The kernel arguments that the image's boot loader would give; this kernel is started by hand.
fn kernel_arguments(image: &Path) -> anyhow::Result<String> {
    let plan: Value =
        serde_json::from_slice(&fs::read(image.join("usr/lib/tenon/image/plan.json"))?)?;
    let items = plan["items"].as_array().context("a plan without items")?;
    let argument = |item: &Value| {
        let wanted = item["act"] == "kernel-argument" && item["with"]["present"] == true;
        let name = item["key"].as_str().filter(|_| wanted)?;
        Some(match item["with"]["value"].as_str() {
            Some(value) => format!("{name}={value}"),
            None => name.to_owned(),
        })
    };
    Ok(items.iter().filter_map(argument).collect::<Vec<_>>().join(" "))
}

/// Reads the report; gives how many things were looked at.
fn judge(report: &str) -> anyhow::Result<usize> {
    let said = |name: &str| section(report, name);
    for (name, wanted) in [
        ("hierarchy", "cgroup2fs"),
        ("failed", ""),
        ("apparmor", "Y"),
        ("slice", "/runtime.slice/kubelet.service"),
    ] {
        let (text, _) = said(name)?;
        ensure!(text.trim() == wanted, "{name} is {text}");
    }
    let swaps = said("swap")?.0.lines().count();
    ensure!(swaps == 1, "the node swaps: {}", said("swap")?.0);
    let mut looked_at = 5;
    for name in ["verify", "validate", "doctor"] {
        let (text, code) = said(name)?;
        let answer: Value =
            serde_json::from_str(text).with_context(|| format!("{name}: {text}"))?;
        let checks = answer["checks"].as_array().into_iter().flatten();
        let bad: Vec<_> = checks.filter(|check| check["state"] == "fail").collect();
        ensure!(bad.is_empty() && code == 0, "{name} ends with {code}: {bad:#?}\n{answer:#}");
        looked_at += 1;
    }
    Ok(looked_at)
}

/// The text of a section and the exit code of its command.
fn section<'a>(report: &'a str, name: &str) -> anyhow::Result<(&'a str, i32)> {
    let head = format!("== {name}\n");
    let start = report.find(&head).with_context(|| format!("no {name} in {report}"))? + head.len();
    let rest = &report[start..];
    let end = if rest.starts_with("-- ") { 0 } else { rest.find("\n-- ").map_or(0, |at| at + 1) };
    let code = rest[end..].trim_start_matches("-- ").lines().next().unwrap_or_default();
    Ok((&rest[..end], code.trim().parse().with_context(|| format!("the end of {name}: {code}"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_have_a_text_and_a_code() {
        let report = "== failed\n-- 0\n== verify\n{\n}\n-- 1\nEND OF REPORT\n";
        assert_eq!(section(report, "failed").unwrap(), ("", 0));
        assert_eq!(section(report, "verify").unwrap(), ("{\n}\n", 1));
        assert!(section(report, "doctor").is_err());
    }
}
