//! What an item asks for and the root lacks. `verify` tells gaps, `apply` closes them; an item
//! without a gap is left alone.

use tenon_core::codes::Page;
use tenon_core::codes::image::{
    ACCOUNT_TAKEN, NO_PAM_LINE, REPOSITORY_KEY, UNKNOWN_OWNER, UNSAFE_IN_ROOT,
};
use tenon_core::hex::sha256;
use tenon_core::image::accounts::Accounts;
use tenon_core::image::edit::{self, Argument, BootLine};
use tenon_core::image::family::Manager;
use tenon_core::image::item::{Act, Item};
use tenon_core::image::{key, packages};
use tenon_core::plan::diff::Owner;
use tenon_core::problem::Problem;

use super::site::{Dress, Found, Site};

/// Where a boot loader of Debian takes our arguments from.
const GRUB_DROP_IN: &str = "/etc/default/grub.d/90-tenon.cfg";
const GRUB: &str = "/etc/default/grub";
const BOOT_ENTRIES: &str = "/boot/loader/entries/*.conf";

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    pub expected: String,
    pub actual: String,
    pub mend: Mend,
}

/// How a gap is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mend {
    Write {
        path: String,
        body: Vec<u8>,
        dress: Dress,
    },
    Link {
        path: String,
        target: String,
    },
    Directory {
        path: String,
        dress: Dress,
    },
    /// Mode and owner of what is there.
    Dress {
        path: String,
        dress: Dress,
    },
    Remove {
        path: String,
    },
    /// By a program or from the cache; the kind of act knows how.
    Own,
    /// Not at all: what stands there is not ours to change.
    Refuse(&'static Page),
}

pub(super) type Gaps = Result<Vec<Gap>, Problem>;

pub(super) fn gap(expected: impl Into<String>, actual: impl Into<String>, mend: Mend) -> Vec<Gap> {
    vec![Gap { expected: expected.into(), actual: actual.into(), mend }]
}

