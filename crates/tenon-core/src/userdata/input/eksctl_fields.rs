//! The field names of eksctl's ClusterConfig, so that a typo is told apart from a field that
//! has nothing to do with bootstrap.

pub const TOP: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "kubernetesNetworkConfig",
    "nodeGroups",
    "managedNodeGroups",
    "outpost",
    "vpc",
];
pub const TOP_IGNORED: &[&str] = &[
    "accessConfig",
    "addons",
    "addonsConfig",
    "autoModeConfig",
    "availabilityZones",
    "cloudWatch",
    "deletionProtection",
    "fargateProfiles",
    "gitops",
    "iam",
    "iamIdentityMappings",
    "identityProviders",
    "karpenter",
    "localZones",
    "privateCluster",
    "remoteNetworkConfig",
    "secretsEncryption",
    "upgradePolicy",
    "zonalShiftConfig",
];
pub const METADATA: &[&str] =
    &["name", "region", "version", "forceUpdateVersion", "tags", "annotations", "accountID"];
pub const NETWORK: &[&str] = &["ipFamily", "serviceIPv4CIDR", "serviceIPv6CIDR"];
pub const OUTPOST: &[&str] =
    &["controlPlaneOutpostARN", "controlPlaneInstanceType", "controlPlanePlacement"];

/// Fields of both kinds of group that are read.
pub const GROUP: &[&str] = &[
    "name",
    "amiFamily",
    "ami",
    "instanceType",
    "labels",
    "taints",
    "maxPodsPerNode",
    "preBootstrapCommands",
    "overrideBootstrapCommand",
    "bottlerocket",
    "disablePodIMDS",
    "volumeSize",
    "volumeType",
    "volumeName",
    "volumeKmsKeyID",
    "volumeIOPS",
    "volumeThroughput",
    "additionalVolumes",
    "ssh",
    "iam",
    "securityGroups",
    "subnets",
    "minSize",
    "maxSize",
    "desiredCapacity",
    "updateConfig",
    "asgSuspendProcesses",
    "tags",
    "propagateASGTags",
    "efaEnabled",
    "placement",
    "capacityReservation",
    "enableDetailedMonitoring",
    "instanceMarketOptions",
];
/// Fields of both kinds that have no effect here.
pub const GROUP_IGNORED: &[&str] = &[
    "availabilityZones",
    "localZones",
    "privateNetworking",
    "disableIMDSv1",
    "ebsOptimized",
    "instanceName",
    "instancePrefix",
    "instanceSelector",
    "outpostARN",
    "volumeEncrypted",
    "volumeInitializationRate",
];
/// Fields of `nodeGroups` alone.
pub const SELF_MANAGED: &[&str] = &[
    "clusterDNS",
    "kubeletExtraConfig",
    "containerRuntime",
    "instancesDistribution",
    "maxInstanceLifetime",
    "cpuCredits",
    "enclaveEnabled",
];
pub const SELF_MANAGED_IGNORED: &[&str] = &[
    "asgMetricsCollection",
    "classicLoadBalancerNames",
    "targetGroupARNs",
    "disableASGTagPropagation",
];
/// Fields of `managedNodeGroups`; kubeletExtraConfig is taken beyond what eksctl does.
pub const MANAGED: &[&str] = &[
    "instanceTypes",
    "spot",
    "launchTemplate",
    "releaseVersion",
    "nodeRepairConfig",
    "kubeletExtraConfig",
];

pub const BOTTLEROCKET: &[&str] = &["enableAdminContainer", "settings"];
pub const TAINT: &[&str] = &["key", "value", "effect"];
pub const IAM: &[&str] = &[
    "instanceRoleARN",
    "instanceProfileARN",
    "attachPolicyARNs",
    "attachPolicy",
    "withAddonPolicies",
    "instanceRoleName",
    "instanceRolePermissionsBoundary",
    "tags",
];
pub const SSH: &[&str] = &[
    "allow",
    "publicKeyName",
    "publicKeyPath",
    "publicKey",
    "sourceSecurityGroupIds",
    "enableSsm",
    "enableSSM",
];
pub const SECURITY_GROUPS: &[&str] = &["attachIDs", "withLocal", "withShared"];
pub const VOLUME: &[&str] = &[
    "volumeName",
    "volumeSize",
    "volumeType",
    "volumeEncrypted",
    "volumeKmsKeyID",
    "volumeIOPS",
    "volumeThroughput",
    "snapshotID",
];
pub const UPDATE: &[&str] = &["maxUnavailable", "maxUnavailablePercentage"];
pub const DISTRIBUTION: &[&str] = &[
    "instanceTypes",
    "maxPrice",
    "onDemandBaseCapacity",
    "onDemandPercentageAboveBaseCapacity",
    "spotInstancePools",
    "spotAllocationStrategy",
    "capacityRebalance",
];
pub const PLACEMENT: &[&str] = &["groupName"];
pub const REPAIR: &[&str] = &["enabled"];
pub const RESERVATION: &[&str] = &["capacityReservationPreference", "capacityReservationTarget"];
pub const RESERVATION_TARGET: &[&str] =
    &["capacityReservationID", "capacityReservationResourceGroupARN"];
pub const MARKET: &[&str] = &["marketType"];
