//! Pages about timelines: `TN05500` to `TN05509`.

super::pages! {
    TIMELINE_FILE = "TN05500" "timeline-file",
        why: "the file is not the output of `tenon timeline --output json`",
        fix: "make it again on its node: `tenon timeline --output json > FILE`";
}
