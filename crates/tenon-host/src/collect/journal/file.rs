//! One file of systemd's journal: a header, and objects that point at each other.
//!
//! Read with `pread` through a few cached pages: no mapping, so a file that shrinks or lies
//! about itself is a short read and never a signal. Every offset is checked against the file
//! before it is followed, and every chain only goes forward, so a broken file ends early
//! instead of never.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

const SIGNATURE: &[u8] = b"LPKSHHRH";
const PAGE: u64 = 16 << 10;
/// 1 MiB of pages for each open file.
const MOST_PAGES: usize = 64;
/// The most bytes of one field that are kept.
const MOST_PAYLOAD: u64 = 256 << 10;
/// Flags that are understood: XZ, LZ4, keyed hash, ZSTD, compact.
const KNOWN_FLAGS: u32 = 0b1_1111;
const COMPACT: u32 = 0b1_0000;
const ZSTD: u8 = 4;
/// XZ, LZ4 or ZSTD.
const PACKED: u8 = 7;
/// As long as the longest name that is wanted, and its sign.
const LONGEST_NAME: usize = 20;
/// No chain of arrays or data of one file is longer.
const MOST_LINKS: usize = 1_000_000;

/// Object types.
const DATA: u8 = 1;
const FIELD: u8 = 2;
const ENTRY: u8 = 3;
const ENTRY_ARRAY: u8 = 6;

/// An open journal file.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    size: u64,
    pages: HashMap<u64, Vec<u8>>,
    compact: bool,
    field_table: (u64, u64),
    entry_array: u64,
    entries: u64,
    /// Time of the last entry, in microseconds since 1970.
    pub last_us: u64,
    /// Fields that are packed in a way that is not read here.
    pub unreadable: u64,
}

/// The entries that one thing points at, in order.
#[derive(Debug, Clone, Default)]
pub struct Track {
    /// Stands before those in the arrays.
    first: Option<u64>,
    /// Offset of the first item of each array, and how many it has.
    arrays: Vec<(u64, u64)>,
    pub length: u64,
}

/// An entry without its fields.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    pub sequence: u64,
    pub time_us: u64,
    pub boot: [u8; 16],
    items: u64,
    offset: u64,
}

struct Object {
    offset: u64,
    flags: u8,
    size: u64,
}

