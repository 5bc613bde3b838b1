use proptest::prelude::*;

use super::*;
use crate::config::{Cap, MaxPods};
use crate::plan::reserved;

fn wish() -> MaxPods {
    MaxPods::default()
}

fn pods(wish: &MaxPods, name: &str) -> u32 {
    resolve(wish, name, None).unwrap().pods
}

fn question() -> Question {
    Question::from(&wish())
}

fn ask(question: &Question, name: &str) -> Result<u32, Problem> {
    answer(question, &Subject::find(name, &[], None)).map(|resolved| resolved.pods)
}

#[test]
fn the_table_of_the_contract() {
    for (name, plain, prefix, custom, both, two_enis) in [
        ("t3.nano", 4, 34, 3, 18, 4),
        ("m5.large", 29, 110, 20, 110, 20),
        ("m5.xlarge", 58, 110, 44, 110, 30),
        ("c5.4xlarge", 234, 110, 205, 110, 60),
        ("m5.24xlarge", 737, 250, 688, 250, 100),
        ("p5.48xlarge", 100, 250, 51, 250, 100),
    ] {
        let with = |prefix_delegation, custom_networking, max_enis| {
            pods(&MaxPods { prefix_delegation, custom_networking, max_enis, ..wish() }, name)
        };
        assert_eq!(with(false, false, 0), plain, "{name}");
        assert_eq!(with(true, false, 0), prefix, "{name} prefix");
        assert_eq!(with(false, true, 0), custom, "{name} custom");
        assert_eq!(with(true, true, 0), both, "{name} custom and prefix");
        assert_eq!(with(false, false, 2), two_enis, "{name} maxEnis 2");
    }
    let uncapped = MaxPods { prefix_delegation: true, cap: Cap::None, ..wish() };
    assert_eq!(pods(&uncapped, "m5.large"), 434);
    assert_eq!(pods(&MaxPods { custom_networking: true, ..uncapped }, "m5.large"), 290);
}

