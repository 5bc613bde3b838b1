//! The table of EC2 instance types: one line of text per type, sorted, searched where it lies.
//!
//! Nothing is parsed until somebody asks. A lookup bisects the bytes of the text and allocates
//! nothing; the columns and their grammar are those of `docs/max-pods.md`.

use std::cmp::Ordering;

static EMBEDDED: &str = include_str!("instances.tsv");

/// Columns of a line.
const COLUMNS: usize = 14;

/// A table as text: the embedded one, or one that a user brought.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Table<'a> {
    text: &'a str,
    /// Where the first row begins.
    body: usize,
}

/// Where a table came from, from the comment lines at its top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head<'a> {
    /// `moto 5.2.5`
    pub source: &'a str,
    pub date: &'a str,
    pub types: &'a str,
    pub rows_sha256: &'a str,
}

/// One instance type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InstanceType<'a> {
    pub name: &'a str,
    /// Interfaces of the default network card: the only ones that carry pods.
    pub enis: u32,
    pub ipv4_per_eni: u32,
    /// 0 means no IPv6.
    pub ipv6_per_eni: u32,
    pub vcpu: u32,
    pub memory_mib: u64,
    pub arch: Arch,
    pub virt: Virt,
    pub cards: u32,
    /// Interfaces over all cards; for diagnostics, never for a formula.
    pub enis_total: u32,
    /// EFA interfaces; 0 means none.
    pub efa: u32,
    accelerators: &'a str,
    disks: &'a str,
    pub origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arch {
    X86_64,
    Arm64,
    /// Listed, never a Linux node.
    Mac,
}

impl Arch {
    pub fn name(self) -> &'static str {
        match self {
            Arch::X86_64 => "x86_64",
            Arch::Arm64 => "arm64",
            Arch::Mac => "mac",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Virt {
    Nitro,
    Xen,
    Metal,
}

impl Virt {
    pub fn name(self) -> &'static str {
        match self {
            Virt::Nitro => "nitro",
            Virt::Xen => "xen",
            Virt::Metal => "metal",
        }
    }
}

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Api,
    /// Not listed by the API (any more); from the overlay of the generator.
    Overlay,
    /// Listed by the API, corrected by the overlay.
    Corrected,
}

/// One group of equal accelerators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accelerator<'a> {
    pub kind: AcceleratorKind,
    pub count: u32,
    /// Cores per device, for Neuron; otherwise 0.
    pub cores: u32,
    pub model: &'a str,
    pub memory_mib: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceleratorKind {
    Nvidia,
    Amd,
    Habana,
    Qualcomm,
    Neuron,
    Fpga,
}

impl AcceleratorKind {
    pub fn name(self) -> &'static str {
        match self {
            AcceleratorKind::Nvidia => "nvidia",
            AcceleratorKind::Amd => "amd",
            AcceleratorKind::Habana => "habana",
            AcceleratorKind::Qualcomm => "qualcomm",
            AcceleratorKind::Neuron => "neuron",
            AcceleratorKind::Fpga => "fpga",
        }
    }

    /// True for graphics processors.
    pub fn is_gpu(self) -> bool {
        matches!(self, AcceleratorKind::Nvidia | AcceleratorKind::Amd)
    }
}

/// One group of equal local disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalDisks {
    pub count: u32,
    pub size_gb: u64,
    pub kind: DiskKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskKind {
    Nvme,
    Ssd,
    Hdd,
}

impl DiskKind {
    pub fn name(self) -> &'static str {
        match self {
            DiskKind::Nvme => "nvme",
            DiskKind::Ssd => "ssd",
            DiskKind::Hdd => "hdd",
        }
    }
}

/// A line that is not a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableError {
    /// From 1.
    pub line: usize,
    pub message: String,
}

/// Finds a type in the embedded table.
pub fn find(name: &str) -> Option<InstanceType<'static>> {
    Table::embedded().find(name)
}

