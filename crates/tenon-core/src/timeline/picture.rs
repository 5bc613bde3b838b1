//! A timeline as one SVG picture: no fonts, scripts or files from elsewhere; colours for light and
//! dark pages; what is told by colour is told by a word as well.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::chain;
use super::text::cut;
use super::{Boot, Kind, Span, time};
use crate::xml::escape;

const LABELS: i64 = 268;
const CHART: i64 = 632;
const WIDTH: i64 = LABELS + CHART + 40;
const ROW: i64 = 20;
const TOP: i64 = 86;
/// Units beyond the critical chain that are long enough to be worth a row.
const LONG_UNITS: usize = 8;
/// Phases and stages shorter than this share of the whole have no row.
const SHORT: i64 = 1000;

/// Plain colours first: not every viewer knows what a dark page is.
const STYLE: &str = "\
text{fill:#1f2430;font:12px system-ui,sans-serif}.h{font-size:16px;font-weight:600}\
.s{fill:#6b7280}.e{text-anchor:end}.c{font-weight:600}.page{fill:#fff}.g{stroke:#d8dce3}\
.m{stroke:#b42318;stroke-dasharray:4 3}.t{fill:#b42318;text-anchor:end}.stage{fill:#8b95a7}\
.unit{fill:#7aa5d8}.phase{fill:#d9822b}.kubelet{fill:#4f9d69}.image{fill:#a67fc4}\
.on{stroke:#1f2430;stroke-width:1.4}\
@media(prefers-color-scheme:dark){.page{fill:#14171d}text{fill:#e6e9ef}.s{fill:#9aa3b2}\
.g{stroke:#333a46}.m{stroke:#ff8a7a}.t{fill:#ff8a7a}.unit{fill:#4f7fb8}.phase{fill:#e0933f}\
.kubelet{fill:#57ad76}.image{fill:#b08fd0}.on{stroke:#e6e9ef}}";

/// The picture of a boot.
pub fn svg(boot: &Boot) -> String {
    let critical: BTreeSet<&str> =
        chain::critical(boot).iter().map(|link| link.span.name.as_str()).collect();
    let rows = rows(boot, &critical);
    let height = TOP + ROW * i64::try_from(rows.len()).unwrap_or(0) + 46;
    let scale = Scale { begin: boot.begin_us(), total: boot.total_us().max(1) };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>{}</title>\n\
         <style>{STYLE}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"8\" class=\"page\"/>\n",
        escape(&title(boot))
    );
    head(&mut out, boot);
    axis(&mut out, &scale, height - 40);
    moments(&mut out, boot, &scale, height - 40);
    for (at, span) in (0_i64..).zip(&rows) {
        let on = critical.contains(span.name.as_str());
        row(&mut out, span, &scale, TOP + 6 + ROW * at, on);
    }
    legend(&mut out, height - 12);
    out.push_str("</svg>\n");
    out
}

/// What a boot is called in a heading.
pub(super) fn title(boot: &Boot) -> String {
    let (goal, _) = boot.goal();
    let estimate = if boot.estimate.is_some() { "estimate: " } else { "" };
    format!("{estimate}{goal} after {}", time(boot.total_us()))
}

struct Scale {
    begin: i64,
    total: i64,
}

impl Scale {
    /// Where a moment lies in the picture, in tenths of a unit.
    fn x(&self, us: i64) -> i64 {
        let us = us.clamp(self.begin, self.begin + self.total);
        LABELS * 10 + (us - self.begin) * (CHART * 10) / self.total
    }

    fn at(&self, us: i64) -> String {
        tenths(self.x(us))
    }
}

fn tenths(value: i64) -> String {
    format!("{}.{}", value / 10, value % 10)
}

/// The spans worth a row: the critical chain, whatever is not a unit, and the longest units.
fn rows<'a>(boot: &'a Boot, critical: &BTreeSet<&str>) -> Vec<&'a Span> {
    let short = boot.total_us() / SHORT;
    let units = chain::blame(boot).into_iter().filter(|span| span.kind == Kind::Unit);
    let long: BTreeSet<&str> = units.take(LONG_UNITS).map(|span| span.name.as_str()).collect();
    let (_, goal) = boot.goal();
    let shown = |span: &&Span| {
        let on = critical.contains(span.name.as_str());
        let worth = match span.kind {
            Kind::Unit => on || long.contains(span.name.as_str()),
            _ => true,
        };
        worth && span.length_us() > short && span.begin_us < goal
    };
    boot.spans.iter().filter(shown).collect()
}

