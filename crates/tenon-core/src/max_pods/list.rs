//! Many answers at once: an aligned table, CSV, or the map that a self-contained node reads.

use super::Resolved;
use super::explain::all_notes;
use crate::plan::reserved;

const HEADER: [&str; 10] =
    ["TYPE", "ARCH", "VCPU", "MEMORY", "ENI", "IP", "PODS", "RES CPU", "RES MEM", "NOTES"];
const CSV_HEADER: &str = "type,arch,vcpu,memory_mib,enis,ipv4_per_eni,pods,reserved_cpu_millis,\
                          reserved_memory_mib,notes\n";

/// What a list is ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Name,
    Pods,
    Vcpu,
    Memory,
}

/// Orders the answers; equal ones by name.
pub fn sort(resolved: &mut [Resolved<'_>], by: Sort) {
    resolved.sort_by_key(|one| {
        let key = match by {
            Sort::Name => 0,
            Sort::Pods => one.pods.into(),
            Sort::Vcpu => one.cpus().unwrap_or(0).into(),
            Sort::Memory => one.memory_mib().unwrap_or(0),
        };
        (key, one.instance_type)
    });
}

/// Aligned columns. Notes end at `width`, if there is one.
pub fn table(resolved: &[Resolved<'_>], header: bool, width: Option<usize>) -> String {
    let head = HEADER.map(str::to_owned);
    let mut rows: Vec<[String; 10]> = resolved.iter().map(cells).collect();
    if header {
        rows.insert(0, head);
    }
    let mut widths = [0; 10];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    rows.iter().map(|row| aligned(row, &widths, width) + "\n").collect()
}

fn aligned(row: &[String; 10], widths: &[usize; 10], limit: Option<usize>) -> String {
    let mut line = String::new();
    for (index, (cell, width)) in row.iter().zip(widths).enumerate() {
        // Words to the left, numbers to the right.
        match index {
            0 | 1 => line.push_str(&format!("{cell:<width$}  ")),
            9 => line.push_str(cell),
            _ => line.push_str(&format!("{cell:>width$}  ")),
        }
    }
    let line = line.trim_end();
    match limit.filter(|limit| line.chars().count() > *limit && *limit > 0) {
        Some(limit) => line.chars().take(limit - 1).chain(['…']).collect(),
        None => line.to_owned(),
    }
}

/// A dash stands for what is not known.
fn cells(one: &Resolved<'_>) -> [String; 10] {
    let shown = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    [
        one.instance_type.to_owned(),
        shown(one.row.map(|row| row.arch.name().to_owned())),
        shown(one.cpus().map(|cpus| cpus.to_string())),
        shown(one.memory_mib().map(|mib| format!("{mib}Mi"))),
        shown(one.terms.map(|terms| terms.enis.to_string())),
        shown(one.terms.map(|terms| terms.ipv4_per_eni.to_string())),
        one.pods.to_string(),
        shown(one.cpus().map(|cpus| format!("{}m", reserved::cpu_millis(cpus)))),
        format!("{}Mi", reserved::memory_mib(one.pods)),
        all_notes(one).join("; "),
    ]
}

/// Comma separated values with a header; an unknown value is an empty field.
pub fn csv(resolved: &[Resolved<'_>]) -> String {
    let mut text = CSV_HEADER.to_owned();
    for one in resolved {
        let shown = |value: Option<String>| value.unwrap_or_default();
        let fields = [
            one.instance_type.to_owned(),
            shown(one.row.map(|row| row.arch.name().to_owned())),
            shown(one.cpus().map(|cpus| cpus.to_string())),
            shown(one.memory_mib().map(|mib| mib.to_string())),
            shown(one.terms.map(|terms| terms.enis.to_string())),
            shown(one.terms.map(|terms| terms.ipv4_per_eni.to_string())),
            one.pods.to_string(),
            shown(one.cpus().map(|cpus| reserved::cpu_millis(cpus).to_string())),
            reserved::memory_mib(one.pods).to_string(),
            all_notes(one).join("; "),
        ];
        text.push_str(&fields.map(|field| quoted(&field)).join(","));
        text.push('\n');
    }
    text
}

/// A field with a comma, a quote or a line break stands in quotes.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// `max_pods.map`: one `type count` per line, sorted by name, each type once.
pub fn map(resolved: &[Resolved<'_>]) -> String {
    let mut lines: Vec<String> =
        resolved.iter().map(|one| format!("{} {}\n", one.instance_type, one.pods)).collect();
    lines.sort();
    lines.dedup();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MaxPods;
    use crate::max_pods::resolve;

    fn answers(names: &[&'static str]) -> Vec<Resolved<'static>> {
        names.iter().map(|name| resolve(&MaxPods::default(), name, None).unwrap()).collect()
    }

    #[test]
    fn columns_are_aligned() {
        let text = table(&answers(&["m5.large", "p3.16xlarge"]), true, None);
        let expected = "\
TYPE         ARCH    VCPU    MEMORY  ENI  IP  PODS  RES CPU  RES MEM  NOTES
m5.large     x86_64     2    8192Mi    3  10    29      70m    574Mi
p3.16xlarge  x86_64    64  499712Mi    8  30   234     230m   2829Mi  not listed by the EC2 API; from the overlay
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_narrow_terminal_cuts_the_notes() {
        let text = table(&answers(&["p3.16xlarge"]), false, Some(80));
        assert!(text.lines().all(|line| line.chars().count() == 80), "{text}");
        assert!(text.ends_with("…\n"));
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        let text = csv(&answers(&["m5.large", "i7ie.48xlarge", "x99.large"]));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1], "m5.large,x86_64,2,8192,3,10,29,70,574,");
        assert!(lines[3].starts_with("x99.large,,,,,,110,,1465,"), "{}", lines[3]);
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    #[test]
    fn the_map_is_sorted_and_has_each_type_once() {
        let text = map(&answers(&["m5.xlarge", "c5.large", "m5.xlarge"]));
        assert_eq!(text, "c5.large 29\nm5.xlarge 58\n");
    }

    #[test]
    fn lists_are_ordered_by_what_is_asked() {
        let mut list = answers(&["m5.large", "t3.nano", "c5.large", "m5.24xlarge"]);
        for (by, expected) in [
            (Sort::Name, ["c5.large", "m5.24xlarge", "m5.large", "t3.nano"]),
            (Sort::Pods, ["t3.nano", "c5.large", "m5.large", "m5.24xlarge"]),
            (Sort::Vcpu, ["c5.large", "m5.large", "t3.nano", "m5.24xlarge"]),
            (Sort::Memory, ["t3.nano", "c5.large", "m5.large", "m5.24xlarge"]),
        ] {
            sort(&mut list, by);
            let names: Vec<_> = list.iter().map(|one| one.instance_type).collect();
            assert_eq!(names, expected, "{by:?}");
        }
    }
}
