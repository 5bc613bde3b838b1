//! Local disks: what is formatted, what is kept, what is mounted where.

use super::*;
use crate::config::{DisabledMount, DiskStrategy, ExistingData};
use crate::facts::{Array, Disk, LastRun};

fn disk(number: u32) -> Disk {
    Disk {
        device: format!("/dev/nvme{number}n1"),
        serial: format!("S{number}"),
        size_bytes: 1 << 40,
        signature: None,
        uuid: None,
        mounted_at: None,
    }
}

fn holding(number: u32, signature: &str, uuid: &str) -> Disk {
    Disk { signature: Some(signature.into()), uuid: Some(uuid.into()), ..disk(number) }
}

fn machine(strategy: DiskStrategy, disks: Vec<Disk>) -> (Config, Facts) {
    let (mut config, mut facts) = (fixture::config(), fixture::facts());
    config.instance.local_storage.strategy = Some(strategy);
    facts.machine.instance_store = disks;
    (config, facts)
}

fn programs(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .filter_map(|step| match &step.action {
            Action::Program(program) => Some(program.argv.join(" ")),
            _ => None,
        })
        .collect()
}

/// Words of the disk steps after the programs: what happens in which order.
fn story(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .filter(|step| step.phase == Phase::Run)
        .filter_map(|step| match &step.action {
            Action::File(file) => {
                file.path.strip_prefix("/etc/systemd/system/").map(|n| format!("write {n}"))
            }
            Action::Reload { .. } => Some("reload".into()),
            Action::Unit(unit) if unit.name.ends_with(".mount") => {
                Some(format!("start {}", unit.name))
            }
            Action::Bind(bind) => Some(format!("bind {} for {}", bind.at, bind.owners.join(" "))),
            Action::Link { path, .. } => {
                path.rsplit('/').next().map(|name| format!("enable {name}"))
            }
            _ => None,
        })
        .collect()
}

/// The UUID that a first run gives the file system.
fn made_uuid(plan: &Plan) -> String {
    let mkfs = programs(plan).into_iter().find(|line| line.starts_with("mkfs.xfs")).unwrap();
    mkfs.split("uuid=").nth(1).unwrap().split(' ').next().unwrap().to_owned()
}

#[test]
fn no_strategy_or_no_disk_means_no_step() {
    let (mut config, facts) = machine(DiskStrategy::Raid0, vec![]);
    assert!(programs(&built(&config, &facts)).is_empty());
    let (_, facts) = machine(DiskStrategy::Raid0, vec![disk(1)]);
    config.instance.local_storage.strategy = None;
    assert!(programs(&built(&config, &facts)).is_empty());
}

#[test]
fn an_array_carries_the_big_directories() {
    let (mut config, facts) = machine(DiskStrategy::Raid0, vec![disk(2), disk(1)]);
    config.instance.local_storage.disabled_mounts = vec![DisabledMount::PodLogs];
    let plan = built(&config, &facts);
    let lines = programs(&plan);
    assert!(
        lines[0].starts_with("mdadm --create --run --force --level=0 --name=kubernetes --uuid=")
    );
    assert!(lines[0].ends_with("--raid-devices=2 /dev/md/kubernetes /dev/nvme1n1 /dev/nvme2n1"));
    assert_eq!(lines[1], "mdadm --detail --scan");
    assert!(lines[2].starts_with("mkfs.xfs -f -K -l su=8b -m uuid="));
    let expected = [
        r"write mnt-k8s\x2ddisks-0.mount",
        "write var-lib-kubelet.mount",
        "write var-lib-containerd.mount",
        r"write var-lib-soci\x2dsnapshotter\x2dgrpc.mount",
        "reload",
        r"start mnt-k8s\x2ddisks-0.mount",
        "bind /var/lib/kubelet for kubelet.service",
        "bind /var/lib/containerd for containerd.service",
        "bind /var/lib/soci-snapshotter-grpc for soci-snapshotter.service",
        r"enable mnt-k8s\x2ddisks-0.mount",
        "enable var-lib-kubelet.mount",
        "enable var-lib-containerd.mount",
        r"enable var-lib-soci\x2dsnapshotter\x2dgrpc.mount",
    ];
    assert_eq!(story(&plan), expected);
    let unit = text(&plan, r"/etc/systemd/system/mnt-k8s\x2ddisks-0.mount");
    let uuid = made_uuid(&plan);
    assert!(unit.contains(&format!("[Mount]\nWhat=/dev/disk/by-uuid/{uuid}\nWhere=/mnt/k8s-disks/0\nType=xfs\nOptions=defaults,noatime\n")), "{unit}");
    assert!(unit.ends_with("[Install]\nWantedBy=multi-user.target\n"));
    let bind = text(&plan, "/etc/systemd/system/var-lib-kubelet.mount");
    assert!(bind.contains(
        "What=/mnt/k8s-disks/0/kubelet\nWhere=/var/lib/kubelet\nType=none\nOptions=bind\n"
    ));
}

