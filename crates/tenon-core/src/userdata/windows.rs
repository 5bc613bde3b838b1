//! Windows: PowerShell lines that call the EKS script of the image.

use serde_json::Value;

use super::document::PowerShell;
use super::group::Signal;
use super::quote::powershell;
use super::{Cluster, Document, Draft, Group, Options, al2023, kubelet_args};
use crate::codes::userdata as pages;
use crate::problem::{Finding, Problem};

const SCRIPT_VARIABLE: &str =
    "[string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"";
/// Warnings, verbose, debug and information go where the output goes.
const ALL_STREAMS: &str = "3>&1 4>&1 5>&1 6>&1";

/// How a kubelet field becomes an option.
#[derive(Clone, Copy)]
enum Join {
    Plain,
    /// `k=v,…`
    Pairs,
    /// `k<v,…`
    Thresholds,
}

const OPTIONS: [(&str, &str, Join); 10] = [
    ("systemReserved", "system-reserved", Join::Pairs),
    ("kubeReserved", "kube-reserved", Join::Pairs),
    ("evictionHard", "eviction-hard", Join::Thresholds),
    ("evictionSoft", "eviction-soft", Join::Thresholds),
    ("evictionSoftGracePeriod", "eviction-soft-grace-period", Join::Pairs),
    ("evictionMaxPodGracePeriod", "eviction-max-pod-grace-period", Join::Plain),
    ("imageGCHighThresholdPercent", "image-gc-high-threshold", Join::Plain),
    ("imageGCLowThresholdPercent", "image-gc-low-threshold", Join::Plain),
    ("podsPerCore", "pods-per-core", Join::Plain),
    ("cpuCFSQuota", "cpu-cfs-quota", Join::Plain),
];

pub(crate) fn draft(
    cluster: &Cluster,
    group: &Group,
    options: &Options,
    findings: &mut Vec<Finding>,
) -> Option<Draft> {
    check_tags(group, findings);
    let mut lines = group.pre_commands.clone();
    if !group.joined_by_eks() {
        lines.insert(0, SCRIPT_VARIABLE.to_owned());
        lines.extend(join(cluster, group, findings)?);
    }
    if lines.is_empty() {
        return Some(Document::Empty.into());
    }
    let body: String =
        lines.iter().map(|line| format!("{}\n", line.trim_end_matches('\n'))).collect();
    Some(Document::PowerShell(PowerShell { body, persist: options.persist }).into())
}

/// A closing tag in a user's text would end the block, and the rest would not run.
fn check_tags(group: &Group, findings: &mut Vec<Finding>) {
    for (field, text) in super::secrets::texts(group) {
        if !powershell::is_writable(text) {
            let what = "the text holds a tag that would end the PowerShell block";
            let problem = Problem::new(&pages::BAD_TEXT, what)
                .at(group.at(&field))
                .fix("split the tag into two strings");
            findings.push(Finding::error(problem));
        }
    }
}

/// The join, what follows it, and the signal around both.
fn join(cluster: &Cluster, group: &Group, findings: &mut Vec<Finding>) -> Option<Vec<String>> {
    let arguments = kubelet_options(group, findings);
    let values = values(cluster, group, &arguments, findings);
    let literals: Option<Vec<_>> =
        values.iter().map(|(name, value)| Some((*name, powershell::literal(value)?))).collect();
    let Some(literals) = literals else {
        let what = "a value for the EKS script holds a control character or a tag";
        findings.push(Finding::error(Problem::new(&pages::BAD_TEXT, what).at(group.at(""))));
        return None;
    };
    let mut lines = match &group.override_command {
        None => vec![call(&literals)],
        Some(text) => {
            let variables =
                literals.iter().map(|(name, literal)| format!("[string]${name} = {literal}"));
            let mut lines: Vec<_> = variables.collect();
            lines.push(argument_map(&arguments)?);
            lines.push(text.clone());
            lines
        }
    };
    lines.extend(group.post_commands.iter().cloned());
    Some(match &group.signal {
        None => lines,
        Some(wish) => with_signal(lines, wish)?,
    })
}

