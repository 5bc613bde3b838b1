//! Every effect of Tenon.
//!
//! ```text
//! gather     reads the machine and the metadata service into Facts
//! collect    reads a node that misbehaves: Source, journal, bundles
//! doctor     the snapshot of a node that did not join, with live probes
//! apply      makes a plan true: files, units, disks, hooks, record
//! checks     looks at a node and judges it: validate, harden
//! net        links: who manages them, waiting for them
//! image      makes a root file system a node image, checks it, seals it
//! signal     the signal to the CloudFormation stack
//! net        links: who manages them, waiting for them
//! stages     the staged first boot: engine, assets, prepare, status
//! simulator  a metadata service for desks and tests
//! sources    reads what --config-source names
//! pki        makes and reads the keys and certificates of a control plane
//! random     bytes from the operating system
//! root       the directory a run works on
//! cluster    the Kubernetes API
//! control_plane  starts a cluster and fills it
//! command    the one way to run a program
//! stop       SIGINT and SIGTERM
//! systemd    the service manager over D-Bus
//! ```
//!
//! Decisions live in `tenon-core`; a room here that needs to know what Kubernetes wants is in
//! the wrong place.

pub mod apply;
pub mod checks;
pub mod cluster;
pub mod collect;
pub mod command;
pub mod control_plane;
pub mod doctor;
pub mod gather;
pub mod image;
pub mod job;
pub mod net;
pub mod pki;
pub mod random;
pub mod rehearsal;
pub mod root;
pub mod signal;
pub mod simulator;
pub mod sources;
pub mod stages;
pub mod status;
pub mod stop;
pub mod systemd;
pub mod timeline;
