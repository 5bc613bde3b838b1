//! `tenon imds serve`: the simulated metadata service, for testing images and user data.

use std::net::SocketAddr;
use std::path::PathBuf;

use tenon_core::codes;
use tenon_core::problem::Problem;
use tenon_host::simulator::Simulator;
use tenon_host::simulator::faults::Faults;
use tenon_host::simulator::profile::Profile;
use tenon_host::stop;

use super::node_args;
use crate::output::{self, Outcome};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Answer like the metadata service of a chosen instance
    Serve(Args),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon imds serve --instance-type m5.large --user-data node.yaml --log
  AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1:1338 tenon facts

A fault script is YAML:
  refuseForMs: 500
  rules:
    - {path: '*/token', method: PUT, times: 2, status: 503, retryAfter: 1}
    - {path: '*/meta-data/mac', skip: 1, truncate: 4}
Further keys of a rule: perSecond, body, location, delayMs, reset, dripMs,
hang, close, framing (length, chunked, close), expireTokens.")]
pub struct Args {
    /// Instance type to pretend
    #[arg(long, value_name = "TYPE")]
    instance_type: String,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:1338")]
    listen: SocketAddr,
    /// Region to pretend
    #[arg(long, default_value = "eu-west-1")]
    region: String,
    /// File that becomes the user data
    #[arg(long, value_name = "FILE")]
    user_data: Option<PathBuf>,
    /// Give the instance IPv6 addresses
    #[arg(long)]
    ipv6: bool,
    /// Answer requests that carry no token
    #[arg(long)]
    allow_imdsv1: bool,
    /// Script of faults
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,
    /// Tell each request
    #[arg(long)]
    log: bool,
}

pub fn run(command: &Command) -> Outcome {
    let Command::Serve(args) = command;
    let faults = args.faults.as_deref().map(node_args::read_file).transpose()?;
    let faults = faults.map(|text| Faults::parse(&text)).transpose()?.unwrap_or_default();
    stop::listen()
        .map_err(|error| Problem::new(&codes::usage::BUG, "listening for signals").cause(error))?;
    let simulator = Simulator::listen(args.listen, &profile(args)?, faults).map_err(|error| {
        let what = format!("listening on {}", args.listen);
        Problem::new(&codes::host::FILE_READ, what)
            .why("the address is taken or not of this machine")
            .fix("choose another with --listen")
            .cause(error)
    })?;
    output::answer(&format!("AWS_EC2_METADATA_SERVICE_ENDPOINT={}\n", simulator.endpoint()))?;
    simulator.serve(args.log);
    Ok(())
}

fn profile(args: &Args) -> Result<Profile, Problem> {
    let mut profile = Profile::new(&args.instance_type).in_region(&args.region);
    profile.user_data = args.user_data.as_deref().map(node_args::read_file).transpose()?;
    profile.allow_version_1 = args.allow_imdsv1;
    Ok(if args.ipv6 { profile.with_ipv6() } else { profile })
}
