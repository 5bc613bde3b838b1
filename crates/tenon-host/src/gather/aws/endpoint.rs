//! Which host answers for a service in a region.

use tenon_core::codes::facts::CLOUD_ANSWER;
use tenon_core::problem::Problem;

use crate::gather::environment::Environment;

/// The services that are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    CloudFormation,
    Ec2,
    Eks,
    S3,
    Sts,
}

impl Service {
    /// Name in host names and signatures.
    pub fn name(self) -> &'static str {
        match self {
            Service::CloudFormation => "cloudformation",
            Service::Ec2 => "ec2",
            Service::Eks => "eks",
            Service::S3 => "s3",
            Service::Sts => "sts",
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Service::CloudFormation => "AWS_ENDPOINT_URL_CLOUDFORMATION",
            Service::Ec2 => "AWS_ENDPOINT_URL_EC2",
            Service::Eks => "AWS_ENDPOINT_URL_EKS",
            Service::S3 => "AWS_ENDPOINT_URL_S3",
            Service::Sts => "AWS_ENDPOINT_URL_STS",
        }
    }
}

/// Regions by their beginning: domain, and domain of the dual-stack endpoints.
const PARTITIONS: &[(&str, &str, &str)] = &[
    ("cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    ("us-isob-", "sc2s.sgov.gov", "api.aws.scloud"),
    ("us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
    ("us-iso-", "c2s.ic.gov", "api.aws.ic.gov"),
    ("eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    ("eusc-", "amazonaws.eu", "api.amazonwebservices.eu"),
    ("", "amazonaws.com", "api.aws"),
];

/// The base URL of a service, without a slash at its end.
pub fn url(service: Service, region: &str, environment: &Environment) -> Result<String, Problem> {
    let ignored = environment.on("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    let variables = [service.variable(), "AWS_ENDPOINT_URL"];
    match environment.first(&variables).filter(|_| !ignored) {
        Some(url) if url.starts_with("http://") || url.starts_with("https://") => {
            Ok(url.trim_end_matches('/').to_owned())
        }
        Some(_) => {
            let what = format!("{} is not an http:// or https:// address", service.variable());
            Err(Problem::new(&CLOUD_ANSWER, what))
        }
        None => Ok(format!("https://{}", host(service, region, environment))),
    }
}

fn host(service: Service, region: &str, environment: &Environment) -> String {
    let row = PARTITIONS.iter().find(|row| region.starts_with(row.0));
    let (_, domain, dual_stack) = row.copied().unwrap_or(("", "amazonaws.com", "api.aws"));
    let fips = environment.on("AWS_USE_FIPS_ENDPOINT");
    let name = service.name();
    match (fips, environment.on("AWS_USE_DUALSTACK_ENDPOINT")) {
        (false, false) => format!("{name}.{region}.{domain}"),
        (false, true) => format!("{name}.{region}.{dual_stack}"),
        (true, true) => format!("{name}-fips.{region}.{dual_stack}"),
        // GovCloud's ordinary endpoints are the validated ones.
        (true, false) if region.starts_with("us-gov-") => format!("{name}.{region}.{domain}"),
        (true, false) if service == Service::Eks => format!("fips.{name}.{region}.{domain}"),
        (true, false) => format!("{name}-fips.{region}.{domain}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_follow_region_fips_and_dual_stack() {
        use Service::{Ec2, Eks};
        let rows = [
            (Ec2, "eu-west-1", "", "", "ec2.eu-west-1.amazonaws.com"),
            (Eks, "cn-north-1", "", "", "eks.cn-north-1.amazonaws.com.cn"),
            (Eks, "us-east-1", "true", "", "fips.eks.us-east-1.amazonaws.com"),
            (Ec2, "us-east-1", "true", "", "ec2-fips.us-east-1.amazonaws.com"),
            (Ec2, "us-gov-west-1", "true", "", "ec2.us-gov-west-1.amazonaws.com"),
            (Eks, "eu-west-1", "", "true", "eks.eu-west-1.api.aws"),
            (Eks, "eu-west-1", "true", "true", "eks-fips.eu-west-1.api.aws"),
            (Ec2, "us-isob-east-1", "", "", "ec2.us-isob-east-1.sc2s.sgov.gov"),
        ];
        for (service, region, fips, dual, expected) in rows {
            let variables = [("AWS_USE_FIPS_ENDPOINT", fips), ("AWS_USE_DUALSTACK_ENDPOINT", dual)];
            let found = url(service, region, &Environment::from(variables)).unwrap();
            assert_eq!(found, format!("https://{expected}"));
        }
    }

    #[test]
    fn the_more_specific_variable_wins() {
        let set = |more: &str| {
            Environment::from([
                ("AWS_ENDPOINT_URL", "http://all:1/"),
                ("AWS_ENDPOINT_URL_EC2", "http://one:2"),
                ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", more),
            ])
        };
        assert_eq!(url(Service::Ec2, "eu-west-1", &set("")).unwrap(), "http://one:2");
        assert_eq!(url(Service::Eks, "eu-west-1", &set("")).unwrap(), "http://all:1");
        let ignored = url(Service::Ec2, "eu-west-1", &set("true")).unwrap();
        assert_eq!(ignored, "https://ec2.eu-west-1.amazonaws.com");
        let bad = Environment::from([("AWS_ENDPOINT_URL", "canary")]);
        assert!(
            !url(Service::Eks, "eu-west-1", &bad).unwrap_err().render("error").contains("canary")
        );
    }
}