impl JournalFile {
    /// Opens a file; the error says what is wrong with it.
    pub fn open(file: File) -> Result<Self, String> {
        let size = file.metadata().map_err(|error| error.to_string())?.len();
        let mut opened = JournalFile {
            file,
            size,
            pages: HashMap::new(),
            compact: false,
            field_table: (0, 0),
            entry_array: 0,
            entries: 0,
            last_us: 0,
            unreadable: 0,
        };
        let mut head = [0; 208];
        if opened.bytes(0, &mut head).is_none() || !head.starts_with(SIGNATURE) {
            return Err("not a journal file".into());
        }
        let flags = u32::from_le_bytes(std::array::from_fn(|index| head[12 + index]));
        if flags & !KNOWN_FLAGS != 0 {
            return Err(format!("written by a newer systemd (flags {flags:#x})"));
        }
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| head[at + index]));
        opened.compact = flags & COMPACT != 0;
        opened.field_table = (number(120), number(128));
        opened.entries = number(152);
        opened.entry_array = number(176);
        opened.last_us = number(192);
        Ok(opened)
    }

    /// Gives the memory of the cached pages back.
    pub fn forget(&mut self) {
        self.pages = HashMap::new();
    }

    /// Every entry of the file.
    pub fn all(&mut self) -> Track {
        self.track(None, self.entry_array, self.entries)
    }

    /// The entries that have this field with this value.
    pub fn with(&mut self, field: &str, value: &str) -> Track {
        let found = self.data(field, value);
        found.and_then(|data| self.track_of(&data)).unwrap_or_default()
    }

    /// Where the entry at this place of a track begins.
    pub fn entry_at(&mut self, track: &Track, index: u64) -> Option<Head> {
        let mut index = index;
        if let Some(first) = track.first {
            if index == 0 {
                return self.head(first);
            }
            index -= 1;
        }
        for (start, count) in &track.arrays {
            if index < *count {
                let width = self.width();
                let offset = self.item(start + index * width)?;
                return self.head(offset);
            }
            index -= count;
        }
        None
    }

    /// Gives those fields of an entry that are wanted as `name`, `value` to `take`.
    pub fn fields(&mut self, head: &Head, wanted: &[&str], take: &mut dyn FnMut(&str, &[u8])) {
        let width = if self.compact { 4 } else { 16 };
        for index in 0..head.items {
            let offset = self.item(head.offset + 64 + index * width);
            let object = offset.and_then(|offset| self.object(offset, DATA));
            let Some(object) = object.filter(|object| self.may_be(object, wanted)) else {
                continue;
            };
            let Some(payload) = self.payload(&object) else { continue };
            let Some(at) = payload.iter().position(|byte| *byte == b'=') else { continue };
            let Some(name) = wanted.iter().find(|name| name.as_bytes() == &payload[..at]) else {
                continue;
            };
            take(name, &payload[at + 1..]);
        }
    }

    /// False when the name of a field is none of those that are wanted. An entry has some twenty
    /// fields; most need not be read.
    fn may_be(&mut self, object: &Object, wanted: &[&str]) -> bool {
        let start = self.payload_start();
        let mut name = [0; LONGEST_NAME];
        let length = usize::try_from(object.size.saturating_sub(start)).unwrap_or_default();
        let name = &mut name[..length.min(LONGEST_NAME)];
        if object.flags & PACKED != 0 || self.bytes(object.offset + start, name).is_none() {
            return object.flags & PACKED != 0;
        }
        let fits = |wanted: &&str| {
            name.strip_prefix(wanted.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='))
        };
        wanted.iter().any(fits)
    }

    fn payload_start(&self) -> u64 {
        if self.compact { 72 } else { 64 }
    }

    fn head(&mut self, offset: u64) -> Option<Head> {
        let object = self.object(offset, ENTRY)?;
        let mut fixed = [0; 48];
        self.bytes(offset + 16, &mut fixed)?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| fixed[at + index]));
        let boot = std::array::from_fn(|index| fixed[24 + index]);
        let width = if self.compact { 4 } else { 16 };
        let items = object.size.checked_sub(64)? / width;
        Some(Head { sequence: number(0), time_us: number(8), boot, items, offset })
    }

    fn data(&mut self, field: &str, value: &str) -> Option<Object> {
        let wanted = [field.as_bytes(), b"=", value.as_bytes()].concat();
        let mut next = self.field_chain(field)?;
        for _ in 0..MOST_LINKS {
            let object = self.object(next, DATA)?;
            if self.payload(&object)? == wanted {
                return Some(object);
            }
            next = self.number(object.offset + 32)?;
        }
        None
    }

    /// The first value of a field. The table of fields is walked whole: it is small, and so the
    /// hash of the file need not be known.
    fn field_chain(&mut self, field: &str) -> Option<u64> {
        let (table, bytes) = self.field_table;
        for bucket in 0..(bytes / 16).min(1 << 16) {
            let mut next = self.number(table + bucket * 16)?;
            while next != 0 {
                let object = self.object(next, FIELD)?;
                let length = usize::try_from(object.size.checked_sub(40)?).ok()?;
                let mut name = vec![0; length.min(128)];
                self.bytes(next + 40, &mut name)?;
                if name == field.as_bytes() {
                    return self.number(next + 32);
                }
                let following = self.number(next + 24)?;
                next = if following > next { following } else { 0 };
            }
        }
        None
    }

    fn track_of(&mut self, data: &Object) -> Option<Track> {
        let first = self.number(data.offset + 40)?;
        let array = self.number(data.offset + 48)?;
        let count = self.number(data.offset + 56)?;
        Some(self.track((first != 0).then_some(first), array, count))
    }

    /// Follows a chain of arrays. Each is larger than the one before, so there are few.
    fn track(&mut self, first: Option<u64>, mut array: u64, count: u64) -> Track {
        let mut left = count.saturating_sub(u64::from(first.is_some()));
        let mut track = Track { first, arrays: Vec::new(), length: u64::from(first.is_some()) };
        while left > 0 && track.arrays.len() < MOST_LINKS {
            let Some(object) = self.object(array, ENTRY_ARRAY) else { break };
            let room = object.size.saturating_sub(24) / self.width();
            let used = room.min(left);
            track.arrays.push((array + 24, used));
            track.length += used;
            left -= used;
            match self.number(array + 16) {
                Some(next) if next > array => array = next,
                _ => break,
            }
        }
        track
    }

    fn payload(&mut self, object: &Object) -> Option<Vec<u8>> {
        let start = self.payload_start();
        let length = object.size.checked_sub(start)?;
        let packed = object.flags & PACKED;
        // A packed text cannot be cut before it is unpacked.
        let length = if packed == 0 { length.min(MOST_PAYLOAD) } else { length.min(16 << 20) };
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.bytes(object.offset + start, &mut bytes)?;
        match packed {
            0 => Some(bytes),
            ZSTD => {
                let reader = ruzstd::decoding::StreamingDecoder::new(bytes.as_slice()).ok()?;
                let mut plain = Vec::new();
                reader.take(MOST_PAYLOAD).read_to_end(&mut plain).ok()?;
                Some(plain)
            }
            _ => {
                self.unreadable += 1;
                None
            }
        }
    }

    fn object(&mut self, offset: u64, kind: u8) -> Option<Object> {
        if offset == 0 || !offset.is_multiple_of(8) {
            return None;
        }
        let mut head = [0; 16];
        self.bytes(offset, &mut head)?;
        let size = u64::from_le_bytes(std::array::from_fn(|index| head[8 + index]));
        let fits = size >= 16 && offset.checked_add(size).is_some_and(|end| end <= self.size);
        (head[0] == kind && fits).then_some(Object { offset, flags: head[1], size })
    }

    /// Bytes of one item of an entry array.
    fn width(&self) -> u64 {
        if self.compact { 4 } else { 8 }
    }

    /// An offset in an array or entry; 0 is none.
    fn item(&mut self, at: u64) -> Option<u64> {
        let value = match self.compact {
            true => {
                let mut bytes = [0; 4];
                self.bytes(at, &mut bytes)?;
                u64::from(u32::from_le_bytes(bytes))
            }
            false => self.number(at)?,
        };
        (value != 0).then_some(value)
    }

    fn number(&mut self, at: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.bytes(at, &mut bytes)?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Reads through the cached pages; None beyond the end.
    fn bytes(&mut self, at: u64, buffer: &mut [u8]) -> Option<()> {
        let mut done = 0;
        while done < buffer.len() {
            let position = at.checked_add(done as u64)?;
            let inside = usize::try_from(position % PAGE).ok()?;
            let page = self.page(position / PAGE)?;
            let part = page.get(inside..)?;
            let count = part.len().min(buffer.len() - done);
            if count == 0 {
                return None;
            }
            buffer[done..done + count].copy_from_slice(&part[..count]);
            done += count;
        }
        Some(())
    }

    fn page(&mut self, number: u64) -> Option<&[u8]> {
        if !self.pages.contains_key(&number) {
            if self.pages.len() >= MOST_PAGES {
                self.pages.clear();
            }
            let mut page = vec![0; PAGE as usize];
            let mut filled = 0;
            while filled < page.len() {
                match self.file.read_at(&mut page[filled..], number * PAGE + filled as u64).ok()? {
                    0 => break,
                    count => filled += count,
                }
            }
            page.truncate(filled);
            self.pages.insert(number, page);
        }
        self.pages.get(&number).map(Vec::as_slice)
    }
}
