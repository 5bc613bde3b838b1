//! Against files that systemd 252 wrote, in both layouts, with what `journalctl` says of them.

use std::io::Read;
use std::path::Path;

use super::*;

const COMPACT: (&[u8], &str) =
    (include_bytes!("fixtures/compact.journal.gz"), include_str!("fixtures/compact.tsv"));
const REGULAR: (&[u8], &str) =
    (include_bytes!("fixtures/regular.journal.gz"), include_str!("fixtures/regular.tsv"));

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn place(dir: &Path, name: &str, bytes: &[u8]) {
    let directory = dir.join("var/log/journal/0123456789abcdef0123456789abcdef");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(name), bytes).unwrap();
}

fn read(dir: &Path, of: Match, since_us: Option<u64>, most_bytes: u64) -> (Vec<Entry>, Reader) {
    let root = Root::open(dir).unwrap();
    let query = Query { of, since_us, most_bytes };
    let mut reader = Reader::open(&root, &query).unwrap();
    reader.rewind(&query, &|| true);
    let entries = std::iter::from_fn(|| reader.next_entry()).collect();
    (entries, reader)
}

fn row(entry: &Entry) -> String {
    let Entry { time_us, boot, unit, identifier, priority, message, .. } = entry;
    let message = message.replace('\n', "\\n");
    format!("{time_us}\t{boot}\t{unit}\t{identifier}\t{priority}\t{message}")
}

#[test]
fn every_entry_is_as_journalctl_says() {
    for (packed, expected) in [COMPACT, REGULAR] {
        let dir = tempfile::tempdir().unwrap();
        place(dir.path(), "system.journal", &unpack(packed));
        let (entries, reader) = read(dir.path(), Match::All, None, 1 << 20);
        let rows: Vec<_> = entries.iter().map(row).collect();
        assert_eq!(rows, expected.lines().collect::<Vec<_>>());
        assert!(!reader.cut && reader.broken.is_empty() && reader.unreadable() == 0);
        let boot = last_boot(&Root::open(dir.path()).unwrap());
        assert_eq!(boot.as_deref(), Some("11111111222233334444555555555555"));
    }
}

#[test]
fn the_index_gives_what_a_unit_or_program_wrote() {
    for (packed, expected) in [COMPACT, REGULAR] {
        let dir = tempfile::tempdir().unwrap();
        place(dir.path(), "system.journal", &unpack(packed));
        for (of, column, value) in [
            (Match::Unit("kubelet.service".into()), 2, "kubelet.service"),
            (Match::Identifier("many".into()), 3, "many"),
            (Match::Identifier("tenon".into()), 3, "tenon"),
        ] {
            let rows: Vec<_> = read(dir.path(), of, None, 1 << 20).0.iter().map(row).collect();
            let wanted =
                expected.lines().filter(|line| line.split('\t').nth(column) == Some(value));
            assert_eq!(rows, wanted.collect::<Vec<_>>());
        }
        assert!(read(dir.path(), Match::Unit("none.service".into()), None, 100).0.is_empty());
        assert!(read(dir.path(), Match::Kernel, None, 100).0.is_empty());
    }
}

#[test]
fn the_newest_are_kept_and_the_older_are_counted_out() {
    let dir = tempfile::tempdir().unwrap();
    place(dir.path(), "system.journal", &unpack(COMPACT.0));
    let (entries, reader) = read(dir.path(), Match::Identifier("many".into()), None, 400);
    assert!(reader.cut && (2..8).contains(&entries.len()), "{}", entries.len());
    assert_eq!(entries.last().unwrap().message, "number 40");
    let since = entries[0].time_us;
    let (later, reader) = read(dir.path(), Match::Identifier("many".into()), Some(since), 1 << 20);
    assert_eq!(later, entries);
    assert!(!reader.cut);
}

#[test]
fn files_are_merged_by_time() {
    let dir = tempfile::tempdir().unwrap();
    place(dir.path(), "system@old.journal", &unpack(COMPACT.0));
    place(dir.path(), "system.journal", &unpack(REGULAR.0));
    let (entries, _) = read(dir.path(), Match::All, None, 1 << 20);
    assert_eq!(entries.len(), 102);
    assert!(entries.windows(2).all(|pair| pair[0].time_us <= pair[1].time_us));
}

#[test]
fn a_broken_file_costs_its_own_entries_only() {
    let whole = unpack(COMPACT.0);
    let all = COMPACT.1.lines().count();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    for cut in [0, 7, 100, 300, used / 2, used - 200, used - 1] {
        let dir = tempfile::tempdir().unwrap();
        place(dir.path(), "system@cut.journal~", &whole[..cut]);
        place(dir.path(), "system.journal", &unpack(REGULAR.0));
        let (entries, reader) = read(dir.path(), Match::All, None, 1 << 20);
        assert!((all..=2 * all).contains(&entries.len()), "{cut}: {}", entries.len());
        assert_eq!(reader.broken.len(), usize::from(cut < 208), "{cut}");
    }
}

/// Whatever a byte becomes, reading ends and nothing panics.
#[test]
fn no_changed_byte_leads_astray() {
    let whole = unpack(COMPACT.0);
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for at in (0..used).step_by(used / 150) {
        let mut bytes = whole.clone();
        bytes[at] = bytes[at].wrapping_add(0x55);
        place(dir.path(), "system.journal", &bytes);
        let (entries, _) = read(dir.path(), Match::All, None, 1 << 20);
        assert!(entries.len() <= 102, "{at}");
        read(dir.path(), Match::Unit("kubelet.service".into()), None, 1 << 20);
    }
}

#[test]
fn a_field_that_cannot_be_unpacked_is_counted() {
    const LZ4: u8 = 2;
    let mut bytes = unpack(COMPACT.0);
    // The long message is the one object that is packed: a data object with the flag of ZSTD.
    let packed = (208..bytes.len() - 16)
        .step_by(8)
        .find(|at| bytes[*at] == 1 && bytes[at + 1] == 4 && bytes[at + 2..at + 8] == [0; 6])
        .unwrap();
    bytes[packed + 1] = LZ4;
    let dir = tempfile::tempdir().unwrap();
    place(dir.path(), "system.journal", &bytes);
    let (entries, reader) = read(dir.path(), Match::All, None, 1 << 20);
    assert_eq!(entries.len(), COMPACT.1.lines().count());
    assert!(reader.unreadable() > 0);
}
