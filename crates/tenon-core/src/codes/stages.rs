//! Pages of the staged first boot. What a person must mend is exit 3, 4, 6 or 12: the units do
//! not start a stage again after those. Every other exit is tried again.

super::pages! {
    BAD_TOKEN = "TN03700" "bad-token-field",
        why: "a bootstrap token is six letters or digits, a dot, and sixteen more, all lower case",
        fix: "make one with `tenon token create`";
    BAD_SOURCE = "TN03701" "bad-asset-source",
        why: "assets come from `none`, `push`, file:/PATH, https://HOST/PATH or s3://BUCKET/KEY; plain http would show the CA key to the network and is for loopback only",
        fix: "write one of these forms";
    BAD_VERSION = "TN03702" "bad-kubernetes-version",
        why: "a Kubernetes version has three numbers, as in v1.34.2",
        fix: "write all three numbers";
    BAD_DIGEST = "TN03703" "bad-bundle-digest",
        why: "a digest is `sha256:` and 64 lower-case hexadecimal digits",
        fix: "`tenon stage assets --build DIR` prints the digest of a bundle";
    BAD_ADDRESS = "TN03704" "bad-address",
        why: "the value must be an IP address, or a DNS name where one is allowed",
        fix: "write the address without port and without brackets";
    BAD_AUDIT = "TN03705" "bad-audit-choice",
        why: "the audit log is `none`, `metadata`, or follows a policy file of yours",
        fix: "write none, metadata, or the absolute path of the policy on the node";
    BAD_FLAG_NAME = "TN03706" "bad-flag-name",
        why: "flags are named without dashes in front, in lower case",
        fix: "write `v: \"2\"` for `--v=2`";
    MACHINE_INCOMPLETE = "TN03707" "machine-incomplete",
        why: "a machine with this role cannot come up without the field",
        fix: "add the field";
    NOT_SUPPORTED = "TN03708" "not-supported-yet",
        why: "the setting belongs to a later version of Tenon",
        fix: "take the setting out, or use the alternative named above";
    UNSAFE_IN_USER_DATA = "TN03709" "unsafe-in-user-data",
        why: "user data can be read by every process on the machine that reaches the metadata service",
        fix: "put the secret into the asset bundle instead";
    BAD_IGNITION = "TN03710" "bad-ignition",
        why: "Ignition refuses such a config, and a machine that boots with it stops in its initramfs",
        fix: "change the option or field named above";
    IGNITION_LARGE = "TN01701" "ignition-large",
        why: "a launch with larger user data is refused",
        fix: "put the config into a store and let a small one name it in ignition.config.replace";
    BAD_BUNDLE = "TN03711" "bad-bundle",
        why: "a bundle is taken whole or not at all; one that breaks its own rules is moved to /var/lib/tenon/rejected",
        fix: "build the bundle again with `tenon stage assets --build DIR`, send it, then `tenon stage reset assets`";
    WRONG_DIGEST = "TN03712" "wrong-bundle-digest",
        why: "the bundle is not the one that the config names: damaged on the way, outdated, or exchanged",
        fix: "send the bundle whose digest the config has, or correct assets.digest; then `tenon stage reset assets`";
    ASSETS_REFUSED = "TN03713" "assets-refused",
        why: "the store gave a final answer; asking again does not change it",
        fix: "check the address, and that the machine may read the object";
    NO_SUCH_MINOR = "TN03714" "no-runtime-for-minor",
        why: "the runtime mappings have no row for this Kubernetes minor",
        fix: "add the minor to the mappings, or choose a Kubernetes version that they know";
    NO_RUNTIME = "TN03715" "no-fitting-runtime",
        why: "no image of the catalogue fits the wanted versions, this architecture and this operating system",
        fix: "add an image to the catalogue, or widen the mapping";
    BAD_ENVIRONMENT = "TN03718" "bad-kubelet-environment",
        why: "an environment file of systemd holds one value per line between quotes",
        fix: "take line breaks and double quotes out of labels and flags";
    VERSION_SKEW = "TN06700" "version-skew",
        why: "a kubelet may be up to three minors older than its API server and never newer",
        fix: "install a kubelet of the cluster's minor, or upgrade the control plane first";
    NO_MACHINE_CONFIG = "TN04700" "no-machine-config",
        why: "every stage reads /etc/tenon/config.yaml, which the config of `tenon ignition render` puts there; with `tenon units render` it is copied by hand",
        fix: "write the file, or name another with --config";
    BAD_MAPPINGS = "TN03716" "bad-mappings",
        why: "the document does not have the shape of its kind",
        fix: "see docs/guides/staged-boot.md for both documents";
    WRONG_EXTENSION = "TN03717" "wrong-extension",
        why: "systemd-sysext merges an image only if its extension-release fits the operating system",
        fix: "take an image that is built for this operating system, or one with ID=_any";
    NOT_CGROUP_V2 = "TN06701" "cgroup-v1-refused",
        why: "this kubelet does not start on cgroup v1 unless it is told to",
        fix: "boot the machine with the unified cgroup hierarchy, or set spec.kubelet.failCgroupV1: false";
    RUNTIME_MISMATCH = "TN06702" "runtime-mismatch",
        why: "the running container runtime is not one that the mappings allow for this Kubernetes",
        fix: "install a version that the mappings name, or correct the mappings";
    EXPECTATION_MISSED = "TN06703" "expectation-missed",
        why: "the machine rebooted, but not into what was installed: the old OS slot came back, or the extension was not merged",
        fix: "look at the OS update's own log; `os.update.onMismatch: proceed` goes on without; then `tenon stage reset prepare`";
    REBOOT_REFUSED = "TN06704" "reboot-refused",
        why: "the reboot was asked for several times and the machine is still in the same boot",
        fix: "reboot the machine by hand; the stage continues after it";
    RESET_REFUSED = "TN12703" "runtime-reset-refused",
        why: "a request to empty the runtime's directory is obeyed only for the reboot that this bootstrap asked for: a stray file must not empty a production node",
        fix: "remove /var/lib/tenon/pending/runtime-reset";
    BLOCKED = "TN12700" "stage-blocked",
        why: "the step has used up its attempts; repeating it alone will not help",
        fix: "mend the cause named above, then `tenon stage reset` with the name of the stage";
    MARKER_BY_HAND = "TN12701" "marker-by-hand",
        why: "the marker says that the stage is done and the state does not; Tenon writes the state first",
        fix: "run `tenon stage reset` with the name of the stage";
    STATE_CORRUPT = "TN12702" "stage-state-corrupt",
        why: "without its state Tenon cannot know what was done; guessing could empty a runtime directory or start a second cluster",
        fix: "look at the file that was moved aside; to start over, `tenon stage reset` every stage";
    OTHER_MACHINE = "TN12704" "state-of-another-machine",
        why: "the state was written on another machine and came here with a disk image",
        fix: "remove /var/lib/tenon from the image, then start the machine again";
    WAITING_INPUTS = "TN09700" "waiting-for-inputs",
        why: "files that this stage needs have not arrived yet; the wait is not counted as an attempt",
        fix: "send the bundle, or see `tenon stage status`";
    REBOOT_PENDING = "TN09701" "reboot-pending",
        why: "a reboot was asked for and this boot has not ended yet",
        fix: "wait for the reboot; the stage continues after it";
    STEP_NOT_PROVEN = "TN09704" "step-not-proven",
        why: "the effect is not visible yet, or something undoes it",
        fix: "the step is repeated; see what else changes the same files";
    STAGES_NOT_DONE = "TN09702" "stages-not-done",
        why: "the stages did not end within the time that was given",
        fix: "`tenon stage status` says which stage waits for what";
    UPDATE_STALLED = "TN09703" "os-update-stalled",
        why: "the OS update made no progress within its time",
        fix: "see the update service's own log";
    UPDATE_FAILED = "TN10702" "os-update-failed",
        why: "the update service reported an error of its own",
        fix: "see the update service's own log; the attempt is repeated";
    ASSETS_UNREACHABLE = "TN10700" "assets-unreachable",
        why: "the store did not give the bundle; the attempt is repeated",
        fix: "check the network of the machine and the address of the store";
    EXTENSION_DOWNLOAD = "TN10701" "extension-download",
        why: "the runtime image could not be fetched; the attempt is repeated",
        fix: "check the catalogue's address and the network of the machine";
    RUNTIME_SILENT = "TN08700" "runtime-silent",
        why: "the container runtime did not say its version",
        fix: "see `systemctl status containerd`";
    STAGE_BUSY = "TN11700" "stage-busy",
        why: "two runs of one stage would undo each other",
        fix: "wait for the other run to end";
    DRIFT = "TN01700" "stage-drift",
        why: "the inputs changed after the stage was done; a finished stage does not run again by itself",
        fix: "if the change is wanted: `tenon stage reset` with the name of the stage";
}
