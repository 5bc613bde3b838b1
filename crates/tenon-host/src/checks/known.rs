//! What is known of how the node was meant to be: its config, facts and plan.
//!
//! `init --config-cache` leaves config and facts on the node; without it they can be named with
//! `-c` and `--facts`. What is not known is said, never guessed.

use std::io;

use tenon_core::checks::{Finding, proxy};
use tenon_core::codes;
use tenon_core::config::{self, Loaded, Options};
use tenon_core::facts::Facts;
use tenon_core::plan::record::Record;
use tenon_core::plan::{self, Plan};
use tenon_core::problem::Problem;

use crate::job::{cache, look_back, with_version_findings};
use crate::root::Root;
use crate::{gather, sources};

/// Where nodeadm and Tenon's units keep the config of a node.
const CACHE: &str = "/run/eks/nodeadm/config.json";
const KUBELET_CONFIG: &str = "/etc/kubernetes/kubelet/config.json";
/// Where the files of each daemon lie.
const HOMES: [(&str, &str); 2] =
    [("containerd", "/etc/containerd/"), ("kubelet", "/etc/kubernetes/")];
const BPF_MOUNT: &str = "/etc/systemd/system/sys-fs-bpf.mount";

/// Where config and facts are to be taken from.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Sources of the config; none for the node's own cache.
    pub sources: Vec<String>,
    pub facts: Option<Facts>,
    /// Path of the cache on the node, if it is not the usual one.
    pub cache: Option<String>,
}

/// How the node was meant to be.
#[derive(Debug)]
pub enum Known {
    Plan {
        loaded: Box<Loaded>,
        facts: Box<Facts>,
        plan: Box<Plan>,
        /// The kubelet drop-ins of others that were there when the facts were gathered.
        intended: Vec<String>,
    },
    /// There is a config, and it is not acceptable.
    Refused { findings: Vec<Finding> },
    /// Why nothing is known.
    Not(String),
}

impl Known {
    pub fn plan(&self) -> Option<&Plan> {
        match self {
            Known::Plan { plan, .. } => Some(plan),
            _ => None,
        }
    }

    /// The kubelet drop-ins of others that the plan reckoned with.
    pub(super) fn intended(&self) -> Vec<String> {
        match self {
            Known::Plan { intended, .. } => intended.clone(),
            _ => Vec::new(),
        }
    }

    pub(super) fn kubelet_version(&self) -> Option<String> {
        match self {
            Known::Plan { facts, .. } => Some(facts.machine.kubelet_version.clone()),
            _ => None,
        }
    }

    /// The findings of the config family.
    pub fn findings(&self) -> Vec<Finding> {
        use tenon_core::checks::Family;
        let blank = || Finding::new(Family::Config, "config", "the node's config");
        match self {
            Known::Refused { findings } => findings.clone(),
            Known::Not(why) => {
                vec![blank().unknown(why.as_str()).remedy(
                    "name the config with -c, and the facts with --facts if they were given",
                )]
            }
            Known::Plan { loaded, plan, facts, .. } => {
                // That the cache stands in for the sources is what was asked for here.
                let odd = |one: &&tenon_core::problem::Finding| {
                    one.problem.page.code != codes::config::CACHE_USED.code
                };
                let all = loaded.findings.iter().chain(&plan.findings).filter(odd);
                let told: Vec<Finding> = all
                    .map(|one| Finding::of_config(&one.problem, one.stops(loaded.lenient)))
                    .collect();
                let described = facts.cluster.as_ref().map(|cluster| &cluster.endpoint);
                let given = &loaded.config.cluster.api_server_endpoint;
                let endpoint = described.filter(|_| given.is_empty()).unwrap_or(given);
                let proxied = proxy::judge(&loaded.config, endpoint);
                let told = [told, proxied].concat();
                match told.is_empty() {
                    false => told,
                    true => vec![blank().values("acceptable", "acceptable")],
                }
            }
        }
    }
}

/// Reads the config and builds its plan for this node.
pub fn known(root: Option<&Root>, wanted: Wanted) -> Result<Known, Problem> {
    let Some(root) = root else {
        return Ok(Known::Not("a bundle holds a redacted config".to_owned()));
    };
    let path = wanted.cache.as_deref().unwrap_or(CACHE);
    let cached = cache::read(root, path);
    let loaded = match (wanted.sources.is_empty(), &cached) {
        (true, None) => {
            return Ok(Known::Not(format!("{path} is not there: the config was not recorded")));
        }
        (true, cached) => config::load(&[], Options { cached: cached.as_ref(), partial: false }),
        (false, _) => config::load(&read(&wanted.sources)?.list, Options::default()),
    };
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(findings) => return Ok(refused(&findings, false)),
    };
    let facts = wanted.facts.or_else(|| cached.and_then(|cached| cached.facts));
    let Some(mut facts) = facts else {
        return Ok(Known::Not("the facts of the node were not recorded".to_owned()));
    };
    look_back(root, &mut facts)?;
    let now = gather::machine::drop_ins(root)?;
    let intended = std::mem::replace(&mut facts.machine.kubelet_drop_ins, now);
    let record = crate::apply::load_record(root)?.unwrap_or_default();
    let options = options(&record, &loaded);
    let built = plan::build(&loaded.config, &facts, &options);
    Ok(match with_version_findings(built, &loaded, &facts) {
        Err(findings) => refused(&findings, loaded.lenient),
        Ok(plan) => Known::Plan {
            loaded: Box::new(loaded),
            facts: Box::new(facts),
            plan: Box::new(plan),
            intended,
        },
    })
}

fn refused(findings: &[tenon_core::problem::Finding], lenient: bool) -> Known {
    let told = findings.iter().map(|one| Finding::of_config(&one.problem, one.stops(lenient)));
    Known::Refused { findings: told.collect() }
}

fn read(uris: &[String]) -> Result<sources::Sources, Problem> {
    let mut refuse = || {
        let what = "validate does not ask the metadata service for a config";
        Err(Problem::new(&codes::usage::BAD_USAGE, what).fix("name a file with -c"))
    };
    let mut inputs = sources::Inputs { user_data: &mut refuse, stdin: &mut io::stdin().lock() };
    sources::read(uris, &mut inputs)
}

/// The choices of the run that made the record, read off what it wrote.
fn options(record: &Record, loaded: &Loaded) -> plan::Options {
    let wrote = |path: &str| record.files.get(path);
    let kubelet = wrote(KUBELET_CONFIG);
    let at_home = |home: &str| record.files.keys().any(|path| path.starts_with(home));
    let daemons = HOMES.iter().filter(|(_, home)| at_home(home));
    let daemons: Vec<String> = daemons.map(|(name, _)| (*name).to_owned()).collect();
    plan::Options {
        file_mode_compat: kubelet.is_some_and(|mark| mark.mode & 0o077 != 0),
        daemons: (daemons.len() == 1).then_some(daemons),
        mount_bpf: wrote(BPF_MOUNT).is_some(),
        reset_identity: false,
        config_hash: loaded.config_hash(),
    }
}
