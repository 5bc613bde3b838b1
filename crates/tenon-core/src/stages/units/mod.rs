//! The units of the stages, as data: which a machine needs, and what their files say.
//!
//! The texts stand beside this file, as `systemctl cat` would show them. Only the path of the
//! binary and the drop-ins depend on the target.

use super::machine::{Machine, Role};

/// Where the texts expect the binary.
const BINARY: &str = "/usr/local/bin/tenon";
/// First systemd with `RestartMode=`.
const RESTART_MODE: u32 = 254;

const DIRECT: (&str, &str) = ("10-restart-direct.conf", "[Service]\nRestartMode=direct\n");
/// For the line of status that a oneshot service sends.
const STATUS: (&str, &str) = ("10-status.conf", "[Service]\nNotifyAccess=main\n");
const MASKED: &str = "[Service]\nUMask=0077\n";
/// Gives the service a mount namespace of its own.
const PRIVATE: &str = "[Service]\nUMask=0077\nProtectHome=yes\nPrivateTmp=yes\n";

/// A unit file with its drop-ins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub name: &'static str,
    pub body: String,
    /// None: started by another unit only.
    pub enabled: Option<bool>,
    /// File name and text of each drop-in.
    pub drop_ins: Vec<(&'static str, &'static str)>,
}

/// What the units are rendered for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    pub role: Role,
    /// Major version of systemd.
    pub systemd: u32,
    /// Where the binary lies on the machine.
    pub binary: &'a str,
    pub assets: Assets,
}

/// How assets come to the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assets {
    None,
    Push,
    Pull,
}

impl Assets {
    pub fn of(machine: &Machine) -> Assets {
        match machine.assets.source.as_str() {
            "none" => Assets::None,
            "push" => Assets::Push,
            _ => Assets::Pull,
        }
    }
}