/// Type, terms, then plain, custom, prefix uncapped, recommended, prefix, memory at plain and
/// at recommended, CPU.
type Worked = (&'static str, [u32; 3], u64, [u32; 2], [Option<u32>; 3], [u64; 2], u32);

#[test]
fn the_worked_examples() {
    let rows: [Worked; 10] = [
        ("t3.nano", [2, 2, 2], 512, [4, 3], [Some(34), Some(4), Some(34)], [299, 299], 70),
        ("t3.medium", [3, 6, 2], 4096, [17, 12], [Some(242), Some(17), Some(110)], [442, 442], 70),
        ("m5.large", [3, 10, 2], 8192, [29, 20], [Some(434), Some(29), Some(110)], [574, 574], 70),
        ("m4.xlarge", [4, 15, 4], 16384, [58, 44], [None, Some(58), None], [893, 893], 80),
        (
            "m5.2xlarge",
            [4, 15, 8],
            32768,
            [58, 44],
            [Some(898), Some(58), Some(110)],
            [893, 893],
            90,
        ),
        (
            "m5.8xlarge",
            [8, 30, 32],
            131_072,
            [234, 205],
            [Some(3714), Some(234), Some(250)],
            [2829, 2829],
            150,
        ),
        (
            "m5.24xlarge",
            [15, 50, 96],
            393_216,
            [737, 688],
            [Some(11762), Some(250), Some(250)],
            [8362, 3005],
            310,
        ),
        (
            "m5.metal",
            [15, 50, 96],
            393_216,
            [737, 688],
            [Some(11762), Some(250), Some(250)],
            [8362, 3005],
            310,
        ),
        (
            "c6in.32xlarge",
            [8, 50, 128],
            262_144,
            [394, 345],
            [Some(6274), Some(250), Some(250)],
            [4589, 3005],
            390,
        ),
        (
            "p5.48xlarge",
            [2, 50, 192],
            2_097_152,
            [100, 51],
            [Some(1570), Some(100), Some(250)],
            [1355, 1355],
            550,
        ),
    ];
    for (name, terms, memory, [plain, custom], others, reserved_mib, cpu) in rows {
        let row = find(name).unwrap();
        assert_eq!([row.enis, row.ipv4_per_eni, row.vcpu], terms, "{name}");
        assert_eq!(row.memory_mib, memory, "{name}");
        let ask_with = |prefix, custom_networking, cap| {
            let network = Network { prefix, custom_networking, ..Network::default() };
            ask(&Question { network, cap, ..question() }, name)
        };
        assert_eq!(ask_with(Prefix::Off, false, CapRule::Auto), Ok(plain), "{name}");
        assert_eq!(ask_with(Prefix::Off, true, CapRule::Auto), Ok(custom), "{name}");
        let recommended = ask_with(Prefix::Off, false, CapRule::Always).ok();
        let answers = [
            ask_with(Prefix::On, false, CapRule::None).ok(),
            recommended,
            ask_with(Prefix::On, false, CapRule::Auto).ok(),
        ];
        assert_eq!(answers, others, "{name}");
        let memory = [plain, recommended.unwrap()].map(reserved::memory_mib);
        assert_eq!(memory, reserved_mib, "{name}");
        assert_eq!(reserved::cpu_millis(row.vcpu), cpu, "{name}");
    }
}

#[test]
fn modes_bend_the_limit() {
    for (mode, expected) in [
        (MaxPodsMode::Eni, 58),
        (MaxPodsMode::Fixed(20), 20),
        (MaxPodsMode::Fixed(500), 500),
        (MaxPodsMode::Min(20), 20),
        (MaxPodsMode::Min(500), 58),
        (MaxPodsMode::Expression { text: "max_pods * 2 / 3".into(), lenient: false }, 38),
        (MaxPodsMode::Expression { text: "min(40, max_pods)".into(), lenient: false }, 40),
    ] {
        assert_eq!(
            pods(&MaxPods { mode: mode.clone(), ..wish() }, "m5.xlarge"),
            expected,
            "{mode:?}"
        );
    }
    assert_eq!(pods(&MaxPods { cap: Cap::At(30), ..wish() }, "m5.xlarge"), 30);
}

#[test]
fn a_bad_expression_stops_us_and_warns_the_compatible() {
    let expression = |lenient| MaxPods {
        mode: MaxPodsMode::Expression { text: "max_pods / 0".into(), lenient },
        ..wish()
    };
    let problem = resolve(&expression(false), "m5.xlarge", None).unwrap_err();
    assert_eq!(problem.page.code, "TN03363");
    assert!(problem.causes[0].contains("division by zero"), "{problem:?}");
    let resolved = resolve(&expression(true), "m5.xlarge", None).unwrap();
    assert_eq!((resolved.pods, resolved.warnings.len()), (58, 1));
    let ours = MaxPodsMode::Expression { text: "min(1, 2)".into(), lenient: true };
    let resolved = resolve(&MaxPods { mode: ours, ..wish() }, "m5.xlarge", None).unwrap();
    assert_eq!((resolved.pods, resolved.warnings.len()), (58, 1));
}

#[test]
fn prefixes_need_the_machine_and_the_cni() {
    let with = |name, prefix, version: &str, metal| {
        let cni = Cni::Vpc(CniVersion::parse(version));
        let network = Network { cni, prefix, metal, ..Network::default() };
        ask(&Question { network, ..question() }, name).map_err(|problem| problem.page.code)
    };
    use MetalPrefix::{Allow, Deny};
    for (name, prefix, version, metal, expected) in [
        ("m5.large", Prefix::On, "", Allow, Ok(110)),
        ("m5.large", Prefix::On, "1.9.0", Allow, Ok(110)),
        ("m5.large", Prefix::On, "1.8.9", Allow, Err("TN03361")),
        ("m5.large", Prefix::Auto, "1.8.9", Allow, Ok(29)),
        ("m5.metal", Prefix::On, "1.11.0", Allow, Ok(250)),
        ("m5.metal", Prefix::On, "1.10.4", Allow, Err("TN03361")),
        ("m5.metal", Prefix::On, "", Deny, Err("TN03361")),
        ("m5.metal", Prefix::Auto, "", Deny, Ok(737)),
        ("m4.xlarge", Prefix::On, "", Allow, Err("TN03361")),
        ("m4.xlarge", Prefix::Auto, "", Allow, Ok(58)),
    ] {
        let answer = with(name, prefix, version, metal);
        assert_eq!(answer, expected, "{name} {prefix:?} {version} {metal:?}");
    }
}

#[test]
fn ipv6_is_bound_by_the_cap_alone() {
    let with = |name, version: &str, cap| {
        let cni = Cni::Vpc(CniVersion::parse(version));
        let network = Network { cni, ip_family: IpFamily::Ipv6, ..Network::default() };
        ask(&Question { network, cap, ..question() }, name).map_err(|problem| problem.page.code)
    };
    assert_eq!(with("m5.large", "", CapRule::Auto), Ok(110));
    assert_eq!(with("t3.nano", "", CapRule::Auto), Ok(110));
    assert_eq!(with("m5.24xlarge", "", CapRule::Always), Ok(250));
    assert_eq!(with("m5.large", "", CapRule::None), Ok(434));
    assert_eq!(with("m5.large", "1.9.5", CapRule::Auto), Err("TN03362"));
    assert_eq!(with("m4.xlarge", "", CapRule::Auto), Err("TN03362"));
}

#[test]
fn another_cni_counts_no_addresses() {
    let network = Network { cni: Cni::Other, ..Network::default() };
    for (name, cap, expected) in [
        ("t3.nano", CapRule::Auto, 110),
        ("m5.24xlarge", CapRule::None, 250),
        ("m5.24xlarge", CapRule::At(60), 60),
    ] {
        assert_eq!(ask(&Question { network, cap, ..question() }, name), Ok(expected), "{name}");
    }
}

#[test]
fn unknown_types_are_never_guessed_in_silence() {
    let resolved = resolve(&wish(), "m5.larg", None).unwrap();
    assert_eq!((resolved.pods, resolved.known, resolved.std), (110, false, None));
    let warning = &resolved.warnings[0];
    assert_eq!(warning.page.code, "TN03360");
    assert!(warning.details[0].contains("m5.large, "), "{warning:?}");

    let refuse = MaxPods { on_unknown_instance: OnUnknown::Refuse, ..wish() };
    assert_eq!(resolve(&refuse, "m5.larg", None).unwrap_err().exit(), 3);
    let fixed = MaxPods { mode: MaxPodsMode::Fixed(42), ..refuse };
    let resolved = resolve(&fixed, "m5.larg", None).unwrap();
    assert_eq!((resolved.pods, resolved.warnings.len()), (42, 0));

    let limits = InstanceLimits { default_enis: 4, ipv4_per_eni: 15, vcpu: 4 };
    let resolved = resolve(&wish(), "x99.large", Some(limits)).unwrap();
    assert_eq!((resolved.pods, resolved.known, resolved.source.kind), (58, true, "facts"));
    assert!(resolved.warnings.is_empty());
}

#[test]
fn the_embedded_table_comes_before_the_facts() {
    let limits = InstanceLimits { default_enis: 1, ipv4_per_eni: 2, vcpu: 1 };
    assert_eq!(resolve(&wish(), "m5.large", Some(limits)).unwrap().pods, 29);
}

#[test]
fn no_platform_is_no_reason_to_warn() {
    let resolved = resolve(&wish(), "", None).unwrap();
    assert_eq!((resolved.pods, resolved.known, resolved.warnings.len()), (110, true, 0));
    let min = MaxPods { mode: MaxPodsMode::Min(64), ..wish() };
    assert_eq!(pods(&min, ""), 64);
    let text = "max_pods".to_owned();
    let expression = MaxPods { mode: MaxPodsMode::Expression { text, lenient: false }, ..wish() };
    assert_eq!(resolve(&expression, "", None).unwrap().warnings[0].page.code, "TN03368");
}

#[test]
fn no_interface_left_is_a_warning() {
    let custom = MaxPods { custom_networking: true, max_enis: 1, ..wish() };
    let resolved = resolve(&custom, "m5.large", None).unwrap();
    assert_eq!((resolved.pods, resolved.warnings[0].page.code), (2, "TN03365"));
}

#[test]
fn disputed_rows_say_so() {
    for (name, ours, older) in [
        ("i7ie.48xlarge", 394, "737"),
        ("i7ie.metal-48xl", 394, "737"),
        ("i8ge.48xlarge", 590, "1178"),
        ("i8ge.metal-48xl", 590, "1178"),
    ] {
        let resolved = resolve(&wish(), name, None).unwrap();
        assert_eq!(resolved.pods, ours, "{name}");
        assert!(resolved.notes.iter().any(|note| note.contains(older)), "{name}");
    }
}

#[test]
fn the_table_is_sorted_whole_and_within_budget() {
    let table = Table::embedded();
    let head = table.head();
    let count = table.rows().count();
    assert_eq!(count, table.rows_text().lines().count(), "every line is a row");
    assert_eq!(head.types, count.to_string());
    assert!(count >= 1400, "{count}");
    let names: Vec<_> = table.rows().map(|row| row.name).collect();
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(head.rows_sha256, crate::hex::sha256(table.rows_text().as_bytes()));
    assert!(table.rows_text().len() < 128 * 1024);
    assert!(!head.date.is_empty() && !head.source.is_empty());
}

#[test]
fn rows_of_every_kind_are_read() {
    let p5 = find("p5.48xlarge").unwrap();
    let gpu = p5.accelerators().next().unwrap();
    assert_eq!((gpu.kind, gpu.count, gpu.model), (AcceleratorKind::Nvidia, 8, "H100"));
    assert_eq!((gpu.memory_mib, p5.cards, p5.efa, p5.enis_total), (81920, 32, 32, 64));
    let disks = p5.disks().next().unwrap();
    assert_eq!((disks.count, disks.size_gb, disks.kind), (8, 3800, DiskKind::Nvme));
    let neuron: Vec<_> = find("inf1.2xlarge").unwrap().accelerators().collect();
    assert_eq!(neuron.len(), 1, "listed twice by the API, once here");
    assert_eq!((neuron[0].kind, neuron[0].cores), (AcceleratorKind::Neuron, 4));
    assert_eq!(find("mac1.metal").unwrap().arch, Arch::Mac);
    assert_eq!(find("m4.xlarge").unwrap().virt, Virt::Xen);
    assert_eq!(find("c1.medium").unwrap().ipv6_per_eni, 0);
    assert_eq!(find("d2.xlarge").unwrap().disks().next().unwrap().kind, DiskKind::Hdd);
    assert_eq!(find("p3.2xlarge").unwrap().origin, Origin::Overlay);
    assert_eq!(find("m7g.metal").unwrap().arch, Arch::Arm64);
    assert!(find("g4ad.xlarge").unwrap().has_gpu() && !find("inf1.2xlarge").unwrap().has_gpu());
}

#[test]
fn a_brought_table_is_checked_whole() {
    const GOOD: &str = "# tenon-instances 1\n# date 2027-01-01\nx9.large\t3\t10\t10\t2\t4096\tx\tn\t1\t3\t0\t-\t-\t-\n";
    let table = Table::parse(GOOD).unwrap();
    let tables = [table];
    let subject = Subject::find("x9.large", &tables, None);
    let resolved = answer(&question(), &subject).unwrap();
    assert_eq!(
        (resolved.pods, resolved.source.kind, resolved.source.date),
        (29, "file", "2027-01-01")
    );
    let row = GOOD.lines().last().unwrap();
    for (text, line) in [
        (GOOD.replace("x9.large", "X9"), 3),
        (GOOD.replace("\t10\t10", "\tten\t10"), 3),
        (GOOD.replace("\t-\t-\t-", "\t-\t-"), 3),
        (GOOD.replace("\t-\t-\t-", "\tz1:T4:1\t-\t-"), 3),
        (GOOD.replace("\t-\t-\t-", "\t-\t9y9\t-"), 3),
        (GOOD.replace("\t-\t-\t-", "\t-\t-\t-\t-"), 3),
        (format!("{GOOD}{row}\n"), 4),
        (format!("{GOOD}# late\n"), 4),
        ("\n".to_owned(), 1),
    ] {
        assert_eq!(Table::parse(&text).unwrap_err().line, line, "{text}");
    }
}

#[test]
fn every_name_is_found_and_no_other() {
    let table = Table::embedded();
    for row in table.rows() {
        assert_eq!(table.find(row.name), Some(row));
        assert_eq!(table.find(&format!("{}x", row.name)), None);
    }
    for name in ["", "a", "zzz.large", "m5", "m5.", "m5.large\t3"] {
        assert_eq!(find(name), None, "{name}");
    }
}

/// Every row through every mode: no panic, one answer, JSON that its schema allows.
#[test]
fn every_row_through_every_question() {
    let caps = [CapRule::Auto, CapRule::None, CapRule::At(40), CapRule::Always];
    for row in Table::embedded().rows() {
        let ask_with = |prefix, custom_networking, max_enis, cap| {
            let network = Network { prefix, custom_networking, max_enis, ..Network::default() };
            ask(&Question { network, cap, ..question() }, row.name)
        };
        for cap in caps {
            for custom in [false, true] {
                let all = ask_with(Prefix::Off, custom, 0, cap).unwrap();
                let by_limit: Vec<u32> = (1..=row.enis)
                    .map(|max| ask_with(Prefix::Off, custom, max, cap).unwrap())
                    .collect();
                assert!(by_limit.is_sorted(), "{} {cap:?}", row.name);
                assert_eq!(by_limit.last().copied().unwrap_or(all), all, "{}", row.name);
                if let Ok(prefixed) = ask_with(Prefix::On, custom, 0, CapRule::None) {
                    assert!(prefixed >= ask_with(Prefix::Off, custom, 0, CapRule::None).unwrap());
                }
            }
        }
        let off = |cap| ask_with(Prefix::Auto, false, 0, cap).unwrap();
        assert!(off(CapRule::Always) <= off(CapRule::Auto), "{}", row.name);
        assert!(off(CapRule::Auto) <= off(CapRule::None), "{}", row.name);
        let plain = ask_with(Prefix::Off, false, 0, CapRule::None).unwrap();
        assert!(reserved::memory_mib(plain) <= row.memory_mib, "{}", row.name);
    }
}

#[test]
fn only_the_nano_types_reserve_more_than_half() {
    let above: Vec<_> = Table::embedded()
        .rows()
        .filter(|row| {
            let mib = reserved::memory_mib(plain(row.enis, row.ipv4_per_eni));
            reserved::share(mib, row.memory_mib) != reserved::Share::Fine
        })
        .map(|row| row.name)
        .collect();
    assert_eq!(above, ["t2.nano", "t3.nano", "t3a.nano", "t4g.nano", "t8i.nano"]);
}

/// A schema of the few words that ours uses, so that no crate is needed to judge it.
fn allowed(schema: &serde_json::Value, value: &serde_json::Value) -> bool {
    if let Some(list) = schema["enum"].as_array() {
        return list.contains(value);
    }
    let name = match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "boolean",
        serde_json::Value::Number(_) => "integer",
        serde_json::Value::String(_) => "string",
        serde_json::Value::Array(_) => "array",
        serde_json::Value::Object(_) => "object",
    };
    let kind = &schema["type"];
    let kind_fits = kind == name || kind.as_array().is_some_and(|list| list.contains(&name.into()));
    let inside = match value {
        serde_json::Value::Array(items) => items.iter().all(|item| allowed(&schema["items"], item)),
        serde_json::Value::Object(fields) => {
            let keys: Vec<_> = fields.keys().cloned().collect();
            let mut required: Vec<String> =
                serde_json::from_value(schema["required"].clone()).unwrap();
            required.sort();
            keys == required
                && fields.iter().all(|(key, field)| allowed(&schema["properties"][key], field))
        }
        _ => true,
    };
    kind_fits && inside
}

