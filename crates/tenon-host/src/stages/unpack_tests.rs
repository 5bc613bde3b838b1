//! Bundles in every form, and hostile ones.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};
use tenon_core::hex::sha256;
use tenon_core::stages::bundle::Entry;

use super::*;

const FILES: [(&str, &str); 2] = [("addons/10-cni.yaml", "cni"), ("pki/ca.crt", "ca")];

fn index() -> Vec<u8> {
    let entry = |text: &str| Entry {
        size: text.len() as u64,
        mode: 0o600,
        sha256: sha256(text.as_bytes()),
    };
    let files = FILES.iter().map(|(path, text)| ((*path).to_owned(), entry(text))).collect();
    Index { cluster: "prod".into(), files }.encode()
}

fn header(size: u64, kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_entry_type(kind);
    header
}

/// A tar with the good files and then whatever the case adds.
fn tar(more: impl FnOnce(&mut Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    let index = index();
    for (path, text) in FILES {
        builder
            .append_data(&mut header(text.len() as u64, EntryType::Regular), path, text.as_bytes())
            .unwrap();
    }
    builder
        .append_data(&mut header(index.len() as u64, EntryType::Regular), INDEX, &index[..])
        .unwrap();
    more(&mut builder);
    builder.into_inner().unwrap()
}

/// Adds an entry whose name the builder itself would refuse.
fn raw_name(builder: &mut Builder<Vec<u8>>, name: &str, text: &str, kind: EntryType) {
    let mut header = header(text.len() as u64, kind);
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_cksum();
    builder.append(&header, text.as_bytes()).unwrap();
}

struct Place {
    dir: tempfile::TempDir,
    root: Root,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        Place { dir, root }
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Index, Problem> {
        fs::write(self.dir.path().join("b"), bytes).unwrap();
        let _ = fs::remove_dir_all(self.dir.path().join("out"));
        let source = Source::Tar("/b".into());
        let index = source.index(&self.root)?;
        source.unpack(&self.root, &index, "/out")
    }
}

#[test]
fn plain_gzip_and_directory_give_the_same_tree() {
    let place = Place::new();
    let plain = tar(|_| {});
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&plain).unwrap();
    for bytes in [plain, packed.finish().unwrap()] {
        place.unpack(&bytes).unwrap();
        assert_eq!(fs::read(place.dir.path().join("out/addons/10-cni.yaml")).unwrap(), b"cni");
        assert_eq!(fs::read(place.dir.path().join("out/bundle.json")).unwrap(), index());
    }
    let source = Source::Directory("/out".into());
    let index = source.index(&place.root).unwrap();
    source.unpack(&place.root, &index, "/again").unwrap();
    assert_eq!(fs::read(place.dir.path().join("again/pki/ca.crt")).unwrap(), b"ca");
}

#[test]
fn a_zstd_bundle_is_read() {
    let place = Place::new();
    let packed = ruzstd::encoding::compress_to_vec(
        &tar(|_| {})[..],
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    place.unpack(&packed).unwrap();
    assert_eq!(fs::read(place.dir.path().join("out/pki/ca.crt")).unwrap(), b"ca");
}

#[test]
fn hostile_entries_are_refused() {
    let place = Place::new();
    let cases: [(&str, Vec<u8>); 7] = [
        ("absolute", tar(|b| raw_name(b, "/etc/cron.d/x", "x", EntryType::Regular))),
        ("climbing", tar(|b| raw_name(b, "addons/../../x", "x", EntryType::Regular))),
        ("link", tar(|b| raw_name(b, "addons/l", "", EntryType::Symlink))),
        ("hard link", tar(|b| raw_name(b, "addons/l", "", EntryType::Link))),
        ("device", tar(|b| raw_name(b, "addons/d", "", EntryType::Char))),
        ("unlisted", tar(|b| raw_name(b, "addons/more.yaml", "x", EntryType::Regular))),
        ("twice", tar(|b| raw_name(b, "pki/ca.crt", "ca", EntryType::Regular))),
    ];
    for (name, bytes) in cases {
        assert_eq!(place.unpack(&bytes).unwrap_err().exit(), 3, "{name}");
    }
    assert!(!place.dir.path().join("x").exists());
}

#[test]
fn damaged_missing_and_changed_files_are_refused() {
    let place = Place::new();
    let whole = tar(|_| {});
    let cut = &whole[..whole.len() / 2];
    assert!(place.unpack(cut).is_err());
    let mut changed = whole.clone();
    let at = changed.windows(3).position(|window| window == b"cni").unwrap();
    changed[at] = b'C';
    // The first hit is the name; the content comes after it.
    let at = changed.windows(3).rposition(|window| window == b"cni").unwrap_or(at);
    changed[at] = b'X';
    assert!(place.unpack(&changed).is_err());
    let mut builder = Builder::new(Vec::new());
    let index = index();
    builder
        .append_data(&mut header(index.len() as u64, EntryType::Regular), INDEX, &index[..])
        .unwrap();
    let problem = place.unpack(&builder.into_inner().unwrap()).unwrap_err();
    assert!(problem.what.contains("not in the bundle"), "{}", problem.what);
    assert!(place.unpack(b"").unwrap_err().what.contains("bundle.json"));
}