fn values(
    cluster: &Cluster,
    group: &Group,
    arguments: &[(String, String)],
    findings: &mut Vec<Finding>,
) -> Vec<(&'static str, String)> {
    let words: Vec<_> = arguments.iter().map(|(name, value)| format!("--{name}={value}")).collect();
    let pairs = [
        ("EKSClusterName", cluster.name.clone()),
        ("APIServerEndpoint", cluster.endpoint.clone()),
        ("Base64ClusterCA", cluster.certificate_authority.clone()),
        ("ServiceCIDR", cluster.cidr_text()),
        ("DNSClusterIP", al2023::dns(cluster, group, findings)),
        ("ContainerRuntime", group.container_runtime.clone()),
        ("KubeletExtraArgs", Some(words.join(" "))),
    ];
    pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn call(literals: &[(&str, String)]) -> String {
    let words = literals.iter().map(|(name, literal)| format!(" -{name} {literal}"));
    format!("& $EKSBootstrapScriptFile{} {ALL_STREAMS}", words.collect::<String>())
}

fn argument_map(arguments: &[(String, String)]) -> Option<String> {
    let pairs: Option<Vec<_>> = arguments
        .iter()
        .map(|(name, value)| {
            Some(format!("{} = {}", powershell::literal(name)?, powershell::literal(value)?))
        })
        .collect();
    Some(format!("$KubeletExtraArgsMap = @{{ {} }}", pairs?.join("; ")))
}

/// Labels, taints, pod limit, mapped kubelet fields, the user's flags: name and value.
fn kubelet_options(group: &Group, findings: &mut Vec<Finding>) -> Vec<(String, String)> {
    let mut options = vec![("node-labels".to_owned(), kubelet_args::labels(group))];
    options.push(("register-with-taints".to_owned(), kubelet_args::taints(group)));
    options.extend(group.max_pods.map(|pods| ("max-pods".to_owned(), pods.to_string())));
    options.retain(|(_, value)| !value.is_empty());
    for (field, value) in &group.kubelet_config {
        match option(field, value) {
            Some(pair) => options.push(pair),
            None => {
                let what = format!(
                    "kubeletExtraConfig.{field} is not available on {}; its kubelet takes command line options only",
                    group.family.name()
                );
                let problem = Problem::new(&pages::NOT_AVAILABLE, what)
                    .at(group.at(&format!("kubeletExtraConfig.{field}")));
                findings.push(Finding::error(problem));
            }
        }
    }
    let flags = group.kubelet_flags.iter().filter_map(|flag| flag.strip_prefix("--"));
    options.extend(flags.map(|flag| {
        let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
        (name.to_owned(), value.to_owned())
    }));
    for (name, value) in &options {
        if value.contains([' ', '"', '\'']) {
            let what = format!("the value for --{name} holds a blank or a quote");
            findings.push(Finding::error(
                Problem::new(&pages::BAD_TEXT, what).at(group.at("kubeletExtraConfig")),
            ));
        }
    }
    options
}

fn option(field: &str, value: &Value) -> Option<(String, String)> {
    let (_, name, join) = OPTIONS.iter().find(|(known, _, _)| *known == field)?;
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    };
    let joined = |sign: &str| -> Option<String> {
        let pairs = value
            .as_object()?
            .iter()
            .map(|(key, value)| Some(format!("{key}{sign}{}", text(value)?)));
        Some(pairs.collect::<Option<Vec<_>>>()?.join(","))
    };
    let value = match join {
        Join::Plain => text(value)?,
        Join::Pairs => joined("=")?,
        Join::Thresholds => joined("<")?,
    };
    Some(((*name).to_owned(), value))
}

/// The lines inside `try`, the signal in `finally`: it is sent whatever happened before.
fn with_signal(lines: Vec<String>, wish: &Signal) -> Option<Vec<String>> {
    let [stack, resource, region, timeout] =
        [&wish.stack, &wish.resource, &wish.region, &wish.timeout]
            .map(|text| powershell::literal(text));
    let (stack, resource, region, timeout) = (stack?, resource?, region?, timeout?);
    let mut all = vec!["$TenonStatus = 'FAILURE'".to_owned(), "try {".to_owned()];
    all.extend(lines);
    all.extend([
        format!("$TenonEnd = (Get-Date) + [System.Xml.XmlConvert]::ToTimeSpan({timeout}) - (New-TimeSpan -Minutes 1)"),
        "while ((Get-Date) -lt $TenonEnd) {".to_owned(),
        "  if ((Get-Service -Name 'kubelet' -ErrorAction 'SilentlyContinue').Status -eq 'Running') { $TenonStatus = 'SUCCESS'; break }".to_owned(),
        "  Start-Sleep -Seconds 5".to_owned(),
        "}".to_owned(),
        "} finally {".to_owned(),
        "$TenonToken = Invoke-RestMethod -Method 'Put' -Uri 'http://169.254.169.254/latest/api/token' -Headers @{ 'X-aws-ec2-metadata-token-ttl-seconds' = '600' }".to_owned(),
        "$TenonInstance = Invoke-RestMethod -Uri 'http://169.254.169.254/latest/meta-data/instance-id' -Headers @{ 'X-aws-ec2-metadata-token' = $TenonToken }".to_owned(),
        format!("Send-CFNResourceSignal -StackName {stack} -LogicalResourceId {resource} -UniqueId $TenonInstance -Status $TenonStatus -Region {region} -Force"),
        "}".to_owned(),
    ]);
    Some(all)
}
