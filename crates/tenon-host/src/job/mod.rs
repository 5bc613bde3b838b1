//! The order of a run up to the plan: sources, config, facts, plan.
//!
//! `init`, `plan` and `rehearse` all go this way, so what a plan shows is what a run does.
//! Nothing here writes; [`crate::apply`] makes the plan true.

pub mod cache;
mod discover;
mod legacy;

use std::time::Duration;

use tenon_core::codes;
use tenon_core::config::cache::Cached;
use tenon_core::config::{self, AwsApi, Config, Loaded, SourceRead};
use tenon_core::facts::{DescribedCluster, Facts, Instance};
use tenon_core::kube_version::Version;
use tenon_core::plan::{self, Plan};
use tenon_core::problem::{Finding, Problem};

use crate::apply;
use crate::gather::environment::Environment;
use crate::gather::imds::{self, Imds};
use crate::gather::{self, Wants};
use crate::root::Root;
use crate::sources::{self, Sources};
use crate::timeline::Timeline;

/// What a run is asked to do.
#[derive(Debug, Clone)]
pub struct Order {
    /// Configuration sources, in order.
    pub sources: Vec<String>,
    /// Facts to replay; the metadata service and AWS are then not asked.
    pub facts: Option<Facts>,
    /// Node path of the config cache.
    pub cache: Option<String>,
    pub environment: Environment,
    pub imds_timeout: Duration,
    /// Overrides `spec.aws.api`.
    pub aws_api: Option<AwsApi>,
    /// Upper bound on attempts of each AWS call.
    pub api_attempts: Option<u32>,
    pub file_mode_compat: bool,
    pub daemons: Option<Vec<String>>,
    /// Remove what a kubelet on another machine left.
    pub reset_identity: bool,
    /// Mount `/sys/fs/bpf` where the image does not.
    pub mount_bpf: bool,
}

/// Why there is no plan.
#[derive(Debug)]
pub enum Refusal {
    Problem(Problem),
    Findings { findings: Vec<Finding>, lenient: bool },
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Refusal::Problem(problem)
    }
}

/// A run under way.
pub struct Job<'a> {
    root: &'a Root,
    order: Order,
    imds: Option<Imds>,
    instance: Option<Instance>,
    /// What the identity document says of this instance; known before the rest when the facts
    /// are in the cache.
    identity: Option<Instance>,
    cached: Option<Cached>,
    /// A source that is here already, in place of those of the order.
    given: Option<SourceRead>,
    /// What went wrong on the way but does not stop the run.
    warnings: Vec<Finding>,
    pub timeline: Timeline,
}

/// Everything known before the machine is touched.
#[derive(Debug)]
pub struct Prepared {
    pub loaded: Loaded,
    pub facts: Facts,
    pub plan: Plan,
    /// The merged config differs from the cached one: the config phase must run, asked for or
    /// not.
    pub config_is_new: bool,
}

impl Prepared {
    /// What was found but does not stop the run.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.loaded.findings.iter().chain(&self.plan.findings)
    }
}

impl<'a> Job<'a> {
    pub fn new(root: &'a Root, order: Order) -> Self {
        Job {
            root,
            order,
            imds: None,
            instance: None,
            identity: None,
            cached: None,
            given: None,
            warnings: Vec::new(),
            timeline: Timeline::begin(),
        }
    }

    /// Reads the sources and gives the merged, checked config.
    pub fn config(&mut self) -> Result<Loaded, Refusal> {
        self.cached = self.order.cache.as_deref().and_then(|path| cache::read(self.root, path));
        let Sources { list, findings } = self.sources()?;
        self.drop_foreign_cache()?;
        let options = config::Options { cached: self.cached.as_ref(), partial: false };
        let mut loaded = self
            .timeline
            .span("config", || config::load(&list, options))
            // Tolerated findings stop a strict document by themselves, so beside errors they are
            // shown as the warnings that they are for nodeadm's kind.
            .map_err(|findings| Refusal::Findings { findings, lenient: true })?;
        loaded.findings.splice(0..0, findings);
        if let Some(api) = self.order.aws_api {
            loaded.config.aws_api = api;
        }
        if let Some(variables) = loaded.config.instance.environment.get("default") {
            self.order.environment = self.order.environment.clone().overlay(variables);
        }
        Ok(loaded)
    }

