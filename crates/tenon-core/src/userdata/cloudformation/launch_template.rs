//! `LaunchTemplateData`: IMDSv2 required, encrypted gp3, tags on everything that is made.

use serde_json::{Map, Value, json};

use crate::userdata::group::Volume;
use crate::userdata::{Family, Group};

pub const DEFAULT_VOLUME_GIB: u32 = 80;
const WINDOWS_VOLUME_GIB: u32 = 50;
/// The system volume of Bottlerocket; pods live on the data volume.
const BOTTLEROCKET_SYSTEM_GIB: u32 = 4;
const USUAL_IOPS: u32 = 3000;
const USUAL_THROUGHPUT: u32 = 125;

/// What a template fills in with parameters and a plain document with values.
pub struct Values {
    pub image: Option<Value>,
    pub instance_type: Option<Value>,
    pub key_name: Option<Value>,
    pub security_groups: Vec<Value>,
    pub instance_profile: Option<Value>,
    pub hop_limit: Value,
    pub volume_gib: Value,
    pub user_data: Option<Value>,
    /// `Key` and `Value` pairs.
    pub tags: Vec<Value>,
}

/// The size of the volume when the group names none.
pub fn volume_gib(group: &Group) -> u32 {
    let size = group.launch.volume.size_gib.unwrap_or(DEFAULT_VOLUME_GIB);
    if group.family.is_windows() { size.max(WINDOWS_VOLUME_GIB) } else { size }
}

/// Pods that may not reach the metadata service are one hop away.
pub fn hop_limit(group: &Group) -> u32 {
    if group.launch.disable_pod_imds { 1 } else { 2 }
}

pub fn data(group: &Group, values: Values) -> Value {
    let launch = &group.launch;
    let tagged = ["instance", "volume", "network-interface"]
        .map(|kind| json!({"ResourceType": kind, "Tags": values.tags}));
    let mut data = json!({
        "BlockDeviceMappings": volumes(group, &values.volume_gib),
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpPutResponseHopLimit": values.hop_limit,
            "HttpTokens": "required",
        },
        "TagSpecifications": tagged,
    });
    match launch.efa {
        true => {
            data["NetworkInterfaces"] = json!([{"DeviceIndex": 0, "InterfaceType": "efa", "Groups": values.security_groups}]);
        }
        false if !values.security_groups.is_empty() => {
            data["SecurityGroupIds"] = json!(values.security_groups);
        }
        false => {}
    }
    let reservation = launch
        .capacity_reservation_id
        .as_ref()
        .map(|id| json!({"CapacityReservationTarget": {"CapacityReservationId": id}}));
    let optional = [
        ("ImageId", values.image),
        ("InstanceType", values.instance_type),
        ("KeyName", values.key_name),
        ("IamInstanceProfile", values.instance_profile),
        ("UserData", values.user_data),
        ("Placement", launch.placement_group.as_ref().map(|name| json!({"GroupName": name}))),
        (
            "CreditSpecification",
            launch.cpu_credits.as_ref().map(|credits| json!({"CpuCredits": credits})),
        ),
        ("EnclaveOptions", launch.enclave.then(|| json!({"Enabled": true}))),
        ("Monitoring", launch.detailed_monitoring.then(|| json!({"Enabled": true}))),
        ("CapacityReservationSpecification", reservation),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            data[key] = value;
        }
    }
    data
}

fn volumes(group: &Group, size: &Value) -> Vec<Value> {
    let volume = &group.launch.volume;
    let mut mappings = match group.family {
        Family::Bottlerocket { .. } => vec![
            mapping(
                "/dev/xvda",
                &json!(BOTTLEROCKET_SYSTEM_GIB),
                &Volume { kms_key: volume.kms_key.clone(), ..Volume::default() },
            ),
            mapping(volume.name.as_deref().unwrap_or("/dev/xvdb"), size, volume),
        ],
        family => {
            let device = match family {
                Family::Windows { .. } | Family::Ubuntu { .. } => "/dev/sda1",
                _ => "/dev/xvda",
            };
            vec![mapping(volume.name.as_deref().unwrap_or(device), size, volume)]
        }
    };
    for (index, more) in group.launch.additional_volumes.iter().enumerate() {
        let letter = char::from(b'f' + u8::try_from(index.min(10)).unwrap_or(10));
        let device = more.name.clone().unwrap_or(format!("/dev/xvd{letter}"));
        let size = json!(more.size_gib.unwrap_or(DEFAULT_VOLUME_GIB));
        mappings.push(mapping(&device, &size, more));
    }
    mappings
}

fn mapping(device: &str, size: &Value, volume: &Volume) -> Value {
    let kind = volume.kind.as_deref().unwrap_or("gp3");
    let mut ebs = Map::new();
    let mut put = |key: &str, value: Value| ebs.insert(key.to_owned(), value);
    put("DeleteOnTermination", json!(true));
    put("Encrypted", json!(true));
    put("VolumeSize", size.clone());
    put("VolumeType", json!(kind));
    match kind {
        "gp3" => {
            put("Iops", json!(volume.iops.unwrap_or(USUAL_IOPS)));
            put("Throughput", json!(volume.throughput.unwrap_or(USUAL_THROUGHPUT)));
        }
        "io1" | "io2" => {
            put("Iops", json!(volume.iops.unwrap_or(USUAL_IOPS)));
        }
        _ => {}
    }
    if let Some(key) = &volume.kms_key {
        put("KmsKeyId", json!(key));
    }
    if let Some(snapshot) = &volume.snapshot {
        put("SnapshotId", json!(snapshot));
    }
    json!({"DeviceName": device, "Ebs": ebs})
}
