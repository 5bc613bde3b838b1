//! Launched and joined nodes over time, as one SVG picture without anything from elsewhere.

use super::{Fleet, Outcome, micros};

const WIDTH: u64 = 760;
const HEIGHT: u64 = 340;
const LEFT: u64 = 70;
const TOP: u64 = 50;
const CHART: (u64, u64) = (WIDTH - LEFT - 30, HEIGHT - TOP - 50);
const POINTS: u64 = 200;

/// Plain colours first: not every viewer knows what a dark page is.
const STYLE: &str = "\
text{fill:#1f2430;font:12px system-ui,sans-serif}.h{font-size:15px;font-weight:600}\
.e{text-anchor:end}.page{fill:#fff}.g{stroke:#d8dce3}polyline{fill:none;stroke-width:2}\
.launched{stroke:#8b95a7;stroke-dasharray:5 3}.joined{stroke:#4f9d69}\
@media(prefers-color-scheme:dark){.page{fill:#14171d}text{fill:#e6e9ef}.g{stroke:#333a46}\
.joined{stroke:#57ad76}}";

/// Draws both curves.
pub fn svg(fleet: &Fleet, outcome: &Outcome) -> String {
    let ramp = micros(fleet.ramp).max(1);
    let end = outcome.joined.last().copied().unwrap_or_default().max(ramp);
    let nodes = u64::from(fleet.nodes.max(1));
    let launched = |time: u64| share(nodes, time.min(ramp), ramp);
    let joined = |time: u64| outcome.joined.partition_point(|one| *one <= time) as u64;
    let (right, bottom) = (LEFT + CHART.0, TOP + CHART.1);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\">\n\
         <title>{nodes} nodes: launched and joined</title>\n<style>{STYLE}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"8\" class=\"page\"/>\n\
         <text x=\"{LEFT}\" y=\"28\" class=\"h\">{nodes} nodes, {} calls each: {} joined, {} gave up</text>\n\
         <path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" class=\"g\"/>\n\
         <text x=\"{x}\" y=\"{TOP}\" class=\"e\">{nodes}</text>\n\
         <text x=\"{x}\" y=\"{bottom}\" class=\"e\">0</text>\n\
         <text x=\"{right}\" y=\"{y}\" class=\"e\">{} s</text>\n\
         <text x=\"{LEFT}\" y=\"{y}\">dashed: launched, solid: joined</text>\n{}{}</svg>\n",
        fleet.calls,
        outcome.joined.len(),
        outcome.failed,
        end.div_ceil(1_000_000),
        curve("launched", nodes, end, &launched),
        curve("joined", nodes, end, &joined),
        x = LEFT - 8,
        y = bottom + 24,
    )
}

/// `whole * part / of`, without overflow.
fn share(whole: u64, part: u64, of: u64) -> u64 {
    let share = u128::from(whole) * u128::from(part) / u128::from(of.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn curve(class: &str, nodes: u64, end: u64, count: &dyn Fn(u64) -> u64) -> String {
    let point = |index: u64| {
        let x = LEFT + share(CHART.0, index, POINTS);
        let y = TOP + CHART.1 - share(CHART.1, count(share(end, index, POINTS)), nodes);
        format!("{x},{y}")
    };
    let points: Vec<String> = (0..=POINTS).map(point).collect();
    format!("<polyline class=\"{class}\" points=\"{}\"/>\n", points.join(" "))
}
