//! From [`Config`](crate::config::Config) and [`Facts`](crate::facts::Facts) to a [`Plan`].

pub mod reserved;
pub mod step;

pub use step::Plan;

/// Choices of the command line that change the plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// Write 0644 where nodeadm does (`--file-mode-compat`).
    pub file_mode_compat: bool,
    /// Only these daemons are configured and started; None means all.
    pub daemons: Option<Vec<String>>,
}
