//! What a machine must have before it can be this node. All of it is reported together.

use serde_json::Value;

use super::{Draft, Options, Owner};
use crate::codes;
use crate::codes::Page;
use crate::config::{Config, Fips};
use crate::facts::Facts;
use crate::kube_version::{CGROUP_V1_REFUSED, Version};
use crate::problem::{Finding, Place, Problem};

/// Checks the machine against the config.
pub(crate) fn check(config: &Config, facts: &Facts, options: &Options, draft: &mut Draft) {
    let machine = &facts.machine;
    let mut refuse = |broken: bool, page: &'static Page, what: &str| {
        if broken {
            draft.findings.push(Finding::error(Problem::new(page, what)));
        }
    };
    let fips = config.instance.fips == Fips::Require && !machine.fips_enabled;
    refuse(fips, &codes::plan::FIPS_OFF, "the kernel is not in FIPS mode");
    if Owner::Kubelet.is_wanted(options) {
        let missing = machine.credential_provider.is_none();
        let what = "the image credential provider is not there";
        refuse(missing, &codes::plan::NO_CREDENTIAL_PROVIDER, what);
        let swap = machine.swap_enabled && !is_off(config, "failSwapOn");
        refuse(swap, &codes::plan::SWAP_ON, "swap is on");
        check_cgroups(config, facts, draft);
    }
    if machine.nvidia_device && !machine.nvidia_runtime {
        let what = "an NVIDIA device is attached, but the image has no NVIDIA runtime";
        let problem = Problem::new(&codes::plan::NO_NVIDIA_RUNTIME, what);
        draft.findings.push(Finding::warning(problem));
    }
}

/// Old kubelets run on cgroup v1; newer ones do not start unless told to.
fn check_cgroups(config: &Config, facts: &Facts, draft: &mut Draft) {
    if facts.machine.cgroup_version != 1 {
        return;
    }
    let refused = Version::parse(&facts.machine.kubelet_version)
        .is_some_and(|version| CGROUP_V1_REFUSED.is_open(version));
    let class = match refused && !is_off(config, "failCgroupV1") {
        true => Finding::error,
        false => Finding::warning,
    };
    let problem = Problem::new(&codes::plan::CGROUP_V1, "the machine runs with cgroup v1");
    draft.findings.push(class(problem.at(Place::field("spec.kubelet.config.failCgroupV1"))));
}

fn is_off(config: &Config, key: &str) -> bool {
    config.kubelet.config.get(key).and_then(Value::as_bool) == Some(false)
}
