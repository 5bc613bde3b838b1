//! What is on a disk, told by the marks that file systems and arrays leave at fixed places.
//!
//! The question behind it is "may this be formatted?", so anything that is not all zero at its
//! beginning counts as something.

use std::io;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signature {
    /// `xfs`, `ext4`, `linux_raid_member`, …; None when blank.
    pub kind: Option<&'static str>,
    /// UUID of the file system or of the array.
    pub uuid: Option<String>,
    /// Name in the metadata of an array, without the host in front.
    pub array_name: Option<String>,
}

/// How much of the beginning is looked at: up to the mark of the last known file system.
pub const HEAD: usize = 0x1_1000;

/// A mark: bytes at an offset, the name of what they mean, and where its UUID stands.
struct Mark {
    offset: usize,
    bytes: &'static [u8],
    kind: &'static str,
    uuid_at: Option<usize>,
}

/// In order of trust: arrays and partition tables keep clear of what they contain, so their
/// marks come first.
const MARKS: &[Mark] = &[
    Mark { offset: 0x1000, bytes: &MD_MAGIC, kind: RAID, uuid_at: Some(0x1010) },
    Mark { offset: 0, bytes: &MD_MAGIC, kind: RAID, uuid_at: Some(0x10) },
    Mark { offset: 512, bytes: b"EFI PART", kind: TABLE, uuid_at: None },
    Mark { offset: 4096, bytes: b"EFI PART", kind: TABLE, uuid_at: None },
    Mark { offset: 0, bytes: b"XFSB", kind: "xfs", uuid_at: Some(32) },
    Mark { offset: 1024 + 56, bytes: &[0x53, 0xef], kind: "ext4", uuid_at: Some(1024 + 104) },
    Mark { offset: 0x1_0040, bytes: b"_BHRfS_M", kind: "btrfs", uuid_at: Some(0x1_0020) },
    Mark { offset: 4086, bytes: b"SWAPSPACE2", kind: "swap", uuid_at: Some(1024 + 12) },
    Mark { offset: 0, bytes: b"LUKS\xba\xbe", kind: "crypto_LUKS", uuid_at: None },
    Mark { offset: 512, bytes: b"LABELONE", kind: LVM, uuid_at: None },
    Mark { offset: 0, bytes: b"LABELONE", kind: LVM, uuid_at: None },
    Mark { offset: 1024, bytes: b"LABELONE", kind: LVM, uuid_at: None },
    Mark { offset: 1536, bytes: b"LABELONE", kind: LVM, uuid_at: None },
    Mark { offset: 54, bytes: b"FAT1", kind: "vfat", uuid_at: None },
    Mark { offset: 82, bytes: b"FAT32", kind: "vfat", uuid_at: None },
    Mark { offset: 510, bytes: &[0x55, 0xaa], kind: TABLE, uuid_at: None },
];

const MD_MAGIC: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();
const RAID: &str = "linux_raid_member";
const TABLE: &str = "partition-table";
const LVM: &str = "LVM2_member";
/// Content without a mark that is known here.
const UNKNOWN: &str = "unknown";

/// Looks at a disk of `size` bytes; `read(offset, length)` gives up to that many bytes.
pub fn detect(
    size: u64,
    mut read: impl FnMut(u64, usize) -> io::Result<Vec<u8>>,
) -> io::Result<Signature> {
    let head = read(0, HEAD)?;
    let found = at_the_beginning(&head);
    if found.kind.is_some_and(|kind| kind != UNKNOWN) {
        return Ok(found);
    }
    for offset in superblocks_at_the_end(size) {
        let block = read(offset, 64)?;
        if block.starts_with(&MD_MAGIC) {
            return Ok(Signature { kind: Some(RAID), ..Signature::default() });
        }
    }
    Ok(found)
}

