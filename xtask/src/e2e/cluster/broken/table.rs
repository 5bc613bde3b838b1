//! The ways in which a node is broken, and the cause that `tenon doctor` must name first.
//!
//! A script runs inside the machine, with the words of `e2e/broken.sh` at hand. `says` is what a
//! real program prints then, and is waited for: so each text that the doctor knows is seen here
//! to be what that program says.

/// One way to break a node.
pub struct Break {
    pub name: &'static str,
    /// Number of the doctor's cause.
    pub cause: u8,
    /// What is done outside the machine first.
    pub outside: Option<Outside>,
    pub script: &'static str,
    /// A unit, and a text in its journal.
    pub says: Option<(&'static str, &'static str)>,
}

/// What is done outside the machine.
#[derive(Clone, Copy)]
pub enum Outside {
    /// The Node object is deleted, so that the kubelet must register again.
    ForgetNode,
    /// A name server says that there is no such name.
    AnswerNames,
    /// The API server has another address.
    SecondAddress,
    /// The metadata service gives no session tokens.
    RefuseTokens,
    /// Another API server's clock is a day ahead.
    ServeFromTomorrow,
    /// The user data has a field that does not exist.
    Misspell,
    /// A pod is bound to the node.
    StartPod,
    /// A webhook that nobody answers must agree to new nodes.
    RefuseNodes,
}

const fn inside(
    name: &'static str,
    cause: u8,
    script: &'static str,
    says: Option<(&'static str, &'static str)>,
) -> Break {
    Break { name, cause, outside: None, script, says }
}

const fn with_outside(
    name: &'static str,
    cause: u8,
    outside: Outside,
    script: &'static str,
    says: Option<(&'static str, &'static str)>,
) -> Break {
    Break { name, cause, outside: Some(outside), script, says }
}

const KUBELET: &str = "kubelet.service";
const CONTAINERD: &str = "containerd.service";
const CONFIG: &str = "tenon-config.service";

