//! The image credential provider: which registries the kubelet asks it about.

use super::json_text::{Json, object, pretty, strings};
use super::node::Node;
use super::step::FileBody;
use super::{Draft, Owner};
use crate::kube_version::{ECR_PUBLIC_AWS, Version};

pub(crate) const CONFIG_PATH: &str = "/etc/eks/image-credential-provider/config.json";

/// Registries of every partition, in the order of nodeadm's file.
const IMAGES: [&str; 12] = [
    "*.dkr.ecr.*.amazonaws.com",
    "*.dkr-ecr.*.on.aws",
    "*.dkr.ecr.*.amazonaws.com.cn",
    "*.dkr-ecr.*.on.amazonwebservices.com.cn",
    "*.dkr.ecr-fips.*.amazonaws.com",
    "*.dkr-ecr-fips.*.on.aws",
    "*.dkr.ecr.*.c2s.ic.gov",
    "*.dkr.ecr.*.sc2s.sgov.gov",
    "*.dkr.ecr.*.cloud.adc-e.uk",
    "*.dkr.ecr.*.csp.hci.ic.gov",
    "*.dkr.ecr.*.amazonaws.eu",
    "public.ecr.aws",
];

/// Plans the provider's config. A machine without the provider was refused by the preflight.
pub(crate) fn plan(node: &Node, draft: &mut Draft) {
    let Some(name) = split(node).map(|(_, name)| name) else { return };
    let file = FileBody::new(CONFIG_PATH, 0o644, text(name, node.kubelet_version));
    draft.file(Owner::Kubelet, file, "pulls from ECR");
}

/// The config of a provider for a kubelet of this version.
pub(crate) fn text(name: &str, kubelet: Version) -> String {
    let mut images = IMAGES.to_vec();
    if ECR_PUBLIC_AWS.is_open(kubelet) {
        images.push("ecr-public.aws.com");
    }
    pretty(&document(name, &images), 2) + "\n"
}

fn document(name: &str, images: &[&str]) -> Json {
    let provider = object([
        ("name", name.into()),
        ("matchImages", strings(images)),
        ("defaultCacheDuration", "12h0m0s".into()),
        ("apiVersion", "credentialprovider.kubelet.k8s.io/v1".into()),
    ]);
    object([
        ("apiVersion", "kubelet.config.k8s.io/v1".into()),
        ("kind", "CredentialProviderConfig".into()),
        ("providers", Json::List(vec![provider])),
    ])
}

/// The directory that holds the provider.
pub(crate) fn directory(node: &Node) -> Option<String> {
    split(node).map(|(directory, _)| directory.to_owned())
}

fn split<'a>(node: &'a Node) -> Option<(&'a str, &'a str)> {
    node.facts.machine.credential_provider.as_deref()?.rsplit_once('/')
}
