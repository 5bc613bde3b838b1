//! Puts the bundle together: manifest, readme, members in a fixed order; then gives it its name.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use tenon_core::codes::logs as pages;
use tenon_core::collect::manifest::{
    self, Item, Listed, Manifest, NodeIdentity, SCHEMA, Tool, Totals,
};
use tenon_core::problem::Problem;

use super::run::Options;
use super::sink::{self, Part};
use super::tar;

/// What a run brought, before it is an archive.
#[derive(Debug)]
pub struct Collected {
    pub items: Vec<(Item, Option<Part>)>,
    pub listed: Vec<Listed>,
    pub elapsed: Duration,
    /// A signal ended the run.
    pub partial: bool,
    pub options: Options,
}

/// What the manifest says besides the items.
#[derive(Debug, Clone, Default)]
pub struct Cover {
    pub tool: Tool,
    pub node: NodeIdentity,
    /// Seconds since 1970.
    pub started_s: u64,
    pub doctor: serde_json::Value,
}

impl Collected {
    /// The manifest of what was collected.
    pub fn manifest(&self, cover: &Cover) -> Manifest {
        let fixed = self.options.reproducible;
        let started = if fixed { 0 } else { cover.started_s };
        let stamp = tenon_core::collect::journal::stamp(started * 1_000_000);
        let items: Vec<Item> = self
            .items
            .iter()
            .map(|(item, _)| Item { ms: if fixed { 0 } else { item.ms }, ..item.clone() })
            .collect();
        let packed =
            self.items.iter().filter_map(|(_, part)| part.as_ref()).map(|part| part.length);
        Manifest {
            schema: SCHEMA.to_owned(),
            tool: cover.tool.clone(),
            node: cover.node.clone(),
            started: stamp.replace(".000000", ""),
            elapsed_ms: if fixed {
                0
            } else {
                u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX)
            },
            partial: self.partial,
            options: self.options.to_json(),
            totals: Totals {
                items: items.len() as u64,
                bytes: items.iter().map(|item| item.bytes).sum(),
                compressed_bytes: packed.sum(),
                redactions: items.iter().map(|item| item.redactions).sum(),
            },
            items,
            listed: self.listed.clone(),
            doctor: cover.doctor.clone(),
        }
    }

    /// Writes the archive.
    pub fn write(&self, manifest: &Manifest, out: &mut dyn Write) -> io::Result<()> {
        let time = tenon_core::collect::journal::unstamp(&manifest.started).unwrap_or_default()
            / 1_000_000;
        let json = serde_json::to_vec_pretty(manifest)?;
        for (name, body) in
            [(manifest::NAME, json), (manifest::README, manifest.readme().into_bytes())]
        {
            let size = body.len() as u64;
            let block = tar::header(name, size, time).ok_or(io::ErrorKind::InvalidFilename)?;
            let padding = vec![0; tar::padding(size)];
            out.write_all(&sink::packed(&[&block[..], &body, &padding].concat())?)?;
        }
        for (item, part) in &self.items {
            let Some(part) = part else { continue };
            let block =
                tar::header(&item.path, item.bytes, time).ok_or(io::ErrorKind::InvalidFilename)?;
            out.write_all(&sink::packed(&block)?)?;
            part.copy_to(out)?;
        }
        out.write_all(&sink::packed(&[0; 2 * tar::BLOCK])?)?;
        out.flush()
    }

    /// Writes the archive to a file that appears under its name when it is whole.
    pub fn save(&self, manifest: &Manifest, path: &Path) -> Result<u64, Problem> {
        let shown = path.display();
        let problem = |doing: &str, error: io::Error| {
            let mut problem = Problem::new(&pages::NOT_WRITTEN, format!("{doing} {shown}"));
            if Errno::from_io_error(&error) == Some(Errno::NOSPC) {
                problem = problem.why("the file system has no room for the bundle");
            }
            problem.cause(error)
        };
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = Path::new(&partial);
        let file = create(partial).map_err(|error| problem("creating", error))?;
        let written = self.fill(manifest, file);
        let named = written.and_then(|bytes| {
            rustix::fs::renameat(CWD, partial, CWD, path)?;
            sync_directory(path)?;
            Ok(bytes)
        });
        named.map_err(|error| {
            // Nothing is left behind that looks like a bundle.
            let _ = rustix::fs::unlinkat(CWD, partial, AtFlags::empty());
            problem("writing", error)
        })
    }

    fn fill(&self, manifest: &Manifest, file: File) -> io::Result<u64> {
        let mut out = BufWriter::new(file);
        self.write(manifest, &mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }
}

/// A new file that only its owner may read; what a killed run left is replaced, a link never
/// followed.
fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::openat(CWD, path, flags, Mode::RUSR | Mode::WUSR);
    let opened = match open() {
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(CWD, path, AtFlags::empty())?;
            open()
        }
        result => result,
    };
    Ok(File::from(opened?))
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
