//! Pages about facts that could not be obtained or believed: `TN05001` to `TN05299`, `TN10…` for
//! the cloud API, `TN091…` for waiting on links, `TN03299` for the simulator's fault script.

super::pages! {
    METADATA_UNREACHABLE = "TN05001" "metadata-unreachable",
        why: "the instance metadata service did not give a usable answer before the deadline",
        fix: "check that the instance has its metadata endpoint switched on and that nothing on the machine blocks link-local addresses; `tenon init --facts FILE` works without it";
    METADATA_DISABLED = "TN05002" "metadata-disabled",
        why: "the service answered 403 to the request for a session token, which is how it says that it is switched off for this instance",
        fix: "switch it on with `aws ec2 modify-instance-metadata-options --http-endpoint enabled`, or give the facts with --facts FILE";
    METADATA_NO_TOKENS = "TN05003" "metadata-no-tokens",
        why: "the service does not know session tokens (version 2), and version 1 answers to anyone who can make this machine send a request",
        fix: "use a metadata service of version 2; for a test bench that has none, allow version 1 explicitly";
    METADATA_HOP_LIMIT = "TN05004" "metadata-hop-limit",
        why: "connections to the metadata service open but its token never arrives; that is what a hop limit of 1 looks like from inside a container or behind a bridge",
        fix: "run on the host itself, or raise the limit with `aws ec2 modify-instance-metadata-options --http-put-response-hop-limit 2`";
    METADATA_TOKEN_REFUSED = "TN05005" "metadata-token-refused",
        why: "the service refused every session token it had just handed out",
        fix: "check that no proxy or agent stands between this machine and its metadata service";
    METADATA_KEY_MISSING = "TN05006" "metadata-key-missing",
        why: "the metadata service has no such value and a node cannot be built without it",
        fix: "look at the path with `curl` and a token; on a machine outside EC2 give the facts with --facts FILE";
    METADATA_REDIRECT = "TN05007" "metadata-redirect",
        why: "the metadata service never redirects; something else answered at its address",
        fix: "find out who answers at the address named above: a captive portal, a proxy or another cloud's service";
    METADATA_TOO_LARGE = "TN05008" "metadata-too-large",
        why: "no value of the metadata service is larger than 64 KiB, so this answer is not one",
        fix: "find out who answers at the address named above; user data itself is limited to 16 KiB by EC2";
    METADATA_REFUSED = "TN05009" "metadata-refused",
        why: "the metadata service refused the request, and asking again would give the same answer",
        fix: "check the instance's metadata options and any agent that filters access to the service";
    METADATA_ENDPOINT = "TN05010" "metadata-endpoint",
        why: "the address of the metadata service must be `http://` with an IP address, because no name can be resolved this early in a boot",
        fix: "correct AWS_EC2_METADATA_SERVICE_ENDPOINT (such as http://169.254.169.254) or AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE (IPv4 or IPv6)";
    METADATA_VALUE = "TN05011" "metadata-value",
        why: "the value does not have the shape that EC2 gives it, so it is not believed",
        fix: "look at the path with `curl` and a token to see who answers; on a machine outside EC2 give the facts with --facts FILE";
    METADATA_PORTAL = "TN05012" "metadata-portal",
        why: "a web page came where a plain value was due: a captive portal or a proxy answers in place of the metadata service",
        fix: "make link-local addresses reach the metadata service directly, without a portal or proxy in between";
    IDENTITY_DOCUMENT = "TN05013" "identity-document",
        why: "the instance identity document is the source of id, region, type and zone, and it cannot be read",
        fix: "look at /latest/dynamic/instance-identity/document with `curl` and a token to see who answers";
    METADATA_UNSTABLE = "TN05014" "metadata-unstable",
        why: "facts that belong together kept changing between two reads, so no consistent picture of the instance exists",
        fix: "wait until the change of addresses or interfaces is over and run again";
    VERSION_UNKNOWN = "TN05020" "version-unknown",
        why: "version gates decide what the configuration may hold, so the version must be known",
        fix: "write the version into the stamp file named above when the image is built, or install the program";
    NO_CREDENTIAL_PROVIDER = "TN05021" "no-credential-provider",
        why: "the kubelet cannot pull from ECR without its image credential provider",
        fix: "install ecr-credential-provider at the path named above, or point ECR_CREDENTIAL_PROVIDER_BIN_PATH at it";
    NO_PROCESSORS = "TN05022" "no-processors",
        why: "the number of online processors decides the kubelet's reservation",
        fix: "check that /sys is mounted and readable; under --root the directory needs sys/devices/system/cpu";
    NO_MEMORY = "TN05023" "no-memory",
        why: "the amount of online memory decides the kubelet's reservation",
        fix: "check that /sys and /proc are mounted and readable; under --root the directory needs sys/devices/system/memory or proc/meminfo";
    MACHINE_READ = "TN05024" "machine-read",
        why: "a file of the kernel or the image exists but could not be read",
        fix: "run as root, and check the file named above";
    FACTS_FILE = "TN05025" "facts-file",
        why: "the file given with --facts is not the output of `tenon facts`",
        fix: "make it again with `tenon facts` of this version";
    NO_LINK = "TN05027" "no-link",
        why: "the link is gone again, or its name is wrong",
        fix: "see `ip link` for the links of this machine";
    NETWORK_NOT_READY = "TN09101" "network-not-ready",
        why: "the links named above did not reach the state they must have before the node may start",
        fix: "see `networkctl status` and the journal of systemd-networkd; --timeout waits longer";
    FAULT_SCRIPT = "TN03299" "fault-script",
        why: "a fault script is a map with `rules`, each with a `path` and what goes wrong there",
        fix: "correct the script at the place named above";
    CLOUD_DENIED = "TN10001" "cloud-denied",
        why: "the cloud API answered that this identity may not do that; asking again would not change it",
        fix: "allow the action named above in the policy of the role named above, or fill in the config so that the call is not needed";
    CLOUD_UNREACHABLE = "TN10002" "cloud-unreachable",
        why: "the cloud API did not give a usable answer within the time that a node may spend on it",
        fix: "check the route or VPC endpoint to the service; a complete config (endpoint, CA, CIDR) needs no call";
    CLOUD_ANSWER = "TN10003" "cloud-answer",
        why: "the cloud API answered something that is not the document it promises",
        fix: "check AWS_ENDPOINT_URL and any proxy in between";
    CLOUD_REFUSED = "TN10004" "cloud-refused",
        why: "the cloud API refused the request itself, so asking again would give the same answer",
        fix: "correct what the answer names: most often the cluster's name or the region";
    NO_CREDENTIALS = "TN10005" "no-credentials",
        why: "a call to the cloud API must be signed, and neither AWS_* variables nor an instance role gave credentials",
        fix: "attach an instance profile to the instance, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or fill in the config so that the call is not needed";
    ENDPOINT_UNRESOLVED = "TN10006" "endpoint-unresolved",
        why: "the API server's host name could not be resolved, and on Outposts its addresses must be pinned while the Region is reachable",
        fix: "check the resolver and the name; set spec.cluster.outpost.pinEndpoint: false to go without the pin";
}
