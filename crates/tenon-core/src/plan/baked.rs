//! What an image already holds of what bootstrap writes: the same bytes, as far as they are known
//! before there is a cluster. Bootstrap finds them equal, or writes what the node adds.

use serde_json::Map;

use super::containerd::{self, Traits};
use super::containerd_schema::Schema;
use super::{credential_provider, runtime_spec};
use crate::config::PAUSE_IMAGE;
use crate::kube_version::{CDI, Version};

/// The sandbox image as an archive.
pub const PAUSE_ARCHIVE: &str = "/etc/eks/pause.tar";
const PROVIDER: &str = "ecr-credential-provider";

/// The credential provider's config for a version of Kubernetes.
pub fn credential_provider(kubernetes: &str) -> String {
    credential_provider::text(PROVIDER, version(kubernetes))
}

/// containerd's config of a node without GPU and snapshotter. Its form is the older one: which
/// containerd a distribution will install is not known here, and each of them reads it.
pub fn containerd(kubernetes: &str) -> String {
    let cdi = CDI.is_open(version(kubernetes));
    let traits = Traits { nvidia: false, soci: false, sandbox: PAUSE_IMAGE, cdi };
    containerd::template(&traits, Schema::V2)
}

/// The OCI spec that containerd's config names.
pub fn runtime_spec() -> String {
    runtime_spec::text(&Map::new())
}

/// A minor alone counts as its first version.
fn version(kubernetes: &str) -> Version {
    let first = || Version::parse(&format!("{kubernetes}.0"));
    Version::parse(kubernetes).or_else(first).unwrap_or(Version::new(1, 0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::step::Action;
    use crate::plan::{Options, build, fixture};

    #[test]
    fn bootstrap_finds_its_own_bytes() {
        let mut facts = fixture::facts();
        facts.machine.containerd_version = "1.7.24".into();
        let plan = build(&fixture::config(), &facts, &Options::default()).unwrap();
        let planned = |path: &str| {
            let body = plan.steps.iter().find_map(|step| match &step.action {
                Action::File(file) if file.path == path => Some(file.body.clone()),
                _ => None,
            });
            String::from_utf8(body.unwrap()).unwrap()
        };
        let provider = planned(super::super::credential_provider::CONFIG_PATH);
        assert_eq!(provider, credential_provider("1.34.1"));
        assert_eq!(planned(containerd::PATH), super::containerd("1.34.1"));
        assert_eq!(planned(runtime_spec::PATH), super::runtime_spec());
    }

    #[test]
    fn the_version_decides() {
        assert!(!credential_provider("1.31.4").contains("ecr-public.aws.com"));
        assert!(credential_provider("1.34").contains("ecr-public.aws.com"));
        assert!(super::containerd("1.34.2").contains("enable_cdi = true"));
    }

    #[test]
    fn an_image_has_what_bootstrap_expects() {
        use crate::image::config::ImageConfig;
        use crate::image::{family, plan};
        use crate::plan::{kubelet, kubelet_args};
        let config = ImageConfig { family: family::find("al2023"), ..ImageConfig::default() };
        let image = plan::resolve(&config.wanted(None, Vec::new()).unwrap()).unwrap();
        let kubelet_unit = image.resource("unit/kubelet.service").unwrap();
        let unit = kubelet_unit.text("content").unwrap();
        for words in [
            format!("EnvironmentFile=-{}\n", kubelet::ENVIRONMENT_PATH),
            format!("ExecStart=/usr/bin/kubelet ${}", kubelet_args::VARIABLE),
            "Slice=runtime.slice\n".to_owned(),
        ] {
            assert!(unit.contains(&words), "no {words} in {unit}");
        }
        // The kubelet is told that the runtime is in this slice.
        let runtime = image.resource("unit/containerd.service").unwrap();
        assert!(runtime.table("drop-ins").iter().any(|(_, text)| text.contains("runtime.slice")));
        let facts = fixture::facts();
        let node = build(&fixture::config(), &facts, &Options::default()).unwrap();
        for path in node.steps.iter().filter_map(|step| step.action.written_path()) {
            let parent = path.rsplit_once('/').unwrap().0;
            let there = image.resource(&format!("directory/{parent}")).is_some();
            assert!(there || path.starts_with("/run/"), "no directory for {path}");
        }
        let provider = facts.machine.credential_provider.unwrap();
        assert!(image.resource(&format!("download/{provider}")).is_some(), "no {provider}");
    }
}
