//! Pages about the content of a configuration: `TN03001` to `TN03199`, and `TN04…`.

super::pages! {
    UNKNOWN_FIELD = "TN03001" "unknown-field",
        why: "the field is not part of this kind; unknown fields are reported so that typos do not pass",
        fix: "remove the field, or correct its name; `tenon explain spec` lists the known ones";
    NO_CONFIG = "TN04001" "no-config",
        why: "every source was read and none of them holds a NodeConfig document",
        fix: "put a NodeConfig into the instance's user data, or name a file with --config-source";
}
