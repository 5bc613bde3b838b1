//! Pages of `validate` and `harden`: `TN03550` to `TN03569`, `TN05550` to `TN05569`, `TN64550`.

super::pages! {
    BAD_EXCEPTIONS = "TN03550" "bad-exceptions",
        why: "an exceptions file is a list under `exceptions` of maps with id, reason, expires (YYYY-MM-DD) and, to narrow it down, where; an entry that cannot be read would excuse something else than was meant",
        fix: "correct the entry; `tenon validate --all` prints the ids";
    BAD_BASELINE = "TN03551" "bad-baseline",
        why: "a baseline is what `tenon validate --output json` printed on an earlier day",
        fix: "write it anew with `tenon validate --output json > baseline.json`";
    NO_NODE = "TN05550" "no-node-to-examine",
        why: "there is neither a record of Tenon nor a kubelet here, so nothing could be judged; an empty answer would look like a good one",
        fix: "name the node's directory with --root or its bundle with --bundle, or make this machine a node with `tenon init`";
    UNREADABLE = "TN05551" "record-unreadable",
        why: "the record of a node is readable by root alone; without it nothing can be said about drift, and little about the rest",
        fix: "run the command as root";
    UNKNOWN_PROFILE = "TN64550" "unknown-profile",
        why: "a benchmark that is not known cannot be judged, and no other one is taken in its place",
        fix: "name one of the profiles eks-1.8 and k8s-1.11";
    UNKNOWN_FAMILY = "TN64551" "unknown-family",
        why: "the families of checks are config, drift, cis, runtime and image",
        fix: "name one or more of them, separated by commas";
    NOT_FIXABLE_HERE = "TN64552" "nothing-to-fix-here",
        why: "a bundle is a copy of a node: changing it would mend nothing",
        fix: "run `tenon harden --fix` on the node itself, or on its directory with --root";
}
