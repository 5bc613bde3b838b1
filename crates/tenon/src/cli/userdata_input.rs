//! What describes a group and its cluster on a command line; shared by `userdata render`,
//! `cloudformation` and `launch-template`.

use std::io::Read;
use std::path::{Path, PathBuf};

use tenon_core::codes;
use tenon_core::config::{self, SourceRead};
use tenon_core::decode::{self, Blob, Budget, Origin};
use tenon_core::facts::Instance;
use tenon_core::problem::{Finding, Place, Problem};
use tenon_core::userdata::input::{
    self, Named, cluster_json, eksctl, flags, kubeconfig, node_config, overlay,
};
use tenon_core::userdata::{Cluster, Family, Group, Kind, Mode, Options};
use tenon_host::gather::aws::{Cloud, eks};
use tenon_host::gather::environment::Environment;

use super::userdata_choices::ChoiceFlags;
use crate::output::Failure;

const LARGEST_FILE: u64 = 16 << 20;

/// Where group and cluster come from. Exactly one group source; a value given twice must agree.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// eksctl ClusterConfig; - for standard input
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Option<PathBuf>,
    /// NodeConfig of node.eks.aws or tenon.dev; repeatable, later ones win
    #[arg(short = 'c', long = "config-source", value_name = "FILE", conflicts_with = "file")]
    config: Vec<PathBuf>,
    /// Wishes that a ClusterConfig cannot hold, keyed by group name
    #[arg(long, value_name = "FILE", requires = "file")]
    overlay: Option<PathBuf>,
    /// The group to render
    #[arg(long, value_name = "NAME", requires = "file")]
    pub group: Option<String>,
    #[command(flatten)]
    flags: GroupFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    /// native, self-contained or tenon [default: the family's own]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    mode: Option<Mode>,
    #[command(flatten)]
    choices: ChoiceFlags,
}

/// A group by flags.
#[derive(Debug, clap::Args)]
struct GroupFlags {
    /// Operating system line of the image, such as AmazonLinux2023
    #[arg(long, value_name = "FAMILY")]
    family: Option<String>,
    /// self-managed, managed or custom (managed with an image of your own)
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
    /// Name of the group
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Node label key=value; repeatable
    #[arg(long, value_name = "K=V")]
    label: Vec<String>,
    /// Node taint key=value:Effect; repeatable
    #[arg(long, value_name = "K=V:E")]
    taint: Vec<String>,
    /// Fixed pod limit
    #[arg(long, value_name = "N")]
    max_pods: Option<u32>,
    /// Address of the cluster's DNS service
    #[arg(long, value_name = "IP")]
    cluster_dns: Option<std::net::IpAddr>,
    /// KubeletConfiguration fields, YAML or JSON
    #[arg(long, value_name = "FILE")]
    kubelet_config: Option<PathBuf>,
    /// Script run before the join; repeatable
    #[arg(long, value_name = "FILE")]
    pre: Vec<PathBuf>,
    /// Script run after the join; repeatable
    #[arg(long, value_name = "FILE")]
    post: Vec<PathBuf>,
    /// Replaces the join step
    #[arg(long = "override", value_name = "FILE")]
    override_file: Option<PathBuf>,
    /// User data of family Custom, passed through unchanged
    #[arg(long, value_name = "FILE")]
    user_text: Option<PathBuf>,
    /// Image id
    #[arg(long, value_name = "ID")]
    ami: Option<String>,
    /// Instance type; repeatable
    #[arg(long, value_name = "TYPE")]
    instance_type: Vec<String>,
}

/// A cluster by flags and files.
#[derive(Debug, clap::Args)]
struct ClusterFlags {
    /// Answer of DescribeCluster as JSON
    #[arg(long, value_name = "FILE")]
    cluster_json: Option<PathBuf>,
    /// Take endpoint and CA from a kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Ask EKS for the cluster (the only use of the network)
    #[arg(long)]
    from_eks: bool,
    /// Keep the answer of EKS in FILE, for --cluster-json
    #[arg(long, value_name = "FILE", requires = "from_eks")]
    save_facts: Option<PathBuf>,
    /// Name of the cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// URL of the API server
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// CA of the API server, base64 of PEM
    #[arg(long, value_name = "BASE64")]
    ca_data: Option<String>,
    /// CA of the API server as a PEM file
    #[arg(long, value_name = "FILE", conflicts_with = "ca_data")]
    ca_file: Option<PathBuf>,
    /// Range of service addresses
    #[arg(long, value_name = "CIDR")]
    service_cidr: Option<ipnet::IpNet>,
    /// Version such as 1.33
    #[arg(long, value_name = "VERSION", value_parser = version)]
    kubernetes_version: Option<(u32, u32)>,
    /// Id of a local cluster on Outposts
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,
    /// The cluster is a local cluster on Outposts
    #[arg(long)]
    outpost: bool,
    /// Region of the cluster
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Authentication mode of the cluster, such as API
    #[arg(long, value_name = "MODE")]
    auth_mode: Option<String>,
}

