//! The metadata service, asked gently: one token, then what the doctor wants, a status for each.

use std::io::Read as _;

use serde_json::Value;
use tenon_core::doctor::Metadata;

use super::reach::EACH;
use crate::gather::environment::Environment;
use crate::gather::imds::endpoint::is_disabled;

const BODY_CAP: u64 = 64 << 10;
const DEFAULT: &str = "http://169.254.169.254";

/// Where to ask; None on a machine that is not of EC2, and where asking is forbidden.
pub(super) fn endpoint(environment: &Environment, ec2: bool) -> Option<String> {
    if is_disabled(environment) {
        return None;
    }
    let set = environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT").map(str::to_owned);
    set.or_else(|| ec2.then(|| DEFAULT.to_owned()))
}

struct Service {
    agent: ureq::Agent,
    base: String,
    token: String,
}

impl Service {
    /// Status and body; 0 and the reason when nothing answers.
    fn ask(&self, path: &str) -> (u16, String) {
        let request = self.agent.get(format!("{}/latest/{path}", self.base));
        let answer = request.header("x-aws-ec2-metadata-token", &self.token).call();
        read(answer)
    }

    /// The body of an answer that is one.
    fn text(&self, path: &str) -> String {
        match self.ask(path) {
            (200, body) => body.trim().to_owned(),
            _ => String::new(),
        }
    }
}

fn read(answer: Result<http::Response<ureq::Body>, ureq::Error>) -> (u16, String) {
    match answer {
        Err(error) => (0, error.to_string()),
        Ok(mut response) => {
            let status = response.status().as_u16();
            let mut body = String::new();
            // A body that is no text counts as none.
            let _ = response.body_mut().as_reader().take(BODY_CAP).read_to_string(&mut body);
            (status, body)
        }
    }
}

/// Asks for everything.
pub(super) fn ask(base: &str) -> Metadata {
    let config = ureq::Agent::config_builder()
        .proxy(None)
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(EACH));
    let agent = config.build().new_agent();
    let base = base.trim_end_matches('/').to_owned();
    let request = agent.put(format!("{base}/latest/api/token"));
    let (status, body) =
        read(request.header("x-aws-ec2-metadata-token-ttl-seconds", "60").send_empty());
    if status != 200 {
        let detail = if status == 0 { body } else { String::new() };
        return Metadata { token_status: status, detail, ..Metadata::default() };
    }
    let service = Service { agent, base, token: body.trim().to_owned() };
    let identity: Value = serde_json::from_str(&service.text("dynamic/instance-identity/document"))
        .unwrap_or_default();
    let of = |key: &str| identity[key].as_str().unwrap_or_default().to_owned();
    let info: Value = serde_json::from_str(&service.text("meta-data/iam/info")).unwrap_or_default();
    let (credentials_status, role) = service.ask("meta-data/iam/security-credentials/");
    let card = format!("meta-data/network/interfaces/macs/{}", service.text("meta-data/mac"));
    let lines = |text: String| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let (tags_status, tags) = service.ask("meta-data/tags/instance/");
    Metadata {
        token_status: 200,
        detail: String::new(),
        credentials_status,
        profile_arn: info["InstanceProfileArn"].as_str().unwrap_or_default().to_owned(),
        role: if credentials_status == 200 {
            role.lines().next().unwrap_or_default().to_owned()
        } else {
            String::new()
        },
        account: of("accountId"),
        instance_id: of("instanceId"),
        region: of("region"),
        architecture: of("architecture"),
        local_hostname: Some(service.text("meta-data/local-hostname")),
        local_ipv4: service.text("meta-data/local-ipv4"),
        ipv6_status: service.ask(&format!("{card}/ipv6s")).0,
        vpc_cidrs: ["vpc-ipv4-cidr-blocks", "vpc-ipv6-cidr-blocks"]
            .iter()
            .flat_map(|leaf| lines(service.text(&format!("{card}/{leaf}"))))
            .collect(),
        public_ipv4: !service.text("meta-data/public-ipv4").is_empty(),
        tags: (tags_status == 200).then(|| lines(tags)),
        spot_action: service.text("meta-data/spot/instance-action"),
    }
}
