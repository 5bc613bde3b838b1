//! Facts that only AWS or a resolver knows, asked for when the config leaves no other way.

use tenon_core::config::Config;
use tenon_core::facts::{DescribedCluster, Facts, Instance};
use tenon_core::problem::{Finding, Problem};
use tenon_core::{max_pods, plan};

use super::Job;
use crate::gather::aws::{self, Cloud};
use crate::gather::environment::Environment;
use crate::gather::{resolve, tables};

impl Job<'_> {
    /// Asks EKS for what the config leaves out about the cluster; usually nothing.
    pub(super) fn describe_cluster(
        &mut self,
        config: &Config,
        instance: &Instance,
    ) -> Result<Option<DescribedCluster>, Problem> {
        let environment = self.api_environment(config);
        let mut cloud = Cloud::new(instance, environment, self.imds.as_mut());
        aws::discover(config, &mut cloud)
    }

    /// Asks EC2 for what the config and the instance table leave open; usually nothing.
    /// What goes wrong here is a warning, because the node can be built without.
    pub(super) fn enrich(&mut self, config: &Config, instance: &mut Instance) {
        let known =
            max_pods::find(&instance.instance_type).is_some() || self.table_of_image(instance);
        let environment = self.api_environment(config);
        let asked = instance.clone();
        let mut cloud = Cloud::new(&asked, environment, self.imds.as_mut());
        let warnings = aws::enrich(config, instance, known, &mut cloud);
        self.warnings.extend(warnings.into_iter().map(Finding::warning));
    }

    /// Takes the limits of a newer type from the tables of the image; true if they know it.
    fn table_of_image(&mut self, instance: &mut Instance) -> bool {
        match tables::limits(self.root, &instance.instance_type) {
            Ok(limits) => instance.limits = limits,
            Err(problem) => self.warnings.push(Finding::warning(problem)),
        }
        instance.limits.is_some()
    }

    /// Looks up the API server's addresses where they are pinned. No address is a warning: the
    /// ones from an earlier run may still be right.
    pub(super) fn pin_endpoint(
        &mut self,
        config: &Config,
        facts: &mut Facts,
    ) -> Result<(), Problem> {
        let cluster = &config.cluster;
        let described = facts.cluster.as_ref();
        let endpoint = match cluster.api_server_endpoint.as_str() {
            "" => described.map_or("", |cluster| cluster.endpoint.as_str()),
            endpoint => endpoint,
        };
        let pinned = cluster.on_outpost(described).is_some_and(|outpost| outpost.pin_endpoint);
        let Some(host) = plan::endpoint_host(endpoint).filter(|_| pinned) else { return Ok(()) };
        match self.timeline.span("resolve", || resolve::addresses(host)) {
            Ok(addresses) => facts.endpoint_addresses = addresses,
            Err(problem) => {
                crate::stop::check()?;
                self.warnings.push(Finding::warning(problem));
            }
        }
        Ok(())
    }

    fn api_environment(&self, config: &Config) -> Environment {
        let environment = self.order.environment.clone();
        let environment = match &config.instance.proxy {
            Some(proxy) => environment.with_proxy(proxy),
            None => environment,
        };
        environment.with_attempts(self.order.api_attempts)
    }
}
