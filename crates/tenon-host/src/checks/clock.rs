//! Today, which exceptions are compared with, and the text file that a scraper reads.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use tenon_core::codes;
use tenon_core::problem::Problem;
use time::OffsetDateTime;

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or_default()
}

/// The date in UTC as `2027-01-31`.
pub fn today() -> String {
    let seconds = i64::try_from(now()).unwrap_or_default();
    let moment = OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    moment.date().to_string()
}

/// Replaces a file that others read at any time: by rename, so that they see old or new.
pub fn replace_text(path: &Path, text: &str) -> Result<(), Problem> {
    let replace = || -> io::Result<()> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            })
            .and_then(|()| std::fs::rename(&temporary, path));
        if written.is_err() {
            // What went wrong is told; a temporary that stays as well is not worth a second word.
            let _ = std::fs::remove_file(&temporary);
        }
        written
    };
    replace().map_err(|error| {
        Problem::new(&codes::host::FILE_WRITE, format!("writing {}", path.display())).cause(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_file_is_replaced_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tenon.prom");
        for text in ["one\n", "two\n"] {
            replace_text(&path, text).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let missing = dir.path().join("none/tenon.prom");
        assert_eq!(replace_text(&missing, "x").unwrap_err().exit(), 7);
    }

    #[test]
    fn today_sorts_as_it_is_written() {
        assert!(today().len() == 10 && today().as_str() > "2025-01-01", "{}", today());
    }
}
