//! An outside judge: the CNI project's list of pods per type.
//!
//! The list is fetched by name with the `go` tool and compared, never copied. Types where the
//! lists are known to disagree are named here one by one; the reasons are in `docs/max-pods.md`.

use anyhow::{Context, bail};
use tenon_core::max_pods::{Table, plain};

use crate::go;

const MODULE: &str = "github.com/aws/amazon-vpc-cni-k8s@v1.23.2";
const LIST: &str = "misc/eni-max-pods.txt";

/// Type, pods in the list, pods in the table.
const DISAGREEMENTS: &[(&str, u32, u32)] = &[];

/// Compares every shared type; tells how many agree.
pub(crate) fn compare(table: Table<'_>) -> anyhow::Result<String> {
    let path = go::download(MODULE)?.join(LIST);
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {LIST}"))?;
    let mut agreed = 0;
    let mut missing = Vec::new();
    let mut wrong = Vec::new();
    for (name, pods) in text.lines().filter_map(entry) {
        let Some(row) = table.find(name) else {
            missing.push(name);
            continue;
        };
        let ours = plain(row.enis, row.ipv4_per_eni);
        if ours == pods || DISAGREEMENTS.contains(&(name, pods, ours)) {
            agreed += usize::from(ours == pods);
        } else {
            wrong.push(format!("{name}: {pods} in the list, {ours} in the table"));
        }
    }
    if !wrong.is_empty() {
        bail!("unexpected disagreements with {MODULE}:\n{}", wrong.join("\n"));
    }
    Ok(format!("{agreed} types agree with {MODULE}; not in the table: {}\n", missing.join(" ")))
}

/// `m5.large 29`
fn entry(line: &str) -> Option<(&str, u32)> {
    let (name, pods) = line.split_once(char::is_whitespace)?;
    Some((name, pods.trim().parse().ok()?)).filter(|_| !name.starts_with('#'))
}