/// What was described.
pub struct Described {
    pub cluster: Cluster,
    pub groups: Vec<Group>,
    mode: Option<Mode>,
    pub options: Options,
    pub notes: Vec<String>,
}

impl Described {
    /// The mode for one group.
    pub fn mode(&self, group: &Group) -> Mode {
        self.mode.unwrap_or(group.family.default_mode())
    }
}

impl InputArgs {
    /// Reads everything that the arguments name.
    pub fn read(&self) -> Result<Described, Failure> {
        let mut sources: Vec<Named> = Vec::new();
        let mut notes = Vec::new();
        let mut groups = match (&self.file, self.config.is_empty()) {
            (Some(path), _) => {
                let read =
                    eksctl::read(&text(path)?, &path.display().to_string()).map_err(findings)?;
                sources.push(("the ClusterConfig".into(), read.cluster));
                notes = read.notes;
                read.groups
            }
            (None, false) => {
                let (cluster, group) = self.node_config()?;
                sources.push(("the node config".into(), cluster));
                vec![group]
            }
            (None, true) => vec![Group { name: "nodes".into(), ..Group::default() }],
        };
        if let Some(path) = &self.overlay {
            overlay::apply(&text(path)?, &path.display().to_string(), &mut groups)
                .map_err(findings)?;
        }
        self.flags.apply(&mut groups, self.file.is_some())?;
        if let Some(helper) = self.choices.credential_helper {
            groups.iter_mut().for_each(|group| group.credential_helper = helper);
        }
        sources.extend(self.cluster.sources()?);
        let mut cluster = input::combine(&sources).map_err(findings)?;
        if self.cluster.from_eks {
            sources.push(("EKS".into(), self.cluster.ask_eks(&cluster)?));
            cluster = input::combine(&sources).map_err(findings)?;
        }
        let options = self.choices.options(self.file.is_some())?;
        Ok(Described { cluster, groups, mode: self.mode, options, notes })
    }

    fn node_config(&self) -> Result<(Cluster, Group), Failure> {
        let mut list = Vec::new();
        for path in &self.config {
            let bytes = Some(text(path)?.into_bytes());
            let uri = format!("file://{}", path.display());
            list.push(SourceRead { uri, origin: Origin::File, bytes });
        }
        for source in &list {
            refuse_others(source)?;
        }
        let options = config::Options { partial: true, ..config::Options::default() };
        let loaded = config::load(&list, options).map_err(findings)?;
        let name = self.flags.name.as_deref().unwrap_or("nodes");
        Ok((node_config::cluster(&loaded.config), node_config::group(&loaded.config, name)))
    }
}

/// A message may hold scripts beside its configs; they would be lost here, so it is refused.
fn refuse_others(source: &SourceRead) -> Result<(), Failure> {
    let bytes = source.bytes.clone().unwrap_or_default();
    let blob = Blob { source_index: 0, uri: source.uri.clone(), origin: Origin::File, bytes };
    let held = decode::unwrap(&blob, &mut Budget::default()).held;
    if held.is_empty() {
        return Ok(());
    }
    let what = format!("the source holds more than node configs: {}", held.join(", "));
    let place = Place { source: source.uri.clone(), ..Place::default() };
    let problem = Problem::new(&codes::userdata::BAD_INPUT, what)
        .at(place)
        .why("only the configs of a message are read here; its other parts would be left out")
        .fix("give the scripts with --pre, and the configs alone as files");
    Err(problem.into())
}

impl GroupFlags {
    /// Adds the flags to the group. With a ClusterConfig they would contradict it.
    fn apply(&self, groups: &mut [Group], from_file: bool) -> Result<(), Failure> {
        let given = self.family.is_some()
            || self.kind.is_some()
            || self.name.is_some()
            || !self.label.is_empty()
            || !self.taint.is_empty()
            || self.max_pods.is_some()
            || self.cluster_dns.is_some()
            || self.kubelet_config.is_some()
            || !self.pre.is_empty()
            || !self.post.is_empty()
            || self.override_file.is_some()
            || self.user_text.is_some()
            || self.ami.is_some()
            || !self.instance_type.is_empty();
        if from_file && given {
            let what = "the group comes from the ClusterConfig, and a flag describes a group too";
            let problem = Problem::new(&codes::userdata::TWO_VALUES, what)
                .fix("write the value into the file, or leave --file out");
            return Err(problem.into());
        }
        let [group] = groups else { return Ok(()) };
        if from_file {
            return Ok(());
        }
        self.fill(group)
    }

