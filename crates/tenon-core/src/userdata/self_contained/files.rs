//! The files of mode `self-contained`, in their fixed order.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Job, pod_map, registry};
use crate::codes::userdata as pages;
use crate::problem::{Finding, Problem};
use crate::userdata::document::NodeFile;
use crate::userdata::group::{CredentialHelper, MaxPodsPolicy};
use crate::userdata::{al2023, kubelet_args, quote};
use crate::yaml;

pub(super) fn all(job: &Job, findings: &mut Vec<Finding>) -> Option<Vec<NodeFile>> {
    let directory = job.directory();
    let at = |name: &str| format!("{directory}/{name}");
    let mut files = vec![NodeFile::new(at("kubelet.yaml"), 0o644, kubelet_config(job, findings)?)];
    files.push(match &job.options.self_contained.bootstrap_token {
        None => NodeFile::new(at("kubeconfig.yaml"), 0o600, kubeconfig(job, exec_user(job))),
        Some(token) => {
            warn_token(job, findings);
            let user = json!({"token": token});
            NodeFile::new(at("bootstrap-kubeconfig.yaml"), 0o600, kubeconfig(job, user))
        }
    });
    files.push(NodeFile::new(at("ca.crt"), 0o644, job.cluster.authority_pem()?));
    files.push(NodeFile::new(
        at("metadata.env"),
        0o644,
        environment(metadata(job), job, findings)?,
    ));
    files.push(NodeFile::new(at("kubelet.env"), 0o644, environment(kubelet(job), job, findings)?));
    if let Some(map) = pod_map::text(job, findings) {
        files.push(NodeFile::new(at("max_pods.map"), 0o644, map));
    }
    if job.options.self_contained.ecr_provider_directory.is_some() {
        files.push(NodeFile::new(at("credential-provider.json"), 0o644, credential_provider()));
    }
    Some(files)
}

fn warn_token(job: &Job, findings: &mut Vec<Finding>) {
    let what = "the user data holds a bootstrap token";
    let problem = Problem::new(&pages::SECRET_FOUND, what)
        .at(job.group.at(""))
        .fix("let the token expire soon after the launch");
    findings.push(Finding::warning(problem));
}

fn environment(
    variables: BTreeMap<String, String>,
    job: &Job,
    findings: &mut Vec<Finding>,
) -> Option<String> {
    let file = quote::env::file(&variables);
    if file.is_err() {
        let what = "a value for an environment file holds a control character";
        findings.push(Finding::error(Problem::new(&pages::BAD_TEXT, what).at(job.group.at(""))));
    }
    file.ok()
}

fn metadata(job: &Job) -> BTreeMap<String, String> {
    let cluster = job.cluster;
    let region = cluster.region.clone().unwrap_or_default();
    let pairs = [
        ("AWS_EKS_ECR_ACCOUNT", registry::account(&region).to_owned()),
        ("AWS_DEFAULT_REGION", region),
        ("AWS_EKS_CLUSTER_NAME", cluster.name.clone().unwrap_or_default()),
        ("AWS_EKS_ENDPOINT", cluster.endpoint.clone().unwrap_or_default()),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn kubelet(job: &Job) -> BTreeMap<String, String> {
    let group = job.group;
    let limit = match group.max_pods_policy {
        MaxPodsPolicy::Fixed => "MAX_PODS",
        MaxPodsPolicy::Min => "MAX_PODS_CEILING",
    };
    let pairs = [
        (limit, group.max_pods.map(|pods| pods.to_string())),
        ("NODE_LABELS", Some(kubelet_args::labels(group))),
        ("NODE_TAINTS", Some(kubelet_args::taints(group))),
    ];
    pairs.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

/// The base, the group's values, the user's fields last.
fn kubelet_config(job: &Job, findings: &mut Vec<Finding>) -> Option<String> {
    let Some(dns) = al2023::dns(job.cluster, job.group, findings) else {
        job.cluster.require(&["serviceCidr"], findings);
        return None;
    };
    let authority = format!("{}/ca.crt", job.directory());
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true, "cacheTTL": "2m0s"},
            "x509": {"clientCAFile": authority},
        },
        "authorization": {
            "mode": "Webhook",
            "webhook": {"cacheAuthorizedTTL": "5m0s", "cacheUnauthorizedTTL": "30s"},
        },
        "cgroupDriver": "systemd",
        "clusterDNS": [dns],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "serverTLSBootstrap": true,
    });
    if !job.group.taints.is_empty() {
        config["registerWithTaints"] = al2023::taint_objects(job.group);
    }
    merge(&mut config, &job.group.kubelet_config);
    Some(yaml::emit(&config))
}

/// Objects merge, lists and scalars replace.
fn merge(target: &mut Value, over: &Map<String, Value>) {
    for (key, value) in over {
        match (target.get_mut(key), value) {
            (Some(inner @ Value::Object(_)), Value::Object(map)) => merge(inner, map),
            _ => target[key] = value.clone(),
        }
    }
}

fn kubeconfig(job: &Job, user: Value) -> String {
    let cluster = json!({
        "certificate-authority": format!("{}/ca.crt", job.directory()),
        "server": job.cluster.endpoint,
    });
    yaml::emit(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "kubernetes", "cluster": cluster}],
        "contexts": [{"name": "kubelet", "context": {"cluster": "kubernetes", "user": "kubelet"}}],
        "current-context": "kubelet",
        "users": [{"name": "kubelet", "user": user}],
    }))
}

pub(super) fn helper_program(helper: CredentialHelper) -> &'static str {
    match helper {
        CredentialHelper::AwsIamAuthenticator => "aws-iam-authenticator",
        CredentialHelper::Aws => "aws",
        CredentialHelper::Tenon => "tenon",
    }
}

fn exec_user(job: &Job) -> Value {
    let name = job.cluster.name.clone().unwrap_or_default();
    let region = job.cluster.region.clone().unwrap_or_default();
    let arguments = match job.group.credential_helper {
        CredentialHelper::AwsIamAuthenticator => vec!["token".into(), "-i".into(), name],
        CredentialHelper::Aws => vec![
            "eks".into(),
            "get-token".into(),
            "--cluster-name".into(),
            name,
            "--region".into(),
            region,
        ],
        CredentialHelper::Tenon => {
            vec!["eks-token".into(), "--cluster-name".into(), name, "--region".into(), region]
        }
    };
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": helper_program(job.group.credential_helper),
        "args": arguments,
        "interactiveMode": "Never",
    }})
}

fn credential_provider() -> String {
    let images = [
        "*.dkr.ecr.*.amazonaws.com",
        "*.dkr.ecr.*.amazonaws.com.cn",
        "*.dkr.ecr-fips.*.amazonaws.com",
        "public.ecr.aws",
    ];
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1",
        "kind": "CredentialProviderConfig",
        "providers": [{
            "name": "ecr-credential-provider",
            "matchImages": images,
            "defaultCacheDuration": "12h0m0s",
            "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        }],
    });
    format!("{config:#}\n")
}
