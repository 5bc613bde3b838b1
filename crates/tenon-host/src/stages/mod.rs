//! The staged first boot on a machine: the engine, and the stages that need no control plane.
//!
//! ```text
//! engine      one run of a stage: lock, state, steps, attempts, markers
//! assets      the bundle: download, s3, unpack; build makes one at a desk
//! prepare     cluster version to gate; bus, cluster_version, runtime, cri, reboot, kubelet_files
//!             are its parts
//! report      status and reset
//! record      config, state, markers, locks, timeline on disk
//! disk        directories, moves and removals that a crash cannot tear
//! notify      the line that `systemctl status` shows
//! fail        failpoints of test builds
//! ```

pub mod assets;
pub mod build;
pub mod bus;
mod cluster_version;
mod cri;
pub mod disk;
mod download;
mod engine;
mod fail;
mod kubelet_files;
mod notify;
pub mod prepare;
mod reboot;
mod record;
pub mod report;
pub mod runtime;
mod s3;
pub mod unpack;

pub use engine::{Act, Check, Opened, Order, PERMANENT, Run, Step, is_permanent};
pub use record::{Failure, read_machine, read_state, timestamp, update};