    fn fill(&self, group: &mut Group) -> Result<(), Failure> {
        if let Some(family) = &self.family {
            group.family =
                Family::parse(family).map_err(|problem| problem.at(Place::field("--family")))?;
        }
        if self.ami.is_some() && self.family.is_none() {
            let what = "--ami names an image and --family is missing";
            return Err(Problem::new(&codes::userdata::FAMILY_NEEDED, what)
                .at(Place::field("--ami"))
                .into());
        }
        group.kind = self.kind.unwrap_or_default();
        group.ami.clone_from(&self.ami);
        if let Some(name) = &self.name {
            group.name.clone_from(name);
        }
        for label in &self.label {
            let (key, value) = flags::label(label)?;
            group.labels.insert(key, value);
        }
        for taint in &self.taint {
            group.taints.push(flags::taint(taint)?);
        }
        group.max_pods = self.max_pods.or(group.max_pods);
        group.cluster_dns = self.cluster_dns.or(group.cluster_dns);
        group.instance_types.extend(self.instance_type.iter().cloned());
        if let Some(path) = &self.kubelet_config {
            group.kubelet_config = kubelet_config(path)?;
        }
        for (files, commands) in
            [(&self.pre, &mut group.pre_commands), (&self.post, &mut group.post_commands)]
        {
            for path in files {
                commands.push(text(path)?);
            }
        }
        group.override_command = self.override_file.as_deref().map(text).transpose()?;
        group.user_text = self.user_text.as_deref().map(text).transpose()?;
        Ok(())
    }
}

impl ClusterFlags {
    fn sources(&self) -> Result<Vec<Named>, Failure> {
        use base64::Engine;
        let mut sources = Vec::new();
        if let Some(path) = &self.cluster_json {
            let cluster =
                cluster_json::read(&text(path)?, &path.display().to_string()).map_err(findings)?;
            sources.push(("--cluster-json".to_owned(), cluster));
        }
        if let Some(path) = &self.kubeconfig {
            let cluster =
                kubeconfig::read(&text(path)?, &path.display().to_string()).map_err(findings)?;
            sources.push(("--kubeconfig".to_owned(), cluster));
        }
        let authority = match &self.ca_file {
            Some(path) => Some(base64::engine::general_purpose::STANDARD.encode(text(path)?)),
            None => self.ca_data.clone(),
        };
        let flags = Cluster {
            name: self.cluster.clone(),
            endpoint: self.endpoint.clone(),
            certificate_authority: authority,
            service_cidr: self.service_cidr,
            version: self.kubernetes_version,
            id: self.cluster_id.clone(),
            outpost: self.outpost,
            region: self.region.clone(),
            auth_mode: self.auth_mode.clone(),
            ..Cluster::default()
        };
        sources.push(("the flags".to_owned(), flags));
        Ok(sources)
    }

    /// One DescribeCluster call.
    fn ask_eks(&self, known: &Cluster) -> Result<Cluster, Failure> {
        let (Some(name), Some(region)) = (&known.name, &known.region) else {
            let what = "--from-eks needs the cluster's name and region";
            return Err(Problem::new(&codes::userdata::CLUSTER_FACT_MISSING, what)
                .fix("give --cluster and --region")
                .into());
        };
        let instance = Instance { region: region.clone(), ..Instance::default() };
        let mut cloud = Cloud::new(&instance, Environment::of_process(), None);
        let answer = eks::answer(&mut cloud, name)?;
        if let Some(path) = &self.save_facts {
            super::userdata::write(path, answer.as_bytes())?;
        }
        cluster_json::read(&answer, "EKS").map_err(findings)
    }
}

fn kubelet_config(path: &Path) -> Result<serde_json::Map<String, serde_json::Value>, Failure> {
    let source = text(path)?;
    let bad = || {
        Problem::new(
            &codes::userdata::BAD_INPUT,
            "--kubelet-config is not one map of kubelet fields",
        )
    };
    let trees = tenon_core::yaml::parse(&source).map_err(|_| bad())?;
    let [tree] = &trees[..] else { return Err(bad().into()) };
    match tree.to_json(tenon_core::tree::Dialect::Yaml11) {
        serde_json::Value::Object(map) => Ok(map),
        _ => Err(bad().into()),
    }
}

/// A file of the user's, or standard input for `-`.
pub fn text(path: &Path) -> Result<String, Failure> {
    let mut content = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(LARGEST_FILE).read_to_string(&mut content),
        false => std::fs::File::open(path)
            .and_then(|file| file.take(LARGEST_FILE).read_to_string(&mut content)),
    };
    read.map_err(|error| {
        Problem::new(&codes::host::FILE_READ, format!("reading {}", path.display())).cause(error)
    })?;
    Ok(content)
}

pub fn findings(findings: Vec<Finding>) -> Failure {
    Failure::Findings { findings, lenient: false }
}

fn mode(text: &str) -> Result<Mode, String> {
    Mode::parse(text).ok_or_else(|| "the modes are native, self-contained and tenon".to_owned())
}

fn kind(text: &str) -> Result<Kind, String> {
    Kind::parse(text).ok_or_else(|| "the kinds are self-managed, managed and custom".to_owned())
}

fn version(text: &str) -> Result<(u32, u32), String> {
    input::version(text).ok_or_else(|| "a version looks like 1.33".to_owned())
}
