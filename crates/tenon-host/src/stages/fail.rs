//! Failpoints: `TENON_FAILPOINT=after:STEP:exit|abort|kill`, in test builds only.

#[cfg(debug_assertions)]
use std::process;

/// Ends the process here if the variable names this step. `once` files keep a repeated run alive:
/// with `TENON_FAILPOINT_ONCE=FILE` the point fires only while FILE is missing.
#[cfg(debug_assertions)]
#[expect(clippy::exit, reason = "that is what a failpoint is for")]
pub fn after(step: &str) {
    let Ok(point) = std::env::var("TENON_FAILPOINT") else { return };
    let Some((named, how)) = point.strip_prefix("after:").and_then(|rest| rest.split_once(':'))
    else {
        return;
    };
    let fired = std::env::var_os("TENON_FAILPOINT_ONCE");
    if named != step || fired.as_ref().is_some_and(|path| std::path::Path::new(path).exists()) {
        return;
    }
    if let Some(path) = fired {
        let _ = std::fs::write(path, step);
    }
    match how {
        "abort" => process::abort(),
        "kill" => {
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
        _ => process::exit(101),
    }
}

/// A release has no failpoints.
#[cfg(not(debug_assertions))]
pub fn after(_step: &str) {}
