//! Closes gaps that are files, by the batch protocol of `apply`: old or new, never torn.

use rustix::fs::{Mode, OFlags};
use tenon_core::codes::host::FILE_WRITE;
use tenon_core::codes::image::NOT_PRIVILEGED;
use tenon_core::plan::diff::{DirectoryChange, FileChange, Held, LINK_MODE, parents};
use tenon_core::problem::Problem;

use super::gap::{Gap, Mend, may_give};
use super::site::{Dress, Found, Site};
use crate::apply::directories::Directories;
use crate::apply::discard::discard;
use crate::apply::files::{self, Batch, own};
use crate::apply::preflight;

impl Site<'_> {
    /// Closes one gap of an item, whose name is for messages.
    pub fn close(&self, gap: &Gap, name: &str) -> Result<(), Problem> {
        match &gap.mend {
            Mend::Write { path, body, dress } => self.write_file(path, body, *dress),
            Mend::Link { path, target } => {
                let dress = Dress { mode: LINK_MODE, owner: own() };
                self.write_file(path, target.as_bytes(), dress)
            }
            Mend::Directory { path, dress } => {
                self.make_directories(path, Some(dress.mode))?;
                self.put_dress(path, *dress)
            }
            Mend::Dress { path, dress } => self.put_dress(path, *dress),
            Mend::Remove { path } => {
                (self.probe)("remove")?;
                discard(self.root, path).map(|_| ())
            }
            Mend::Refuse(page) => {
                let what = format!("{name}: expected {}, found {}", gap.expected, gap.actual);
                Err(Problem::new(page, what))
            }
            // The kind of act does it, and has done it before.
            Mend::Own => Ok(()),
        }
    }

    /// Writes a small file or a link whole, with the directories above it.
    pub fn write_file(&self, path: &str, body: &[u8], dress: Dress) -> Result<(), Problem> {
        privileged(path, dress)?;
        let mut directories = Directories::new(self.root);
        directories.check_parents(path, &[], self.keeper.uid)?;
        let previous = match self.found(path)? {
            // The label of the old file is kept; what it held does not matter.
            Found::File(now) => {
                Some(Held { bytes: Vec::new(), mode: now.mode, owner: now.owner, modified_us: 0 })
            }
            _ => None,
        };
        let file = FileChange {
            path: path.to_owned(),
            body: body.to_vec(),
            mode: dress.mode,
            owner: dress.owner,
            secret: false,
            because: String::new(),
            previous: previous.filter(|_| dress.mode != LINK_MODE),
        };
        let missing = self.missing(path)?;
        let batch = Batch { directories: missing, files: vec![file], ..Batch::default() };
        preflight::check(&mut directories, &batch)?;
        files::write(&mut directories, &batch, 1, self.probe)
    }

    /// The directories above a path that are not there, outermost first.
    fn missing(&self, path: &str) -> Result<Vec<DirectoryChange>, Problem> {
        let mut missing = Vec::new();
        for parent in parents(path) {
            if !matches!(self.followed(parent)?, Found::Nothing) {
                break;
            }
            let path = parent.to_owned();
            missing.push(DirectoryChange { path, mode: 0o755, exists: false });
        }
        missing.reverse();
        Ok(missing)
    }

    /// Makes the directories above a path, and with `own` the one at the path itself.
    pub fn make_directories(&self, path: &str, own: Option<u32>) -> Result<(), Problem> {
        let mut list = self.missing(path)?;
        if let Some(mode) = own {
            list.push(DirectoryChange { path: path.to_owned(), mode, exists: false });
        }
        if list.is_empty() {
            return Ok(());
        }
        let mut directories = Directories::new(self.root);
        let batch = Batch { directories: list, ..Batch::default() };
        preflight::check(&mut directories, &batch)?;
        files::write(&mut directories, &batch, 1, self.probe)
    }

    fn put_dress(&self, path: &str, dress: Dress) -> Result<(), Problem> {
        let (Found::File(now) | Found::Directory(now)) = self.followed(path)? else {
            return Ok(());
        };
        if now == dress {
            return Ok(());
        }
        privileged(path, dress)?;
        (self.probe)("dress")?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let set = || -> std::io::Result<()> {
            let file = self.root.open_at(path, flags, Mode::empty())?;
            if now.owner != dress.owner {
                files::give(rustix::fd::AsFd::as_fd(&file), dress.owner)?;
            }
            // After the owner, whose change takes the bits for other identities away.
            rustix::fs::fchmod(&file, Mode::from_raw_mode(dress.mode))?;
            Ok(rustix::fs::fsync(&file)?)
        };
        set().map_err(|error| {
            Problem::new(&FILE_WRITE, format!("setting mode and owner of {path}")).cause(error)
        })
    }
}

/// Refuses an owner that this process cannot give, before anything is written.
pub fn privileged(path: &str, dress: Dress) -> Result<(), Problem> {
    match may_give(dress.owner) {
        true => Ok(()),
        false => {
            let (uid, gid) = (dress.owner.uid, dress.owner.gid);
            Err(Problem::new(&NOT_PRIVILEGED, format!("{path} must belong to {uid}:{gid}")))
        }
    }
}
