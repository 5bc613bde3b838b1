//! `tenon cloudformation`: a whole stack around the user data of a group.

use clap::ValueEnum;
use tenon_core::userdata::cloudformation::{self, AccessEntry, StackOptions};
use tenon_core::userdata::input::eksctl;

use super::userdata_input::{InputArgs, findings};
use crate::output::{self, Outcome};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
    /// Form of the template
    #[arg(long, value_enum, value_name = "json|yaml", default_value = "json")]
    format: Form,
    /// Finished user data in place of parameters for the cluster's values
    #[arg(long)]
    baked: bool,
    /// Parameters for the cluster's values (the default)
    #[arg(long, conflicts_with = "baked")]
    parameters: bool,
    /// Name of the stack, which baked user data signals
    #[arg(long, value_name = "NAME")]
    stack_name: Option<String>,
    /// Neither signals nor policies that wait for them
    #[arg(long)]
    no_signals: bool,
    /// How long a node may take, as PT15M
    #[arg(long, value_name = "DURATION", default_value = "PT15M")]
    signal_timeout: String,
    /// Leave the image parameter without a default
    #[arg(long)]
    no_image_default: bool,
    /// The CNI policy on the nodes' role
    #[arg(long, value_name = "role|none", default_value = "role", value_parser = ["role", "none"])]
    cni_policy: String,
    /// Access entry of the nodes' role
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    access_entry: Entry,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Form {
    Json,
    Yaml,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Entry {
    Auto,
    Always,
    Never,
}

impl Args {
    fn stack(&self) -> StackOptions {
        StackOptions {
            baked: self.baked,
            signals: !self.no_signals,
            signal_timeout: self.signal_timeout.clone(),
            image_default: !self.no_image_default,
            cni_policy: self.cni_policy == "role",
            access_entry: match self.access_entry {
                Entry::Auto => AccessEntry::Auto,
                Entry::Always => AccessEntry::Always,
                Entry::Never => AccessEntry::Never,
            },
            stack_name: self.stack_name.clone(),
        }
    }
}

pub fn run(args: &Args) -> Outcome {
    let described = args.input.read()?;
    let group = eksctl::select(&described.groups, args.input.group.as_deref())?;
    let mode = described.mode(group);
    let made = cloudformation::template(
        &described.cluster,
        group,
        mode,
        &described.options,
        &args.stack(),
    )
    .map_err(findings)?;
    output::tell_findings(&made.findings, false);
    made.notes.iter().for_each(|note| output::tell(&format!("note: {note}\n")));
    output::answer(&match args.format {
        Form::Json => made.template.json(),
        Form::Yaml => made.template.yaml(),
    })
}
