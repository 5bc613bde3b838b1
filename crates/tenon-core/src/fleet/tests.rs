//! The simulation against the reference table, and the formulas against the simulation.

use super::*;

const SEEDS: u64 = 5;

/// Background, nodes, ramp; delays at p50 and p99, failed, last joined, calls per node.
type Row = (u32, u32, u64, [u64; 2], u64, u64, u64);

/// Seconds and calls in tenths, failures in thousandths.
const TABLE: &[Row] = &[
    (0, 500, 30, [1, 1], 0, 300, 10),
    (0, 1000, 60, [0, 1], 0, 600, 10),
    (0, 2000, 60, [33, 740], 0, 1050, 46),
    (10, 500, 30, [1, 230], 0, 480, 22),
    (10, 1000, 60, [9, 640], 0, 1030, 37),
    (10, 2000, 60, [540, 1700], 0, 2010, 98),
    (15, 500, 30, [69, 670], 0, 860, 48),
    (15, 1000, 60, [440, 1530], 0, 1870, 86),
    (15, 2000, 60, [1470, 3530], 0, 3890, 195),
];

/// The rows of large fleets, one seed each: they take a while.
const LARGE: &[Row] = &[
    (0, 5000, 120, [410, 2100], 0, 2530, 97),
    (0, 10_000, 60, [2130, 4710], 0, 5040, 267),
    (0, 10_000, 300, [570, 3750], 0, 5050, 135),
    (0, 10_000, 600, [1, 1], 0, 6000, 10),
    (10, 5000, 120, [1750, 4530], 0, 4990, 228),
    (10, 10_000, 60, [2930, 5980], 332, 6590, 462),
    (10, 10_000, 300, [2460, 5940], 152, 8520, 367),
    (10, 10_000, 600, [1130, 5700], 39, 9640, 233),
    (15, 5000, 120, [2820, 5970], 265, 7180, 433),
    (15, 10_000, 60, [2870, 5990], 660, 6600, 571),
    (15, 10_000, 300, [2750, 5970], 542, 8980, 526),
    (15, 10_000, 600, [2430, 5950], 405, 11880, 465),
];

/// The mean of several seeds, in the units of the table.
fn mean(row: &Row, seeds: u64) -> ([u64; 2], u64, u64, u64) {
    let (background, nodes, ramp, ..) = *row;
    let mut sum = ([0; 2], 0, 0, 0);
    for seed in 1..=seeds {
        let ramp = Duration::from_secs(ramp);
        let fleet = Fleet { background, nodes, ramp, seed, ..Fleet::default() };
        let outcome = simulate(&fleet);
        assert_eq!(outcome.joined.len() as u64 + u64::from(outcome.failed), u64::from(nodes));
        sum.0[0] += outcome.delay(50).unwrap() / 100_000;
        sum.0[1] += outcome.delay(99).unwrap() / 100_000;
        sum.1 += u64::from(outcome.failed) * 1000 / u64::from(nodes);
        sum.2 += outcome.joined.last().unwrap() / 100_000;
        sum.3 += outcome.calls * 10 / u64::from(nodes);
    }
    (sum.0.map(|sum| sum / seeds), sum.1 / seeds, sum.2 / seeds, sum.3 / seeds)
}

fn agree(rows: &[Row], seeds: u64) {
    for row in rows {
        let (delays, failed, last, calls) = mean(row, seeds);
        let near = |found: u64, wanted: u64, percent: u64, least: u64| {
            found.abs_diff(wanted) <= (wanted * percent / 100).max(least)
        };
        let fine = near(delays[0], row.3[0], 10, 50)
            && near(delays[1], row.3[1], 10, 50)
            && near(failed, row.4, 0, 10)
            && near(last, row.5, 10, 50)
            && near(calls, row.6, 5, 1);
        assert!(fine, "{row:?}: {delays:?} {failed} {last} {calls}");
    }
}

#[test]
fn the_reference_table_is_met() {
    agree(TABLE, SEEDS);
    agree(LARGE, 1);
}

#[test]
fn a_fleet_that_calls_nobody_waits_for_nobody() {
    let outcome = simulate(&Fleet { calls: 0, nodes: 10_000, ..Fleet::default() });
    assert_eq!((outcome.calls, outcome.failed, outcome.delays.last()), (0, 0, Some(&0)));
    assert!(outcome.joined.last().unwrap() < &60_000_000);
}

