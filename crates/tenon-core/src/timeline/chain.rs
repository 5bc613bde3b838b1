//! What each span waited for. From that: which spans decided when the node was Ready, and which
//! ones took longest.
//!
//! A span waits for the end of those it is ordered after, or for the begin of the one that
//! started it. Of these the latest held it up; following them back from Ready is the critical
//! chain.

use std::collections::BTreeMap;

use super::{Boot, Kind, Span};

/// One link of the critical chain, first things first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    pub span: &'a Span,
    /// What the chain spent in this span.
    pub own_us: i64,
    /// What passed between this span's part and the begin of the next.
    pub wait_us: i64,
}

/// What a span waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    /// Index of the span waited for; always below the waiting one's.
    pub on: usize,
    /// Its end, not its begin.
    pub end: bool,
}

impl Edge {
    /// When that came about.
    pub fn at(self, times: &[(i64, i64)]) -> i64 {
        times.get(self.on).map_or(0, |(begin, end)| if self.end { *end } else { *begin })
    }
}

/// Begin and end of each span.
pub(super) fn times(boot: &Boot) -> Vec<(i64, i64)> {
    boot.spans.iter().map(|span| (span.begin_us, span.end_us)).collect()
}

/// The edges of each span. Only those to earlier spans count: what had not happened yet cannot
/// have been waited for, and so there is no circle.
pub(super) fn edges(boot: &Boot) -> Vec<Vec<Edge>> {
    let names: BTreeMap<&str, usize> =
        boot.spans.iter().enumerate().map(|(at, span)| (span.name.as_str(), at)).collect();
    let times = times(boot);
    let of = |(at, span): (usize, &Span)| {
        let after = span.after.iter().map(|name| (name, true));
        let during = span.during.iter().map(|name| (name, false));
        let edge = |(name, end): (&String, bool)| {
            let edge = Edge { on: *names.get(name.as_str())?, end };
            (edge.on < at && edge.at(&times) <= span.begin_us).then_some(edge)
        };
        after.chain(during).filter_map(edge).collect()
    };
    boot.spans.iter().enumerate().map(of).collect()
}

/// The spans that decided when the goal was reached.
pub fn critical(boot: &Boot) -> Vec<Link<'_>> {
    let (edges, times, hosted) = (edges(boot), times(boot), hosted(boot));
    let mut next = last(boot);
    let mut links: Vec<Link<'_>> = Vec::new();
    let mut follower: Option<i64> = None;
    while let Some(at) = next {
        let span = &boot.spans[at];
        let until = follower.map_or(span.end_us, |begin| begin.min(span.end_us));
        let wait_us = follower.map_or(0, |begin| begin - until);
        links.push(Link { span, own_us: until - span.begin_us, wait_us });
        follower = Some(span.begin_us);
        let latest = edges[at].iter().max_by_key(|edge| (edge.at(&times), edge.on));
        next = latest.map(|edge| match hosted.get(&edge.on) {
            // Whoever waited for the unit waited for the last thing done in it.
            Some(last) if edge.end && *last < at && times[*last].1 <= span.begin_us => *last,
            _ => edge.on,
        });
    }
    links.reverse();
    links
}

/// Units that ran Tenon, and the last phase of it.
fn hosted(boot: &Boot) -> BTreeMap<usize, usize> {
    let phases = boot.spans.iter().enumerate().filter(|(_, span)| span.kind == Kind::Phase);
    let unit = |span: &Span| {
        let name = span.during.as_ref()?;
        boot.spans.iter().position(|unit| unit.name == *name)
    };
    // In the order in which they began, so the last one stays.
    phases.filter_map(|(at, span)| Some((unit(span)?, at))).collect()
}

/// The span that reached the goal: the last one to end by then.
fn last(boot: &Boot) -> Option<usize> {
    let (_, goal) = boot.goal();
    let by_then = boot.spans.iter().enumerate().filter(|(_, span)| span.end_us <= goal);
    by_then.max_by_key(|(at, span)| (span.end_us, span.kind, *at)).map(|(at, _)| at)
}

/// The spans that took any time, longest first.
pub fn blame(boot: &Boot) -> Vec<&Span> {
    let mut spans: Vec<_> = boot.spans.iter().filter(|span| span.length_us() > 0).collect();
    // Targets last as long as what they wait for, which is listed itself.
    spans.retain(|span| span.kind != Kind::Unit || !span.name.ends_with(".target"));
    spans.sort_by_key(|span| (-span.length_us(), span.begin_us, span.name.as_str()));
    spans
}