impl<'a> Table<'a> {
    /// The table inside this binary.
    pub fn embedded() -> Table<'static> {
        Table { text: EMBEDDED, body: body_start(EMBEDDED) }
    }

    /// Takes a table of the same grammar, checked whole: a user's file may hold anything.
    pub fn parse(text: &'a str) -> Result<Self, TableError> {
        let mut before = "";
        for (index, line) in text.lines().enumerate() {
            let error = |message: &str| TableError { line: index + 1, message: message.into() };
            if line.starts_with('#') {
                if !before.is_empty() {
                    return Err(error("comment lines stand at the top only"));
                }
                continue;
            }
            let row = row(line).ok_or_else(|| error("not a row of 14 columns, tab separated"))?;
            if row.name <= before {
                return Err(error("rows must be sorted by name, each name once"));
            }
            before = row.name;
        }
        Ok(Table { text, body: body_start(text) })
    }

    pub fn head(&self) -> Head<'a> {
        let head = &self.text[..self.body];
        let value = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(name));
            line.map_or("", str::trim)
        };
        Head {
            source: value("source "),
            date: value("date "),
            types: value("types "),
            rows_sha256: value("rows-sha256 "),
        }
    }

    /// The rows as they stand, without the comment lines.
    pub fn rows_text(&self) -> &'a str {
        &self.text[self.body..]
    }

    /// Every type, in order of its name.
    pub fn rows(&self) -> impl Iterator<Item = InstanceType<'a>> + use<'a> {
        self.rows_text().lines().filter_map(row)
    }

    /// Finds a type by its exact name.
    pub fn find(&self, name: &str) -> Option<InstanceType<'a>> {
        self.probe(name).0
    }

    /// Bisects the bytes: look at the line around the middle, keep the half that can hold the
    /// name. Gives the number of lines looked at, too.
    fn probe(&self, name: &str) -> (Option<InstanceType<'a>>, u32) {
        let rows = self.rows_text();
        let (mut low, mut high) = (0, rows.len());
        let mut probes = 0;
        while low < high {
            probes += 1;
            let (start, end) = line_around(rows, low, high);
            let line = &rows[start..end];
            match name.cmp(line.split('\t').next().unwrap_or(line)) {
                Ordering::Equal => return (row(line), probes),
                Ordering::Less => high = start,
                Ordering::Greater => low = end + 1,
            }
        }
        (None, probes)
    }
}

/// The line in the middle of a range that begins and ends at line borders.
fn line_around(rows: &str, low: usize, high: usize) -> (usize, usize) {
    let bytes = rows.as_bytes();
    let middle = low + (high - low) / 2;
    let newline = |byte: &u8| *byte == b'\n';
    let before = bytes[low..middle].iter().rposition(newline);
    let start = before.map_or(low, |at| low + at + 1);
    let after = bytes[middle..high].iter().position(newline);
    (start, after.map_or(high, |at| middle + at))
}

/// Where the comment lines end.
fn body_start(text: &str) -> usize {
    text.split_inclusive('\n').take_while(|line| line.starts_with('#')).map(str::len).sum()
}

/// Reads one line; None when it breaks the grammar.
fn row(line: &str) -> Option<InstanceType<'_>> {
    let mut columns = [""; COLUMNS];
    let mut words = line.split('\t');
    for column in &mut columns {
        *column = words.next()?;
    }
    let [name, enis, ipv4, ipv6, vcpu, memory, arch, virt, cards, total, efa, accel, disks, origin] =
        columns;
    let whole = words.next().is_none() && is_name(name);
    let lists = list(accel).all(|text| accelerator(text).is_some())
        && list(disks).all(|text| disk(text).is_some());
    let row = InstanceType {
        name,
        enis: enis.parse().ok()?,
        ipv4_per_eni: ipv4.parse().ok().filter(|count| *count > 0)?,
        ipv6_per_eni: ipv6.parse().ok()?,
        vcpu: vcpu.parse().ok().filter(|count| *count > 0)?,
        memory_mib: memory.parse().ok().filter(|mib| *mib > 0)?,
        arch: arch_of(arch)?,
        virt: virt_of(virt)?,
        cards: cards.parse().ok()?,
        enis_total: total.parse().ok()?,
        efa: efa.parse().ok()?,
        accelerators: accel,
        disks,
        origin: origin_of(origin)?,
    };
    (whole && lists).then_some(row)
}