fn head(out: &mut String, boot: &Boot) {
    let words = [boot.node.as_str(), boot.instance_type.as_str()];
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let zero = format!("0 is the start of the {}", boot.origin);
    let under = words.into_iter().chain([zero.as_str()]).collect::<Vec<_>>().join(" · ");
    let _ = writeln!(out, "<text class=\"h\" x=\"16\" y=\"28\">{}</text>", escape(&title(boot)));
    let _ = writeln!(out, "<text class=\"s\" x=\"16\" y=\"46\">{}</text>", escape(&under));
}

/// Lines at round times: at most ten.
fn axis(out: &mut String, scale: &Scale, bottom: i64) {
    let steps = (0..15).flat_map(|power| [1, 2, 5].map(|one: i64| one * 10_i64.pow(power)));
    let step = steps.into_iter().find(|step| scale.total / step <= 10).unwrap_or(scale.total);
    let first = scale.begin.div_euclid(step) * step;
    let ticks = (0..12).map(|nth| first + nth * step);
    for at in ticks.filter(|at| (scale.begin..=scale.begin + scale.total).contains(at)) {
        let x = scale.at(at);
        let _ = writeln!(
            out,
            "<path class=\"g\" d=\"M{x} {TOP}V{bottom}\"/>\
             <text class=\"s\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            TOP - 6,
            seconds(at)
        );
    }
}

/// Seconds without needless zeros.
fn seconds(us: i64) -> String {
    let text = format!("{:.3}", us as f64 / 1e6);
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Registered, Ready, and the wall clock being set.
fn moments(out: &mut String, boot: &Boot, scale: &Scale, bottom: i64) {
    let mut marks: Vec<(i64, String)> = Vec::new();
    let named = [("registered", boot.registered_us), ("Ready", boot.ready_us)];
    marks.extend(named.into_iter().filter_map(|(name, at)| Some((at?, name.to_owned()))));
    let steps = boot.clock_steps.iter();
    marks.extend(steps.map(|step| (step.at_us, format!("clock set by {}", time(step.by_us)))));
    marks.retain(|(at, _)| *at <= scale.begin + scale.total);
    for (nth, (at, name)) in (0_i64..).zip(marks) {
        let (x, y) = (scale.at(at), 56 + 12 * (nth % 2));
        let _ = writeln!(
            out,
            "<path class=\"m\" d=\"M{x} {y}V{bottom}\"/>\
             <text class=\"t\" x=\"{}\" y=\"{y}\">{}</text>",
            tenths(scale.x(at) - 40),
            escape(&name)
        );
    }
}

fn row(out: &mut String, span: &Span, scale: &Scale, y: i64, on: bool) {
    let width = (scale.x(span.end_us) - scale.x(span.begin_us)).max(10);
    let detail = format!(
        "{}: {} from {}, {}{}{}",
        span.name,
        span.kind.word(),
        time(span.begin_us),
        time(span.length_us()),
        if on { ", on the critical chain" } else { "" },
        if span.note.is_empty() { String::new() } else { format!(" ({})", span.note) },
    );
    let (label, bar) = if on { (" c", " on") } else { ("", "") };
    let star = if on { "• " } else { "" };
    let _ = writeln!(
        out,
        "<g><title>{}</title><text class=\"e{label}\" x=\"{}\" y=\"{}\">{star}{}</text>\
         <rect class=\"{}{bar}\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"14\" rx=\"2\"/></g>",
        escape(&detail),
        LABELS - 8,
        y + 11,
        escape(&cut(&span.name, 38)),
        class(span.kind),
        scale.at(span.begin_us),
        tenths(width),
    );
}

fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Stage => "stage",
        Kind::Unit => "unit",
        Kind::Phase => "phase",
        Kind::Kubelet => "kubelet",
        Kind::Image => "image",
    }
}

fn legend(out: &mut String, y: i64) {
    for (kind, x) in Kind::ALL.into_iter().zip((16_i64..).step_by(92)) {
        let _ = writeln!(
            out,
            "<rect class=\"{}\" x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\"/>\
             <text class=\"s\" x=\"{}\" y=\"{y}\">{}</text>",
            class(kind),
            y - 10,
            x + 18,
            kind.word()
        );
    }
    let _ = writeln!(
        out,
        "<text class=\"s e\" x=\"{}\" y=\"{y}\">• on the critical chain</text>",
        WIDTH - 24
    );
}
