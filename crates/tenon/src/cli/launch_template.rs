//! `tenon launch-template`: `LaunchTemplateData` alone, as JSON.

use tenon_core::userdata::cloudformation;
use tenon_core::userdata::input::eksctl;

use super::Global;
use super::userdata_input::InputArgs;
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
}

pub fn run(args: &Args, global: &Global) -> Outcome {
    let described = args.input.read()?;
    let group = eksctl::select(&described.groups, args.input.group.as_deref())?;
    let rendered = super::userdata::one(&described, group, global.quiet)?;
    output::answer_json(&cloudformation::launch_template_data(&described.cluster, group, &rendered))
}
