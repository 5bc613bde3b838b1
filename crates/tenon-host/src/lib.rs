//! Every effect of Tenon.
//!
//! ```text
//! gather     reads the machine and the metadata service into Facts
//! apply      makes a plan true: files, units, disks, hooks, record
//! net        links: who manages them, waiting for them
//! image      makes a root file system a node image, checks it, seals it
//! signal     the signal to the CloudFormation stack
//! simulator  a metadata service for desks and tests
//! sources    reads what --config-source names
//! root       the directory a run works on
//! command    the one way to run a program
//! stop       SIGINT and SIGTERM
//! systemd    the service manager over D-Bus
//! ```
//!
//! Decisions live in `tenon-core`; a room here that needs to know what Kubernetes wants is in
//! the wrong place.

pub mod apply;
pub mod command;
pub mod gather;
pub mod image;
pub mod job;
pub mod net;
pub mod rehearsal;
pub mod root;
pub mod signal;
pub mod simulator;
pub mod sources;
pub mod status;
pub mod stop;
pub mod systemd;
pub mod timeline;