#[test]
fn the_json_of_every_row_fits_its_schema() {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    let schema = &schema["$defs"]["answer"];
    let judge = |resolved: Resolved<'_>| {
        let value = serde_json::from_str(&json(&resolved)).unwrap();
        assert!(allowed(schema, &value), "{value}");
    };
    for row in Table::embedded().rows() {
        judge(resolve(&wish(), row.name, None).unwrap());
    }
    judge(resolve(&wish(), "x99.large", None).unwrap());
    judge(resolve(&wish(), "", None).unwrap());
    assert!(!allowed(schema, &serde_json::json!({"type": "m5.large"})));
}

#[test]
fn json_keeps_the_documented_order() {
    let text = json(&resolve(&wish(), "m5.large", None).unwrap());
    let keys = [
        "type",
        "pods",
        "mode",
        "addressing",
        "terms",
        "cap",
        "alternatives",
        "reserved",
        "instance",
        "notes",
        "source",
    ];
    let places: Vec<_> =
        keys.iter().map(|key| text.find(&format!("\n  \"{key}\":")).expect(key)).collect();
    assert!(places.is_sorted());
}

#[test]
fn the_explanation_of_the_specification() {
    let question = Question { cap: CapRule::Always, ..question() };
    let subject = Subject::find("c6in.32xlarge", &[], None);
    let head = Table::embedded().head();
    let expected = format!(
        "c6in.32xlarge   250 pods
  interfaces     8      default network card (16 over 2 cards; other cards do not carry pods)
  addresses     50      IPv4 per interface, 49 usable for pods
  mode           secondary addresses   8 * (50 - 1) + 2 = 394
  cap            always                128 vCPU > 30, cap 250 applies (was 394)
  reserved       cpu 390m, memory 3005Mi (255 + 11 * 250), 1.1 % of 262144 MiB
  otherwise      cap auto 394 | prefix delegation 250 (uncapped 6274) | custom networking 345
  source         table {}, {}
",
        head.date, head.source
    );
    assert_eq!(text(&answer(&question, &subject).unwrap()), expected);
}

proptest! {
    #[test]
    fn no_table_makes_it_overflow(
        enis: u32, ipv4: u32, vcpu: u32, max_enis: u32, custom_networking: bool, prefix: bool,
        cap: u32,
    ) {
        let limits = InstanceLimits { default_enis: enis, ipv4_per_eni: ipv4, vcpu };
        let wish = MaxPods {
            prefix_delegation: prefix, custom_networking, max_enis, cap: Cap::At(cap), ..wish()
        };
        let resolved = resolve(&wish, "x99.large", Some(limits)).unwrap();
        prop_assert!(resolved.pods <= 2_147_483_647);
        prop_assert!(resolved.pods <= cap.max(2));
        prop_assert!(!text(&resolved).is_empty());
    }
}
