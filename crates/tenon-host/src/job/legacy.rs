//! A run by the arguments of the old `bootstrap.sh`: the converted document is its only source.

use ipnet::IpNet;
use serde_json::Value;
use tenon_core::config::SourceRead;
use tenon_core::config::legacy::{Legacy, Machine};
use tenon_core::decode::Origin;
use tenon_core::facts::Instance;
use tenon_core::problem::Problem;
use tenon_core::{codes, max_pods};

use super::Job;
use crate::gather::imds::Needs;

/// The containerd config that a user names has no reason to be larger.
const LARGEST_TOML: u64 = 1 << 20;

impl Job<'_> {
    /// Completes converted arguments with what the machine knows, and makes them the source of
    /// this run. Gives the document.
    pub fn take_legacy(&mut self, legacy: Legacy) -> Result<Value, Problem> {
        let toml = match &legacy.containerd_config_file {
            Some(path) => Some(self.read_toml(path)?),
            None => None,
        };
        let needs = Needs {
            vpc_cidrs: legacy.needs_vpc_cidrs,
            services_domain: legacy.pause.is_some(),
            ..Needs::default()
        };
        let asks_machine = needs != Needs::default() || legacy.needs_eni_max_pods;
        let instance = if asks_machine { self.whole_instance(needs)? } else { Instance::default() };
        let vpc_cidrs: Vec<IpNet> = instance.vpc_cidrs.clone();
        let service_cidr = self.order.environment.get("SERVICE_IPV4_CIDR").map(str::to_owned);
        let row = max_pods::find(&instance.instance_type);
        let document = legacy.finish(&Machine {
            region: &instance.region,
            domain: instance.services_domain.as_deref().unwrap_or(default_domain(&instance.region)),
            vpc_cidrs: &vpc_cidrs,
            service_ipv4_cidr: service_cidr.as_deref(),
            containerd_config: toml.as_deref(),
            eni_max_pods: row.map(|row| max_pods::plain(row.enis, row.ipv4_per_eni)),
        });
        self.given = Some(SourceRead {
            uri: "bootstrap.sh".into(),
            origin: Origin::File,
            bytes: Some(document.to_string().into_bytes()),
        });
        Ok(document)
    }

    fn read_toml(&self, path: &str) -> Result<String, Problem> {
        let unreadable = |cause: String| {
            Problem::new(&codes::host::FILE_READ, "reading the file of --containerd-config-file")
                .cause(cause)
        };
        let bytes = self
            .root
            .read(path, LARGEST_TOML)
            .map_err(|error| unreadable(error.to_string()))?
            .ok_or_else(|| unreadable("there is no such file".into()))?;
        String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text".into()))
    }

    /// What the metadata service knows about the instance, with the values asked for.
    fn whole_instance(&mut self, needs: Needs) -> Result<Instance, Problem> {
        if let Some(facts) = &self.order.facts {
            return Ok(facts.instance.clone());
        }
        self.first_round(false)?;
        let (Some(imds), Some(instance)) = (&mut self.imds, &mut self.instance) else {
            return Ok(Instance::default());
        };
        imds.second_round(instance, needs)?;
        Ok(instance.clone())
    }
}

fn default_domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}