    fn sources(&mut self) -> Result<Sources, Problem> {
        if let Some(given) = self.given.take() {
            return Ok(Sources { list: vec![given], findings: Vec::new() });
        }
        let uris = self.order.sources.clone();
        // Named twice, the user data is read twice and asked for once.
        let mut asked = None;
        let mut user_data = || match &asked {
            Some(kept) => Ok(Option::clone(kept)),
            None => Ok(asked.insert(self.identify(true)?).clone()),
        };
        let mut inputs =
            sources::Inputs { user_data: &mut user_data, stdin: &mut std::io::stdin().lock() };
        sources::read(&uris, &mut inputs)
    }

    /// The proxy of the config, as variables for hooks.
    pub fn hook_environment(&self, config: &Config) -> Vec<(String, String)> {
        let Some(proxy) = &config.instance.proxy else { return Vec::new() };
        let no_proxy = (!proxy.no_proxy.is_empty()).then(|| proxy.no_proxy.join(","));
        let values = [
            ("HTTP_PROXY", proxy.http.as_ref().map(|url| url.expose().to_owned())),
            ("HTTPS_PROXY", proxy.https.as_ref().map(|url| url.expose().to_owned())),
            ("NO_PROXY", no_proxy),
        ];
        let both = |(name, value): (&str, Option<String>)| {
            let value = value?;
            Some([(name.to_owned(), value.clone()), (name.to_lowercase(), value)])
        };
        values.into_iter().filter_map(both).flatten().collect()
    }

    /// The instance's identity, asking the metadata service if nobody did yet. Replayed
    /// facts name it themselves.
    pub fn instance_id(&mut self) -> Result<String, Problem> {
        if let Some(facts) = &self.order.facts {
            return Ok(facts.instance.id.clone());
        }
        self.identify(false)?;
        Ok(self.identity.as_ref().map(|instance| instance.id.clone()).unwrap_or_default())
    }

    /// Gathers the facts that this config needs and builds the whole plan.
    pub fn prepare(&mut self, loaded: Loaded) -> Result<Prepared, Refusal> {
        let known = self.cached.as_ref().is_some_and(|cached| cached.holds(&loaded.config));
        let facts = self.facts(&loaded.config, known)?;
        let options = plan::Options {
            file_mode_compat: self.order.file_mode_compat,
            daemons: self.order.daemons.clone(),
            reset_identity: self.order.reset_identity,
            mount_bpf: self.order.mount_bpf,
            config_hash: loaded.config_hash(),
        };
        let built = self.timeline.span("plan", || plan::build(&loaded.config, &facts, &options));
        let mut plan = with_version_findings(built, &loaded, &facts).map_err(|findings| {
            let findings = [&loaded.findings[..], &findings].concat();
            Refusal::Findings { findings, lenient: loaded.lenient }
        })?;
        plan.findings.append(&mut self.warnings);
        let config_is_new = self.cached.is_some() && !known;
        Ok(Prepared { loaded, facts, plan, config_is_new })
    }

    /// Replayed facts, cached ones if they still hold, or the machine's.
    fn facts(&mut self, config: &Config, known: bool) -> Result<Facts, Refusal> {
        if let Some(facts) = &self.order.facts {
            return Ok(facts.clone());
        }
        let cached = self.cached.as_ref().filter(|_| known);
        let facts = cached.and_then(|cached| cached.facts.clone());
        if let Some(mut facts) = facts.filter(|facts| self.still_holds(facts)) {
            look_back(self.root, &mut facts)?;
            // Drop-ins come and go without a new boot, and decide whether the kubelet reads any.
            facts.machine.kubelet_drop_ins = gather::machine::drop_ins(self.root)?;
            return Ok(facts);
        }
        // nodeadm asked EC2 for the name and wrote it down.
        let name = cached.and_then(|cached| cached.private_dns_name.clone());
        self.first_round(false)?;
        let mut instance = self.instance.clone().unwrap_or_default();
        instance.private_dns_name = name;
        let described = self.describe_cluster(config, &instance)?;
        let wants = wants(config, described.as_ref());
        if let Some(imds) = &mut self.imds {
            let rounds = || imds.second_round(&mut instance, wants.metadata);
            self.timeline.span("metadata again", rounds)?;
            self.timeline.note(format!("{} requests in all", imds.requests()));
        }
        self.enrich(config, &mut instance);
        let (root, environment) = (self.root, &self.order.environment);
        let machine = || gather::facts(root, instance, wants, environment);
        let mut facts = self.timeline.span("machine", machine)?;
        facts.cluster = described;
        look_back(self.root, &mut facts)?;
        self.pin_endpoint(config, &mut facts)?;
        Ok(facts)
    }

