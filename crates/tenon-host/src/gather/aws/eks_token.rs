//! A token for an EKS cluster: a call to `sts:GetCallerIdentity`, signed and not sent.
//!
//! The cluster sends it and so learns who signed. The cluster's name is one of the signed
//! headers: a token for one cluster does not open another.

use std::time::{Duration, Instant, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign,
};
use aws_sigv4::sign::v4;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tenon_core::bootstrap_token::secret::written_time;
use tenon_core::codes::facts::CLOUD_ANSWER;
use tenon_core::codes::usage::BUG;
use tenon_core::problem::Problem;
use tenon_core::secret::Secret;

use super::credentials::Signer;
use super::ec2::encode;
use super::endpoint::Service;
use super::transport::Call;
use super::{Cloud, xml};

const PREFIX: &str = "k8s-aws-v1.";
const QUERY: &str = "/?Action=GetCallerIdentity&Version=2011-06-15";
const HEADER: &str = "x-k8s-aws-id";
/// How long the signature itself is valid.
const SIGNATURE: Duration = Duration::from_secs(60);
/// EKS takes a token for 15 minutes; a minute less leaves room for clocks.
const LIFE: Duration = Duration::from_secs(14 * 60);
const BOUND: Duration = Duration::from_secs(30);
/// What clients ask for when they say nothing.
const API_VERSION: &str = "client.authentication.k8s.io/v1";

/// A token and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minted {
    pub token: Secret,
    /// `2026-11-15T22:14:00Z`
    pub expires: String,
}

impl Minted {
    /// The document that a client expects of its credential program.
    pub fn credential(&self, api_version: &str) -> Value {
        json!({
            "apiVersion": api_version,
            "kind": "ExecCredential",
            "spec": {},
            "status": {"expirationTimestamp": self.expires, "token": self.token.expose()},
        })
    }
}

/// The version of the document that `KUBERNETES_EXEC_INFO` asks for.
pub fn api_version(exec_info: Option<&str>) -> Result<String, Problem> {
    let Some(info) = exec_info else { return Ok(API_VERSION.to_owned()) };
    let info: Value = serde_json::from_str(info).unwrap_or_default();
    let asked = info["apiVersion"].as_str().unwrap_or_default();
    match asked.strip_prefix("client.authentication.k8s.io/") {
        Some("v1" | "v1beta1") => Ok(asked.to_owned()),
        _ => Err(Problem::new(
            &tenon_core::codes::cluster::BAD_KUBECONFIG,
            "KUBERNETES_EXEC_INFO asks for a version that is not v1 or v1beta1",
        )),
    }
}

/// Mints a token for a cluster; with a role, as that role.
pub fn mint(
    cloud: &mut Cloud<'_>,
    cluster: &str,
    role: Option<&str>,
    now: SystemTime,
) -> Result<Minted, Problem> {
    let plain = cluster.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !plain || cluster.is_empty() {
        return Err(Problem::new(&CLOUD_ANSWER, "the cluster's name cannot be part of a request"));
    }
    let signer = match role {
        Some(role) => assume(cloud, role)?,
        None => cloud.signer(Instant::now() + BOUND)?,
    };
    let url = format!("{}{QUERY}", cloud.url(Service::Sts)?);
    let signed = presign(&url, cloud.region(), cluster, &signer, now)?;
    let end = (now + LIFE).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(Minted {
        token: Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(signed))),
        expires: written_time(end.as_secs()).unwrap_or_default(),
    })
}

/// The address with its signature in the query.
fn presign(
    url: &str,
    region: &str,
    cluster: &str,
    signer: &Signer,
    now: SystemTime,
) -> Result<String, Problem> {
    let bug = |error: &dyn std::error::Error| Problem::new(&BUG, "signing a token").cause(error);
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(SIGNATURE);
    let identity = signer.credentials.clone().into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(Service::Sts.name())
        .time(now)
        .settings(settings)
        .build()
        .map_err(|error| bug(&error))?
        .into();
    let headers = [(HEADER, cluster)];
    let signable = SignableRequest::new("GET", url, headers.into_iter(), SignableBody::Bytes(&[]))
        .map_err(|error| bug(&error))?;
    let (instructions, _) = sign(signable, &parameters).map_err(|error| bug(&error))?.into_parts();
    let mut request = http::Request::get(url).body(()).map_err(|error| bug(&error))?;
    instructions.apply_to_request_http1x(&mut request);
    Ok(request.uri().to_string())
}

/// Credentials of another role, asked for with our own.
fn assume(cloud: &mut Cloud<'_>, role: &str) -> Result<Signer, Problem> {
    let body = format!(
        "Action=AssumeRole&Version=2011-06-15&RoleSessionName=tenon-eks-token&RoleArn={}",
        encode(role)
    );
    let answer = cloud.call(&Call {
        service: Service::Sts,
        action: "sts:AssumeRole",
        method: "POST",
        path: "/".into(),
        body,
        bound: BOUND,
    })?;
    let answer = xml::parse(&answer)?;
    let given = &answer["AssumeRoleResponse"]["AssumeRoleResult"]["Credentials"];
    let text = |key: &str| given[key].as_str().map(str::to_owned);
    let whole = text("AccessKeyId").zip(text("SecretAccessKey")).zip(text("SessionToken"));
    let Some(((key, secret), token)) = whole else {
        return Err(Problem::new(&CLOUD_ANSWER, "sts:AssumeRole answered without credentials"));
    };
    let credentials = Credentials::new(key, secret, Some(token), None, "assumed role");
    Ok(Signer { credentials, identity: "the assumed role".into() })
}
