//! Whose limit is asked for, and what is known about it.

use super::instances::{InstanceType, Table, Virt};
use crate::facts::InstanceLimits;

/// What the limit is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Subject<'a> {
    Known(Limits<'a>),
    /// A type that no table and no fact knows.
    Unknown(&'a str),
    /// No cloud, hence no instance type: that is no reason for a warning.
    NoPlatform,
}

/// What the formulas need of a type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits<'a> {
    pub name: &'a str,
    pub enis: u32,
    pub ipv4_per_eni: u32,
    pub vcpu: u32,
    /// The whole row, when a table knows the type.
    pub row: Option<InstanceType<'a>>,
    pub source: Source<'a>,
}

/// Who answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// `table`, `file`, `facts`, `ec2`, `default`
    pub kind: &'static str,
    pub date: &'a str,
    pub version: &'a str,
}

impl Source<'_> {
    pub(super) const DEFAULT: Source<'static> = Source { kind: "default", date: "", version: "" };
}

impl<'a> Limits<'a> {
    fn of_row(row: InstanceType<'a>, kind: &'static str, table: Table<'a>) -> Self {
        let head = table.head();
        Limits {
            name: row.name,
            enis: row.enis,
            ipv4_per_eni: row.ipv4_per_eni,
            vcpu: row.vcpu,
            row: Some(row),
            source: Source { kind, date: head.date, version: head.source },
        }
    }

    /// Numbers without a row, and who gave them.
    pub fn bare(name: &'a str, limits: InstanceLimits, kind: &'static str) -> Self {
        Limits {
            name,
            enis: limits.default_enis,
            ipv4_per_eni: limits.ipv4_per_eni,
            vcpu: limits.vcpu,
            row: None,
            source: Source { kind, date: "", version: "" },
        }
    }

    /// None when only the numbers are known.
    pub fn virt(&self) -> Option<Virt> {
        self.row.map(|row| row.virt)
    }
}

impl<'a> Subject<'a> {
    /// Looks in the embedded table, then in the user's tables, then in the facts.
    pub fn find(name: &'a str, tables: &[Table<'a>], limits: Option<InstanceLimits>) -> Self {
        if name.is_empty() {
            return Subject::NoPlatform;
        }
        if let Some(row) = Table::embedded().find(name) {
            return Subject::Known(Limits::of_row(row, "table", Table::embedded()));
        }
        let brought = tables.iter().find_map(|table| Some((table.find(name)?, *table)));
        match (brought, limits) {
            (Some((row, table)), _) => Subject::Known(Limits::of_row(row, "file", table)),
            (None, Some(limits)) => Subject::Known(Limits::bare(name, limits, "facts")),
            (None, None) => Subject::Unknown(name),
        }
    }
}