#[test]
fn the_second_run_finds_its_own_work_whatever_the_rule() {
    for rule in [ExistingData::Keep, ExistingData::Refuse, ExistingData::Wipe] {
        let (mut config, mut facts) = machine(DiskStrategy::Raid0, vec![disk(1)]);
        let first = built(&config, &facts);
        config.instance.local_storage.existing_data = rule;
        facts.machine.arrays = vec![Array {
            device: "/dev/md127".into(),
            name: "kubernetes".into(),
            level: "raid0".into(),
            members: vec!["/dev/nvme1n1".into()],
            signature: Some("xfs".into()),
            uuid: Some(made_uuid(&first)),
            mounted_at: None,
        }];
        let second = built(&config, &facts);
        assert_eq!(programs(&second), ["mdadm --detail --scan"], "{rule:?}");
        assert_eq!(story(&second), story(&first));
        let path = r"/etc/systemd/system/mnt-k8s\x2ddisks-0.mount";
        assert_eq!(text(&second, path), text(&first, path));
    }
}

#[test]
fn fault_85_half_built_arrays_are_mended() {
    let (config, facts) = machine(DiskStrategy::Raid0, vec![disk(1), disk(2)]);
    let create = programs(&built(&config, &facts)).remove(0);
    let uuid = create.split("--uuid=").nth(1).unwrap().split(' ').next().unwrap();
    // mdadm prints the same digits with other separators.
    let printed = uuid.replace('-', ":").to_uppercase();
    let member = |number| holding(number, "linux_raid_member", &printed);
    let (config, facts) = machine(DiskStrategy::Raid0, vec![member(1), member(2)]);
    let plan = built(&config, &facts);
    assert_eq!(
        programs(&plan)[0],
        "mdadm --assemble --run /dev/md/kubernetes /dev/nvme1n1 /dev/nvme2n1"
    );
    let guarded = plan.steps.iter().any(|step| match &step.action {
        Action::Program(program) => {
            program.unless_signature.as_deref() == Some("/dev/md/kubernetes")
        }
        _ => false,
    });
    assert!(guarded, "an assembled array may have a file system");
    let (config, facts) = machine(DiskStrategy::Raid0, vec![member(1), disk(2)]);
    assert!(programs(&built(&config, &facts))[0].starts_with("mdadm --create"));
    let stranger = holding(1, "linux_raid_member", "11111111:22222222:33333333:44444444");
    let (config, facts) = machine(DiskStrategy::Raid0, vec![stranger, disk(2)]);
    let plan = built(&config, &facts);
    assert!(programs(&plan)[0].ends_with("--raid-devices=1 /dev/md/kubernetes /dev/nvme2n1"));
    assert_eq!(slugs(&plan), ["disk-skipped"]);
}

#[test]
fn raid10_needs_four_disks() {
    let (config, facts) = machine(DiskStrategy::Raid10, (1..=3).map(disk).collect());
    assert_eq!(refused(&config, &facts), ["too-few-disks"]);
    let (config, facts) = machine(DiskStrategy::Raid10, (1..=4).map(disk).collect());
    assert!(programs(&built(&config, &facts))[0].contains("--level=10 "));
}

#[test]
fn existing_data_follows_the_rule() {
    let disks = || vec![holding(1, "xfs", "aaaa-1"), holding(2, "ext4", "bbbb-2"), disk(3)];
    let (mut config, facts) = machine(DiskStrategy::Mount, disks());
    let plan = built(&config, &facts);
    assert_eq!(slugs(&plan), ["disk-skipped"]);
    assert_eq!(programs(&plan).len(), 1);
    assert!(
        programs(&plan)[0].starts_with("mkfs.xfs -K ")
            && programs(&plan)[0].ends_with(" /dev/nvme3n1")
    );
    let unit = text(&plan, r"/etc/systemd/system/mnt-k8s\x2ddisks-1.mount");
    assert!(unit.contains("What=/dev/disk/by-uuid/aaaa-1\n"));
    assert!(file(&plan, r"/etc/systemd/system/mnt-k8s\x2ddisks-2.mount").is_none());
    assert!(file(&plan, r"/etc/systemd/system/mnt-k8s\x2ddisks-3.mount").is_some());

    config.instance.local_storage.existing_data = ExistingData::Refuse;
    assert_eq!(refused(&config, &facts), ["disk-has-data", "disk-has-data"]);

    config.instance.local_storage.existing_data = ExistingData::Wipe;
    let forced =
        programs(&built(&config, &facts)).iter().filter(|line| line.contains(" -f ")).count();
    assert_eq!(forced, 2);
}

#[test]
fn a_disk_in_use_is_never_formatted() {
    let mut disk = holding(1, "ext4", "bbbb-2");
    disk.mounted_at = Some("/data".into());
    for strategy in [DiskStrategy::Mount, DiskStrategy::Raid0] {
        let (mut config, facts) = machine(strategy, vec![disk.clone()]);
        config.instance.local_storage.existing_data = ExistingData::Wipe;
        let plan = built(&config, &facts);
        assert_eq!(slugs(&plan), ["disk-skipped"], "{strategy:?}");
        assert!(programs(&plan).is_empty(), "{strategy:?}");
    }
}

#[test]
fn a_disk_keeps_its_index() {
    let (config, mut facts) = machine(DiskStrategy::Mount, vec![disk(1), disk(2), disk(3)]);
    let known = [("S1".to_owned(), 2), ("gone".to_owned(), 1)];
    facts.last_run = Some(LastRun {
        instance_id: facts.instance.id.clone(),
        disk_indexes: known.into(),
        ..LastRun::default()
    });
    let plan = built(&config, &facts);
    let expected =
        [("S1", 2), ("S2", 1), ("S3", 3)].map(|(serial, index)| (serial.to_owned(), index));
    assert_eq!(plan.disk_indexes, expected.into());
}
