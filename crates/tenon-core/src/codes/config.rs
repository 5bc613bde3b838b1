//! Pages about the content of a configuration: `TN03001` to `TN03199`, and `TN04…`.

super::pages! {
    UNKNOWN_FIELD = "TN03001" "unknown-field",
        why: "the field is not part of this kind; unknown fields are reported so that typos do not pass",
        fix: "remove the field, or correct its name; `tenon explain spec` lists the known ones";
    WRONG_TYPE = "TN03002" "wrong-type",
        why: "the value is of another type than the field takes",
        fix: "write a value of the type shown; `tenon explain FIELD` has an example";
    UNKNOWN_WORD = "TN03003" "unknown-word",
        why: "the field takes one of a few words and this is none of them",
        fix: "use one of the words that `tenon explain FIELD` lists";
    UNKNOWN_KIND = "TN03004" "unknown-kind",
        why: "apiVersion and kind decide how the document is read, and this pair is not known",
        fix: "start the document with `apiVersion: node.eks.aws/v1alpha1` and `kind: NodeConfig`";
    SEVERAL_DOCUMENTS = "TN03005" "several-documents",
        why: "only the first document of one input is used, and nodeadm drops the rest without a word",
        fix: "put each document into a file or MIME part of its own";
    MISSING_FIELD = "TN03006" "missing-field",
        why: "the node cannot be built without it and nothing else can supply it",
        fix: "set the field; `tenon explain FIELD` has an example";
    NOT_IN_THIS_KIND = "TN03007" "not-in-this-kind",
        why: "the field is part of tenon.dev/v1alpha1 only; nodeadm does not know it",
        fix: "change the first line to `apiVersion: tenon.dev/v1alpha1`, or remove the field";
    UNQUOTED_TEXT = "TN03008" "unquoted-text",
        why: "without quotes YAML reads this as something other than text; the text is taken as written",
        fix: "put the value in quotes";
    CONTROL_CHARACTER = "TN03009" "control-character-in-value",
        why: "control characters could forge lines in the files that the value ends up in",
        fix: "remove the character; a YAML block scalar (`|`) adds a newline at its end, `|-` does not";
    BAD_CLUSTER_NAME = "TN03010" "bad-cluster-name",
        why: "EKS cluster names have 1 to 100 letters, digits, `-` and `_`, and begin with a letter or digit",
        fix: "copy the name from `aws eks list-clusters`";
    BAD_ENDPOINT = "TN03011" "bad-endpoint",
        why: "the API server is reached by an absolute URL: scheme, host, optional port",
        fix: "copy the endpoint from `aws eks describe-cluster`; it looks like https://abc.gr7.eu-west-1.eks.amazonaws.com";
    ENDPOINT_NOT_HTTPS = "TN03012" "endpoint-not-https",
        why: "the kubelet would send its token in the clear",
        fix: "begin the endpoint with https://";
    BAD_CA = "TN03013" "bad-ca",
        why: "the certificate authority is base64 text, at most 256 KiB and 64 certificates when decoded",
        fix: "copy certificateAuthority.data from `aws eks describe-cluster` whole, without quotes inside";
    CA_NOT_PEM = "TN03014" "ca-not-pem",
        why: "the kubelet reads a PEM file of certificates; with anything else it cannot trust the API server",
        fix: "copy certificateAuthority.data from `aws eks describe-cluster`";
    PRIVATE_KEY_IN_CA = "TN03015" "private-key-in-ca",
        why: "the CA file is world readable, and a private key does not belong on a node",
        fix: "give the certificate alone, and treat this key as leaked";
    BAD_CIDR = "TN03016" "bad-cidr",
        why: "the service range is one IPv4 or IPv6 network in CIDR form",
        fix: "copy serviceIpv4Cidr or serviceIpv6Cidr from `aws eks describe-cluster`; it looks like 10.100.0.0/16";
    SMALL_CIDR = "TN03017" "small-cidr",
        why: "the cluster's DNS is the tenth address of the range; a prefix longer than /28 (IPv4) or /124 (IPv6) has none",
        fix: "copy the range from `aws eks describe-cluster`";
    CIDR_HOST_BITS = "TN03018" "cidr-host-bits",
        why: "the address has bits beyond the prefix; they are masked",
        fix: "write the network address";
    BAD_CLUSTER_ID = "TN03019" "bad-cluster-id",
        why: "the id ends up in the kubeconfig as one argument",
        fix: "copy the id from `aws eks describe-cluster`";
    BAD_TOML = "TN03020" "bad-toml",
        why: "containerd would refuse the file",
        fix: "correct the TOML at the place shown";
    BAD_PATH = "TN03021" "bad-path",
        why: "the path must be absolute and normal: no `.`, `..`, empty or over-long parts",
        fix: "write the path from / on, without a slash at its end";
    SYSTEM_PATH = "TN03022" "system-path",
        why: "mounting disks there would hide files that the system needs",
        fix: "choose a directory of its own, such as /mnt/k8s-disks";
    BAD_SERVICE_NAME = "TN03023" "bad-service-key",
        why: "the key becomes a directory name below /etc/systemd/system",
        fix: "use the unit's name without `.service`, such as `kubelet`; or `default` for every service";
    BAD_VARIABLE_NAME = "TN03024" "bad-variable-name",
        why: "names of variables have letters, digits and `_` and do not begin with a digit",
        fix: "correct the name";
    BAD_NAMESERVER = "TN03025" "bad-nameserver",
        why: "systemd-resolved takes an IP address, optionally with :port, %interface and #server-name",
        fix: "write an IP address such as 10.0.0.2";
    BAD_DOMAIN = "TN03026" "bad-domain",
        why: "search domains are DNS names, with `~` in front for routing only",
        fix: "write a DNS name such as corp.example";
    BAD_FLAG = "TN03027" "bad-flag",
        why: "each entry becomes an argument of the kubelet",
        fix: "write each flag as its own entry: `--name=value`";
    UNKNOWN_FLAG = "TN03028" "unknown-flag",
        why: "the kubelet ends at once when it meets a flag it does not know",
        fix: "correct the name of the flag, or use the field of spec.kubelet.config that replaced it";
    OWNED_FLAG = "TN03029" "flag-repeated",
        why: "Tenon sets this flag itself; yours stands later on the command line and wins",
        fix: "remove the flag unless you mean to replace Tenon's value";
    BAD_EXPRESSION = "TN03030" "bad-expression",
        why: "the expression is arithmetic over default_enis, ips_per_eni and max_pods",
        fix: "write something like `max_pods - 5`; try it with `tenon max-pods`";
    BAD_LABEL = "TN03031" "bad-label",
        why: "the API server refuses it: a label is [prefix/]name with letters, digits, `-`, `_`, `.`, at most 63 characters, and so is its value",
        fix: "correct the label";
    RESTRICTED_LABEL = "TN03032" "restricted-label",
        why: "the NodeRestriction plugin lets a kubelet set only some kubernetes.io and k8s.io labels; with another one the node does not register",
        fix: "use a prefix of your own, or node.kubernetes.io/ or kubelet.kubernetes.io/";
    BAD_TAINT = "TN03033" "bad-taint",
        why: "a taint needs a key in label form and an effect",
        fix: "write `{key: dedicated, value: gpu, effect: NoSchedule}`";
    BAD_QUANTITY = "TN03034" "bad-quantity",
        why: "resources are Kubernetes quantities",
        fix: "write a quantity such as 100m, 200Mi or 1Gi";
    BAD_CPU_SET = "TN03035" "bad-cpu-set",
        why: "a CPU set is a list of numbers and ascending ranges",
        fix: "write a set such as \"0-1,4\"";
    BAD_IMAGE = "TN03036" "bad-image",
        why: "containerd cannot pull what is not an image reference",
        fix: "write [registry/]name[:tag][@digest]";
    BAD_REGISTRY_HOST = "TN03037" "bad-registry-name",
        why: "the host becomes a directory name below /etc/containerd/certs.d",
        fix: "write name[:port] without scheme and path, or _default";
    BAD_MIRROR = "TN03038" "bad-mirror",
        why: "a mirror is an absolute http or https URL; credentials do not belong into a world-readable file",
        fix: "write a URL such as https://mirror.corp/v2/hub, without user and password";
    BAD_PROXY = "TN03039" "bad-proxy",
        why: "a proxy is an absolute http or https URL",
        fix: "write a URL such as http://proxy.corp:3128";
    BAD_NO_PROXY = "TN03040" "bad-no-proxy",
        why: "entries are hosts, suffixes that begin with a dot, IP addresses or CIDRs",
        fix: "write entries such as .corp.example, 10.0.0.0/8";
    BAD_HOOK = "TN03041" "bad-hook",
        why: "a hook has a name and exactly one of argv (absolute path first) and script",
        fix: "write `{name: vpn, argv: [/opt/vpn/up]}`";
    BAD_DURATION = "TN03042" "bad-duration",
        why: "a duration is a number with a unit, more than 0 and at most 15m here",
        fix: "write a duration such as 60s or 2m30s";
    DUPLICATE_ITEM = "TN03043" "duplicate-item",
        why: "two entries of one list have the same identity, and only one of them could win",
        fix: "remove one of them";
    OUT_OF_RANGE = "TN03044" "out-of-range",
        why: "the number is outside of what the field takes",
        fix: "use a number in the range shown";
    TOO_MANY = "TN03045" "too-many-entries",
        why: "the list or map is larger than anything a node needs, and is refused before it costs memory",
        fix: "reduce the number of entries";
    BAD_KEY = "TN03046" "bad-map-key",
        why: "the key is not one that this map takes",
        fix: "`tenon explain FIELD` describes the keys";
    OUTPOST_NEEDS_ID = "TN03050" "outpost-needs-id",
        why: "nodes of a local cluster on Outposts authenticate with the cluster's id",
        fix: "set spec.cluster.id; `aws eks describe-cluster` shows it";
    MAX_PODS_CONFLICT = "TN03051" "max-pods-conflict",
        why: "the pod limit is asked for in two ways, or the mode lacks its value",
        fix: "keep one way; `tenon explain spec.kubelet.maxPods` shows what each mode needs";
    RESERVED_CPUS_CONFLICT = "TN03052" "reserved-cpus-conflict",
        why: "the kubelet refuses reservedSystemCPUs together with systemReservedCgroup or kubeReservedCgroup",
        fix: "remove the two cgroup fields, or the CPU set";
    PROXY_WITHOUT_METADATA = "TN03053" "proxy-without-metadata",
        why: "a proxy is set through the environment, and requests to the metadata service would go through it",
        fix: "add 169.254.169.254 and fd00:ec2::254 to NO_PROXY, or use spec.instance.proxy, which does so itself";
    CANNOT_TURN_OFF = "TN03054" "cannot-turn-off",
        why: "an earlier document said true, and in node.eks.aws a later false does not change that",
        fix: "remove the earlier true, or set it to false in a tenon.dev document";
    DISCOVERY = "TN03055" "discovery",
        why: "nodeadm refuses such a config; Tenon asks EKS for what is missing, which costs a call per node and needs eks:DescribeCluster",
        fix: "set the field, so that the node joins without an AWS call";
    INSTANCE_ID_NAME = "TN03056" "instance-id-name",
        why: "a node named by its instance id joins only if its role is mapped by {{SessionName}} or an EC2 access entry",
        fix: "give the role an access entry of type EC2_LINUX, or map it with `username: system:node:{{SessionName}}`";
    UNKNOWN_KUBELET_FIELD = "TN03060" "unknown-kubelet-field",
        why: "the kubelet does not know the field, or takes another type there",
        fix: "correct the field; names are those of KubeletConfiguration kubelet.config.k8s.io/v1beta1";
    UNKNOWN_RUNTIME_FIELD = "TN03061" "unknown-runtime-field",
        why: "the OCI runtime spec has no such field, and runc ignores it",
        fix: "correct the field; names are those of the OCI runtime specification";
    UNKNOWN_GATE = "TN03062" "unknown-gate",
        why: "nothing reads a feature gate of this name; kubelet gates go to spec.kubelet.config.featureGates",
        fix: "use InstanceIdNodeName or FastImagePull, or move the gate to spec.kubelet.config.featureGates";
    SOURCE_SKIPPED = "TN03070" "source-skipped",
        why: "the user data could not be read; the node is built from the other sources",
        fix: "correct the user data, or leave imds://user-data out of the sources";
    CACHE_USED = "TN03071" "cache-used",
        why: "no source holds a config any more; the node is built from the cached one",
        fix: "restore the user data or the file that held the config";
    NOT_CARRIED = "TN03072" "not-carried",
        why: "the kind asked for has no field for this",
        fix: "use `--kind tenon.dev`, or remove the field";
    ENTRY_SKIPPED = "TN03073" "entry-skipped",
        why: "a directory source reads its .yaml, .yml and .json files; this entry is something else",
        fix: "rename the file if it is meant to be read, or remove it";
    OTHER_IMDS = "TN03074" "other-imds",
        why: "the metadata service has one user data, whatever follows imds://",
        fix: "write imds://user-data";
    NO_CONFIG = "TN04001" "no-config",
        why: "every source was read and none of them holds a NodeConfig document",
        fix: "put a NodeConfig into the instance's user data, or name a file with --config-source";
}
