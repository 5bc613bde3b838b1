//! Ending early: SIGINT and SIGTERM set a flag, and every wait looks at it. SIGXFSZ ends nothing:
//! the write that met the limit fails instead, and the run cleans up and says so.
//!
//! No wait in this crate sleeps longer than [`SLICE`] without looking, so a stop is noticed
//! within 100 ms whatever Tenon is waiting for.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tenon_core::codes;
use tenon_core::problem::Problem;

/// The longest sleep between two looks at the flag.
pub const SLICE: Duration = Duration::from_millis(50);

static SIGNAL: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// Installs the handlers. Called once, at the start of a command that changes things or waits.
pub fn listen() -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let flag = SIGNAL.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        let number = usize::try_from(signal).unwrap_or_default();
        signal_hook::flag::register_usize(signal, Arc::clone(flag), number)?;
    }
    Ok(())
}

/// True once a stop was asked for.
pub fn asked() -> bool {
    SIGNAL.get().is_some_and(|flag| flag.load(Ordering::Relaxed) != 0)
}

/// The problem to end with when a stop was asked for.
pub fn check() -> Result<(), Problem> {
    use signal_hook::consts::SIGINT;
    match SIGNAL.get().map_or(0, |flag| flag.load(Ordering::Relaxed)) {
        0 => Ok(()),
        number if number == usize::try_from(SIGINT).unwrap_or_default() => {
            Err(Problem::new(&codes::host::INTERRUPTED, "stopped by SIGINT"))
        }
        _ => Err(Problem::new(&codes::host::TERMINATED, "stopped by SIGTERM")),
    }
}

/// Sleeps, but no longer than until a stop is asked for.
pub fn sleep(duration: Duration) -> Result<(), Problem> {
    let end = Instant::now() + duration;
    loop {
        check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(SLICE));
    }
}
