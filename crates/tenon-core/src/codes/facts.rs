//! Pages about facts that could not be obtained or believed: `TN05001` to `TN05299`, and `TN10…`.

super::pages! {
    METADATA_UNREACHABLE = "TN05001" "metadata-unreachable",
        why: "the instance metadata service did not answer before the deadline",
        fix: "check that the instance has its metadata endpoint switched on and that nothing on the machine blocks link-local addresses; `tenon init --facts FILE` works without it";
}
