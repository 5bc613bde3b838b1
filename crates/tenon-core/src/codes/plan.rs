//! Pages about a config that is well formed but cannot become this node: `TN03300` to `TN03399`;
//! about facts that the plan cannot believe: `TN05300` to `TN05399`; and about a machine that
//! cannot be this node: `TN06300` to `TN06399`; about state of another machine: `TN12300`.

super::pages! {
    CLUSTER_INCOMPLETE = "TN03300" "cluster-incomplete",
        why: "a node needs the API server's endpoint, its certificate authority and the service range; the config leaves one out and it was not discovered",
        fix: "set the field, or allow discovery with `spec.aws.api: ifNeeded` and the permission eks:DescribeCluster";
    NO_ROOM_FOR_DNS = "TN03301" "no-room-for-dns",
        why: "the cluster's DNS service has the tenth address of the service range, so the range must be at least /28 (IPv4) or /124 (IPv6)",
        fix: "copy spec.cluster.cidr from the cluster's own description";
    BAD_NODE_NAME = "TN03302" "bad-node-name",
        why: "a node's name consists of lower-case letters, digits, `-` and `.`, at most 253 of them, at most 63 between dots",
        fix: "check the region and the instance id in `tenon facts`";
    BAD_HOST_NAME = "TN03303" "bad-host-name",
        why: "with `spec.node.name: hostname` the kernel's host name must be a DNS name (RFC 1123)",
        fix: "set another host name with `hostnamectl hostname`, or use `spec.node.name: ec2-private-dns`";
    NAME_DIFFERS = "TN03304" "node-name-differs",
        why: "with `spec.aws.api: verify` EC2 was asked for the machine's name, and its answer wins",
        fix: "nothing to do; please report the case, since the rule should give EC2's name";
    POD_LIMITS_DIFFER = "TN03310" "pod-limits-differ",
        why: "spec.kubelet.config.maxPods or --max-pods overrides the limit that follows from the instance type; above it, pods may find no address",
        fix: "set the limit with `spec.kubelet.maxPods` alone, so that the memory reservation follows it";
    RESERVED_CONFLICT = "TN03312" "reserved-conflict",
        why: "the kubelet does not start with a set of reserved CPUs and a reserved cgroup at once",
        fix: "remove reservedSystemCPUs (or --reserved-cpus, reserved.systemCPUs), or remove kubeReservedCgroup and systemReservedCgroup";
    CONFIG_REPLACED = "TN03313" "kubelet-config-replaced",
        why: "with `spec.kubelet.configMode: replace` Tenon sets only what the node cannot run without",
        fix: "use `configMode: merge` to keep Tenon's defaults below your settings";
    CONTAINERD_TOO_OLD = "TN03321" "containerd-too-old",
        why: "config schema 3, and the plugins io.containerd.cri.v1.images and io.containerd.cri.v1.runtime, came with containerd 2.0",
        fix: "write the config for schema 2 (`io.containerd.grpc.v1.cri`), or use an image with containerd 2";
    CONTAINERD_SCHEMA = "TN03322" "containerd-schema",
        why: "Tenon merges configs of schema 2 and 3; containerd 2 reads no older ones",
        fix: "set `version = 2` or `version = 3` and write the tables of that schema";
    NO_DEFAULT_RUNTIME = "TN03323" "no-default-runtime",
        why: "containerd starts with a default runtime that it does not know, and then no pod does",
        fix: "add the runtime's table under `runtimes`, or correct `default_runtime_name`";
    TOO_FEW_DISKS = "TN03330" "too-few-disks",
        why: "RAID10 mirrors pairs of disks and stripes over them",
        fix: "use `strategy: RAID0` or `Mount`, or an instance type with four or more local disks";
    DISK_HAS_DATA = "TN06310" "disk-has-data",
        why: "`existingData: refuse` stops when a local disk bears a file system, partition table or array that this node did not make",
        fix: "save the data and wipe the disk, or set `existingData` to `keep` or `wipe`";
    DISK_SKIPPED = "TN03331" "disk-skipped",
        why: "a disk with a signature is never formatted unless the config says so",
        fix: "set `spec.instance.localStorage.existingData: wipe` to use the disk, its data is lost then; unmount it first if it is in use";
    NO_NODE_ADDRESS = "TN05300" "no-node-address",
        why: "the family of the cluster's service range decides the node's address, and the machine has none of that family",
        fix: "give the instance an address of that family, or correct spec.cluster.cidr";
    UNREADABLE_VERSION = "TN05301" "unreadable-version",
        why: "settings depend on the version; a guess would give a kubelet that does not start",
        fix: "check /etc/eks/kubelet-version.txt and /etc/eks/containerd-version.txt, or what the program prints with --version";
    UNTESTED_VERSION = "TN05302" "untested-version",
        why: "Tenon is tested with Kubernetes 1.29 to 1.36 and containerd 1.6 to 2.x; the rules of the nearest version are used",
        fix: "nothing to do if the node works; otherwise use a version in the range";
    BAD_DESCRIBED_CA = "TN05303" "bad-described-ca",
        why: "the cluster's description came with a certificate authority that cannot be decoded",
        fix: "set spec.cluster.certificateAuthority in the config";
    ENDPOINT_NOT_PINNED = "TN05304" "endpoint-not-pinned",
        why: "on Outposts the API server's name is pinned in /etc/hosts, and DNS gave no address for it",
        fix: "check the machine's name servers and run again; an earlier entry stays in place until then";
    NO_CREDENTIAL_PROVIDER = "TN06300" "credential-provider-missing",
        why: "without ecr-credential-provider the kubelet cannot pull from ECR, and it does not start when the program it is told of is missing",
        fix: "install it to /etc/eks/image-credential-provider/, or name its path in ECR_CREDENTIAL_PROVIDER_BIN_PATH";
    FIPS_OFF = "TN06301" "fips-off",
        why: "`spec.instance.fips: require` refuses a machine whose kernel does not enforce FIPS",
        fix: "boot an image with `fips=1`, or set `spec.instance.fips: auto`";
    SWAP_ON = "TN06302" "swap-on",
        why: "the kubelet does not start while swap is on",
        fix: "switch it off with `swapoff -a` and in /etc/fstab, or set `failSwapOn: false` in spec.kubelet.config";
    CGROUP_V1 = "TN06303" "cgroup-v1",
        why: "Kubernetes 1.35 and later do not start on cgroup v1, older ones have it in maintenance",
        fix: "boot with `systemd.unified_cgroup_hierarchy=1`, or set `failCgroupV1: false` in spec.kubelet.config";
    NO_NVIDIA_RUNTIME = "TN06304" "no-nvidia-runtime",
        why: "the device is there, but containers cannot use it without /usr/bin/nvidia-container-runtime",
        fix: "use an accelerated image, or install the NVIDIA container toolkit";
    MIGRATION_UNUSABLE = "TN06306" "migration-unusable",
        why: "the config has tables that only containerd can translate to schema 3, and its translation does not parse or lacks the default runtime; the old config is untouched",
        fix: "run `containerd --config /run/tenon/containerd-schema-2.toml config migrate` to see it, and write spec.containerd.config for schema 3 (`version = 3`)";
    FOREIGN_IDENTITY = "TN12300" "foreign-identity",
        why: "the image was made from a node that had run: the kubelet would go on with the certificates or the CPU assignments of another machine",
        fix: "run `tenon init --reset-identity` to remove them, and bake images from machines that never joined a cluster";
    NO_PAUSE_ARCHIVE = "TN06305" "no-pause-archive",
        why: "with the SOCI snapshotter the sandbox image is imported from /etc/eks/pause.tar; without it, it must be pulled",
        fix: "use an image with the archive, or set spec.containerd.sandboxImage to one that can be pulled";
}
