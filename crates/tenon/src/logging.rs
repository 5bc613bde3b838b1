//! The story on standard error: one line per change, fields rather than sentences.

use tracing::Level;

/// How much of the story is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volume {
    Quiet,
    Normal,
    Debug,
}

/// Sends the story to standard error. Times are left out: the journal adds its own.
pub fn start(volume: Volume) {
    let level = match volume {
        Volume::Quiet => Level::WARN,
        Volume::Normal => Level::INFO,
        Volume::Debug => Level::DEBUG,
    };
    // An error means that a subscriber is installed already, which only tests do.
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(crate::output::colour_on_stderr())
        .with_target(false)
        .without_time()
        // The subscriber would panic over a standard error that nobody reads any more.
        .log_internal_errors(false)
        .try_init();
}
