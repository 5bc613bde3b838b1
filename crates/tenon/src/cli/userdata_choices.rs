//! Flags that decide how user data is written.

use std::path::PathBuf;

use tenon_core::userdata::group::CredentialHelper;
use tenon_core::userdata::self_contained::{Choices, KubeletUnit, PodMap};
use tenon_core::userdata::{Gzip, Options};

use super::userdata_input::text;
use crate::output::Failure;

/// How the document is written.
#[derive(Debug, clap::Args)]
pub struct ChoiceFlags {
    /// auto, always or never compress the whole document
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = gzip)]
    gzip: Gzip,
    /// Leave out the two alpha.eksctl.io labels
    #[arg(long)]
    no_eksctl_labels: bool,
    /// Taints as flag or config of the kubelet (AL2023)
    #[arg(long, value_name = "flag|config", default_value = "flag", value_parser = ["flag", "config"])]
    taints_as: String,
    /// Pass endpoint and CA to Ubuntu's program too
    #[arg(long)]
    pin_endpoint: bool,
    /// Version of the Bottlerocket image
    #[arg(long, value_name = "VERSION")]
    bottlerocket_version: Option<String>,
    /// Windows: run the user data at each boot
    #[arg(long)]
    persist: bool,
    /// Mode tenon: node.eks.aws or tenon
    #[arg(long, value_name = "KIND", default_value = "node.eks.aws", value_parser = ["node.eks.aws", "tenon"])]
    part: String,
    /// Accept what looks like a secret
    #[arg(long)]
    allow_secrets: bool,
    /// Self-contained: directory of the files
    #[arg(long, value_name = "DIR", default_value = "/etc/tenon")]
    config_dir: String,
    /// Self-contained: drop-in, full or snap
    #[arg(long, value_name = "FORM", value_parser = kubelet_unit)]
    kubelet_unit: Option<KubeletUnit>,
    /// Self-contained: where the kubelet lies
    #[arg(long, value_name = "PATH")]
    kubelet_path: Option<String>,
    /// Self-contained: aws-iam-authenticator, aws or tenon
    #[arg(long, value_name = "PROGRAM", value_parser = helper)]
    pub credential_helper: Option<CredentialHelper>,
    /// Self-contained: directory of the ECR credential provider
    #[arg(long, value_name = "DIR")]
    ecr_provider_dir: Option<String>,
    /// Self-contained: hostname or instance-id
    #[arg(long, value_name = "RULE", default_value = "hostname", value_parser = ["hostname", "instance-id"])]
    node_name: String,
    /// Self-contained: rows of max_pods.map: group, full or none
    #[arg(long, value_name = "ROWS", default_value = "group", value_parser = pod_map)]
    max_pods_map: PodMap,
    /// Self-contained: pod limit of types without a row
    #[arg(long, value_name = "N")]
    max_pods_fallback: Option<u32>,
    /// Self-contained: bootstrap token of a cluster that is not EKS
    #[arg(long, value_name = "FILE")]
    bootstrap_token_file: Option<PathBuf>,
}

impl ChoiceFlags {
    /// The options of the renderer.
    pub fn options(&self, from_file: bool) -> Result<Options, Failure> {
        let token = self.bootstrap_token_file.as_deref().map(text).transpose()?;
        let newer = |text: &String| {
            let mut parts =
                text.trim_start_matches('v').split('.').map(|part| part.parse::<u32>().ok());
            matches!((parts.next().flatten(), parts.next().flatten()), (Some(major), Some(minor)) if (major, minor) >= (1, 46))
        };
        Ok(Options {
            gzip: self.gzip,
            eksctl_labels: from_file && !self.no_eksctl_labels,
            taints_in_config: self.taints_as == "config",
            pin_endpoint: self.pin_endpoint,
            bottlerocket_finds_directories: self.bottlerocket_version.as_ref().is_some_and(newer),
            persist: self.persist,
            tenon_part: self.part == "tenon",
            allow_secrets: self.allow_secrets,
            self_contained: Choices {
                directory: self.config_dir.clone(),
                kubelet_unit: self.kubelet_unit,
                kubelet_path: self.kubelet_path.clone(),
                ecr_provider_directory: self.ecr_provider_dir.clone(),
                name_by_instance_id: self.node_name == "instance-id",
                map: self.max_pods_map,
                fallback: self.max_pods_fallback,
                bootstrap_token: token.map(|text| text.trim().to_owned()),
            },
        })
    }
}

fn gzip(text: &str) -> Result<Gzip, String> {
    match text {
        "auto" => Ok(Gzip::Auto),
        "always" => Ok(Gzip::Always),
        "never" => Ok(Gzip::Never),
        _ => Err("the choices are auto, always and never".to_owned()),
    }
}

fn kubelet_unit(text: &str) -> Result<KubeletUnit, String> {
    match text {
        "drop-in" => Ok(KubeletUnit::DropIn),
        "full" => Ok(KubeletUnit::Full),
        "snap" => Ok(KubeletUnit::Snap),
        _ => Err("the forms are drop-in, full and snap".to_owned()),
    }
}

fn helper(text: &str) -> Result<CredentialHelper, String> {
    CredentialHelper::parse(text)
        .ok_or_else(|| "the helpers are aws-iam-authenticator, aws and tenon".to_owned())
}

fn pod_map(text: &str) -> Result<PodMap, String> {
    match text {
        "group" => Ok(PodMap::Group),
        "full" => Ok(PodMap::Full),
        "none" => Ok(PodMap::None),
        _ => Err("the choices are group, full and none".to_owned()),
    }
}
