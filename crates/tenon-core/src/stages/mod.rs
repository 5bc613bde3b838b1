//! The staged first boot: from an empty machine to a working cluster, one stage after another.
//!
//! ```text
//! fields, machine  the config of a machine: its table, its type, its checks
//! state            state.json, and what each finding on it means
//! units            every unit as data; render by role and systemd version
//! ignition         the first-boot config that carries all of it
//! bundle           what a bundle of assets must look like
//! mappings         Kubernetes minor → runtime versions; the catalogue of images
//! kubelet          the kubelet's files and its environment, the gate
//! status           how far the stages have come, in words
//! ```
//!
//! Pure as all of this crate: `tenon-host` holds the locks, the clock and the disk.

pub mod bundle;
pub mod fields;
pub mod ignition;
pub mod kubelet;
pub mod machine;
pub mod mappings;
pub mod os_update;
pub mod paths;
pub mod state;
pub mod status;
pub mod units;

pub use machine::{Machine, Role, load, load_as};
