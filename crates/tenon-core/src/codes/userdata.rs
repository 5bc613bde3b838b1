//! Pages about user data at the desk: `TN03400` to `TN03459`. `TN03401` to `TN03409` and
//! `TN03420` are E101 to E109 and E120 of the specification.

super::pages! {
    NO_IMAGE_PATH = "TN03401" "userdata-no-image-path",
        why: "no public parameter names an image of this family for this Kubernetes version",
        fix: "set ami (or --ami) to the id of the image";
    BOTTLEROCKET_FILES = "TN03402" "userdata-bottlerocket-files",
        why: "Bottlerocket reads its user data as settings; nothing in it would be written as a file or run",
        fix: "use mode native";
    BOTTLEROCKET_BINARY = "TN03403" "userdata-bottlerocket-binary",
        why: "the Bottlerocket image has no place for another bootstrap binary",
        fix: "use mode native";
    WINDOWS_NATIVE = "TN03404" "userdata-windows-native",
        why: "a Windows node joins through the EKS script of its image",
        fix: "use mode native";
    NO_NATIVE_BOOTSTRAP = "TN03405" "userdata-no-native-bootstrap",
        why: "the image carries no EKS bootstrap program that values could be handed to",
        fix: "use mode self-contained or tenon";
    NO_MANAGED_TYPE = "TN03406" "userdata-no-managed-type",
        why: "EKS offers no managed image type for this family",
        fix: "set ami, or use a self-managed group";
    CUSTOM_UNCHANGED = "TN03407" "userdata-custom-unchanged",
        why: "family Custom stands for user data that Tenon does not know and must not touch",
        fix: "choose the family of the image to generate user data for it";
    EKS_JOINS = "TN03408" "userdata-eks-joins",
        why: "on a managed group with an EKS image the service adds the join to the user data itself",
        fix: "set ami, or use mode native";
    NOT_AVAILABLE = "TN03409" "userdata-not-available",
        why: "the family has no place for the field; leaving it out silently would launch another node than the one asked for",
        fix: "remove the field, or choose a family that has it";
    UNKNOWN_FAMILY = "TN03410" "userdata-unknown-family",
        why: "the family decides format and content of the user data",
        fix: "use AmazonLinux2023, AmazonLinux2, Ubuntu2204, Ubuntu2404, Bottlerocket, WindowsServer2022CoreContainer, Flatcar or FedoraCoreOS";
    FAMILY_NEEDED = "TN03411" "userdata-family-needed",
        why: "an image id does not tell its operating system, and user data for the wrong one is ignored by the node",
        fix: "set amiFamily (or --family) to the family of the image";
    CLUSTER_FACT_MISSING = "TN03412" "userdata-cluster-fact-missing",
        why: "this user data has to carry the value; without it the node could not find its cluster",
        fix: "give it with --cluster-json (the answer of DescribeCluster), --kubeconfig, or its own flag";
    CLUSTER_FACT_BAD = "TN03413" "userdata-cluster-fact-bad",
        why: "the value reaches the node unchanged, so it has to be right here",
        fix: "copy it from the answer of DescribeCluster";
    TWO_VALUES = "TN03414" "userdata-two-values",
        why: "a value given twice with different content has no right reading; no source silently beats another",
        fix: "remove one of the two";
    BAD_LABEL = "TN03415" "userdata-bad-label",
        why: "the kubelet refuses to start with a label outside the grammar of Kubernetes",
        fix: "use letters, digits, `-`, `_`, `.`, at most 63, optionally with a DNS prefix and `/` in the key";
    RESERVED_LABEL = "TN03416" "userdata-reserved-label",
        why: "kubernetes.io and k8s.io labels belong to the control plane, apart from a short list; the kubelet refuses to start with others",
        fix: "use a prefix of your own, or set the label on the Node object after it has joined";
    BAD_TAINT = "TN03417" "userdata-bad-taint",
        why: "the kubelet refuses a taint outside the grammar of Kubernetes",
        fix: "write key, value and one of NoSchedule, PreferNoSchedule, NoExecute";
    BAD_TEXT = "TN03418" "userdata-bad-text",
        why: "the characters could end the value early in one of the formats it passes through",
        fix: "remove line breaks and control characters from the value";
    KUBELET_FIELD = "TN03419" "userdata-kubelet-field",
        why: "the kubelet of the target version would refuse its configuration and not start",
        fix: "remove the field or correct its name";
    TOO_LARGE = "TN03420" "userdata-too-large",
        why: "EC2 takes 16,384 bytes of user data and refuses to launch with more",
        fix: "shorten the largest contributors below, or move them into the image";
    OWNED_KUBELET_FIELD = "TN03421" "userdata-owned-kubelet-field",
        why: "the field is set by the join itself, and another value would keep the node from joining",
        fix: "remove the field from kubeletExtraConfig";
    EXISTING_TEMPLATE = "TN03422" "userdata-existing-template",
        why: "the group uses an existing launch template, and its user data lives there",
        fix: "change the user data of that launch template, or remove launchTemplate from the group";
    BAD_OVERRIDE = "TN03423" "userdata-bad-override",
        why: "on AL2023 the override is a NodeConfig document, which nodeadm merges last",
        fix: "write a NodeConfig document, or put shell text under preBootstrapCommands";
    SECRET_FOUND = "TN03424" "userdata-secret-found",
        why: "anyone on the instance can read its user data, and so can everyone who may describe the launch template",
        fix: "fetch the secret on the node from a secret store, or pass --allow-secrets if it is none";
    BAD_INPUT = "TN03425" "userdata-bad-input",
        why: "the file is not of the shape that this option takes",
        fix: "see `tenon userdata render --help` for the inputs";
    NO_SUCH_GROUP = "TN03426" "userdata-no-such-group",
        why: "one group is rendered at a time unless --out-dir receives them all",
        fix: "name one of the groups with --group, or give --out-dir";
    UNKNOWN_FIELD = "TN03427" "userdata-unknown-field",
        why: "the field is not part of this kind of document; unknown fields are refused so that typos do not pass",
        fix: "remove the field, or correct its name";
    BAD_VALUE = "TN03428" "userdata-bad-value",
        why: "the field takes values of another shape",
        fix: "correct the value";
    UNKNOWN_INSTANCE_TYPE = "TN03429" "userdata-unknown-instance-type",
        why: "the pod limit of the type is needed for max_pods.map and the table has no row for it",
        fix: "set maxPodsPerNode, or correct the instance type";
    MIXED_ARCHITECTURES = "TN03430" "userdata-mixed-architectures",
        why: "one group launches one image, and an image runs on one architecture",
        fix: "split the group by architecture";
    NEEDS_BAKED = "TN03431" "userdata-needs-baked",
        why: "the document holds compressed or encoded files, into which CloudFormation cannot put parameter values",
        fix: "use --baked";
    UPDATE_STUCK = "TN03432" "userdata-update-stuck",
        why: "a rolling update keeps the desired number in service, so it needs room for one more instance to start",
        fix: "set maxSize above desiredCapacity";
    TOO_MANY_TAGS = "TN03433" "userdata-too-many-tags",
        why: "an Auto Scaling group takes 50 tags",
        fix: "remove tags, or turn propagateASGTags off";
    VERSION_GATE = "TN03434" "userdata-version-gate",
        why: "the family has no EKS image for this Kubernetes version",
        fix: "choose another version or family";
    CLUSTER_STATUS = "TN03435" "userdata-cluster-status",
        why: "the cluster may not answer nodes yet, or never again",
        fix: "wait until the cluster is ACTIVE";
    SIGNAL_REFUSED = "TN10420" "signal-refused",
        why: "CloudFormation did not take the signal, so the stack will wait for its timeout",
        fix: "check that the instance role allows cloudformation:SignalResource on this stack";
}
