//! Reads a bundle that anyone may have made.
//!
//! Members are unpacked into one anonymous file, within limits that are checked while reading:
//! sizes, counts, the ratio of packing. Nothing is ever written under a name that the bundle
//! chose.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};
use tenon_core::codes::logs as pages;
use tenon_core::collect::catalogue::LARGEST_CAP;
use tenon_core::collect::manifest::{self, Manifest};
use tenon_core::hex::hex;
use tenon_core::problem::Problem;

use super::spool;
use super::tar::{self, BLOCK, Member, Refusal};

/// The most that a bundle unpacks to.
const MOST_BYTES: u64 = 1 << 30;
/// Zeros behind the last member; some programs fill up to 10 KiB.
const MOST_TRAILER: usize = 64 << 10;
const MOST_MEMBERS: usize = 100_000;
const MOST_MANIFEST: u64 = 32 << 20;
/// The most that one byte unpacks to, from [`RATIO_FROM`] on.
const RATIO: u64 = 200;
const RATIO_FROM: u64 = 16 << 20;
/// The second part of a member that was kept at both ends has a line between them.
const MEMBER_SLACK: u64 = 64 << 10;

/// An opened bundle.
#[derive(Debug)]
pub struct Bundle {
    pub manifest: Manifest,
    spool: File,
    members: BTreeMap<String, (u64, u64)>,
}

impl Bundle {
    /// Opens a bundle and looks at every member of it.
    pub fn open(path: &Path) -> Result<Bundle, Problem> {
        let shown = path.display();
        let file = File::open(path).map_err(|error| {
            Problem::new(&tenon_core::codes::host::FILE_READ, format!("opening {shown}"))
                .cause(error)
        })?;
        read(file).map_err(|refusal| match refusal {
            Refusal::Damaged(why) => {
                Problem::new(&pages::BAD_BUNDLE, format!("{shown} is not a whole bundle"))
                    .cause(why)
            }
            Refusal::Hostile(why) => {
                Problem::new(&pages::HOSTILE_BUNDLE, format!("{shown} is refused")).cause(why)
            }
        })
    }

    /// The names of all members, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }

    /// Size of a member; None if there is none.
    pub fn size(&self, name: &str) -> Option<u64> {
        self.members.get(name).map(|(_, size)| *size)
    }

    /// A member as a stream; None if there is none.
    pub fn reader(&self, name: &str) -> Option<MemberReader<'_>> {
        let (at, left) = *self.members.get(name)?;
        Some(MemberReader { spool: &self.spool, at, left })
    }

    /// The first bytes of a member; None if there is none.
    pub fn read(&self, name: &str, cap: u64) -> Option<io::Result<Vec<u8>>> {
        let mut bytes = Vec::new();
        let read = self.reader(name)?.take(cap).read_to_end(&mut bytes);
        Some(read.map(|_| bytes))
    }
}

/// One member, read from the spool.
#[derive(Debug)]
pub struct MemberReader<'b> {
    spool: &'b File,
    at: u64,
    left: u64,
}

impl Read for MemberReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.spool.read_at(&mut buffer[..most], self.at)?;
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}

/// Counts what is read of the packed file.
struct Counted {
    file: File,
    packed: u64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.packed += count as u64;
        Ok(count)
    }
}

/// The unpacked bytes of a bundle, within the limits.
struct Unpacked {
    from: MultiGzDecoder<BufReader<Counted>>,
    bytes: u64,
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.bytes += count as u64;
        let packed = self.from.get_ref().get_ref().packed.max(1);
        if self.bytes > MOST_BYTES || self.bytes > RATIO_FROM && self.bytes / packed > RATIO {
            return Err(io::Error::other(BOMB));
        }
        Ok(count)
    }
}

const BOMB: &str = "it unpacks to more than a bundle holds";

fn judge(error: &io::Error) -> Refusal {
    match error.to_string() == BOMB {
        true => Refusal::Hostile(BOMB.to_owned()),
        false => tar::damaged(error),
    }
}

