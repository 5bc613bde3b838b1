//! The chart of the tools that do the same work: least wall time, on a logarithmic axis, because
//! the longest bar is hundreds of times the shortest.

use std::fmt::Write;

use anyhow::Context;
use serde_json::Value;

use super::report::ms;
use super::rows::{PEERS, SCENES};

const LABELS: f64 = 150.0;
const CHART: f64 = 560.0;
const WIDTH: f64 = LABELS + CHART + 110.0;
const ROW: f64 = 19.0;
/// Ends of the axis, in microseconds.
const LEAST: f64 = 1e3;
const MOST: f64 = 1e7;

const STYLE: &str = "text{fill:#1f2430;font:12px system-ui,sans-serif}.h{font-size:15px;font-weight:600}\
.s{fill:#6b7280}.e{text-anchor:end}.page{fill:#fff}.g{stroke:#d8dce3}.bar{fill:#7aa5d8}.ours{fill:#d9822b}\
@media(prefers-color-scheme:dark){.page{fill:#14171d}text{fill:#e6e9ef}.s{fill:#9aa3b2}.g{stroke:#333a46}\
.bar{fill:#4f7fb8}.ours{fill:#e0933f}}";

/// Draws the rows that were measured in a scene.
pub fn draw(results: &Value) -> anyhow::Result<String> {
    let rows = results["rows"].as_array().context("rows")?;
    let mut body = String::new();
    let mut y = 64.0;
    for scene in SCENES {
        writeln!(body, "<text class=\"s\" x=\"16\" y=\"{:.0}\">{}</text>", y + 4.0, scene.words())?;
        y += 12.0;
        for peer in &PEERS {
            let here = |row: &&Value| {
                row["name"] == peer.name
                    && row["disk"] == scene.disk
                    && row["delayMs"] == scene.delay_ms
            };
            let Some(row) = rows.iter().find(here) else { continue };
            body.push_str(&bar(row, peer.name, y)?);
            y += ROW;
        }
        y += 12.0;
    }
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y}\" width=\"{WIDTH}\" \
         height=\"{y}\" role=\"img\">\n<title>Facts to files: least wall time of each tool</title>\n\
         <style>{STYLE}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{y}\" rx=\"8\" class=\"page\"/>\n\
         <text class=\"h\" x=\"16\" y=\"26\">From facts to files: least wall time, logarithmic</text>\n"
    );
    axis(&mut out, y - 12.0)?;
    out.push_str(&body);
    out.push_str("</svg>\n");
    Ok(out)
}

fn x(us: f64) -> f64 {
    LABELS + CHART * (us.clamp(LEAST, MOST) / LEAST).log10() / (MOST / LEAST).log10()
}

fn axis(out: &mut String, bottom: f64) -> anyhow::Result<()> {
    for (us, word) in [(1e3, "1 ms"), (1e4, "10 ms"), (1e5, "100 ms"), (1e6, "1 s"), (1e7, "10 s")]
    {
        let x = x(us);
        writeln!(
            out,
            "<path class=\"g\" d=\"M{x:.1} 50V{bottom:.0}\"/>\
             <text class=\"s\" x=\"{x:.1}\" y=\"44\" text-anchor=\"middle\">{word}</text>"
        )?;
    }
    Ok(())
}

fn bar(row: &Value, name: &str, y: f64) -> anyhow::Result<String> {
    let least = row["wallMinUs"].as_f64().context("a row without a time")?;
    let class = if name == super::rows::TENON { "ours" } else { "bar" };
    let (end, middle) = (x(least), y + 11.0);
    Ok(format!(
        "<g><title>{name}: {} at least, median {}</title>\
         <text class=\"e\" x=\"{:.0}\" y=\"{middle:.0}\">{name}</text>\
         <rect class=\"{class}\" x=\"{LABELS:.1}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"14\" rx=\"2\"/>\
         <text x=\"{:.1}\" y=\"{middle:.0}\">{}</text></g>\n",
        ms(&row["wallMinUs"]),
        ms(&row["wallMedianUs"]),
        LABELS - 8.0,
        (end - LABELS).max(1.0),
        end + 6.0,
        ms(&row["wallMinUs"]),
    ))
}