fn at_the_beginning(head: &[u8]) -> Signature {
    let found = MARKS
        .iter()
        .find(|mark| head.get(mark.offset..mark.offset + mark.bytes.len()) == Some(mark.bytes));
    match found {
        Some(mark) => Signature {
            kind: Some(mark.kind),
            uuid: mark.uuid_at.and_then(|at| uuid(head.get(at..at + 16)?)),
            array_name: (mark.kind == RAID).then(|| array_name(head, mark.offset)).flatten(),
        },
        None if head.iter().any(|byte| *byte != 0) => {
            Signature { kind: Some(UNKNOWN), ..Signature::default() }
        }
        None => Signature::default(),
    }
}

/// Where arrays of metadata 1.0 and 0.90 keep theirs.
fn superblocks_at_the_end(size: u64) -> Vec<u64> {
    let sectors = size / 512;
    let version_1_0 = (sectors.checked_sub(16)).map(|sector| (sector & !7) * 512);
    let version_0_90 = (size & !0xffff).checked_sub(0x1_0000);
    version_1_0.into_iter().chain(version_0_90).collect()
}

/// `host:kubernetes` or `kubernetes`, 32 bytes padded with zeros.
fn array_name(head: &[u8], superblock: usize) -> Option<String> {
    let bytes = head.get(superblock + 32..superblock + 64)?;
    let text = std::str::from_utf8(bytes).ok()?.trim_end_matches('\0');
    let name = text.split_once(':').map_or(text, |(_, name)| name);
    (!name.is_empty()).then(|| name.to_owned())
}

fn uuid(bytes: &[u8]) -> Option<String> {
    if bytes.iter().all(|byte| *byte == 0) {
        return None;
    }
    let hex = tenon_core::hex::hex(bytes);
    Some([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1 << 20;

    fn look(writes: &[(usize, &[u8])]) -> Signature {
        let mut disk = vec![0; SIZE as usize];
        for (offset, bytes) in writes {
            disk[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        detect(SIZE, |offset, length| {
            let start = (offset as usize).min(disk.len());
            Ok(disk[start..(start + length).min(disk.len())].to_vec())
        })
        .unwrap()
    }

    #[test]
    fn marks_name_their_owner() {
        let uuid: [u8; 16] = std::array::from_fn(|i| i as u8 + 1);
        let text = Some("01020304-0506-0708-090a-0b0c0d0e0f10");
        type Row<'a> = (&'a [(usize, &'a [u8])], Option<&'a str>, Option<&'a str>);
        let rows: [Row<'_>; 10] = [
            (&[], None, None),
            (&[(0, b"XFSB"), (32, &uuid)], Some("xfs"), text),
            (&[(1080, &[0x53, 0xef]), (1128, &uuid)], Some("ext4"), text),
            (&[(4086, b"SWAPSPACE2"), (1036, &uuid)], Some("swap"), text),
            (&[(512, b"EFI PART"), (510, &[0x55, 0xaa])], Some("partition-table"), None),
            (&[(510, &[0x55, 0xaa])], Some("partition-table"), None),
            (&[(512, b"LABELONE")], Some("LVM2_member"), None),
            (&[(0x1_0040, b"_BHRfS_M"), (0x1_0020, &uuid)], Some("btrfs"), text),
            (&[(0x2000, b"something")], Some("unknown"), None),
            (&[(SIZE as usize - 0x2000, &MD_MAGIC)], Some("linux_raid_member"), None),
        ];
        for (writes, kind, uuid) in rows {
            let found = look(writes);
            assert_eq!((found.kind, found.uuid.as_deref()), (kind, uuid), "{kind:?}");
        }
    }

    #[test]
    fn a_raid_member_carries_its_array_name_without_the_host() {
        for name in [&b"node-1:kubernetes"[..], b"kubernetes"] {
            let found = look(&[(0x1000, &MD_MAGIC), (0x1020, name)]);
            assert_eq!(found.kind, Some("linux_raid_member"));
            assert_eq!(found.array_name.as_deref(), Some("kubernetes"));
        }
    }

    #[test]
    fn an_array_wins_over_what_it_contains() {
        // RAID0 with metadata at the end leaves the file system's own mark at the beginning.
        let found = look(&[(0x1000, &MD_MAGIC), (0, b"XFSB")]);
        assert_eq!(found.kind, Some("linux_raid_member"));
    }
}
