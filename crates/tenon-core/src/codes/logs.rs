//! Pages about log bundles: `TN..510` to `TN..529`.

super::pages! {
    ITEMS_MISSING = "TN01510" "logs-items-missing",
        why: "the bundle is written, but something that every diagnosis needs is not in it",
        fix: "run as root on the node itself, or give --root the whole volume; `tenon logs show BUNDLE` has the reason of each item";
    BAD_CATALOGUE = "TN03510" "logs-bad-catalogue",
        why: "an entry is `id = { KIND = TARGET }` in a table, with one kind, an absolute path and known options",
        fix: "compare it with `tenon logs list` and correct or remove the file in /etc/tenon/collect.d";
    COMMAND_NOT_ALLOWED = "TN03511" "logs-command-not-allowed",
        why: "a file of entries must not make the collector run programs unless the caller says so",
        fix: "give --allow-commands if you trust the file, or use another kind";
    BAD_BUNDLE = "TN03512" "logs-bad-bundle",
        why: "the file is not a bundle of `tenon logs collect`, or it was damaged on the way",
        fix: "copy it again and compare the sizes; `gzip -t FILE` tests the packing";
    HOSTILE_BUNDLE = "TN03513" "logs-hostile-bundle",
        why: "no bundle of ours has such members: they are made to write outside, to fill a disk or to mislead",
        fix: "do not unpack it with another program; ask its sender how it was made";
    NO_SUCH_ITEM = "TN03514" "logs-no-such-item",
        why: "the bundle has no member of that name",
        fix: "`tenon logs show BUNDLE` lists its members";
    NOTHING_READABLE = "TN06510" "logs-nothing-readable",
        why: "not one of the important items may be read by this user",
        fix: "run it as root: sudo tenon logs collect";
    NOT_WRITTEN = "TN07510" "logs-not-written",
        why: "the bundle needs a place with room; without one it can go to standard output",
        fix: "give --out a directory on another file system, or --out - over ssh: ssh NODE sudo tenon logs collect --out - > bundle.tar.gz";
    UPLOAD_REFUSED = "TN10510" "logs-upload-refused",
        why: "the bundle is on the node, but not where it was sent",
        fix: "check the bucket policy, the role's s3:PutObject and the age of a presigned URL; then send the file by hand";
    BAD_UPLOAD = "TN64510" "logs-bad-upload",
        why: "a destination is s3://BUCKET/KEY or an https:// address",
        fix: "write --upload s3://my-bucket/logs/{instance}-{utc}.tar.gz";
    UPLOAD_UNREDACTED = "TN64511" "logs-upload-unredacted",
        why: "--no-redact leaves secrets in the bundle, and --upload sends it away",
        fix: "leave --no-redact out, or give it twice to confirm";
    BAD_CHOICE = "TN64512" "logs-bad-choice",
        why: "the option does not take this value",
        fix: "`tenon logs list` shows the groups; times are 24h, boot or 2026-11-15T10:00:00Z";
}
