//! Several boots side by side: the median of each span, and who is far from it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Boot;

pub const SCHEMA: &str = "tenon.timeline-compare/1";
/// Nearer to the median than this is never an outlier.
const NEAR_US: i64 = 50_000;
/// Nor within this many times the median distance from the median, or a tenth of the median.
const SPREADS: i64 = 3;

/// What several boots have in common, and what not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Names of the boots, in the order given.
    pub names: Vec<String>,
    /// From the begin of the axis to the goal.
    pub total: Row,
    /// Spans that at least half of the boots have, longest median first.
    pub rows: Vec<Row>,
}

/// One thing that was measured in each boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    /// One value for each boot; None where the boot has no such span.
    pub values: Vec<Option<i64>>,
    pub median_us: i64,
    pub least_us: i64,
    pub most_us: i64,
    /// Indexes of the boots far from the median.
    pub outliers: Vec<usize>,
}

/// Compares boots that have been given names.
pub fn compare(boots: &[(String, Boot)]) -> Comparison {
    let mut values: BTreeMap<&str, Vec<Option<i64>>> = BTreeMap::new();
    for (at, (_, boot)) in boots.iter().enumerate() {
        for span in &boot.spans {
            let row = values.entry(&span.name).or_insert_with(|| vec![None; boots.len()]);
            row[at] = Some(span.length_us());
        }
    }
    let common = |values: &Vec<Option<i64>>| values.iter().flatten().count() * 2 >= boots.len();
    let rows = values.into_iter().filter(|(_, values)| common(values));
    let mut rows: Vec<Row> = rows.filter_map(|(name, values)| row(name, values)).collect();
    rows.retain(|row| row.most_us > 0);
    rows.sort_by(|a, b| b.median_us.cmp(&a.median_us).then(a.name.cmp(&b.name)));
    let totals = boots.iter().map(|(_, boot)| Some(boot.total_us())).collect();
    Comparison {
        names: boots.iter().map(|(name, _)| name.clone()).collect(),
        total: row("total", totals).unwrap_or_else(|| Row::empty("total")),
        rows,
    }
}

fn row(name: &str, values: Vec<Option<i64>>) -> Option<Row> {
    let mut sorted: Vec<i64> = values.iter().flatten().copied().collect();
    sorted.sort_unstable();
    let (least_us, most_us) = (*sorted.first()?, *sorted.last()?);
    let median_us = median(&sorted);
    let mut distances: Vec<i64> = sorted.iter().map(|value| (value - median_us).abs()).collect();
    distances.sort_unstable();
    let far = NEAR_US.max(SPREADS * median(&distances)).max(median_us / 10);
    let is_far = |value: &Option<i64>| value.is_some_and(|value| (value - median_us).abs() > far);
    let outliers = values.iter().enumerate().filter(|(_, value)| is_far(value));
    let outliers = outliers.map(|(at, _)| at).collect();
    Some(Row { name: name.to_owned(), values, median_us, least_us, most_us, outliers })
}

/// The middle of sorted values; of two middle ones their mean.
fn median(sorted: &[i64]) -> i64 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0,
        length if length % 2 == 1 => sorted[middle],
        _ => i64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

impl Row {
    fn empty(name: &str) -> Self {
        Row {
            name: name.to_owned(),
            values: Vec::new(),
            median_us: 0,
            least_us: 0,
            most_us: 0,
            outliers: Vec::new(),
        }
    }

    fn to_json(&self, names: &[String]) -> Value {
        let outliers: Vec<_> = self.outliers.iter().map(|at| &names[*at]).collect();
        json!({
            "name": self.name,
            "medianUs": self.median_us,
            "leastUs": self.least_us,
            "mostUs": self.most_us,
            "valuesUs": self.values,
            "outliers": outliers,
        })
    }
}

impl Comparison {
    pub fn to_json(&self) -> Value {
        let rows: Vec<_> = self.rows.iter().map(|row| row.to_json(&self.names)).collect();
        let total = self.total.to_json(&self.names);
        json!({"schema": SCHEMA, "boots": self.names, "total": total, "spans": rows})
    }
}
