//! Calls to EC2 and EKS: opt-in, or the fallback for what the config leaves out.
//!
//! ```text
//! credentials  AWS_* variables, else the container's endpoint, else the instance role
//! endpoint     which host answers for a service in a region
//! transport    signing, sending, retrying within a bound
//! eks, ec2, cloudformation, s3  the calls        xml  EC2's answers as values
//! eks, ec2, cloudformation  the calls        xml  EC2's answers as values
//! eks_token    a token for an EKS cluster: an identity call, signed and not sent
//! ```
//!
//! Nothing here runs on the default path of a complete config: no TLS, no name look-up.

pub mod cloudformation;
pub(crate) mod credentials;
pub mod ec2;
pub mod eks;
pub mod eks_token;
mod endpoint;
pub mod s3;
pub(crate) mod transport;
mod xml;

use tenon_core::config::{AwsApi, Config, MaxPodsMode, NameRule};
use tenon_core::facts::{DescribedCluster, Instance};
use tenon_core::problem::Problem;

pub(crate) use self::ec2::encode;
pub use self::transport::Cloud;
pub(crate) use self::transport::proxy;

/// Asks EKS for the cluster's values, if the config leaves some out and calls are allowed.
pub fn discover(
    config: &Config,
    cloud: &mut Cloud<'_>,
) -> Result<Option<DescribedCluster>, Problem> {
    let cluster = &config.cluster;
    let complete = !cluster.api_server_endpoint.is_empty()
        && !cluster.certificate_authority.is_empty()
        && cluster.cidr.is_some();
    if complete || cluster.name.is_empty() || config.aws_api == AwsApi::Never {
        return Ok(None);
    }
    eks::describe_cluster(cloud, &cluster.name).map(Some)
}

/// Adds what EC2 knows and the config asks for. Whatever goes wrong is a warning, because the
/// node can be built without. `known_type`: the instance table has this machine's type.
pub fn enrich(
    config: &Config,
    instance: &mut Instance,
    known_type: bool,
    cloud: &mut Cloud<'_>,
) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let by_limits = !matches!(config.kubelet.max_pods.mode, MaxPodsMode::Fixed(_));
    if config.aws_api != AwsApi::Never && !known_type && by_limits {
        match ec2::instance_limits(cloud, &instance.instance_type) {
            Ok(limits) => instance.limits = limits,
            Err(problem) => warnings.push(problem),
        }
    }
    let by_ec2 = config.node.name == NameRule::Ec2PrivateDns;
    if config.aws_api == AwsApi::Verify && by_ec2 {
        match ec2::private_dns_name(cloud, &instance.id) {
            Ok(name) => instance.private_dns_name = name,
            Err(problem) => warnings.push(problem),
        }
    }
    warnings
}

#[cfg(test)]
mod tests;
