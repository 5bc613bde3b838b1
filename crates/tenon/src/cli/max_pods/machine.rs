//! Questions about one machine: this one, saved facts, or what a plan would write for it.

use std::time::Duration;

use tenon_core::facts::{Facts, Instance, InstanceLimits};
use tenon_core::max_pods::{Machine, Question};
use tenon_core::problem::Problem;
use tenon_host::gather::aws::{Cloud, ec2};
use tenon_host::gather::environment::Environment;
use tenon_host::gather::imds::{Imds, Options};
use tenon_host::gather::machine;
use tenon_host::job::Job;

use super::args::{Args, AwsApiArg};
use super::usage;
use crate::cli::Global;
use crate::cli::node_args::{self, NodeArgs};
use crate::output::{self, Failure};

/// A machine does not wait long for an answer that a person asked for.
const METADATA_PATIENCE: Duration = Duration::from_secs(10);

/// One machine, and what is asked about it.
pub(super) struct Asked {
    pub(super) question: Question,
    pub(super) instance: Instance,
    pub(super) machine: Machine,
}

/// The machine that the arguments ask about; None when they name types.
pub(super) fn asked(
    args: &Args,
    question: &Question,
    global: &Global,
) -> Result<Option<Asked>, Failure> {
    match (&args.config, &global.facts, args.from_imds) {
        (_, Some(_), true) => Err(usage("--facts does not go with --from-imds")),
        (None, None, false) => Ok(None),
        (Some(_), None, false) => Err(usage("--config needs a machine: --facts or --from-imds")),
        (Some(config), _, _) => planned(config, global).map(Some),
        (None, Some(_), _) if !args.wanted().is_empty() => {
            Err(usage("--facts does not go with instance types"))
        }
        (None, Some(path), _) => Ok(Some(of_facts(question.clone(), node_args::read_facts(path)?))),
        (None, None, true) => here(question.clone(), global).map(Some),
    }
}

fn of_facts(question: Question, facts: Facts) -> Asked {
    let machine = Machine {
        cpus: facts.machine.online_cpus,
        memory_mib: facts.machine.online_memory_bytes >> 20,
    };
    Asked { question, instance: facts.instance, machine }
}

/// Asks the metadata service for the type, and the kernel for processors and memory.
fn here(question: Question, global: &Global) -> Result<Asked, Failure> {
    let root = node_args::open_root(global)?;
    let environment = Environment::of_process();
    let mut options = Options::new(&environment)?;
    options.patience.whole = METADATA_PATIENCE;
    let instance = Imds::new(options).first_round(false)?.instance;
    let machine = Machine {
        cpus: machine::online_cpus(&root, &environment)?,
        memory_mib: machine::memory(&root)? >> 20,
    };
    Ok(Asked { question, instance, machine })
}

/// Goes the way of `plan`, so that whatever stops a plan stops this answer.
fn planned(config: &str, global: &Global) -> Result<Asked, Failure> {
    let root = node_args::open_root(global)?;
    let node = NodeArgs {
        config_source: vec![config.to_owned()],
        imds_timeout: METADATA_PATIENCE,
        ..NodeArgs::default()
    };
    let mut job = Job::new(&root, node.order(global)?);
    let loaded = job.config()?;
    let prepared = job.prepare(loaded)?;
    let question = Question::from(&prepared.loaded.config.kubelet.max_pods);
    Ok(of_facts(question, prepared.facts))
}

/// What EC2 says about a type that no table knows, if the user lets us ask. A call that goes
/// wrong is told, and the type stays unknown.
pub(super) fn ask_ec2(
    args: &Args,
    name: &str,
    instance: Option<&Instance>,
) -> Option<InstanceLimits> {
    if args.aws_api == AwsApiArg::Never {
        return None;
    }
    describe(name, instance).unwrap_or_else(|problem| {
        output::tell(&problem.render("warning"));
        None
    })
}

fn describe(name: &str, instance: Option<&Instance>) -> Result<Option<InstanceLimits>, Problem> {
    let environment = Environment::of_process();
    let region = environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]).unwrap_or("us-east-1");
    let desk = Instance { region: region.to_owned(), ..Instance::default() };
    let mut imds = match instance {
        Some(_) => Some(Imds::new(Options::new(&environment)?)),
        None => None,
    };
    let mut cloud = Cloud::new(instance.unwrap_or(&desk), environment, imds.as_mut());
    ec2::instance_limits(&mut cloud, name)
}
