//! Pages about looking at a node: `TN05…`.

super::pages! {
    NOT_EXAMINED = "TN05530" "node-not-examined",
        why: "without a journal, without files of a node and without an answer from the network there is nothing to judge by",
        fix: "run it as root on the node, name the node's volume with --root, or a bundle with --bundle";
}
