use super::chain::{blame, critical};
use super::compare::compare;
use super::sample::{boot, sources};
use super::what_if::estimate;
use super::*;

fn span<'a>(boot: &'a Boot, name: &str) -> &'a Span {
    boot.spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn everything_is_on_one_axis() {
    let boot = boot();
    assert_eq!((boot.origin.as_str(), boot.begin_us()), ("kernel", -10_000_000));
    let firmware = span(&boot, "firmware");
    assert_eq!((firmware.begin_us, firmware.end_us), (-1_500_000, -500_000));
    let phase = span(&boot, "tenon-run: start daemons");
    assert_eq!((phase.begin_us, phase.length_us()), (8_002_000, 500_000));
    // Its stamp is a millisecond later than the begin of what it ran.
    assert_eq!(span(&boot, "tenon-run.service").begin_us, 7_998_999);
    assert_eq!((boot.registered_us, boot.ready_us), (Some(9_000_000), Some(10_000_000)));
    assert_eq!((boot.node.as_str(), boot.instance_type.as_str()), ("ip-10-0-0-10", "m5.large"));
    // Units of later, and units that never came up, are not part of the boot.
    assert!(
        boot.spans.iter().all(|span| !["later.service", "never.service"].contains(&&*span.name))
    );
    assert_eq!(boot.notes, Vec::<String>::new());
}

#[test]
fn the_critical_chain_goes_back_from_ready_to_the_launch() {
    let boot = boot();
    let links = critical(&boot);
    let names: Vec<_> = links.iter().map(|link| link.span.name.as_str()).collect();
    let expected = [
        "launch",
        "firmware",
        "boot loader",
        "kernel",
        "initrd",
        "service manager",
        "networkd.service",
        "network.target",
        "tenon-config.service",
        "tenon-config: metadata",
        "tenon-config: write files",
        "cloud-final.service",
        "tenon-run.service",
        "tenon-run: metadata",
        "tenon-run: start daemons",
        "containerd.service",
        "kubelet.service",
        "kubelet: register",
        "cni:v1",
        "kubelet: become Ready",
    ];
    assert_eq!(names, expected);
    let sum: i64 = links.iter().map(|link| link.own_us + link.wait_us).sum();
    assert_eq!(sum, boot.total_us(), "every moment of the chain is somebody's");
    // The phase counts until it had started containerd, not for what it waited for.
    assert_eq!(links[14].own_us, 98_000);
}

#[test]
fn blame_is_longest_first_without_targets() {
    let boot = boot();
    let names: Vec<_> = blame(&boot).iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names[..3], ["launch", "cloud-final.service", "networkd.service"]);
    assert!(!names.contains(&"network.target"));
}

#[test]
fn a_step_of_the_wall_clock_is_marked_and_moves_nothing() {
    let boot = boot();
    assert_eq!(boot.clock_steps, [ClockStep { at_us: 9_200_000, by_us: 2_000_000 }]);
    // The launch is placed by the wall clock as it was at the end: 2 s later than first believed.
    assert_eq!(span(&boot, "launch").begin_us, -10_000_000);
}

#[test]
fn a_launch_that_cannot_be_is_not_believed() {
    let mut sources = sources();
    let journal = String::from_utf8(sources.journal).unwrap();
    sources.journal = journal.replace("2026-11-15T00:00:02Z", "2025-01-01T00:00:00Z").into();
    let boot = Boot::of(&sources);
    assert!(boot.spans.iter().all(|span| span.name != "launch"));
    assert!(boot.notes[0].contains("does not fit this boot"), "{:?}", boot.notes);
}

#[test]
fn in_a_container_the_axis_begins_with_userspace() {
    let mut sources = sources();
    sources.stamps.own_kernel = false;
    let boot = Boot::of(&sources);
    assert_eq!((boot.origin.as_str(), boot.begin_us()), ("userspace", 0));
    assert_eq!(span(&boot, "service manager").begin_us, 0);
    assert_eq!(boot.ready_us, Some(8_300_000));
    assert!(boot.spans.iter().all(|span| !["kernel", "initrd"].contains(&&*span.name)));
}

#[test]
fn a_node_that_is_not_there_yet_says_how_far_it_came() {
    let mut sources = sources();
    sources.journal.clear();
    let boot = Boot::of(&sources);
    assert_eq!(boot.goal(), ("booted", 9_500_000));
    assert_eq!(boot.notes.len(), 2, "{:?}", boot.notes);
    assert!(!critical(&boot).is_empty());
    let empty = Boot::of(&Sources::default());
    assert_eq!(empty.goal().0, "the last thing seen");
    assert!(text(&empty).contains("note: "));
}

#[test]
fn a_restarted_unit_tells_its_runs_apart() {
    let mut sources = sources();
    let journal = sources.journal.clone();
    let first = journal.split_inclusive(|byte| *byte == b'\n').next().unwrap();
    sources.journal = [first, &journal].concat();
    let boot = Boot::of(&sources);
    span(&boot, "tenon-config: metadata");
    span(&boot, "tenon-config 2: metadata");
}

