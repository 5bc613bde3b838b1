//! Pages about reading, merging and converting user data: `TN03460` to `TN03499`. The findings
//! of `tenon userdata lint` are `TN01401` to `TN01425`; their slug is the rule's own name.

super::pages! {
    NOT_MERGEABLE = "TN03460" "userdata-not-mergeable",
        why: "the two documents must be of a kind that the family reads, and of kinds that can stand together",
        fix: "give a script with an interpreter line, a cloud-config, a MIME message or the family's own format";
    MERGE_CONFLICT = "TN03461" "userdata-merge-conflict",
        why: "both documents set the same thing to different values, and neither may win silently",
        fix: "remove it from one of the two";
    MERGE_PLACE = "TN03462" "userdata-merge-place",
        why: "a place is `first`, `last` or `after:` and the name of a part",
        fix: "name a part of the user's message by its filename or as `part N`";
    CONVERT_LOSS = "TN01460" "userdata-convert-loss",
        why: "the other family has no way to say what would be lost",
        fix: "move what is lost into the image or the group, or accept the loss with --allow-loss";
    NO_SUCH_PART = "TN03463" "userdata-no-such-part",
        why: "the source has no part of that name or number",
        fix: "`tenon userdata inspect` lists the parts";
    SEVERAL_DOCUMENTS = "TN03464" "userdata-several-documents",
        why: "the source is a template with several user data in it, and the answer is about one",
        fix: "choose one with --document and its path, as `tenon userdata inspect` shows it";
    BAD_TARGET = "TN03465" "userdata-bad-target",
        why: "a target is FAMILY[/KIND][:MODE], such as AmazonLinux2023/managed:native",
        fix: "name a family, and after it self-managed, managed or custom, and native, self-contained or tenon";
    BAD_PARAMETER = "TN03466" "userdata-bad-parameter",
        why: "a parameter is given as NAME=VALUE",
        fix: "write --parameter ClusterName=prod";

    U001 = "TN01401" "U001",
        why: "the family does not read this format: the node would ignore it, and join nothing",
        fix: "use the family's own format; `tenon userdata convert` writes it";
    U002 = "TN01402" "U002",
        why: "EC2 refuses user data above 16,384 bytes, counted before base64",
        fix: "move large files into the image or a bucket, or compress where the reader expands gzip";
    U003 = "TN01403" "U003",
        why: "the reader does not undo this encoding, so it would see noise",
        fix: "give the text itself, encoded once";
    U004 = "TN01404" "U004",
        why: "without it the node does not know which cluster to join",
        fix: "add the value; `aws eks describe-cluster` has it";
    U005 = "TN01405" "U005",
        why: "the node would not trust the API server and never join",
        fix: "take certificateAuthority.data from `aws eks describe-cluster`";
    U006 = "TN01406" "U006",
        why: "EKS writes the cluster's values for managed groups on its own images; a second set breaks the merge or contradicts it",
        fix: "remove the cluster's values and the join from this user data, or use a custom image";
    U007 = "TN01407" "U007",
        why: "the program that this user data is for is not on the image of this family",
        fix: "convert it with `tenon userdata convert`, or launch the family it was written for";
    U008 = "TN01408" "U008",
        why: "documents apply in order and the later value wins, which is easily overlooked",
        fix: "keep the value in one document";
    U009 = "TN01409" "U009",
        why: "nodeadm refuses fields that are not in its schema, and the node does not start",
        fix: "correct or remove the field";
    U010 = "TN01410" "U010",
        why: "cloud-init skips a module whose config is not of its schema, with a warning in a log only",
        fix: "correct the key; `cloud-init schema -c FILE` checks it";
    U011 = "TN01411" "U011",
        why: "readers disagree about broken messages: some skip parts, some take headers for content",
        fix: "write the message again; `tenon userdata merge` repairs the framing";
    U012 = "TN01412" "U012",
        why: "cloud-init runs a script as a program; without an interpreter line that ends with an exec format error",
        fix: "start the script with #!/bin/bash";
    U013 = "TN01413" "U013",
        why: "the kubelet refuses to start with labels and taints outside the grammar, and with labels that only the control plane may set",
        fix: "correct the label or taint, or set it with an admission controller";
    U014 = "TN01414" "U014",
        why: "anyone on the instance can read user data from the metadata service, and so can everyone who may describe it",
        fix: "keep the secret in Secrets Manager or SSM and fetch it with the node's role";
    U015 = "TN01415" "U015",
        why: "the text is run or expanded by a shell in a way that lets data become code",
        fix: "quote the value, or download over https, check a hash, then run";
    U016 = "TN01416" "U016",
        why: "metadata without a token is refused where IMDSv2 is required, as it should be everywhere",
        fix: "take a token with a PUT to /latest/api/token and send it as X-aws-ec2-metadata-token";
    U017 = "TN01417" "U017",
        why: "the kubelet does not start with a flag or field that its version does not know",
        fix: "remove it, or use what replaced it";
    U018 = "TN01418" "U018",
        why: "on AmazonLinux2023 the kubelet starts after all scripts have ended, so the script waits for ever",
        fix: "let a systemd unit ordered after nodeadm-run.service do the work";
    U019 = "TN01419" "U019",
        why: "the settings API refuses values of another type, and a dotted key without quotes becomes a table",
        fix: "quote the key, or write the value in the type of the setting";
    U020 = "TN01420" "U020",
        why: "EC2Launch takes the text between the first pair of tags; the rest is not run",
        fix: "balance the tags and close the string";
    U021 = "TN01421" "U021",
        why: "Ignition refuses the whole config, and the machine does not boot",
        fix: "correct it; `ignition-validate` checks the rest";
    U022 = "TN01422" "U022",
        why: "pods beyond the instance's addresses stay without network",
        fix: "lower the limit, or use prefix delegation";
    U023 = "TN01423" "U023",
        why: "a signal that nobody waits for does nothing, and a policy without a signal rolls every stack back",
        fix: "set CreationPolicy or WaitOnResourceSignals together with cfn-signal or `tenon signal`";
    U024 = "TN01424" "U024",
        why: "no fixes are made for it any more",
        fix: "move to a supported release";
    U025 = "TN01425" "U025",
        why: "cloud-init runs scripts in the order of their names, and unnamed parts are called part-001, part-002, …",
        fix: "name all script parts or none of them";
}