/// `family.size`, each of small letters, digits and dashes.
fn is_name(text: &str) -> bool {
    let part = |part: &str| {
        let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        !part.is_empty() && part.bytes().all(fits)
    };
    text.split_once('.').is_some_and(|(family, size)| part(family) && part(size))
}

fn arch_of(text: &str) -> Option<Arch> {
    match text {
        "x" => Some(Arch::X86_64),
        "a" => Some(Arch::Arm64),
        "m" => Some(Arch::Mac),
        _ => None,
    }
}

fn virt_of(text: &str) -> Option<Virt> {
    match text {
        "n" => Some(Virt::Nitro),
        "x" => Some(Virt::Xen),
        "m" => Some(Virt::Metal),
        _ => None,
    }
}

fn origin_of(text: &str) -> Option<Origin> {
    match text {
        "-" => Some(Origin::Api),
        "o" => Some(Origin::Overlay),
        "c" => Some(Origin::Corrected),
        _ => None,
    }
}

/// The parts of a column that is `-` or a list joined by `+`.
fn list(column: &str) -> impl Iterator<Item = &str> {
    column.split('+').filter(|part| *part != "-")
}

/// `n8:H100:81920`, `t16.2:Trainium:32768`
fn accelerator(text: &str) -> Option<Accelerator<'_>> {
    let kind = match text.chars().next()? {
        'n' => AcceleratorKind::Nvidia,
        'a' => AcceleratorKind::Amd,
        'h' => AcceleratorKind::Habana,
        'q' => AcceleratorKind::Qualcomm,
        't' => AcceleratorKind::Neuron,
        'f' => AcceleratorKind::Fpga,
        _ => return None,
    };
    let (count, rest) = text[1..].split_once(':')?;
    let (model, memory) = rest.split_once(':')?;
    let (count, cores) = match (kind, count.split_once('.')) {
        (AcceleratorKind::Neuron, Some((count, cores))) => (count, cores.parse().ok()?),
        (AcceleratorKind::Neuron, None) | (_, Some(_)) => return None,
        (_, None) => (count, 0),
    };
    let (count, memory_mib) = (count.parse().ok()?, memory.parse().ok()?);
    (!model.is_empty()).then_some(Accelerator { kind, count, cores, model, memory_mib })
}

/// `2x900n`
fn disk(text: &str) -> Option<LocalDisks> {
    let (count, rest) = text.split_once('x')?;
    let (size, kind) = rest.split_at_checked(rest.len().checked_sub(1)?)?;
    let kind = match kind {
        "n" => DiskKind::Nvme,
        "s" => DiskKind::Ssd,
        "h" => DiskKind::Hdd,
        _ => return None,
    };
    Some(LocalDisks { count: count.parse().ok()?, size_gb: size.parse().ok()?, kind })
}

impl<'a> InstanceType<'a> {
    pub fn accelerators(&self) -> impl Iterator<Item = Accelerator<'a>> + use<'a> {
        list(self.accelerators).filter_map(accelerator)
    }

    pub fn disks(&self) -> impl Iterator<Item = LocalDisks> + use<'a> {
        list(self.disks).filter_map(disk)
    }

    pub fn has_gpu(&self) -> bool {
        self.accelerators().any(|accelerator| accelerator.kind.is_gpu())
    }

    /// `m5` of `m5.large`
    pub fn family(&self) -> &'a str {
        self.name.split('.').next().unwrap_or(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_looks_at_few_lines() {
        let table = Table::embedded();
        let worst = table.rows().map(|row| table.probe(row.name).1).max();
        let absent = table.rows().map(|row| table.probe(&format!("{}x", row.name)).1).max();
        assert!(worst <= Some(MOST_PROBES) && absent <= Some(MOST_PROBES), "{worst:?} {absent:?}");
    }

    /// Halving 1,414 lines takes 11; lines differ in length, and bytes are what is halved.
    const MOST_PROBES: u32 = 11;
}
