//! Pages about looking at a node: `TN05…`.

super::pages! {
    NOT_EXAMINED = "TN05530" "node-not-examined",
        why: "files show what a node was meant to be; how it fared is in its journal and in the answers of the network, and there are neither",
        fix: "run it as root on the node, name the node's volume with --root, or a bundle with --bundle";
}