pub const BREAKS: &[Break] = &[
    with_outside(
        "the role is not known to the cluster",
        1,
        Outside::ForgetNode,
        "printf nobody >/etc/lab-token; again",
        Some((KUBELET, "Unauthorized")),
    ),
    with_outside(
        "the role is mapped to the wrong groups",
        2,
        Outside::ForgetNode,
        "printf lab-stranger-token >/etc/lab-token; again",
        Some((KUBELET, "is forbidden: User")),
    ),
    inside(
        "the node has another's name",
        3,
        "arguments --hostname-override=ip-10-9-9-9.us-west-2.compute.internal; again",
        Some((KUBELET, "only its own Node object")),
    ),
    with_outside(
        "the endpoint's name does not exist",
        6,
        Outside::AnswerNames,
        "direct; server https://gone.lab.example:6443; echo 'nameserver 10.0.0.1' >/etc/resolv.conf; again",
        Some((KUBELET, "no such host")),
    ),
    with_outside(
        "the endpoint is another server",
        6,
        Outside::SecondAddress,
        "server https://10.0.0.2:6443; again",
        Some((KUBELET, "certificate is valid for")),
    ),
    inside(
        "the authority is another cluster's",
        7,
        "cp /etc/lab-other-ca.crt /etc/kubernetes/pki/ca.crt; again",
        Some((KUBELET, "certificate signed by unknown authority")),
    ),
    inside(
        "the authority is no certificate",
        7,
        "echo nonsense >/etc/kubernetes/pki/ca.crt; again",
        Some((KUBELET, "unable to load client CA file")),
    ),
    inside(
        "nothing listens at the endpoint",
        8,
        "server https://10.0.0.1:6999; again",
        Some((KUBELET, "connect: connection refused")),
    ),
    inside(
        "packets to the endpoint vanish",
        8,
        "nft add table inet lab; nft 'add chain inet lab out { type filter hook output priority 0; }'; \
         nft add rule inet lab out tcp dport 6443 drop; again",
        None,
    ),
    inside(
        "there is no route to the endpoint",
        8,
        "ip route add unreachable 10.0.0.1; again",
        Some((KUBELET, "no route to host")),
    ),
    inside(
        "the name server does not answer",
        9,
        "direct; server https://api.lab.example:6443; echo 'nameserver 10.0.0.9' >/etc/resolv.conf; again",
        None,
    ),
    with_outside(
        "the metadata service is switched off",
        14,
        Outside::RefuseTokens,
        "forget; restart tenon-config.service",
        Some((CONFIG, "TN05")),
    ),
    with_outside(
        "the clock is a day behind",
        15,
        Outside::ServeFromTomorrow,
        "server https://10.0.0.3:6553; again",
        Some((KUBELET, "certificate has expired or is not yet valid: current time")),
    ),
    inside(
        "the proxy is asked for the cluster",
        16,
        "sed -i 's/^\\(NO_PROXY\\|no_proxy\\)=.*/\\1=nowhere/' /etc/eks/proxy.env; again",
        Some((KUBELET, "proxyconnect tcp")),
    ),
    with_outside(
        "the user data has a misspelt field",
        17,
        Outside::Misspell,
        "forget; restart tenon-config.service",
        Some((CONFIG, "TN03")),
    ),
    inside(
        "the bootstrap units are not enabled",
        18,
        "systemctl stop tenon-run tenon-config; systemctl disable tenon-run tenon-config; forget",
        None,
    ),
    inside(
        "the kubelet does not know a flag",
        20,
        "arguments --no-such-flag=1; again",
        Some((KUBELET, "unknown flag: --no-such-flag")),
    ),
    inside(
        "the kubelet's config has a wrong type",
        20,
        "config '.maxPods = \"many\"'; again",
        Some((KUBELET, "failed to load kubelet config file")),
    ),
    inside(
        "kernel settings are not those that the kubelet protects",
        21,
        "echo 0 >/run/lab-other; over /run/lab-other /proc/sys/vm/overcommit_memory; \
         config '.protectKernelDefaults = true'; again",
        Some((KUBELET, "invalid kernel flag:")),
    ),
    inside(
        "containerd is masked",
        22,
        "systemctl mask --now containerd; again",
        Some((KUBELET, "validate CRI v1 runtime API for endpoint")),
    ),
    inside(
        "containerd's config is no TOML",
        22,
        "echo '[broken' >>/etc/containerd/config.toml; restart containerd; again",
        Some((CONTAINERD, "failed to load TOML")),
    ),
    inside(
        "the kubelet looks for containerd elsewhere",
        22,
        "config '.containerRuntimeEndpoint = \"unix:///run/none.sock\"'; again",
        Some((KUBELET, "validate CRI v1 runtime API for endpoint")),
    ),
    inside(
        "kubelet and containerd have different cgroup drivers",
        22,
        "config '.cgroupDriver = \"cgroupfs\"'; again",
        None,
    ),
    with_outside(
        "the sandbox image is missing",
        23,
        Outside::StartPod,
        "ctr -n k8s.io images ls -q | grep pause | xargs ctr -n k8s.io images rm --sync; restart containerd; again",
        Some((CONTAINERD, "failed to get sandbox image")),
    ),
    inside(
        "the host has cgroup v1",
        25,
        "config '.failCgroupV1 = true'; again",
        Some((KUBELET, "configured to not run on a host using cgroup v1")),
    ),
    inside(
        "there is no CNI config",
        26,
        "rm /etc/cni/net.d/*; restart containerd; again",
        Some((KUBELET, "cni plugin not initialized")),
    ),
    inside(
        "the kubelet is newer than the API server",
        28,
        "over /usr/lib/lab/kubelet-newer /usr/bin/kubelet; again",
        None,
    ),
    with_outside(
        "the client certificate has expired",
        29,
        Outside::ForgetNode,
        "cp /etc/lab-expired.kubeconfig /var/lib/kubelet/kubeconfig; again",
        Some((KUBELET, "Unauthorized")),
    ),
    inside(
        "the disk is full",
        34,
        "full /var/lib/kubelet; again",
        Some((KUBELET, "no space left on device")),
    ),
    inside(
        "the kubelet is of another architecture",
        36,
        "foreign /usr/bin/kubelet; again",
        Some((KUBELET, "Exec format error")),
    ),
    inside(
        "a label is not the kubelet's to set",
        37,
        "arguments --node-labels=node-role.kubernetes.io/web=; again",
        Some((KUBELET, "labels specified with --node-labels")),
    ),
    with_outside(
        "an admission webhook refuses the node",
        41,
        Outside::RefuseNodes,
        "again",
        Some((KUBELET, "failed calling webhook")),
    ),
    inside(
        "another program has the kubelet's port",
        43,
        "occupy 10250; again",
        Some((KUBELET, "address already in use")),
    ),
];
