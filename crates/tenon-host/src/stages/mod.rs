//! The staged first boot on a machine: the engine, and the stages that need no control plane.
//!
//! ```text
//! engine   one run of a stage: lock, state, steps, attempts, markers
//! disk     directories, moves and removals that a crash cannot tear
//! notify   the line that `systemctl status` shows
//! fail     failpoints of test builds
//! ```

pub mod disk;
mod engine;
mod fail;
mod notify;

pub use engine::{
    Check, Failure, Opened, Order, PERMANENT, Run, Step, is_permanent, read_machine, read_state,
    timestamp, update,
};
