//! Parameters of a template. Every one that reaches a script has a pattern, so that no value
//! can carry code.

use serde_json::{Map, Value, json};

use super::{Stack, launch_template, scaling};
use crate::userdata::Kind;

const NAME_PATTERN: &str = "[0-9A-Za-z][0-9A-Za-z_-]{0,99}";
const ENDPOINT_PATTERN: &str = "https://[0-9A-Za-z.:\\[\\]-]{1,253}";
const BASE64_PATTERN: &str = "[0-9A-Za-z+/]{4,4094}={0,2}";
const CIDR_PATTERN: &str = "[0-9a-fA-F.:]{3,39}/[0-9]{1,3}";
const GROUP_PATTERN: &str = "[0-9A-Za-z][0-9A-Za-z-]{0,62}";
const IMAGE_PATTERN: &str = "(ami-[0-9a-f]{8,17})?";
const DURATION_PATTERN: &str = "PT([0-9]{1,2}H)?([0-9]{1,2}M)?([0-9]{1,2}S)?";

/// The parameters that the template uses, and no others.
pub fn all(stack: &Stack) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    let managed = stack.group.kind != Kind::SelfManaged;
    if !stack.options.baked {
        cluster(stack, &mut put);
    }
    if let Some(path) = stack.published_image().filter(|_| stack.needs_image()) {
        let mut parameter = json!({"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Description": "Public parameter with the image's id"});
        if stack.options.image_default {
            parameter["Default"] = json!(path);
        }
        put("ImageIdSsmParameter", parameter);
    }
    if let (true, Some(ami), None) =
        (stack.needs_image(), &stack.group.ami, stack.published_image())
    {
        put(
            "ImageId",
            json!({"Type": "AWS::EC2::Image::Id", "Description": "Image id", "Default": ami}),
        );
    } else if stack.needs_image() {
        let default = stack.group.ami.clone().unwrap_or_default();
        put(
            "ImageId",
            text("Image id; empty for the published image", Some(&default), IMAGE_PATTERN),
        );
    }
    put(
        "Subnets",
        json!({"Type": "List<AWS::EC2::Subnet::Id>", "Description": "Subnets of the nodes"}),
    );
    let sizes = scaling::sizes(stack.group);
    put("MinSize", number("Fewest nodes", sizes.min, 0, 5000));
    put("DesiredCapacity", number("Nodes at the start", sizes.desired, 0, 5000));
    put("MaxSize", number("Most nodes", sizes.max, 1, 5000));
    put(
        "VolumeSize",
        number("Size of the volume in GiB", launch_template::volume_gib(stack.group), 1, 16_384),
    );
    put(
        "HttpPutResponseHopLimit",
        number(
            "Hops that a metadata answer may take",
            launch_template::hop_limit(stack.group),
            1,
            64,
        ),
    );
    let key = stack.group.launch.key_name.clone().unwrap_or_default();
    put("KeyName", text("Key pair; empty for none", Some(&key), "[ -~]{0,255}"));
    if !managed {
        put("VpcId", json!({"Type": "AWS::EC2::VPC::Id", "Description": "Network of the nodes"}));
        put(
            "ClusterSecurityGroup",
            json!({"Type": "AWS::EC2::SecurityGroup::Id", "Description": "Security group of the control plane"}),
        );
        let default = stack.group.instance_types.first().map_or("m5.large", String::as_str);
        put("InstanceType", text("Instance type", Some(default), "[a-z0-9-]+\\.[a-z0-9-]+"));
        if stack.options.signals {
            put("MaxBatchSize", number("Nodes replaced at a time", 1, 1, 100));
            put(
                "SignalTimeout",
                text(
                    "How long a node may take",
                    Some(&stack.options.signal_timeout),
                    DURATION_PATTERN,
                ),
            );
        }
    }
    map
}

/// The cluster's values, as far as anything refers to them.
fn cluster(stack: &Stack, put: &mut impl FnMut(&str, Value)) {
    let known = stack.cluster;
    let cidr = known.service_cidr.map(|cidr| cidr.to_string());
    put("ClusterName", text("Name of the cluster", known.name.as_deref(), NAME_PATTERN));
    put("NodeGroupName", text("Name of the group", Some(&stack.group.name), GROUP_PATTERN));
    let values = [
        ("ClusterEndpoint", "URL of the API server", known.endpoint.as_deref(), ENDPOINT_PATTERN),
        (
            "ClusterCertificateAuthority",
            "CA of the API server, base64 of PEM",
            known.certificate_authority.as_deref(),
            BASE64_PATTERN,
        ),
        ("ServiceCidr", "Range of service addresses", cidr.as_deref(), CIDR_PATTERN),
    ];
    for (name, description, default, pattern) in values {
        if stack.text.contains(&format!("${{{name}}}")) {
            put(name, text(description, default, pattern));
        }
    }
}

fn text(description: &str, default: Option<&str>, pattern: &str) -> Value {
    let mut parameter = json!({
        "Type": "String",
        "Description": description,
        "AllowedPattern": format!("^{pattern}$"),
    });
    if let Some(default) = default {
        parameter["Default"] = json!(default);
    }
    parameter
}

fn number(description: &str, default: u32, least: u32, most: u32) -> Value {
    json!({"Type": "Number", "Description": description, "Default": default, "MinValue": least, "MaxValue": most})
}

pub fn conditions(stack: &Stack) -> Map<String, Value> {
    let is_set = |name: &str| json!({"Fn::Not": [{"Fn::Equals": [{"Ref": name}, ""]}]});
    let mut map = Map::new();
    map.insert("HasKeyName".into(), is_set("KeyName"));
    if stack.needs_image() && stack.published_image().is_some() {
        map.insert("HasImageId".into(), is_set("ImageId"));
    }
    map
}

impl Stack<'_> {
    /// False where EKS chooses the image by its type.
    pub fn needs_image(&self) -> bool {
        self.group.kind != Kind::Managed || super::images::managed_type(self.group).is_none()
    }
}
