//! What was measured, as JSON and as the tables of the README.

use std::fmt::Write;

use anyhow::Context;
use serde_json::{Value, json};

use super::Measured;
use super::measure::Cost;
use super::rows::{SCENES, TENON};
use crate::checkout;

const README: &str = "README.md";
const BEGIN: &str = "<!-- bench: begin -->";
const END: &str = "<!-- bench: end -->";

/// The results of a bench.
pub fn results(
    measured: &[Measured],
    absent: &[(&str, String)],
    rounds: usize,
) -> anyhow::Result<Value> {
    let rows: Vec<_> = measured.iter().map(|row| result(row, measured)).collect();
    let absent: Vec<_> =
        absent.iter().map(|(name, why)| json!({"name": name, "why": why})).collect();
    Ok(json!({
        "schema": "tenon.bench/2",
        "rounds": rounds,
        "machine": this_machine()?,
        "rows": rows,
        "absent": absent,
        "nodeadm": crate::lab::nodeadm_version()?,
    }))
}

fn result(one: &Measured, all: &[Measured]) -> Value {
    let walls = sorted(one.costs.iter().map(|cost| cost.wall_us as f64));
    let mut json = json!({
        "name": one.row.name,
        "wallMinUs": walls.first(),
        "wallMedianUs": quantile(&walls, 2),
        "wallQuartilesUs": [quantile(&walls, 1), quantile(&walls, 3)],
        "cpuMinUs": one.costs.iter().map(|cost| cost.cpu_us).min(),
        "memoryKib": one.counts.memory_kib,
        "systemCalls": one.counts.calls,
        "processes": one.counts.processes,
    });
    let Some(scene) = one.row.scene else { return json };
    json["disk"] = json!(scene.disk);
    json["delayMs"] = json!(scene.delay_ms);
    json["requests"] = json!(one.requests);
    let tenon = all.iter().find(|row| row.row.name == TENON && row.row.scene == Some(scene));
    json["ratio"] = tenon.map_or(Value::Null, |tenon| ratio(&one.costs, &tenon.costs));
    json
}

/// How many times longer than Tenon, round by round: both ran within the same moment.
fn ratio(costs: &[Cost], tenon: &[Cost]) -> Value {
    let pairs = costs.iter().zip(tenon);
    let ratios = sorted(pairs.map(|(cost, tenon)| cost.wall_us as f64 / tenon.wall_us as f64));
    let least = |costs: &[Cost]| costs.iter().map(|cost| cost.wall_us).min().unwrap_or(1) as f64;
    json!({
        "ofMinima": round(least(costs) / least(tenon)),
        "median": round(quantile(&ratios, 2)),
        "quartiles": [round(quantile(&ratios, 1)), round(quantile(&ratios, 3))],
    })
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value that so many quarters of the others lie below.
fn quantile(sorted: &[f64], quarters: usize) -> f64 {
    let at = (sorted.len().saturating_sub(1) * quarters).div_ceil(4);
    sorted.get(at).copied().unwrap_or(0.0)
}

fn this_machine() -> anyhow::Result<Value> {
    let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = text("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    Ok(json!({
        "cores": std::thread::available_parallelism()?.get(),
        "cpu": model.map(|(_, name)| name),
        "kernel": text("/proc/sys/kernel/osrelease").trim(),
        "load": text("/proc/loadavg").split(' ').next(),
    }))
}

