//! Takes named members out of an archive, entry by entry. Only what is asked for is written, to
//! paths that the plan names; the archive's own paths are never used for writing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};

use flate2::read::MultiGzDecoder;
use tenon_core::codes::image::BAD_ARCHIVE;
use tenon_core::problem::Problem;

use super::recorded::target;
use super::site::Site;

/// More entries than any component has.
const MOST_ENTRIES: usize = 100_000;
/// A compressed archive that grows more is a bomb.
const RATIO: u64 = 200;
/// Small archives may still hold this much.
const LEAST_ROOM: u64 = 16 << 20;

/// What an archive is unpacked by.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// The url, for messages.
    pub name: &'a str,
    /// Directory of members with a relative target.
    pub path: &'a str,
    pub members: &'a [(String, String)],
    pub mode: u32,
}

/// Unpacks the members and gives the sha256 of each by its path in the root.
pub fn unpack(
    site: &Site<'_>,
    archive: File,
    wish: Wish<'_>,
) -> Result<BTreeMap<String, String>, Problem> {
    let bad = |what: &str| Problem::new(&BAD_ARCHIVE, format!("{}: {what}", wish.name));
    let broken = |error: io::Error| bad("the archive is broken").cause(error);
    let mut done = BTreeMap::new();
    let mut archive = tar::Archive::new(opened(archive).map_err(broken)?);
    for (count, entry) in archive.entries().map_err(broken)?.enumerate() {
        let mut entry = entry.map_err(broken)?;
        if count >= MOST_ENTRIES {
            return Err(bad("the archive has more than 100000 entries"));
        }
        let name = entry.path_bytes().into_owned();
        let name = String::from_utf8_lossy(&name);
        let name = name.trim_start_matches("./");
        let Some((_, to)) = wish.members.iter().find(|(from, _)| from == name) else { continue };
        if !entry.header().entry_type().is_file() {
            return Err(bad(&format!("{name} is no plain file")));
        }
        let to = target(wish.path, to);
        let sha256 = site.place(&to, &mut entry, wish.mode, None)?;
        done.insert(to, sha256);
    }
    match wish.members.iter().find(|(_, to)| !done.contains_key(&target(wish.path, to))) {
        Some((from, _)) => Err(bad(&format!("the archive has no {from}"))),
        None => Ok(done),
    }
}

/// The tar stream of a plain or a compressed archive, cut off where it grows beyond reason.
fn opened(mut file: File) -> io::Result<Box<dyn Read>> {
    let mut magic = [0; 2];
    file.read_exact(&mut magic)?;
    file.rewind()?;
    let size = file.metadata()?.len();
    let reader = BufReader::new(file);
    Ok(match magic {
        [0x1f, 0x8b] => {
            let room = size.saturating_mul(RATIO).max(LEAST_ROOM);
            Box::new(MultiGzDecoder::new(reader).take(room))
        }
        _ => Box::new(reader),
    })
}

/// True if an archive of container images holds this digest, with the content that it names.
pub fn holds_image(archive: File, digits: &str) -> io::Result<bool> {
    let wanted = format!("blobs/sha256/{digits}");
    let mut archive = tar::Archive::new(BufReader::new(archive));
    let (mut listed, mut right) = (false, false);
    for entry in archive.entries()?.take(MOST_ENTRIES) {
        let mut entry = entry?;
        let name = entry.path_bytes().into_owned();
        let name = String::from_utf8_lossy(&name);
        match name.trim_start_matches("./") {
            "index.json" => {
                let mut text = String::new();
                entry.take(1 << 20).read_to_string(&mut text)?;
                listed = text.contains(digits);
            }
            name if name == wanted => {
                let mut bytes = Vec::new();
                entry.by_ref().take(8 << 20).read_to_end(&mut bytes)?;
                right = tenon_core::hex::sha256(&bytes) == digits;
            }
            _ => {}
        }
    }
    Ok(listed && right)
}
