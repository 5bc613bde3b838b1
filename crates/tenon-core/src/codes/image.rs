//! Pages about node images.

super::pages! {
    UNKNOWN_KIND = "TN03800" "image-unknown-kind",
        why: "a profile or an image config names a kind of resource that does not exist",
        fix: "see the kinds in docs/guides/images.md";
    UNKNOWN_FIELD = "TN03801" "image-unknown-field",
        why: "unknown fields are refused so that typos do not pass",
        fix: "remove the field or correct its name";
    BAD_RESOURCE = "TN03802" "image-bad-resource",
        why: "a resource whose fields do not have the right form cannot be made true",
        fix: "give the field the form that is named";
    CONFLICT = "TN03803" "image-conflict",
        why: "two features want different things of the same resource, and neither may win by order",
        fix: "add an exception that keeps one of them, with the reason";
    SHORT_REASON = "TN03804" "image-short-reason",
        why: "an exception is read years later by somebody who needs to know why it was made",
        fix: "write a reason of at least 20 characters";
    EXCEPTION_UNUSED = "TN03805" "image-exception-unused",
        why: "an exception that decides nothing hides that the profiles no longer disagree",
        fix: "remove the exception";
    UNKNOWN_PROFILE = "TN03806" "image-unknown-profile",
        why: "only profiles that exist can be composed",
        fix: "see `tenon image profiles`";
    BAD_PROFILE = "TN03807" "image-bad-profile",
        why: "a profile is a TOML file of resources, needs and exceptions",
        fix: "correct the file; docs/guides/images.md shows the form";
    NEED_BROKEN = "TN03808" "image-need-broken",
        why: "hardening that stops containers from running makes an image that never joins",
        fix: "leave the resource out, or add an exception for it with the reason";
    PROFILES_CLASH = "TN03809" "image-profiles-clash",
        why: "one profile says that it cannot stand beside the other",
        fix: "leave one of the two out";
    NO_CHECKSUM = "TN03810" "image-no-checksum",
        why: "nothing is fetched whose content is not known beforehand",
        fix: "give a sha256 for this architecture, or a version that the pin file knows";
    BAD_IMAGE_CONFIG = "TN03811" "image-bad-config",
        why: "an image is built from a config that can be understood to its last field",
        fix: "correct the field that is named";
}
