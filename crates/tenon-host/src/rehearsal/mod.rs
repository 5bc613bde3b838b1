//! The whole job on a stage: a pretended machine in a directory, a pretended metadata service
//! on loopback, the real code in between. No root, no cloud, nothing outside the directory.

pub mod drill;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenon_core::codes;
use tenon_core::problem::Problem;

use crate::apply::{self, Lock, Report};
use crate::gather::environment::Environment;
use crate::job::{Job, Order, Prepared, Refusal};
use crate::root::Root;
use crate::simulator::Simulator;
use crate::simulator::faults::Faults;
use crate::simulator::machine::{self, MachineProfile};
use crate::simulator::profile::Profile;
use crate::sources;
use crate::timeline::Timeline;

/// The config of a rehearsal that was given none.
pub const SAMPLE: &str = include_str!("sample.yaml");

/// What is rehearsed.
#[derive(Debug, Clone)]
pub struct Stage {
    /// The pretended machine's root directory.
    pub directory: PathBuf,
    pub profile: Profile,
    pub machine: MachineProfile,
    /// Sources besides the pretended user data.
    pub sources: Vec<String>,
    pub file_mode_compat: bool,
    /// Patience with the pretended metadata service.
    pub imds_timeout: Duration,
}

/// One run on the stage.
#[derive(Debug)]
pub struct Act {
    pub prepared: Prepared,
    pub report: Report,
    pub timeline: Timeline,
    /// Requests that reached the metadata service, the token's included.
    pub requests: usize,
    pub tokens: usize,
}

impl Stage {
    /// Sets the stage: the files that a node image and a kernel would show.
    pub fn set(&self) -> Result<(), Problem> {
        machine::populate(&self.directory, &self.machine).map_err(|error| {
            let what = format!("preparing the stage in {}", self.directory.display());
            Problem::new(&codes::host::FILE_WRITE, what).cause(error)
        })
    }

    /// Runs the config phase once, for real, against the pretended machine.
    pub fn perform(&self, faults: Faults) -> Result<Act, Refusal> {
        let simulator = Simulator::start(&self.profile, faults).map_err(no_loopback)?;
        let root = open(&self.directory)?;
        let lock = Lock::take(&root, Duration::ZERO)?;
        let mut job = Job::new(&root, self.order(&simulator));
        let loaded = job.config()?;
        let prepared = job.prepare(loaded)?;
        let options = apply::Options::default();
        let report = job
            .timeline
            .span("write files", || apply::config_phase(&root, &lock, &prepared.plan, &options))?;
        let Job { timeline, .. } = job;
        Ok(Act {
            prepared,
            report,
            timeline,
            requests: simulator.log().len(),
            tokens: simulator.count("/api/token"),
        })
    }

    fn order(&self, simulator: &Simulator) -> Order {
        let endpoint = simulator.endpoint();
        let environment =
            Environment::from([("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint.as_str())]);
        let mut sources = vec![sources::DEFAULT.to_owned()];
        sources.extend(self.sources.iter().cloned());
        Order {
            sources,
            facts: None,
            cache: None,
            environment,
            imds_timeout: self.imds_timeout,
            aws_api: Some(tenon_core::config::AwsApi::Never),
            api_attempts: None,
            file_mode_compat: self.file_mode_compat,
            daemons: None,
            reset_identity: false,
            mount_bpf: false,
        }
    }
}

fn open(directory: &Path) -> Result<Root, Problem> {
    Root::open(directory).map_err(|error| {
        let what = format!("opening the stage {}", directory.display());
        Problem::new(&codes::host::FILE_READ, what).cause(error)
    })
}

fn no_loopback(error: io::Error) -> Problem {
    Problem::new(&codes::host::NO_LOOPBACK, "starting the pretended metadata service").cause(error)
}