#[test]
fn equal_seeds_give_equal_answers_and_others_do_not() {
    let fleet = Fleet { nodes: 2000, ..Fleet::default() };
    let answer = |fleet: &Fleet| to_json(fleet, &simulate(fleet)).to_string();
    assert_eq!(answer(&fleet), answer(&fleet));
    let other = Fleet { seed: 2, ..fleet };
    assert_ne!(simulate(&fleet).delays, simulate(&other).delays);
}

#[test]
fn several_calls_are_made_one_after_the_other() {
    let fleet = Fleet { nodes: 10, calls: 3, ..Fleet::default() };
    let outcome = simulate(&fleet);
    assert_eq!((outcome.calls, outcome.refused), (30, 0));
    assert_eq!(outcome.delay(50), Some(3 * ROUND_TRIP));
}

#[test]
fn nobody_is_served_once_others_take_everything() {
    let fleet = Fleet { nodes: 300, background: 20, ..Fleet::default() };
    let outcome = simulate(&fleet);
    assert_eq!((outcome.joined.len(), outcome.failed), (100, 200));
    let bounds = Bounds::of(&fleet);
    assert_eq!((bounds.complete_s, bounds.failed_permille), (None, 666));
    let none = simulate(&Fleet { bucket: 0, ..fleet });
    assert_eq!((none.delay(50), none.failed), (None, 300));
    assert!(text(&Fleet { bucket: 0, ..fleet }, &none).contains("p50 -"));
}

#[test]
fn the_formulas_bound_the_simulation() {
    for (nodes, ramp, background) in [(500, 30, 0), (2000, 60, 0), (2000, 60, 10), (4000, 60, 15)] {
        let ramp = Duration::from_secs(ramp);
        let fleet = Fleet { nodes, ramp, background, ..Fleet::default() };
        let (outcome, bounds) = (simulate(&fleet), Bounds::of(&fleet));
        if outcome.failed == 0 {
            let last = outcome.joined.last().unwrap() / MILLION;
            assert!(last + 1 >= bounds.complete_s.unwrap(), "{nodes} {background}");
        }
        let failed = u64::from(outcome.failed) * 1000 / u64::from(nodes);
        assert!(failed >= u64::from(bounds.failed_permille), "{nodes} {background}");
        assert_eq!(bounds.saturated, outcome.refused > 20, "{nodes} {background}");
    }
}

#[test]
fn seats_and_launches_are_reckoned() {
    let slow = Duration::from_millis(98);
    let fleet = Fleet { nodes: 10_000, servers: 1, latency: slow, ..Fleet::default() };
    let bounds = Bounds::of(&fleet);
    assert_eq!((bounds.seats_percent, bounds.spread_s, bounds.launch_s), (100, 86, 4500));
    assert!(bounds.is_crowded());
    let quick = Bounds::of(&Fleet { latency: Duration::from_millis(8), ..fleet });
    assert_eq!((quick.seats_percent, quick.is_crowded()), (8, false));
}

#[test]
fn advice_is_given_where_there_is_some() {
    let calm = Fleet { nodes: 100, ..Fleet::default() };
    assert_eq!(advice(&calm, &simulate(&calm)), Vec::<String>::new());
    let rush = Fleet { nodes: 2000, ..Fleet::default() };
    let list = advice(&rush, &simulate(&rush));
    assert!(list[0].contains("aws.api: never") && list[1].contains("95 s"), "{list:?}");
    let words = text(&rush, &simulate(&rush));
    assert!(words.lines().all(|line| line.chars().count() < 130) && words.contains("advice: or"));
}

#[test]
fn the_picture_has_both_curves() {
    let fleet = Fleet { nodes: 200, ..Fleet::default() };
    let picture = svg(&fleet, &simulate(&fleet));
    assert_eq!(picture.matches("<polyline").count(), 2);
    assert!(picture.contains("200 nodes") && picture.ends_with("</svg>\n"));
    // Both curves begin at the bottom on the left and end at the top on the right.
    assert_eq!(picture.matches("points=\"70,290 ").count(), 2);
    assert_eq!(picture.matches("730,50\"/>").count(), 2);
}
