//! How much room user data takes, and compression that gives the same bytes everywhere.

use std::io::Write;

use flate2::{Compression, GzBuilder};

/// What EC2 takes, before base64.
pub const LIMIT: usize = 16_384;
/// How many contributors the table of an over-size error names.
const SHOWN: usize = 8;

/// One contributor to the size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// `preBootstrapCommands[0]`, `/etc/tenon/kubelet.yaml`
    pub name: String,
    pub bytes: usize,
    pub gzip_bytes: usize,
}

impl Piece {
    pub fn new(name: impl Into<String>, content: &[u8]) -> Self {
        Piece { name: name.into(), bytes: content.len(), gzip_bytes: gzip(content).len() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    pub bytes: usize,
    pub limit: usize,
    pub pieces: Vec<Piece>,
}

impl Sizes {
    /// `user data: 4,568 of 16,384 bytes (27%)`
    pub fn meter(&self) -> String {
        let percent = self.bytes * 100 / self.limit;
        format!(
            "user data: {} of {} bytes ({percent}%)",
            thousands(self.bytes),
            thousands(self.limit)
        )
    }

    /// The largest contributors as lines of a table.
    pub fn table(&self) -> Vec<String> {
        let mut pieces: Vec<_> = self.pieces.iter().collect();
        pieces.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.name.cmp(&b.name)));
        let shown = pieces.iter().take(SHOWN);
        let row = |piece: &&Piece| {
            let (raw, gzip) = (thousands(piece.bytes), thousands(piece.gzip_bytes));
            format!("{raw:>8} bytes, {gzip:>7} as gzip  {}", piece.name)
        };
        shown.map(row).collect()
    }
}

/// The same bytes for the same content: no name, time zero, fixed level and system byte.
pub fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder =
        GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    encoder
        .write_all(content)
        .and_then(|()| encoder.finish())
        .expect("writing to memory does not fail")
}

/// `16384` as `16,384`.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meter_reads_well() {
        let sizes = Sizes { bytes: 4568, limit: LIMIT, pieces: Vec::new() };
        assert_eq!(sizes.meter(), "user data: 4,568 of 16,384 bytes (27%)");
    }

    #[test]
    fn gzip_has_no_time_and_no_system() {
        let bytes = gzip(b"hello");
        assert_eq!(&bytes[..2], [0x1f, 0x8b]);
        assert_eq!(&bytes[4..8], [0; 4]);
        assert_eq!(bytes[9], 255);
        assert_eq!(bytes, gzip(b"hello"));
    }
}
