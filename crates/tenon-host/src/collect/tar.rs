//! The one form of archive member that bundles have: a plain file in a ustar header.
//!
//! Everything else that tar can express (links, devices, long names, sparse files, attributes)
//! is what hostile archives are made of. Bundles do not need it, so it is neither written nor
//! accepted.

use std::io::{self, Read};

pub const BLOCK: usize = 512;
const NAME: usize = 100;
const PREFIX: usize = 155;
/// As the limits of this project have it.
const LONGEST_PART: usize = 255;

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub path: String,
    pub size: u64,
}

/// Why an archive is not read on.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not one, or it is damaged.
    Damaged(String),
    /// It holds what no bundle holds.
    Hostile(String),
}

/// The header of a member: owner root, mode 0600, the time given.
pub fn header(path: &str, size: u64, time_s: u64) -> Option<[u8; BLOCK]> {
    let (prefix, name) = split(path)?;
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000600\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, format!("{time_s:011o}\0").as_bytes());
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(block)
}

/// How many zeros follow a content of this size.
pub fn padding(size: u64) -> usize {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    if over == 0 { 0 } else { BLOCK - over }
}

/// Splits a path at a slash so that both parts fit; None if there is no such slash.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= NAME {
        return Some(("", path));
    }
    let slash = path.char_indices().find(|(at, c)| *c == '/' && path.len() - at - 1 <= NAME)?.0;
    (slash <= PREFIX).then(|| (&path[..slash], &path[slash + 1..]))
}

/// Reads the next header; None at the end of the archive.
pub fn next(from: &mut impl Read) -> Result<Option<Member>, Refusal> {
    let mut block = [0; BLOCK];
    read_whole(from, &mut block)?;
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let sum: u32 = block
        .iter()
        .enumerate()
        .map(|(at, byte)| match at {
            148..156 => 32,
            _ => u32::from(*byte),
        })
        .sum();
    if number(&block[148..156]) != Some(u64::from(sum)) || &block[257..262] != b"ustar" {
        return Err(Refusal::Damaged("a header is not one of an archive".into()));
    }
    let path = match text(&block[345..500])? {
        prefix if prefix.is_empty() => text(&block[..NAME])?,
        prefix => format!("{prefix}/{}", text(&block[..NAME])?),
    };
    let kind = block[156];
    if !matches!(kind, b'0' | 0) {
        let kind = char::from(kind).escape_default();
        return Err(Refusal::Hostile(format!("a member of type `{kind}`, which is not a file")));
    }
    if !is_safe(&path) {
        return Err(Refusal::Hostile("a member whose path leads out of the bundle".into()));
    }
    let size = number(&block[124..136]);
    let size = size.ok_or_else(|| Refusal::Damaged("a member without a size".into()))?;
    Ok(Some(Member { path, size }))
}

/// True for a path that stays where it is put.
fn is_safe(path: &str) -> bool {
    let part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && part.len() <= LONGEST_PART
            && !part.chars().any(char::is_control)
    };
    path.split('/').all(part)
}

fn text(field: &[u8]) -> Result<String, Refusal> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8(field[..end].to_vec())
        .map_err(|_| Refusal::Hostile("a member whose name is not text".into()))
}

fn number(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_matches(['\0', ' ']);
    u64::from_str_radix(text, 8).ok()
}

/// Fills the block; the end of the file in its midst is damage.
pub fn read_whole(from: &mut impl Read, block: &mut [u8]) -> Result<(), Refusal> {
    from.read_exact(block).map_err(|error| damaged(&error))
}

pub fn damaged(error: &io::Error) -> Refusal {
    Refusal::Damaged(match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
        _ => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back() {
        let long = format!("pods/aws-node/{}/aws-node/0.log", "x".repeat(90));
        for path in ["a", "kubelet/journal.log", long.as_str()] {
            let block = header(path, 1234, 5).unwrap();
            let member = next(&mut block.as_slice()).unwrap().unwrap();
            assert_eq!(member, Member { path: path.to_owned(), size: 1234 });
        }
        assert_eq!(header(&"x".repeat(101), 0, 0), None);
        assert_eq!([0, 1, 511, 512].map(padding), [0, 511, 1, 0]);
    }

    #[test]
    fn what_bundles_do_not_have_is_refused() {
        for path in ["../x", "/etc/passwd", "a/../../b", "a//b", "a/./b", "a\u{1b}b"] {
            let block = header(path, 0, 0).unwrap();
            assert!(matches!(next(&mut block.as_slice()), Err(Refusal::Hostile(_))), "{path}");
        }
        for kind in *b"12345678xgLKS" {
            let mut block = header("a", 0, 0).unwrap();
            let before = u32::from(block[156]);
            let sum = number(&block[148..156]).unwrap() as u32 - before + u32::from(kind);
            block[156] = kind;
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            let found = next(&mut block.as_slice());
            assert!(matches!(found, Err(Refusal::Hostile(_))), "{}", kind as char);
        }
        let mut changed = header("a", 0, 0).unwrap();
        changed[0] = b'b';
        assert!(matches!(next(&mut changed.as_slice()), Err(Refusal::Damaged(_))));
        assert!(matches!(next(&mut &b"short"[..]), Err(Refusal::Damaged(_))));
    }
}