/// What is known about a unit besides its text.
struct Row {
    name: &'static str,
    text: &'static str,
    /// When a machine has it; Some(enabled).
    on: fn(&Target<'_>) -> Option<bool>,
    /// Dependents wait through its retries.
    direct: bool,
    /// May have a mount namespace of its own: mounts made there do not reach the host.
    private: bool,
}

macro_rules! row {
    ($name:literal, $on:expr, direct: $direct:literal, private: $private:literal) => {
        Row { name: $name, text: include_str!($name), on: $on, direct: $direct, private: $private }
    };
}

/// Lanes A and B are on every machine, C on the first master.
const ROWS: &[Row] = &[
    row!("tenon-assets.path", |it| (it.assets == Assets::Push).then_some(true), direct: false, private: false),
    row!("tenon-assets.service", assets_service, direct: true, private: true),
    row!("k8s-node-bootstrap.service", |_| Some(true), direct: true, private: false),
    row!("tenon-runtime-reset.service", |_| Some(true), direct: false, private: false),
    row!("kubelet.service", |_| Some(true), direct: false, private: false),
    row!("tenon-bootstrap.path", |it| first(it, true), direct: false, private: false),
    row!("tenon-bootstrap.service", |it| first(it, false), direct: true, private: true),
    row!("tenon-addons.path", |it| first(it, true), direct: false, private: false),
    row!("tenon-addons.service", |it| first(it, false), direct: false, private: true),
    row!("tenon-cleanup.service", |it| first(it, true), direct: false, private: true),
];

fn first(target: &Target<'_>, enabled: bool) -> Option<bool> {
    (target.role == Role::FirstMaster).then_some(enabled)
}

/// Without assets only the first master runs the stage: it arms the stages after it.
fn assets_service(target: &Target<'_>) -> Option<bool> {
    match target.assets {
        Assets::None => first(target, true),
        Assets::Push => Some(false),
        Assets::Pull => Some(true),
    }
}

/// The units of a machine, in the order in which they take part.
pub fn render(target: &Target<'_>) -> Vec<Unit> {
    let unit = |row: &Row| {
        let enabled = (row.on)(target)?;
        let installable = row.text.contains("\n[Install]\n");
        Some(Unit {
            name: row.name,
            body: row.text.replace(BINARY, target.binary),
            enabled: installable.then_some(enabled),
            drop_ins: drop_ins(row, target.systemd),
        })
    };
    ROWS.iter().filter_map(unit).collect()
}

fn drop_ins(row: &Row, systemd: u32) -> Vec<(&'static str, &'static str)> {
    if !row.text.contains(BINARY) {
        return Vec::new();
    }
    let hardening = if row.private { PRIVATE } else { MASKED };
    let mut list = vec![("10-hardening.conf", hardening), STATUS];
    if row.direct && systemd >= RESTART_MODE {
        list.push(DIRECT);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(role: Role, systemd: u32, assets: Assets) -> Target<'static> {
        Target { role, systemd, binary: "/opt/bin/tenon", assets }
    }

    fn names(role: Role, assets: Assets) -> Vec<(&'static str, Option<bool>)> {
        render(&target(role, 252, assets)).iter().map(|unit| (unit.name, unit.enabled)).collect()
    }

    #[test]
    fn each_role_has_its_lanes() {
        let common = [
            ("k8s-node-bootstrap.service", Some(true)),
            ("tenon-runtime-reset.service", Some(true)),
            ("kubelet.service", Some(true)),
        ];
        assert_eq!(names(Role::Worker, Assets::None), common);
        let first = names(Role::FirstMaster, Assets::Push);
        for row in [
            ("tenon-assets.path", Some(true)),
            ("tenon-assets.service", Some(false)),
            ("tenon-bootstrap.path", Some(true)),
            ("tenon-bootstrap.service", None),
            ("tenon-addons.service", None),
            ("tenon-cleanup.service", Some(true)),
        ] {
            assert!(first.contains(&row), "{row:?} in {first:?}");
        }
        assert!(
            names(Role::FirstMaster, Assets::None).contains(&("tenon-assets.service", Some(true)))
        );
        assert!(
            names(Role::Worker, Assets::Pull)
                .iter()
                .all(|(name, _)| !name.contains("bootstrap.path"))
        );
    }

    #[test]
    fn a_path_and_its_service_share_their_condition() {
        let units = render(&target(Role::FirstMaster, 252, Assets::Push));
        let body = |name: &str| units.iter().find(|unit| unit.name == name).unwrap().body.clone();
        for stage in ["assets", "bootstrap", "addons"] {
            let condition = format!("ConditionPathExists=!/var/lib/tenon/done/{stage}\n");
            for suffix in ["path", "service"] {
                assert!(body(&format!("tenon-{stage}.{suffix}")).contains(&condition), "{stage}");
            }
        }
        assert!(!body("kubelet.service").contains("Requires="));
    }

    #[test]
    fn drop_ins_follow_the_version_and_mounts_reach_the_host() {
        let drop_ins = |name: &str, systemd| {
            let units = render(&target(Role::FirstMaster, systemd, Assets::Pull));
            let unit = units.into_iter().find(|unit| unit.name == name).unwrap();
            unit.drop_ins.iter().map(|(_, text)| *text).collect::<String>()
        };
        assert!(drop_ins("k8s-node-bootstrap.service", 254).contains("RestartMode=direct"));
        assert!(!drop_ins("k8s-node-bootstrap.service", 253).contains("RestartMode"));
        assert!(!drop_ins("k8s-node-bootstrap.service", 252).contains("PrivateTmp"));
        assert!(!drop_ins("tenon-runtime-reset.service", 252).contains("ProtectHome"));
        assert!(drop_ins("tenon-bootstrap.service", 252).contains("PrivateTmp=yes"));
        assert_eq!(drop_ins("kubelet.service", 254), "");
    }

    #[test]
    fn every_stage_unit_stops_at_permanent_exits_and_runs_the_given_binary() {
        for unit in render(&target(Role::FirstMaster, 252, Assets::Push)) {
            assert!(!unit.body.contains(BINARY), "{}", unit.name);
            if unit.body.contains("Restart=on-failure") {
                assert!(unit.body.contains("RestartPreventExitStatus=3 4 6 12"), "{}", unit.name);
            }
        }
    }
}