    /// True when this is the instance that the facts were gathered on, and it has not got another
    /// address since: stopping and starting it may change that.
    fn still_holds(&self, facts: &Facts) -> bool {
        let seen = |one: &Instance| (one.id.clone(), one.local_ipv4);
        self.identity.as_ref().is_some_and(|now| seen(now) == seen(&facts.instance))
    }

    /// Asks the metadata service who this instance is, once; with its user data if wanted. The
    /// facts of a cache make everything else unnecessary, unless they turn out not to hold.
    fn identify(&mut self, user_data: bool) -> Result<Option<Vec<u8>>, Problem> {
        if self.identity.is_some() {
            return Ok(None);
        }
        if self.cached.as_ref().is_none_or(|cached| cached.facts.is_none()) {
            return self.first_round(user_data);
        }
        let mut imds = self.service()?;
        let first = self.timeline.span("metadata", || imds.identity(user_data))?;
        self.keep(imds, first.instance);
        Ok(first.user_data)
    }

    /// Asks what every node needs to know about its instance, once; with its user data if wanted.
    fn first_round(&mut self, user_data: bool) -> Result<Option<Vec<u8>>, Problem> {
        if self.instance.is_some() {
            return Ok(None);
        }
        let mut imds = self.service()?;
        let first = self.timeline.span("metadata", || imds.first_round(user_data))?;
        self.keep(imds, first.instance.clone());
        self.instance = Some(first.instance);
        Ok(first.user_data)
    }

    /// The connection to the metadata service, made when it is first needed.
    fn service(&mut self) -> Result<Imds, Problem> {
        if self.order.facts.is_some() {
            return Err(Problem::new(
                &codes::usage::BAD_USAGE,
                "the source imds://user-data does not go with --facts",
            )
            .why("--facts replays a machine without asking the metadata service")
            .fix("name the config with --config-source file://PATH"));
        }
        if let Some(imds) = self.imds.take() {
            return Ok(imds);
        }
        let mut options = imds::Options::new(&self.order.environment)?;
        options.patience.whole = self.order.imds_timeout;
        Ok(Imds::new(options))
    }

    fn keep(&mut self, imds: Imds, identity: Instance) {
        self.timeline.note(format!("{} requests, {} retries", imds.requests(), imds.retries()));
        self.imds = Some(imds);
        self.identity = Some(identity);
    }
}

/// Adds what earlier runs left here, or on the machine that the image was made from.
pub fn look_back(root: &Root, facts: &mut Facts) -> Result<(), Problem> {
    facts.last_run = apply::load_record(root)?.map(|record| record.last_run());
    facts.machine.kubelet_identity = match facts.last_run_here() {
        Some(_) => Vec::new(),
        None => gather::machine::kubelet_identity(root),
    };
    Ok(())
}

/// What must be gathered for this config; a described service range decides the family.
fn wants(config: &Config, described: Option<&DescribedCluster>) -> Wants {
    let mut config = config.clone();
    config.cluster.cidr = config.cluster.cidr.or(described.map(|cluster| cluster.cidr));
    Wants::of(&config)
}

/// Joins what this version of the kubelet would refuse to the findings of the plan; errors of
/// either stop. A version that cannot be read is the plan's own error.
pub(crate) fn with_version_findings(
    built: Result<Plan, Vec<Finding>>,
    loaded: &Loaded,
    facts: &Facts,
) -> Result<Plan, Vec<Finding>> {
    let version = Version::parse(&facts.machine.kubelet_version);
    let refused = version
        .map(|version| loaded.version_findings((version.major, version.minor)))
        .unwrap_or_default();
    let stops = refused.iter().any(|finding| finding.stops(loaded.lenient));
    match built {
        Ok(mut plan) if !stops => {
            plan.findings.splice(0..0, refused);
            Ok(plan)
        }
        Ok(plan) => Err([refused, plan.findings].concat()),
        Err(findings) => Err([refused, findings].concat()),
    }
}
