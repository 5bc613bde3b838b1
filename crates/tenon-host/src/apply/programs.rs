//! Programs of the host, such as `mdadm` and `mkfs.xfs`: skipped when their work is done.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use rustix::fs::SeekFrom;
use tenon_core::codes;
use tenon_core::plan::step::{Action, Program, Step};
use tenon_core::problem::Problem;

use super::directories::unreadable;
use crate::command;
use crate::gather::signature;
use crate::root::Root;

/// True when the program's work is done already.
pub fn is_done(root: &Root, program: &Program) -> Result<bool, Problem> {
    if program.unless_exists.as_ref().is_some_and(|path| root.exists(path)) {
        return Ok(true);
    }
    let Some(device) = &program.unless_signature else { return Ok(false) };
    has_signature(&root.join(device)).map_err(|error| unreadable(device, error))
}

/// Runs a program to success and gives its output, if that is what it must be.
pub fn run(program: &Program) -> Result<Vec<u8>, Problem> {
    let output = command::must(&program.argv, program.timeout, &[])?.stdout;
    program.output.check(&output)?;
    Ok(output)
}

/// True when a device holds something with a name. Bytes without one are what is left of an
/// earlier life of the disk under a new array.
fn has_signature(device: &Path) -> io::Result<bool> {
    let device = File::open(device)?;
    let size = rustix::fs::seek(&device, SeekFrom::End(0))?;
    let found = signature::detect(size, |offset, length| {
        let mut bytes = vec![0; length];
        let count = device.read_at(&mut bytes, offset)?;
        bytes.truncate(count);
        Ok(bytes)
    })?;
    Ok(found.kind.is_some_and(|kind| kind != "unknown"))
}

/// Refuses a run whose programs are not on the machine, before anything is changed.
pub fn check_present(root: &Root, steps: &[Step]) -> Result<(), Problem> {
    if !root.is_host() {
        return Ok(());
    }
    for step in steps {
        let Action::Program(program) = &step.action else { continue };
        let Some(name) = program.argv.first() else { continue };
        let due = program.unless_exists.as_ref().is_none_or(|path| !root.exists(path));
        if due && !is_present(name) {
            let what = format!("the program {name} is not on this machine");
            return Err(Problem::new(&codes::host::PROGRAM_MISSING, what));
        }
    }
    Ok(())
}

fn is_present(name: &str) -> bool {
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return runs(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| runs(&directory.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn row_85_a_program_is_skipped_when_its_work_is_done() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        std::fs::write(dir.path().join("there"), "").unwrap();
        let mut xfs = vec![0; 128 * 1024];
        std::fs::write(dir.path().join("blank"), &xfs).unwrap();
        xfs[..4].copy_from_slice(b"XFSB");
        std::fs::write(dir.path().join("xfs"), &xfs).unwrap();
        let some = |path: &str| Some(path.to_owned());
        for (program, done) in [
            (Program::default(), false),
            (Program { unless_exists: some("/there"), ..Program::default() }, true),
            (Program { unless_exists: some("/gone"), ..Program::default() }, false),
            (Program { unless_signature: some("/blank"), ..Program::default() }, false),
            (Program { unless_signature: some("/xfs"), ..Program::default() }, true),
        ] {
            assert_eq!(is_done(&root, &program).unwrap(), done, "{program:?}");
        }
    }

    #[test]
    fn row_104_a_missing_program_is_found_before_anything_is_written() {
        let missing = Program {
            argv: vec!["no-such-mkfs".into()],
            timeout: Duration::from_secs(1),
            ..Program::default()
        };
        let steps = [Step::run(Action::Program(missing), "test")];
        let host = Root::open(Path::new("/")).unwrap();
        assert_eq!(check_present(&host, &steps).unwrap_err().page.code, "TN06007");
        let plain = tempfile::NamedTempFile::new().unwrap();
        assert!(!is_present(plain.path().to_str().unwrap()));
        assert!(is_present("sh") && is_present("/bin/sh") && !is_present("no-such-mkfs"));
    }
}
