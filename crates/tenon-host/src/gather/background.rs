//! Work that knows no deadline of its own, done on a thread that is left behind when the time
//! is over or a stop is asked for.

use std::sync::mpsc;
use std::time::Instant;

use tenon_core::problem::Problem;

use crate::stop;

/// Waits for `work` until `end`; None when the time is over.
pub fn wait_for<T: Send + 'static>(
    end: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, Problem> {
    let (sender, receiver) = mpsc::channel();
    // Nobody listens any more when the deadline has passed; that send may fail.
    std::thread::spawn(move || drop(sender.send(work())));
    loop {
        stop::check()?;
        let left = end.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left.min(stop::SLICE)) {
            Ok(result) => return Ok(Some(result)),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(None),
            Err(mpsc::RecvTimeoutError::Timeout) if left.is_zero() => return Ok(None),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
}
