//! Gaps of what the plan does not hold itself: a download is known by its hash, files out of
//! archives and outputs of commands by what the last apply recorded.

use tenon_core::codes::image::UNSAFE_IN_ROOT;
use tenon_core::hex::sha256;
use tenon_core::image::cached;
use tenon_core::image::item::{Act, Item};
use tenon_core::problem::Problem;

use super::gap::{Gaps, Mend, gap};
use super::site::{Dress, Found, Site};

impl Site<'_> {
    pub(super) fn download(&self, path: &str, sha256: &str, mode: u32) -> Gaps {
        let dress = Dress { mode, owner: self.keeper };
        let expected = format!("sha256 {sha256}, {}", dress.words());
        let found = self.found(path)?;
        let now = match &found {
            Found::File(now) => now,
            Found::Nothing => return Ok(gap(expected, found.words(), Mend::Own)),
            _ => return Ok(gap(expected, found.words(), Mend::Refuse(&UNSAFE_IN_ROOT))),
        };
        let held = self.hash(path)?.unwrap_or_default();
        let actual = format!("sha256 {held}, {}", now.words());
        Ok(match (held == sha256, *now == dress) {
            (true, true) => Vec::new(),
            (true, false) => gap(expected, actual, Mend::Dress { path: path.to_owned(), dress }),
            (false, _) => gap(expected, actual, Mend::Own),
        })
    }

    /// Files whose content the plan does not tell: they are what the last apply recorded.
    pub(super) fn recorded(&self, item: &Item) -> Gaps {
        let (paths, mode) = match &item.act {
            Act::Download { path, members, mode, .. } => {
                (members.iter().map(|(_, to)| target(path, to)).collect(), Some(*mode))
            }
            Act::Tenon { path } => (vec![path.clone()], Some(0o755)),
            Act::CachedImage { digest, .. } => (vec![cached::archive(digest)], Some(0o644)),
            Act::Command { outputs, .. } => (outputs.clone(), None),
            _ => (Vec::new(), None),
        };
        let Some(entry) = self.record.of(item) else {
            return Ok(gap("recorded by apply", "no record of it", Mend::Own));
        };
        let mut gaps = Vec::new();
        for path in paths {
            let expected = entry.files.get(&path).map_or("", String::as_str);
            let actual = self.hash(&path)?.unwrap_or_else(|| "nothing".to_owned());
            if actual != expected {
                let (expected, actual) =
                    (format!("{path}: {expected}"), format!("sha256 {actual}"));
                gaps.extend(gap(expected, actual, Mend::Own));
            } else if let (Some(mode), Found::File(now)) = (mode, self.found(&path)?) {
                let dress = Dress { mode, owner: self.keeper };
                if now != dress {
                    let expected = format!("{path}: {}", dress.words());
                    gaps.extend(gap(expected, now.words(), Mend::Dress { path, dress }));
                }
            }
        }
        Ok(gaps)
    }

    pub(super) fn command(&self, item: &Item, inputs: &[String]) -> Gaps {
        let held = self.record.of(item).and_then(|entry| entry.inputs.clone());
        let now = self.inputs(inputs)?;
        match held {
            Some(held) if held != now => {
                Ok(gap("run with these inputs", "inputs changed", Mend::Own))
            }
            _ => self.recorded(item),
        }
    }

    /// One hash of all inputs of a command, by path and content.
    pub fn inputs(&self, patterns: &[String]) -> Result<String, Problem> {
        let mut text = String::new();
        for pattern in patterns {
            for path in self.matching(pattern)? {
                let hash = match self.found(&path)? {
                    Found::File(_) => self.hash(&path)?.unwrap_or_default(),
                    other => other.words(),
                };
                text.push_str(&format!("{path} {hash}\n"));
            }
        }
        Ok(sha256(text.as_bytes()))
    }
}

/// Where a member of an archive goes: an absolute path, or one below the download's own.
pub fn target(path: &str, member: &str) -> String {
    match member.starts_with('/') {
        true => member.to_owned(),
        false => format!("{}/{member}", path.trim_end_matches('/')),
    }
}