impl Site<'_> {
    /// What this item still asks for.
    pub fn gaps(&self, item: &Item) -> Gaps {
        match &item.act {
            Act::Key { path, fingerprint, content } => {
                self.key(path, fingerprint, content.as_deref())
            }
            Act::Package { name, version, lock } => self.package(name, version.as_deref(), *lock),
            Act::NoPackage { name } => Ok(match self.facts.packages.get(name) {
                Some(package) => gap("not installed", &package.version, Mend::Own),
                None => Vec::new(),
            }),
            Act::Group { .. } | Act::User { .. } => self.account(&item.act),
            Act::Directory { path, mode, owner } => self.directory(path, *mode, owner),
            Act::Download { path, sha256, members, mode, .. } if members.is_empty() => {
                self.download(path, sha256, *mode)
            }
            Act::Tenon { .. } | Act::Download { .. } | Act::CachedImage { .. } => {
                self.recorded(item)
            }
            Act::File { path, content, mode, owner, if_absent } => {
                self.file(path, content, *mode, owner, *if_absent)
            }
            Act::Set { packages, .. } => Ok(self.one_version(packages)),
            Act::Stamp { path, package } => match self.facts.packages.get(package) {
                Some(found) => {
                    // The epoch of a package is its distribution's own.
                    let version = found.version.rsplit(':').next().unwrap_or_default();
                    self.file(path, &format!("{package} {version}\n"), 0o644, "root:root", false)
                }
                None => Ok(gap("its version", format!("{package} is not installed"), Mend::Own)),
            },
            Act::Seed { path, content, mode, owner } => {
                let once = self.record.of(item).is_some() && self.found(path)? != Found::Nothing;
                match once {
                    true => Ok(Vec::new()),
                    false => self.file(path, content, *mode, owner, false),
                }
            }
            Act::Block { path, marker, content } => {
                let what = format!("block {marker} of {} bytes", content.len());
                self.edited(path, &what, |text| edit::block(text, marker, content))
            }
            Act::Setting { path, name, value } => {
                let gaps = self.edited(path, value, |text| edit::setting(text, name, value))?;
                let text = self.text(path)?;
                let actual = edit::value_of(&text, name).unwrap_or("nothing");
                Ok(gaps.into_iter().map(|gap| Gap { actual: actual.into(), ..gap }).collect())
            }
            Act::Pam { path, module, arguments } => self.pam(path, module, arguments),
            Act::Link { path, target } => self.link(path, target),
            Act::Absent { path } => self.absent(path),
            Act::Access { path, mode, owner } => self.access(path, *mode, owner.as_deref()),
            Act::KernelArgument { name, value, present } => {
                self.argument(Argument { name, value: value.as_deref(), present: *present })
            }
            Act::Command { inputs, .. } => self.command(item, inputs),
            Act::Manual { .. } => Ok(Vec::new()),
        }
    }

    fn key(&self, path: &str, pinned: &str, content: Option<&str>) -> Gaps {
        let expected = format!("a key with fingerprint {pinned}");
        let actual = match self.bytes(path)? {
            None => "nothing".to_owned(),
            Some(bytes) => match key::fingerprint(&bytes) {
                Some(found) if found == pinned => return Ok(Vec::new()),
                Some(found) => format!("a key with fingerprint {found}"),
                None => "not one key".to_owned(),
            },
        };
        match content {
            Some(content) => self.write(path, content.to_owned(), 0o644, &expected, &actual),
            None => Ok(gap(expected, actual, Mend::Refuse(&REPOSITORY_KEY))),
        }
    }

    fn package(&self, name: &str, version: Option<&str>, lock: bool) -> Gaps {
        let expected = match version {
            Some(version) => format!("installed, version {version}"),
            None => "installed".to_owned(),
        };
        let Some(package) = self.facts.packages.get(name) else {
            return Ok(gap(expected, "not installed", Mend::Own));
        };
        if version.is_some_and(|version| !packages::fits(&package.version, version)) {
            return Ok(gap(expected, format!("version {}", package.version), Mend::Own));
        }
        if !lock || package.locked {
            return Ok(Vec::new());
        }
        let gaps = match self.facts.family.manager {
            Manager::Apt => self
                .edited(packages::DPKG_STATUS, "held", |status| packages::dpkg_hold(status, name)),
            Manager::Dnf => self.edited(packages::DNF_LOCKS, "held", |locks| {
                packages::dnf_hold(locks, name, &package.version)
            }),
        };
        Ok(gaps?.into_iter().map(|gap| Gap { actual: "not held".into(), ..gap }).collect())
    }

    /// Packages of a set that are installed in different versions; the build of a package is its
    /// distribution's own.
    fn one_version(&self, packages: &[String]) -> Vec<Gap> {
        let installed = |name: &String| {
            let version = self.facts.packages.get(name)?.version.rsplit(':').next()?;
            Some((name.clone(), version.split('-').next().unwrap_or(version).to_owned()))
        };
        let found: Vec<_> = packages.iter().filter_map(installed).collect();
        if found.windows(2).all(|pair| pair[0].1 == pair[1].1) {
            return Vec::new();
        }
        let told: Vec<_> =
            found.iter().map(|(name, version)| format!("{name} {version}")).collect();
        gap("one version", told.join(", "), Mend::Own)
    }

    fn account(&self, act: &Act) -> Gaps {
        const FILES: [(&str, u32); 3] =
            [("/etc/group", 0o644), ("/etc/passwd", 0o644), ("/etc/shadow", 0o640)];
        let (kind, name) = act.name();
        let now = Accounts {
            group: self.text(FILES[0].0)?,
            passwd: self.text(FILES[1].0)?,
            shadow: self.text(FILES[2].0)?,
        };
        let Some(next) = now.with(act) else {
            return Ok(gap(format!("{kind} {name}"), "no number", Mend::Refuse(&ACCOUNT_TAKEN)));
        };
        let pairs = [(now.group, next.group), (now.passwd, next.passwd), (now.shadow, next.shadow)];
        let mut gaps = Vec::new();
        for ((path, mode), (now, next)) in FILES.into_iter().zip(pairs) {
            if now != next {
                // Entries of shadow are not told.
                let expected = format!("{kind} {name} in {path}");
                gaps.extend(self.write(path, next, mode, &expected, "no such entry")?);
            }
        }
        Ok(gaps)
    }

    /// A file whose text changes and whose dress stays; a new one gets this mode.
    fn write(&self, path: &str, text: String, mode: u32, expected: &str, actual: &str) -> Gaps {
        let found = self.found(path)?;
        let dress = match &found {
            Found::File(dress) => *dress,
            Found::Nothing => Dress { mode, owner: self.keeper },
            other => return Ok(gap(expected, other.words(), Mend::Refuse(&UNSAFE_IN_ROOT))),
        };
        let mend = Mend::Write { path: path.to_owned(), body: text.into_bytes(), dress };
        Ok(gap(expected, actual, mend))
    }

    fn edited(&self, path: &str, expected: &str, edit: impl Fn(&str) -> String) -> Gaps {
        let text = self.text(path)?;
        let next = edit(&text);
        match next == text {
            true => Ok(Vec::new()),
            false => self.write(path, next, 0o644, expected, "missing or different"),
        }
    }

    fn pam(&self, path: &str, module: &str, arguments: &[String]) -> Gaps {
        let expected = format!("{module} {} in {path}", arguments.join(" "));
        if edit::pam(&self.text(path)?, module, arguments).is_none() {
            return Ok(gap(expected, format!("no {module}"), Mend::Refuse(&NO_PAM_LINE)));
        }
        self.edited(path, &expected, |text| {
            edit::pam(text, module, arguments).unwrap_or_else(|| text.to_owned())
        })
    }

    /// The dress asked for, or the gap that says why there is none.
    fn dress(&self, mode: u32, owner: &str) -> Result<Result<Dress, Vec<Gap>>, Problem> {
        let refuse =
            || gap(format!("owner {owner}"), "no such account", Mend::Refuse(&UNKNOWN_OWNER));
        Ok(self.owner(owner)?.map(|owner| Dress { mode, owner }).ok_or_else(refuse))
    }

    fn directory(&self, path: &str, mode: u32, owner: &str) -> Gaps {
        let dress = match self.dress(mode, owner)? {
            Ok(dress) => dress,
            Err(gaps) => return Ok(gaps),
        };
        let mend = match self.followed(path)? {
            Found::Directory(now) if now == dress => return Ok(Vec::new()),
            Found::Directory(_) => Mend::Dress { path: path.to_owned(), dress },
            Found::Nothing if self.found(path)? == Found::Nothing => {
                Mend::Directory { path: path.to_owned(), dress }
            }
            _ => Mend::Refuse(&UNSAFE_IN_ROOT),
        };
        let expected = format!("a directory, {}", dress.words());
        Ok(gap(expected, self.followed(path)?.words(), mend))
    }

    fn file(&self, path: &str, content: &str, mode: u32, owner: &str, if_absent: bool) -> Gaps {
        let found = self.found(path)?;
        if if_absent && found != Found::Nothing {
            return Ok(Vec::new());
        }
        let dress = match self.dress(mode, owner)? {
            Ok(dress) => dress,
            Err(gaps) => return Ok(gaps),
        };
        let path = path.to_owned();
        let (actual, mend) = match &found {
            Found::File(now) => {
                let bytes = self.bytes(&path)?.unwrap_or_default();
                let actual = content_words(&bytes, now);
                match (bytes == content.as_bytes(), *now == dress) {
                    (true, true) => return Ok(Vec::new()),
                    (true, false) => (actual, Mend::Dress { path, dress }),
                    (false, _) => (actual, Mend::Write { path, body: content.into(), dress }),
                }
            }
            Found::Nothing => (found.words(), Mend::Write { path, body: content.into(), dress }),
            _ => (found.words(), Mend::Refuse(&UNSAFE_IN_ROOT)),
        };
        Ok(gap(content_words(content.as_bytes(), &dress), actual, mend))
    }

    fn link(&self, path: &str, target: &str) -> Gaps {
        let found = self.found(path)?;
        let mend = match &found {
            Found::Link(now) if now == target => return Ok(Vec::new()),
            Found::Link(_) | Found::Nothing | Found::File(_) => {
                Mend::Link { path: path.to_owned(), target: target.to_owned() }
            }
            _ => Mend::Refuse(&UNSAFE_IN_ROOT),
        };
        Ok(gap(format!("a symbolic link to {target}"), found.words(), mend))
    }

    fn absent(&self, pattern: &str) -> Gaps {
        let mut gaps = Vec::new();
        for path in self.matching(pattern)? {
            let found = self.found(&path)?;
            // A whole top-level directory is never one feature's to remove.
            let mend = match path.matches('/').count() {
                0 | 1 => Mend::Refuse(&UNSAFE_IN_ROOT),
                _ => Mend::Remove { path: path.clone() },
            };
            if found != Found::Nothing {
                gaps.extend(gap(format!("nothing at {path}"), found.words(), mend));
            }
        }
        Ok(gaps)
    }

    fn access(&self, pattern: &str, mode: Option<u32>, owner: Option<&str>) -> Gaps {
        let mut gaps = Vec::new();
        for path in self.matching(pattern)? {
            let (Found::File(now) | Found::Directory(now)) = self.found(&path)? else { continue };
            let wanted = match owner {
                Some(owner) => self.owner(owner)?,
                None => Some(now.owner),
            };
            let Some(wanted) = wanted else {
                let words = format!("owner {}", owner.unwrap_or_default());
                gaps.extend(gap(words, now.words(), Mend::Refuse(&UNKNOWN_OWNER)));
                continue;
            };
            let dress = Dress { mode: mode.unwrap_or(now.mode), owner: wanted };
            if dress != now {
                let expected = format!("{path}: {}", dress.words());
                gaps.extend(gap(expected, now.words(), Mend::Dress { path, dress }));
            }
        }
        Ok(gaps)
    }

    fn argument(&self, argument: Argument<'_>) -> Gaps {
        let mut files: Vec<(String, BootLine)> = Vec::new();
        match self.facts.family.manager {
            Manager::Apt => {
                files.push((GRUB_DROP_IN.into(), BootLine::DropIn));
                if !argument.present {
                    files.push((GRUB.into(), BootLine::Grub));
                }
            }
            Manager::Dnf => {
                let entries = self.matching(BOOT_ENTRIES)?.into_iter();
                files.extend(entries.map(|path| (path, BootLine::Entry)));
                files.push((GRUB.into(), BootLine::Grub));
            }
        }
        let expected = match argument.present {
            true => format!("kernel argument {}", argument.word()),
            false => format!("no kernel argument {}", argument.name),
        };
        let mut gaps = Vec::new();
        for (path, line) in files {
            let found = self.edited(&path, &expected, |text| argument.edit(text, line))?;
            let told = |gap: Gap| Gap { actual: format!("not so in {path}"), ..gap };
            gaps.extend(found.into_iter().map(told));
        }
        Ok(gaps)
    }
}

fn content_words(bytes: &[u8], dress: &Dress) -> String {
    format!("{} bytes, sha256 {}, {}", bytes.len(), &sha256(bytes)[..12], dress.words())
}

/// An owner that this process may give.
pub fn may_give(owner: Owner) -> bool {
    let own = crate::apply::files::own();
    own.uid == 0 || own == owner
}