#[test]
fn what_is_left_out_shortens_the_chain_and_nothing_else() {
    let boot = boot();
    for (what_if, saves) in [
        ("no-cloud-init", 3_900_000),
        ("cached-images", 900_000),
        ("no-network-wait", 0),
        ("without=networkd.service", 2_000_000),
        ("no-initrd", 1_000_000),
    ] {
        let guess = estimate(&boot, &[what_if.to_owned()]).unwrap();
        assert_eq!(boot.total_us() - guess.total_us(), saves, "{what_if}");
        assert_eq!(guess.estimate.as_ref().unwrap().saves_us, saves, "{what_if}");
        let sum: i64 = critical(&guess).iter().map(|link| link.own_us + link.wait_us).sum();
        assert_eq!(sum, guess.total_us(), "{what_if}");
        assert!(text(&guess).contains("ESTIMATE"), "{what_if}");
    }
    let both = ["no-cloud-init".to_owned(), "cached-images".to_owned()];
    assert_eq!(estimate(&boot, &both).unwrap().estimate.unwrap().saves_us, 4_800_000);
}

#[test]
fn a_scenario_nobody_knows_names_its_neighbour() {
    let unknown = estimate(&boot(), &["no-cloud-innit".to_owned()]).unwrap_err();
    assert!(unknown.0.starts_with("did you mean `no-cloud-init`?"), "{}", unknown.0);
    assert!(estimate(&boot(), &["without=nobody".to_owned()]).is_err());
}

#[test]
fn a_saved_timeline_comes_back_as_it_was() {
    let boot = boot();
    let saved = boot.to_json().to_string();
    assert_eq!(Boot::read(saved.as_bytes(), "a.json").unwrap(), boot);
    for bad in ["{}", "[]", "{\"schema\":\"tenon.plan/1\"}", &saved.replace(SCHEMA, "x/2")] {
        let problem = Boot::read(bad.as_bytes(), "a.json").unwrap_err();
        assert_eq!((problem.page.code, problem.exit()), ("TN05500", 5), "{bad}");
    }
}

#[test]
fn a_hostile_file_ends_in_a_picture_not_in_a_loop() {
    let mut boot = boot();
    for span in &mut boot.spans {
        span.name = format!("<b>\u{1b}[31m\"{}\n", span.name);
        span.after.push(span.name.clone());
        (span.begin_us, span.end_us) = (i64::MAX, i64::MIN);
    }
    boot.ready_us = Some(i64::MAX);
    boot.clock_steps[0] = ClockStep { at_us: i64::MIN, by_us: i64::MIN };
    let boot = Boot::read(json!(boot).to_string().as_bytes(), "a.json").unwrap();
    critical(&boot);
    let guess = estimate(&boot, &["cached-images".to_owned()]).unwrap();
    for shown in [svg(&boot), html(&guess), text(&guess)] {
        assert!(!shown.contains("<b>\u{1b}") && !shown.contains('\u{1b}'));
    }
}

#[test]
fn text_fits_eighty_columns() {
    let mut boot = boot();
    boot.spans[5].name = "x".repeat(120);
    boot.notes.push("word ".repeat(60));
    let guess = estimate(&boot, &["no-cloud-init".to_owned()]).unwrap();
    let named = |boot: &Boot| ("n".repeat(90), boot.clone());
    let compared = compare_text(&compare(&[named(&boot), named(&guess)]));
    for shown in [text(&boot), text(&guess), compared] {
        for line in shown.lines() {
            assert!(line.chars().count() <= 80 && line.is_ascii(), "{line}");
        }
    }
}

#[test]
fn text_names_goal_chain_blame_and_clock() {
    let text = text(&boot());
    for words in [
        "Ready after 20.000 s; 0 is the start of the kernel",
        "critical chain",
        "longest\n    8.500 s  launch",
        "registered at 9.000 s, Ready at 10.000 s",
        "clock: at 9.200 s the wall clock was set forward by 2.000 s",
    ] {
        assert!(text.contains(words), "{words} is missing in\n{text}");
    }
}

#[test]
fn the_picture_and_the_page_stand_alone() {
    let boot = boot();
    for shown in [svg(&boot), html(&boot)] {
        let links = shown.replace("http://www.w3.org/2000/svg", "");
        assert!(
            !links.contains("http:") && !links.contains("https:") && !links.contains("url("),
            "asks somebody else"
        );
        assert!(shown.contains("prefers-color-scheme:dark"));
        assert!(shown.contains("cloud-final.service: unit from 4.050 s, 3.900 s, on the critical"));
        assert!(shown.contains("clock set by 2.000 s"));
    }
    assert_eq!(svg(&boot), svg(&boot.clone()));
}

#[test]
fn the_slow_node_of_several_is_found() {
    let named = |nth: i64| {
        let mut boot = boot();
        let late = if nth == 3 { 5_000_000 } else { nth * 1000 };
        let at = boot.spans.iter().position(|span| span.name == "initrd").unwrap();
        boot.spans[at].end_us += late;
        boot.ready_us = boot.ready_us.map(|at| at + late);
        (format!("node-{nth}"), boot)
    };
    let boots: Vec<_> = (0..5).map(named).collect();
    let comparison = compare(&boots);
    assert_eq!(comparison.total.outliers, [3]);
    assert_eq!(comparison.total.median_us, 20_002_000);
    let initrd = comparison.rows.iter().find(|row| row.name == "initrd").unwrap();
    assert_eq!((initrd.outliers.as_slice(), initrd.least_us), (&[3][..], 1_000_000));
    let json = comparison.to_json();
    assert_eq!(json["total"]["outliers"], json!(["node-3"]));
    assert!(compare_text(&comparison).contains("node-3"));
    let two = compare(&boots[..2]);
    assert_eq!(two.total.median_us, 20_000_500);
}
