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
        fix: "give a sha256 for this architecture, a version that the pin file knows, or `source: none`";
    BAD_IMAGE_CONFIG = "TN03811" "image-bad-config",
        why: "an image is built from a config that can be understood to its last field",
        fix: "correct the field that is named";
    BAD_PLAN = "TN03812" "image-bad-plan",
        why: "only a plan that `tenon image plan --output json` printed can be applied",
        fix: "make the plan again: `tenon image plan --output json > plan.json`";
    EDITED_PLAN = "TN03813" "image-edited-plan",
        why: "its items were edited by hand or lowered by another version of Tenon",
        fix: "change the profiles or the config instead, and make the plan again with this version";
    NOT_CACHED = "TN10812" "image-not-cached",
        why: "apply takes downloads from the cache alone, and this entry is not there",
        fix: "run `tenon image fetch` with the same plan and cache first";
    WRONG_CONTENT = "TN10813" "image-wrong-content",
        why: "what came is not what the plan pins: the source changed it, or something between here and there did",
        fix: "find out which of the two is right before you pin another sha256";
    FETCH_REFUSED = "TN10814" "image-fetch-refused",
        why: "the server answered that it will not give this file; asking again does not help",
        fix: "check the address and the version in the config";
    FETCH_STOPPED = "TN10815" "image-fetch-stopped",
        why: "the server could not be reached, or stopped in the middle, several times in a row",
        fix: "check network and proxy and run fetch again: it goes on where it stopped";
    BAD_ARCHIVE = "TN10816" "image-bad-archive",
        why: "an archive that is broken, too large, or wants to write elsewhere is not unpacked",
        fix: "look at the archive with `tar -tvf`; correct `members` in the resource if only a name is wrong";
    PACKAGES_MISSING = "TN10817" "image-packages-missing",
        why: "packages are installed from the cache alone, and it cannot serve all of them",
        fix: "run `tenon image fetch` with the same plan, root and cache first";
    NOT_SIGNED = "TN10858" "image-not-signed",
        why: "a package that its repository's key does not vouch for is not installed",
        fix: "see the words of the package manager; correct `fingerprint` and `key` of the repository, or its packages";
    WRONG_FAMILY = "TN06812" "image-wrong-family",
        why: "names of packages and paths differ between distributions and their releases",
        fix: "make a plan for this root, or give the right --root";
    WRONG_ARCHITECTURE = "TN06813" "image-wrong-architecture",
        why: "programs for another processor do not run in this root",
        fix: "make a plan for this root, or give the right --root";
    NO_DISTRIBUTION = "TN06814" "image-no-distribution",
        why: "the root has no os-release of a known family or no program that shows its architecture",
        fix: "give the root of Amazon Linux 2023, Debian or Ubuntu as --root";
    UNSAFE_IN_ROOT = "TN06815" "image-unsafe-in-root",
        why: "writing through a link, into a device or over a directory could change something else",
        fix: "see what it is with `ls -ld` below the root, and move it away or change the profile";
    UNKNOWN_OWNER = "TN06816" "image-unknown-owner",
        why: "a file cannot be given to a user or group that the root does not have",
        fix: "add the user or group to the profile, or the package that brings it";
    REPOSITORY_KEY = "TN06858" "image-repository-key",
        why: "packages are trusted by the key of their repository, and the root has another one or none",
        fix: "give the armoured key as `key` of the repository, or put it at that path by a package";
    PACKAGE_NEEDED = "TN06859" "image-package-needed",
        why: "other packages stand on one that the plan removes, and are not removed with it",
        fix: "name them as `package-absent`, too, or keep the package by an exception";
    ACCOUNT_TAKEN = "TN06817" "image-account-taken",
        why: "the number asked for belongs to another account of the root, or none is free",
        fix: "ask for another number, or for none";
    NOT_PRIVILEGED = "TN06818" "image-not-privileged",
        why: "owners, packages and programs inside a root need root, or a user namespace with mapped ids",
        fix: "run as root, or under `unshare --map-auto --map-root-user`";
    STUB_KUBELET = "TN06819" "image-stub-kubelet",
        why: "the kubelet of this root is the stub of a test build and can run no pod",
        fix: "put a real kubelet into the cache and apply again; for a test image give --test";
    LIVE_NEEDS_HOST = "TN06820" "image-live-needs-host",
        why: "the running kernel belongs to the root it booted from",
        fix: "leave --live out, or give --root /";
    NO_PAM_LINE = "TN06821" "image-no-pam-line",
        why: "the order of lines in a PAM file decides who may log in, so none is added here",
        fix: "add the package or the file that brings the module's line, then its arguments";
    PARTS_DIFFER = "TN03855" "image-parts-differ",
        why: "the parts of a driver refuse to work with parts of another version",
        fix: "give all of them one version: spec.components.nvidia sets it for the whole driver";
    TENON_ARCHITECTURE = "TN06854" "image-tenon-architecture",
        why: "the image gets Tenon itself, and a build for another processor would not start there",
        fix: "give --tenon with a build for the image's architecture";
    NO_PLAN_IN_ROOT = "TN12812" "image-no-plan-in-root",
        why: "apply leaves its plan in usr/lib/tenon/image/plan.json, and this root has none",
        fix: "apply a plan first, or give --plan";
    RECORD_DAMAGED = "TN12813" "image-record-damaged",
        why: "the record of the last apply cannot be read, so nothing is known about what was unpacked",
        fix: "remove usr/lib/tenon/image/record.json from the root and apply again";
    UNKNOWN_RESOURCE = "TN03840" "image-unknown-resource",
        why: "only resources, rules and exceptions of the plan can be explained",
        fix: "see the names with `tenon image plan`: KIND/KEY such as sysctl/kernel.panic, rule/ID, exception/NAME";
    UNKNOWN_COMPONENT = "TN03841" "image-unknown-component",
        why: "a component is something that Tenon knows where to get and where to put",
        fix: "see the components in docs/guides/images.md; anything else is a download in spec.files";
    COMPONENT_VERSION = "TN03842" "image-component-version",
        why: "a version is chosen by somebody, never by what happens to be newest",
        fix: "give a version in spec.components, or one that the pin file of this Kubernetes knows";
    IMAGE_UNKNOWN_FIELD = "TN03843" "image-config-unknown-field",
        why: "unknown fields are refused so that typos do not pass",
        fix: "remove the field, or correct its name";
    BAD_SET = "TN03844" "image-bad-set",
        why: "--set takes a path of the config and a value: spec.kubernetes=1.34.2",
        fix: "write PATH=VALUE; the paths are those of the config";
    BAD_MANIFEST = "TN03845" "image-bad-manifest",
        why: "only manifests that `tenon image manifest` printed can be compared",
        fix: "make the manifest again: `tenon image manifest --root DIR > manifest.json`";
    NO_FAMILY = "TN03846" "image-no-family",
        why: "without a root nothing says for which distribution the plan shall be",
        fix: "give --family, spec.family in the config, or --root";
    BAD_EXCEPTION = "TN03856" "image-bad-exception",
        why: "an exception is acted upon, so it must say plainly what it is about, and why",
        fix: "correct the table; docs/guides/images.md shows the form";
    NOTHING_TO_CHECK = "TN03857" "image-nothing-to-check",
        why: "a check of nothing would end well whatever the root holds",
        fix: "give a kind of resource, or a feature that the plan has";
    EXCEPTION_EXPIRED = "TN03847" "image-exception-expired",
        why: "whoever made the exception wanted to think about it again by that day",
        fix: "give it a later day if its reason still holds, or remove it";
}