fn read(file: File) -> Result<Bundle, Refusal> {
    let mut magic = [0; 4];
    let length = file.read_at(&mut magic, 0).map_err(|error| tar::damaged(&error))?;
    match &magic[..length] {
        [0x1f, 0x8b, ..] => {}
        [0x28, 0xb5, 0x2f, 0xfd] => {
            return Err(Refusal::Damaged(
                "it is packed with zstd; unpack and pack it with gzip".into(),
            ));
        }
        _ => return Err(Refusal::Damaged("it is not packed with gzip".into())),
    }
    let from = MultiGzDecoder::new(BufReader::new(Counted { file, packed: 0 }));
    let mut from = Unpacked { from, bytes: 0 };
    let spool = spool::anywhere().map_err(|error| tar::damaged(&error))?;
    let mut bundle = Contents { spool, end: 0, members: BTreeMap::new(), digests: BTreeMap::new() };
    while let Some(member) = next(&mut from)? {
        bundle.take(&mut from, member)?;
    }
    drain(&mut from)?;
    bundle.finish()
}

/// Reads what follows the last member: the checksum of the packing, and nothing else.
fn drain(from: &mut Unpacked) -> Result<(), Refusal> {
    let mut rest = [0; BLOCK];
    let mut bytes = 0;
    loop {
        let count = from.read(&mut rest).map_err(|error| judge(&error))?;
        bytes += count;
        if count == 0 {
            return Ok(());
        }
        if bytes > MOST_TRAILER || rest[..count].iter().any(|byte| *byte != 0) {
            return Err(Refusal::Hostile("content behind its last member".into()));
        }
    }
}

fn next(from: &mut Unpacked) -> Result<Option<Member>, Refusal> {
    let mut block = [0; BLOCK];
    let mut filled = 0;
    while filled < BLOCK {
        match from.read(&mut block[filled..]).map_err(|error| judge(&error))? {
            0 => return Err(Refusal::Damaged("it ends too early".into())),
            count => filled += count,
        }
    }
    tar::next(&mut block.as_slice())
}

struct Contents {
    spool: File,
    end: u64,
    members: BTreeMap<String, (u64, u64)>,
    digests: BTreeMap<String, String>,
}

impl Contents {
    fn take(&mut self, from: &mut Unpacked, member: Member) -> Result<(), Refusal> {
        let first = self.members.is_empty();
        if first && member.path != manifest::NAME {
            return Err(Refusal::Damaged("its first member is not a manifest".into()));
        }
        let most = if first { MOST_MANIFEST } else { LARGEST_CAP + MEMBER_SLACK };
        if member.size > most {
            return Err(Refusal::Hostile("a member larger than any item may be".into()));
        }
        if self.members.len() >= MOST_MEMBERS || self.members.contains_key(&member.path) {
            return Err(Refusal::Hostile(
                "more members than a bundle has, or one of them twice".into(),
            ));
        }
        let digest = self.copy(from, member.size)?;
        let mut padding = vec![0; tar::padding(member.size)];
        from.read_exact(&mut padding).map_err(|error| judge(&error))?;
        self.members.insert(member.path.clone(), (self.end, member.size));
        self.digests.insert(member.path, digest);
        self.end += member.size;
        Ok(())
    }

    fn copy(&mut self, from: &mut Unpacked, size: u64) -> Result<String, Refusal> {
        let mut hash = Sha256::new();
        let mut buffer = [0; 16 << 10];
        let mut left = size;
        self.spool.seek(SeekFrom::Start(self.end)).map_err(|error| tar::damaged(&error))?;
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let count = from.read(&mut buffer[..most]).map_err(|error| judge(&error))?;
            if count == 0 {
                return Err(Refusal::Damaged("it ends too early".into()));
            }
            hash.update(&buffer[..count]);
            self.spool.write_all(&buffer[..count]).map_err(|error| tar::damaged(&error))?;
            left -= count as u64;
        }
        Ok(hex(&hash.finalize()))
    }

    fn finish(self) -> Result<Bundle, Refusal> {
        let Contents { spool, members, digests, .. } = self;
        let (at, size) = members.get(manifest::NAME).copied().unwrap_or_default();
        let mut bytes = Vec::new();
        let read = MemberReader { spool: &spool, at, left: size }.read_to_end(&mut bytes);
        read.map_err(|error| tar::damaged(&error))?;
        let manifest: Manifest = serde_json::from_slice(&bytes)
            .map_err(|_| Refusal::Damaged("its manifest is not one".into()))?;
        if manifest.schema != manifest::SCHEMA {
            return Err(Refusal::Damaged("its manifest is of another schema".into()));
        }
        for item in manifest.items.iter().filter(|item| item.status.has_content()) {
            if !item.sha256.is_empty() && digests.get(&item.path) != Some(&item.sha256) {
                return Err(Refusal::Damaged(format!("the content of {} is another", item.path)));
            }
        }
        Ok(Bundle { manifest, spool, members })
    }
}