/// Both tables, and what they were measured on.
pub fn table(results: &Value) -> anyhow::Result<String> {
    let rows = results["rows"].as_array().context("rows")?;
    let mut text = String::from(
        "| facts to files | wall, min | wall, median | times Tenon, median (quartiles) | CPU, min \
         | memory | system calls | processes | requests |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for scene in SCENES {
        let here = |row: &&Value| row["disk"] == scene.disk && row["delayMs"] == scene.delay_ms;
        for row in rows.iter().filter(here) {
            text.push_str(&peer_line(row, &scene.words())?);
        }
    }
    text.push_str(
        "\n| Tenon alone | wall, min | wall, median | CPU, min | memory | system calls |\n\
         |---|---|---|---|---|---|\n",
    );
    for row in rows.iter().filter(|row| row["disk"].is_null()) {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            row["name"].as_str().context("a row without a name")?,
            ms(&row["wallMinUs"]),
            ms(&row["wallMedianUs"]),
            ms(&row["cpuMinUs"]),
            mib(&row["memoryKib"]),
            row["systemCalls"],
        )?;
    }
    for absent in results["absent"].as_array().into_iter().flatten() {
        writeln!(text, "\nAbsent: {}, {}.", absent["name"], absent["why"])?;
    }
    text.push_str(&machine_line(results)?);
    Ok(text)
}

fn peer_line(row: &Value, scene: &str) -> anyhow::Result<String> {
    let name = row["name"].as_str().context("a row without a name")?;
    let ratio = &row["ratio"];
    let number = |value: &Value| format!("{:.1}", value.as_f64().unwrap_or(0.0));
    let times = match name {
        TENON => "1".to_owned(),
        _ => format!(
            "{} ({} to {})",
            number(&ratio["median"]),
            number(&ratio["quartiles"][0]),
            number(&ratio["quartiles"][1])
        ),
    };
    Ok(format!(
        "| {name}, {scene} | {} | {} | {times} | {} | {} | {} | {} | {} |\n",
        ms(&row["wallMinUs"]),
        ms(&row["wallMedianUs"]),
        ms(&row["cpuMinUs"]),
        mib(&row["memoryKib"]),
        row["systemCalls"],
        row["processes"],
        row["requests"],
    ))
}

fn machine_line(results: &Value) -> anyhow::Result<String> {
    let machine = &results["machine"];
    Ok(format!(
        "\nOf these only Tenon syncs its files to disk. nodeadm {}; {} rounds, {} cores, {}, Linux {}, load {}.\n",
        results["nodeadm"].as_str().context("no version of nodeadm")?,
        results["rounds"],
        machine["cores"],
        machine["cpu"].as_str().unwrap_or("unknown CPU"),
        machine["kernel"].as_str().context("no kernel")?,
        machine["load"].as_str().context("no load")?,
    ))
}

pub fn ms(us: &Value) -> String {
    format!("{:.1} ms", us.as_f64().unwrap_or(0.0) / 1000.0)
}

fn mib(kib: &Value) -> String {
    format!("{:.1} MiB", kib.as_f64().unwrap_or(0.0) / 1024.0)
}

/// Puts the table between its marks in the README.
pub fn save_table(table: &str) -> anyhow::Result<()> {
    let path = checkout().join(README);
    let readme = std::fs::read_to_string(&path)?;
    let (before, rest) = readme.split_once(BEGIN).context("no mark for the table in the README")?;
    let (_, after) = rest.split_once(END).context("no end mark for the table in the README")?;
    std::fs::write(&path, format!("{before}{BEGIN}\n{table}{END}{after}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(walls: &[u64]) -> Vec<Cost> {
        walls.iter().map(|wall_us| Cost { wall_us: *wall_us, cpu_us: 1 }).collect()
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        // A busy moment that hits both is no difference between them.
        let ratio = ratio(&costs(&[40, 400, 44, 50, 48]), &costs(&[10, 100, 10, 10, 10]));
        assert_eq!(ratio["ofMinima"], 4.0);
        assert_eq!((&ratio["median"], &ratio["quartiles"]), (&json!(4.4), &json!([4.0, 4.8])));
    }

    #[test]
    fn the_kept_results_make_the_table_of_the_readme() {
        let read = |path: &str| std::fs::read_to_string(checkout().join(path)).unwrap();
        let results: Value = serde_json::from_str(&read("benches/results.json")).unwrap();
        let table = table(&results).unwrap();
        assert!(read(README).contains(&table), "run `cargo xtask bench --save`");
    }
}
