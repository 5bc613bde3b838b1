//! A boot to test with: an EC2 instance with cloud-init, two runs of Tenon and one image pull.

use serde_json::json;

use super::{Boot, Sources, Stamps, UnitTimes};

/// Wall clock at 0 of the monotonic one: 2026-11-15 00:00:10, as the machine first believes.
const WALL_US: i64 = 1_794_700_810_000_000;

fn entry(at_ms: i64, unit: &str, message: &str) -> String {
    stepped(at_ms, 0, unit, message)
}

fn stepped(at_ms: i64, by_us: i64, unit: &str, message: &str) -> String {
    let at = at_ms * 1000;
    let line = json!({
        "__MONOTONIC_TIMESTAMP": at.to_string(),
        "__REALTIME_TIMESTAMP": (WALL_US + by_us + at).to_string(),
        "_SYSTEMD_UNIT": unit,
        "MESSAGE": message,
    });
    format!("{line}\n")
}

fn unit(name: &str, begin_ms: i64, end_ms: i64, after: &[&str]) -> UnitTimes {
    UnitTimes {
        name: name.to_owned(),
        begin_us: begin_ms * 1000,
        end_us: end_ms * 1000,
        after: after.iter().map(ToString::to_string).collect(),
    }
}

/// What was gathered on that node.
pub(super) fn sources() -> Sources {
    let config = json!({
        "beginUs": 4_010_000, "node": "", "instanceType": "", "launched": "2026-11-15T00:00:02Z",
        "spans": [
            {"name": "metadata", "beginUs": 0, "lengthUs": 3000, "note": "5 requests, 0 retries"},
            {"name": "write files", "beginUs": 4000, "lengthUs": 6000, "note": ""}],
        "started": [],
    });
    let run = json!({
        "beginUs": 7_999_000, "node": "ip-10-0-0-10.ec2.internal", "instanceType": "m5.large",
        "spans": [
            {"name": "metadata", "beginUs": 0, "lengthUs": 2000, "note": ""},
            {"name": "start daemons", "beginUs": 3000, "lengthUs": 500_000, "note": ""}],
        "started": ["containerd.service", "kubelet.service"],
    });
    let journal = [
        entry(4030, "tenon-config.service", &format!(" INFO tenon.phases/1 {config}")),
        entry(8600, "kubelet.service", "I1115 server.go:1] \"Kubelet version\""),
        entry(8700, "tenon-run.service", &format!(" INFO tenon.phases/1 {run}")),
        entry(9000, "kubelet.service", "\"Successfully registered node\" node=\"ip-10-0-0-10\""),
        entry(9100, "containerd.service", r#"level=info msg="PullImage \"cni:v1\"""#),
        stepped(9200, 2_000_000, "other.service", "clock was set"),
        stepped(
            9900,
            2_000_000,
            "containerd.service",
            r#"level=info msg="PullImage \"cni:v1\" returns image reference \"sha256:1\"""#,
        ),
        "not json\n".to_owned(),
        stepped(
            10_000,
            2_000_000,
            "kubelet.service",
            "\"Recording event message for node\" node=\"n\" event=\"NodeReady\"",
        ),
    ];
    Sources {
        stamps: Stamps {
            firmware_us: 1_500_000,
            loader_us: 500_000,
            own_kernel: true,
            initrd_us: 700_000,
            userspace_us: 1_700_000,
            units_loaded_us: 1_900_000,
            finish_us: 9_500_000,
        },
        units: vec![
            unit("network.target", 3900, 3900, &["networkd.service"]),
            unit("networkd.service", 2000, 3900, &[]),
            unit("tenon-config.service", 4000, 4050, &["network.target"]),
            unit("cloud-final.service", 4050, 7950, &["network.target", "tenon-config.service"]),
            unit("tenon-run.service", 8000, 8550, &["cloud-final.service", "tenon-config.service"]),
            unit("containerd.service", 8100, 8300, &["network.target", "runtime.slice"]),
            unit("runtime.slice", 8099, 8099, &[]),
            unit("kubelet.service", 8400, 8410, &["containerd.service"]),
            unit("later.service", 60_000, 61_000, &[]),
            unit("never.service", 0, 0, &[]),
        ],
        journal: journal.concat().into_bytes(),
        notes: Vec::new(),
    }
}

pub(super) fn boot() -> Boot {
    Boot::of(&sources())
}
