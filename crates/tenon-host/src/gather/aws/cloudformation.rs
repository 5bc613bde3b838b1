//! `cloudformation:SignalResource`: the node tells its stack how the bootstrap ended.

use std::time::Duration;

use tenon_core::codes::userdata::SIGNAL_REFUSED;
use tenon_core::problem::Problem;

use super::Cloud;
use super::ec2::encode;
use super::endpoint::Service;
use super::transport::Call;

const BOUND: Duration = Duration::from_secs(60);
const VERSION: &str = "2010-05-15";

/// What the stack is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Success,
    Failure,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Success => "SUCCESS",
            Status::Failure => "FAILURE",
        }
    }
}

/// Sends one signal. The instance's id is the signal's own, so that a repeated one counts once.
pub fn signal(
    cloud: &mut Cloud<'_>,
    stack: &str,
    resource: &str,
    instance_id: &str,
    status: Status,
) -> Result<(), Problem> {
    let parameters = [
        ("StackName", stack),
        ("LogicalResourceId", resource),
        ("UniqueId", instance_id),
        ("Status", status.name()),
    ];
    let mut body = format!("Action=SignalResource&Version={VERSION}");
    for (key, value) in parameters {
        body.push_str(&format!("&{key}={}", encode(value)));
    }
    let call = Call {
        service: Service::CloudFormation,
        action: "cloudformation:SignalResource",
        method: "POST",
        path: "/".to_owned(),
        body,
        bound: BOUND,
    };
    let answer = cloud.call(&call)?;
    match answer.contains("SignalResourceResponse") {
        true => Ok(()),
        false => Err(Problem::new(&SIGNAL_REFUSED, "CloudFormation answered another document")),
    }
}
