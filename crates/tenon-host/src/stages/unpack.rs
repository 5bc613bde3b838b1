//! A bundle, as a directory or a tar, becomes a verified directory.
//!
//! Nothing of a tar is believed: entries that are links or devices, lead out of the bundle or
//! are not in its index are refused, sizes are bounded, and every file is hashed as it is
//! written. The caller gives the result its name in one rename.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use flate2::read::GzDecoder;
use rustix::fs::{Mode, OFlags};
use ruzstd::decoding::StreamingDecoder;
use sha2::{Digest, Sha256};
use tar::{Archive, EntryType};
use tenon_core::codes::stages as pages;
use tenon_core::hex::hex;
use tenon_core::problem::Problem;
use tenon_core::stages::bundle::{self, INDEX, Index};

use super::disk;
use crate::root::Root;
use crate::stop;

/// An index of [`bundle::MOST_FILES`] files is below this.
const LARGEST_INDEX: u64 = 2 << 20;
/// Headers and padding of a tar with the most files.
const TAR_OVERHEAD: u64 = 16 << 20;
const CHUNK: usize = 64 << 10;

/// A bundle that lies on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Node path of a directory.
    Directory(String),
    /// Node path of a tar: plain, gzip or zstd.
    Tar(String),
}

fn bad(what: impl Into<String>) -> Problem {
    Problem::new(&pages::BAD_BUNDLE, what)
}

fn open(root: &Root, path: &str) -> Result<File, Problem> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = root
        .open_at(path, flags, Mode::empty())
        .map(File::from)
        .map_err(|error| bad(format!("a listed file cannot be read: {path}")).cause(error))?;
    match file.metadata().is_ok_and(|data| data.is_file()) {
        true => Ok(file),
        false => Err(bad(format!("not a plain file: {path}"))),
    }
}

impl Source {
    /// The bytes of `bundle.json`.
    pub fn index(&self, root: &Root) -> Result<Vec<u8>, Problem> {
        let mut found = None;
        match self {
            Source::Directory(path) => {
                let file = open(root, &format!("{path}/{INDEX}"))?;
                found = Some(whole(file)?);
            }
            Source::Tar(path) => entries(root, path, &mut |name, reader| {
                if name == INDEX {
                    found = Some(whole(reader)?);
                }
                Ok(())
            })?,
        }
        found.ok_or_else(|| bad(format!("the bundle has no {INDEX}")))
    }

    /// Writes every file of the index below a new directory, hashed on the way.
    pub fn unpack(&self, root: &Root, index: &[u8], target: &str) -> Result<Index, Problem> {
        self.unpack_into(root, index, root, target)
    }

    /// The same from one root into another.
    pub fn unpack_into(
        &self,
        from: &Root,
        index: &[u8],
        root: &Root,
        target: &str,
    ) -> Result<Index, Problem> {
        let list = Index::decode(index)?;
        disk::make(root, target, 0o700)?;
        let mut left = list.files.clone();
        let mut take = |name: &str, reader: &mut dyn Read| -> Result<(), Problem> {
            let Some(entry) = left.remove(name) else {
                return Err(bad("the bundle has a file that its index does not list, or twice"));
            };
            let path = format!("{target}/{name}");
            disk::make(root, disk::split(&path).0, 0o700)?;
            write(root, &path, &entry, reader)
        };
        match self {
            Source::Directory(path) => {
                for name in list.files.keys() {
                    take(name, &mut open(from, &format!("{path}/{name}"))?)?;
                }
            }
            Source::Tar(path) => entries(from, path, &mut |name, reader| match name {
                INDEX => Ok(()),
                name => take(name, reader),
            })?,
        }
        if let Some(missing) = left.keys().next() {
            return Err(bad(format!("a listed file is not in the bundle: {missing}")));
        }
        let mut file = disk::create(root, &format!("{target}/{INDEX}"), 0o600)?;
        file.write_all(index).and_then(|()| file.sync_all()).map_err(|error| {
            Problem::new(&tenon_core::codes::host::FILE_WRITE, format!("writing {INDEX}"))
                .cause(error)
        })?;
        Ok(list)
    }
}

fn whole(reader: impl Read) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let read = reader.take(LARGEST_INDEX + 1).read_to_end(&mut bytes);
    read.map_err(|error| bad(format!("{INDEX} cannot be read")).cause(error))?;
    match bytes.len() as u64 > LARGEST_INDEX {
        true => Err(bad(format!("{INDEX} is too large"))),
        false => Ok(bytes),
    }
}

type Visit<'a> = &'a mut dyn FnMut(&str, &mut dyn Read) -> Result<(), Problem>;

/// Walks over the plain files of a tar. Anything but files and directories ends it.
fn entries(root: &Root, path: &str, visit: Visit<'_>) -> Result<(), Problem> {
    let broken = |error: io::Error| bad("the tar is damaged").cause(error);
    let reader = decompressed(open(root, path)?).map_err(broken)?;
    let mut archive = Archive::new(reader.take(bundle::LARGEST + TAR_OVERHEAD));
    for entry in archive.entries().map_err(broken)? {
        stop::check()?;
        let mut entry = entry.map_err(broken)?;
        let name = String::from_utf8(entry.path_bytes().into_owned())
            .map_err(|_| bad("a name in the tar is not UTF-8"))?;
        let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
        match entry.header().entry_type() {
            EntryType::Directory => continue,
            EntryType::Regular | EntryType::Continuous => {}
            _ => return Err(bad("the tar holds a link or a device")),
        }
        if name != INDEX {
            bundle::check_path(&name)?;
        }
        visit(&name, &mut entry)?;
    }
    Ok(())
}

fn decompressed(file: File) -> io::Result<Box<dyn Read>> {
    let mut reader = BufReader::new(file);
    let start = io::BufRead::fill_buf(&mut reader)?;
    Ok(match start {
        [0x1f, 0x8b, ..] => Box::new(GzDecoder::new(reader)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let decoder = StreamingDecoder::new(reader);
            Box::new(decoder.map_err(|error| io::Error::other(error.to_string()))?)
        }
        _ => Box::new(reader),
    })
}

/// Writes one file and holds it against its entry.
fn write(
    root: &Root,
    path: &str,
    entry: &bundle::Entry,
    reader: &mut dyn Read,
) -> Result<(), Problem> {
    // Keys are among them, and only root reads what is published.
    let mut file = disk::create(root, path, entry.mode & 0o700)?;
    let mut hash = Sha256::new();
    let mut count = 0_u64;
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = reader.read(&mut buffer);
        let read = read.map_err(|error| bad("the bundle is damaged").cause(error))?;
        if read == 0 {
            break;
        }
        count += read as u64;
        if count > entry.size {
            return Err(bad("a file is larger than its index says"));
        }
        hash.update(&buffer[..read]);
        file.write_all(&buffer[..read]).map_err(|error| {
            Problem::new(&tenon_core::codes::host::FILE_WRITE, format!("writing {path}"))
                .cause(error)
        })?;
    }
    if count != entry.size || hex(&hash.finalize()) != entry.sha256 {
        return Err(bad("a file is not the one that its index names"));
    }
    file.sync_all().map_err(|error| {
        Problem::new(&tenon_core::codes::host::SYNC_FAILED, format!("syncing {path}")).cause(error)
    })
}

#[cfg(test)]
#[path = "unpack_tests.rs"]
mod tests;
