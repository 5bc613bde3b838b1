//! Pages about a config that is well formed but cannot become this node: `TN03300` to `TN03399`.

super::pages! {
    NO_NODE_ADDRESS = "TN05300" "no-node-address",
        why: "the family of the cluster's service range decides the node's address, and the machine has none of that family",
        fix: "give the instance an address of that family, or correct spec.cluster.cidr";
}
