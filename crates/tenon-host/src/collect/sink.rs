//! Where the content of one item goes: through the redactor, into a packed stream, onto a spool.
//!
//! An item is packed while it is read, as a gzip member of its own; the archive is made by
//! putting members one after the other. So a spool holds packed bytes only, and the size of an
//! item never shows in memory.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use tenon_core::hex::hex;
use tenon_core::redact::{Book, Redactor};

use super::tar;

/// Speed matters more than the last percent: logs shrink to a tenth at any level.
const LEVEL: Compression = Compression::new(4);

/// What all items together may use.
#[derive(Debug)]
pub struct Room {
    /// Bytes of content, before packing.
    pub content: AtomicU64,
    pub most_content: u64,
    /// Bytes on the spools.
    pub packed: AtomicU64,
    pub most_packed: u64,
}

impl Room {
    /// True when nothing more may be taken.
    pub fn is_full(&self) -> bool {
        self.content.load(Ordering::Relaxed) >= self.most_content
            || self.packed.load(Ordering::Relaxed) >= self.most_packed
    }
}

/// A stretch of a spool.
#[derive(Debug, Clone)]
pub struct Part {
    spool: Arc<File>,
    at: u64,
    pub length: u64,
}

impl Part {
    /// Copies the stretch to the archive.
    pub fn copy_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        let (mut at, end) = (self.at, self.at + self.length);
        while at < end {
            let most = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            let count = self.spool.read_at(&mut buffer[..most], at)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            out.write_all(&buffer[..count])?;
            at += count as u64;
        }
        Ok(())
    }
}

/// The open end of a spool.
#[derive(Debug)]
pub struct Spool {
    file: Arc<File>,
    end: u64,
    room: Arc<Room>,
}

impl Spool {
    pub fn new(file: File, room: Arc<Room>) -> Self {
        Spool { file: Arc::new(file), end: 0, room }
    }
}

impl Write for &mut Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write_at(bytes, self.end)?;
        self.end += count as u64;
        self.room.packed.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a finished item is.
#[derive(Debug)]
pub struct Packed {
    pub part: Part,
    pub bytes: u64,
    pub sha256: String,
    pub redactions: u64,
}

/// Takes the content of one item.
pub struct Sink<'s> {
    packer: GzEncoder<&'s mut Spool>,
    start: u64,
    book: Option<&'s Book>,
    redactor: Redactor,
    scratch: Vec<u8>,
    hash: Sha256,
    bytes: u64,
    failed: Option<io::Error>,
}

impl<'s> Sink<'s> {
    /// `book`: None leaves secrets where they are.
    pub fn new(spool: &'s mut Spool, book: Option<&'s Book>) -> Self {
        let start = spool.end;
        Sink {
            packer: GzEncoder::new(spool, LEVEL),
            start,
            book,
            redactor: Redactor::default(),
            scratch: Vec::new(),
            hash: Sha256::new(),
            bytes: 0,
            failed: None,
        }
    }

    /// Takes a chunk.
    pub fn take(&mut self, chunk: &[u8]) {
        match self.book {
            Some(book) => {
                self.redactor.feed(book, chunk, &mut self.scratch);
                self.pack_scratch();
            }
            None => self.pack(chunk),
        }
    }

    /// Takes what stands before the part that is kept: a secret may begin there.
    pub fn lead_in(&mut self, chunk: &[u8]) {
        if let Some(book) = self.book {
            self.redactor.feed(book, chunk, &mut self.scratch);
            self.scratch.clear();
        }
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn pack_scratch(&mut self) {
        let scratch = std::mem::take(&mut self.scratch);
        self.pack(&scratch);
        self.scratch = scratch;
        self.scratch.clear();
    }

    fn pack(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.packer.get_ref().room.content.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if self.failed.is_none() {
            self.failed = self.packer.write_all(bytes).err();
        }
    }

    /// Ends the item: the rest of the redactor, the zeros that tar wants.
    pub fn finish(mut self) -> io::Result<Packed> {
        if let Some(book) = self.book {
            self.redactor.finish(book, &mut self.scratch);
            self.pack_scratch();
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.packer.write_all(&vec![0; tar::padding(self.bytes)])?;
        let spool = self.packer.finish()?;
        let part =
            Part { spool: Arc::clone(&spool.file), at: self.start, length: spool.end - self.start };
        let sha256 = hex(&self.hash.finalize());
        Ok(Packed { part, bytes: self.bytes, sha256, redactions: self.redactor.count() })
    }
}

/// Some bytes as a gzip member of their own.
pub fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), LEVEL);
    packer.write_all(bytes)?;
    packer.finish()
}
