//! Plans of random machines: no panic, no second line, always the same.

use proptest::prelude::*;

use super::*;
use crate::config::{Cap, DiskStrategy, ExistingData, Flag, MaxPods, MaxPodsMode, OnUnknown};
use crate::facts::Disk;
use crate::max_pods;

prop_compose! {
    fn any_disk()(
        device in "/dev/[a-z]{1,4}",
        serial in "[A-Z0-9]{0,3}",
        signature in prop::option::of("xfs|ext4|linux_raid_member|partition-table"),
        uuid in prop::option::of("[0-9a-f]{1,8}"),
    ) -> Disk {
        Disk { device, serial, size_bytes: 0, signature, uuid, mounted_at: None }
    }
}

prop_compose! {
    fn any_facts()(
        id in "i-[0-9a-f]{8}",
        region in "[a-z]{2}-[a-z]{4}-[0-9]",
        kubelet in "v1[.](29|3[0-6])[.][0-9]",
        containerd in "[12][.][0-9][.][0-9]",
        hostname in "[ -~]{0,8}",
        provider in "/[a-z]{1,4}/[ -~]{1,4}",
        disks in prop::collection::vec(any_disk(), 0..5),
        cpus in 0u32..200,
        memory: u64,
    ) -> Facts {
        let mut facts = fixture::facts();
        facts.instance.id = id;
        facts.instance.region = region;
        facts.machine.kubelet_version = kubelet;
        facts.machine.containerd_version = containerd;
        facts.machine.hostname = hostname;
        facts.machine.credential_provider = Some(provider);
        facts.machine.instance_store = disks;
        facts.machine.online_cpus = cpus;
        facts.machine.online_memory_bytes = memory;
        facts
    }
}

prop_compose! {
    fn any_config()(
        name in "[ -~]{0,8}",
        flags in prop::collection::vec(("--[ -~]{0,8}", any::<bool>()), 0..4),
        label in "[ -~]{0,8}",
        strategy in prop::sample::select(vec![
            None, Some(DiskStrategy::Raid0), Some(DiskStrategy::Raid10), Some(DiskStrategy::Mount),
        ]),
        rule in prop::sample::select(vec![
            ExistingData::Keep, ExistingData::Refuse, ExistingData::Wipe,
        ]),
        toml in "(version = [1-3]\n)?(x = [0-9]\n)?",
        fast: bool,
    ) -> Config {
        let mut config = fixture::config();
        config.cluster.name = name;
        config.kubelet.flags =
            flags.into_iter().map(|(text, verbatim)| Flag { text, verbatim }).collect();
        config.node.labels.insert("k".into(), label);
        config.instance.local_storage.strategy = strategy;
        config.instance.local_storage.existing_data = rule;
        config.containerd.config = toml;
        config.fast_image_pull = fast;
        config
    }
}

prop_compose! {
    fn any_max_pods()(
        value in 1u32..500,
        mode in 0..3,
        prefix_delegation: bool,
        custom_networking: bool,
        max_enis in 0u32..6,
        cap in prop::sample::select(vec![Cap::Auto, Cap::None, Cap::At(50)]),
    ) -> MaxPods {
        let mode = match mode {
            0 => MaxPodsMode::Eni,
            1 => MaxPodsMode::Fixed(value),
            _ => MaxPodsMode::Min(value),
        };
        let on_unknown_instance = OnUnknown::UseDefault;
        MaxPods { mode, prefix_delegation, custom_networking, max_enis, cap, on_unknown_instance }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_machine_is_planned_or_refused(config in any_config(), facts in any_facts()) {
        let outcome = build(&config, &facts, &Options::default());
        match &outcome {
            Err(findings) => {
                prop_assert!(findings.iter().any(|finding| finding.class == Class::Error));
            }
            Ok(plan) => {
                let environment = text(plan, "/etc/eks/kubelet/environment");
                prop_assert_eq!(environment.lines().count(), 1, "{}", environment);
                let mut paths: Vec<_> =
                    plan.steps.iter().filter_map(|step| step.action.written_path()).collect();
                let count = paths.len();
                paths.sort();
                paths.dedup();
                prop_assert_eq!(paths.len(), count, "a path is written twice");
            }
        }
        prop_assert_eq!(outcome, build(&config, &facts, &Options::default()));
    }

    #[test]
    fn plan_and_table_agree_on_the_pod_limit(
        wish in any_max_pods(),
        kind in prop::sample::select(vec!["t3.nano", "m5.large", "m4.xlarge", "p5.48xlarge"]),
    ) {
        let (mut config, mut facts) = (fixture::config(), fixture::facts());
        config.kubelet.max_pods = wish;
        facts.instance.instance_type = kind.into();
        facts.instance.limits = None;
        facts.machine.online_memory_bytes = 1 << 40;
        let planned = build(&config, &facts, &Options::default()).map(|plan| plan.summary.max_pods);
        let computed = max_pods::resolve(&config.kubelet.max_pods, kind, None);
        prop_assert_eq!(planned.ok(), computed.ok().map(|resolved| resolved.pods));
    }
}
