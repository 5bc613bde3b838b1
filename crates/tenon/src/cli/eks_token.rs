//! `tenon eks-token`: the credential program of an EKS kubeconfig.

use std::time::{Duration, SystemTime};

use tenon_core::codes::usage::BAD_USAGE;
use tenon_core::facts::Instance;
use tenon_core::problem::Problem;
use tenon_host::gather::aws::{Cloud, eks_token};
use tenon_host::gather::environment::Environment;
use tenon_host::gather::imds::values::is_region;
use tenon_host::gather::imds::{Imds, Options};

use crate::output::{self, Outcome};

/// How long the metadata service is asked for the region: a client waits for the token.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(after_help = "Credentials: AWS_* variables, the container's endpoint, the instance role.
Prints an ExecCredential; a token is valid for 14 minutes.

Example: tenon eks-token --cluster-name prod --region eu-west-1")]
pub struct Args {
    /// Name of the cluster (its id on Outposts)
    #[arg(long, alias = "cluster", value_name = "NAME")]
    cluster_name: String,
    /// Region of the cluster [default: AWS_REGION, else the instance's own]
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Assume this role first
    #[arg(long, value_name = "ARN")]
    role_arn: Option<String>,
}

/// Refuses names that no cluster and no region has, before anybody is asked for anything.
fn refuse_bad(cluster: &str, region: Option<&str>) -> Result<(), Problem> {
    let plain = cluster.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if cluster.is_empty() || !plain {
        let what = "--cluster-name is not the name of a cluster";
        return Err(Problem::new(&BAD_USAGE, what).fix("letters, digits, hyphens and underscores"));
    }
    match region.is_none_or(is_region) {
        true => Ok(()),
        false => {
            let what = "--region (or AWS_REGION) is not the name of a region";
            Err(Problem::new(&BAD_USAGE, what).fix("a name such as eu-west-1"))
        }
    }
}

/// The instance that this runs on.
fn region_here(imds: &mut Result<Imds, Problem>) -> Result<Instance, Problem> {
    let asked = match imds {
        Ok(imds) => imds.identity(false),
        Err(problem) => Err(problem.clone()),
    };
    let advice = "name the region with --region or AWS_REGION; on an instance, let its metadata service answer";
    asked.map(|first| first.instance).map_err(|problem| problem.fix(advice))
}

pub fn run(args: &Args) -> Outcome {
    let environment = Environment::of_process();
    let version = eks_token::api_version(environment.get("KUBERNETES_EXEC_INFO"))?;
    let mut options = Options::new(&environment);
    if let Ok(options) = &mut options {
        options.patience.whole = PATIENCE;
    }
    let mut imds = options.map(Imds::new);
    let named = args.region.as_deref();
    let named = named.or_else(|| environment.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]));
    refuse_bad(&args.cluster_name, named)?;
    let instance = match named {
        Some(region) => Instance { region: region.to_owned(), ..Instance::default() },
        None => region_here(&mut imds)?,
    };
    let mut cloud = Cloud::new(&instance, environment, imds.as_mut().ok());
    let role = args.role_arn.as_deref();
    let minted = eks_token::mint(&mut cloud, &args.cluster_name, role, SystemTime::now())?;
    // A client reads this, whatever --output says.
    output::answer(&format!("{}\n", minted.credential(&version)))
}
