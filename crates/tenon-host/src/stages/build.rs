//! Making a bundle at a desk: the index of a directory, and its tar.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};
use tenon_core::codes::host as pages;
use tenon_core::codes::stages::BAD_BUNDLE;
use tenon_core::hex::sha256;
use tenon_core::problem::Problem;
use tenon_core::stages::bundle::{self, Entry, INDEX, Index};

/// Directories deeper than this are no part of a bundle.
const DEEPEST: usize = 8;

/// Writes `bundle.json` for what a directory holds, and gives its digest.
pub fn build(directory: &Path, cluster: &str) -> Result<(Index, String), Problem> {
    let mut files = BTreeMap::new();
    walk(directory, directory, 0, &mut files)?;
    let index = Index { cluster: cluster.to_owned(), files };
    let bytes = index.encode();
    // Held against the rules of the reader, so that a machine cannot be the first to refuse it.
    Index::decode(&bytes)?;
    let path = directory.join(INDEX);
    fs::write(&path, &bytes).map_err(|error| {
        Problem::new(&pages::FILE_WRITE, format!("writing {}", path.display())).cause(error)
    })?;
    Ok((index, bundle::digest(&bytes)))
}

fn walk(
    top: &Path,
    directory: &Path,
    depth: usize,
    files: &mut BTreeMap<String, Entry>,
) -> Result<(), Problem> {
    let wrong = |path: &Path, error: io::Error| {
        Problem::new(&pages::FILE_READ, format!("reading {}", path.display())).cause(error)
    };
    if depth > DEEPEST {
        return Err(Problem::new(&BAD_BUNDLE, format!("deeper than {DEEPEST} directories")));
    }
    for entry in fs::read_dir(directory).map_err(|error| wrong(directory, error))? {
        let path = entry.map_err(|error| wrong(directory, error))?.path();
        let data = fs::symlink_metadata(&path).map_err(|error| wrong(&path, error))?;
        if data.is_dir() {
            walk(top, &path, depth + 1, files)?;
            continue;
        }
        let name = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
        if name == INDEX {
            continue;
        }
        bundle::check_path(&name)?;
        if !data.is_file() {
            return Err(Problem::new(&BAD_BUNDLE, format!("not a plain file: {name}")));
        }
        let bytes = fs::read(&path).map_err(|error| wrong(&path, error))?;
        let mode = data.permissions().mode() & 0o777;
        let entry = Entry { size: bytes.len() as u64, mode, sha256: sha256(&bytes) };
        files.insert(name, entry);
    }
    Ok(())
}

/// Packs a built directory into a tar.gz; the same files give the same bytes.
pub fn pack(directory: &Path, index: &Index, target: &Path) -> Result<(), Problem> {
    let write = || -> io::Result<()> {
        // It holds the keys of the CAs: nobody else may read it, not even while it grows.
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(target)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        let mut tar = Builder::new(GzEncoder::new(file, Compression::default()));
        let mut add = |name: &str, mode: u32| -> io::Result<()> {
            let bytes = fs::read(directory.join(name))?;
            let mut header = Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(mode);
            header.set_mtime(0);
            tar.append_data(&mut header, name, &bytes[..])
        };
        add(INDEX, 0o600)?;
        for (name, entry) in &index.files {
            add(name, entry.mode)?;
        }
        tar.into_inner()?.finish()?.sync_all()
    };
    write().map_err(|error| {
        Problem::new(&pages::FILE_WRITE, format!("writing {}", target.display())).cause(error)
    })
}
