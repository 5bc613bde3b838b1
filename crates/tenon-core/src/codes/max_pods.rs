//! Pages about the pod limit and what is reserved for it: `TN03360` to `TN03379`.

super::pages! {
    UNKNOWN_INSTANCE_TYPE = "TN03360" "unknown-instance-type",
        why: "the pod limit follows from the interfaces and addresses of the instance type, and no table knows this one",
        fix: "correct the name, give a newer table with --table, or set spec.kubelet.maxPods to mode fixed with a value";
    NO_PREFIX_DELEGATION = "TN03361" "no-prefix-delegation",
        why: "prefix delegation needs a Nitro machine and the VPC CNI 1.9.0, or bare metal and the VPC CNI 1.11.0; without it the pods of the larger limit would never get an address",
        fix: "switch prefix delegation off, or say --prefix-delegation=auto to take it where it is possible";
    NO_IPV6 = "TN03362" "no-ipv6",
        why: "an IPv6 cluster hands out prefixes, which needs a Nitro or bare metal machine with IPv6 and the VPC CNI 1.10.0",
        fix: "choose another instance type, or an IPv4 cluster";
    BAD_EXPRESSION = "TN03363" "bad-max-pods-expression",
        why: "the expression must be integer arithmetic over default_enis, ips_per_eni and max_pods that gives a number from 1 to 2147483647",
        fix: "correct the expression; `tenon max-pods TYPE --mode expression --expression TEXT --explain` tries it out";
    MEMORY_SHARE = "TN03364" "memory-share-too-small",
        why: "255 MiB are reserved before the first pod and 11 MiB for each, so a small machine needs a larger share",
        fix: "give a larger --memory-share, or choose a larger instance type";
    NO_POD_ADDRESSES = "TN03365" "no-pod-addresses",
        why: "custom networking takes the first interface away, and there is no other; only two host-network pods remain",
        fix: "choose an instance type with more interfaces, raise maxEnis, or switch custom networking off";
    BAD_INSTANCE_TABLE = "TN03366" "bad-instance-table",
        why: "a table has 14 tab separated columns in each row, sorted by name, with comment lines at its top only",
        fix: "compare the line with the rows that `tenon max-pods --table-info` describes, or remove the file";
    MEMORY_RESERVED = "TN03367" "memory-reserved",
        why: "what is reserved for the kubelet is missing for the pods: above half of the memory the node is a poor one, above three quarters it is refused",
        fix: "lower the pod limit (maxPods mode fixed or min), or set reserved.kube.memory";
    EXPRESSION_UNUSED = "TN03368" "expression-not-computed",
        why: "the expression speaks about the interfaces of the instance type, and they are not known",
        fix: "use maxPods mode fixed with a value on machines without a known instance type";
}
