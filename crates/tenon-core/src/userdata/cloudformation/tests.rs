//! Templates as trees.

use serde_json::Value;

use super::*;
use crate::userdata::samples::{cluster, group, labelled};

fn made(group: &Group, stack: &StackOptions) -> Made {
    let mode = group.family.default_mode();
    template(&cluster(), group, mode, &Options::default(), stack)
        .unwrap_or_else(|findings| panic!("{findings:#?}"))
}

fn tree(group: &Group, stack: &StackOptions) -> Value {
    made(group, stack).template.value()
}

fn baked() -> StackOptions {
    StackOptions { baked: true, stack_name: Some("my-stack".into()), ..StackOptions::default() }
}

#[test]
fn the_stack_waits_for_signals_that_are_sent() {
    for family in [
        "AmazonLinux2023",
        "AmazonLinux2",
        "Ubuntu2204",
        "Bottlerocket",
        "WindowsServer2022CoreContainer",
    ] {
        let tree = tree(&group(family, Kind::SelfManaged), &StackOptions::default());
        let resource = &tree["Resources"][GROUP_ID];
        assert_eq!(
            resource["CreationPolicy"]["ResourceSignal"]["Count"],
            json!({"Ref": "DesiredCapacity"})
        );
        assert_eq!(
            resource["UpdatePolicy"]["AutoScalingRollingUpdate"]["WaitOnResourceSignals"],
            true
        );
        let user_data = tree["Resources"]["NodeLaunchTemplate"]["Properties"]["LaunchTemplateData"]
            ["UserData"]
            .to_string();
        assert!(
            user_data.contains("${AWS::StackName}") && user_data.contains(GROUP_ID),
            "{family}"
        );
        let quiet = super::tests::tree(
            &group(family, Kind::SelfManaged),
            &StackOptions { signals: false, ..StackOptions::default() },
        );
        assert_eq!(quiet["Resources"][GROUP_ID].get("CreationPolicy"), None);
        assert_eq!(quiet["Resources"][GROUP_ID].get("UpdatePolicy"), None);
        assert!(!quiet.to_string().contains("AWS::StackName"), "{family}");
    }
}

#[test]
fn metadata_version_2_and_encryption_everywhere() {
    for kind in [Kind::SelfManaged, Kind::Managed, Kind::ManagedCustom] {
        let tree = tree(&group("Bottlerocket", kind), &StackOptions::default());
        let data = &tree["Resources"]["NodeLaunchTemplate"]["Properties"]["LaunchTemplateData"];
        assert_eq!(data["MetadataOptions"]["HttpTokens"], "required");
        for mapping in data["BlockDeviceMappings"].as_array().unwrap() {
            assert_eq!(mapping["Ebs"]["Encrypted"], true);
            assert_eq!(mapping["Ebs"]["VolumeType"], "gp3");
        }
    }
}

#[test]
fn baked_user_data_is_the_rendered_bytes() {
    let made = made(&labelled("AmazonLinux2023", Kind::SelfManaged), &baked());
    let tree = made.template.value();
    let encoded =
        tree["Resources"]["NodeLaunchTemplate"]["Properties"]["LaunchTemplateData"]["UserData"]
            .as_str()
            .unwrap();
    assert_eq!(STANDARD.decode(encoded).unwrap(), made.user_data.bytes);
    for gone in ["ClusterName", "ClusterEndpoint", "ServiceCidr", "NodeGroupName"] {
        assert_eq!(tree["Parameters"].get(gone), None, "{gone}");
    }
}

#[test]
fn self_contained_is_baked_only() {
    let group = group("AmazonLinux2023", Kind::SelfManaged);
    let options = Options::default();
    let findings =
        template(&cluster(), &group, Mode::SelfContained, &options, &StackOptions::default())
            .unwrap_err();
    assert_eq!(findings[0].problem.page.code, "TN03431");
    assert!(template(&cluster(), &group, Mode::SelfContained, &options, &baked()).is_ok());
}

#[test]
fn every_parameter_is_used_and_every_reference_declared() {
    for family in [
        "AmazonLinux2023",
        "AmazonLinux2",
        "Ubuntu2404",
        "Bottlerocket",
        "WindowsServer2019CoreContainer",
    ] {
        for kind in [Kind::SelfManaged, Kind::Managed, Kind::ManagedCustom] {
            let tree = tree(&group(family, kind), &StackOptions::default());
            let rest = format!("{}{}{}", tree["Conditions"], tree["Resources"], tree["Outputs"]);
            for name in tree["Parameters"].as_object().unwrap().keys() {
                let used = rest.contains(&format!("{{\"Ref\":\"{name}\"}}"))
                    || rest.contains(&format!("${{{name}}}"));
                assert!(used, "{family} {kind:?}: {name} is not used");
            }
            for part in rest.split("{\"Ref\":\"").skip(1) {
                let name = part.split('"').next().unwrap();
                let known = name.starts_with("AWS::")
                    || tree["Parameters"].get(name).is_some()
                    || tree["Resources"].get(name).is_some();
                assert!(known, "{family} {kind:?}: {name} is not declared");
            }
        }
    }
}

#[test]
fn strings_that_reach_scripts_have_patterns() {
    let tree = tree(&labelled("AmazonLinux2023", Kind::SelfManaged), &StackOptions::default());
    for (name, parameter) in tree["Parameters"].as_object().unwrap() {
        if parameter["Type"] == "String" {
            assert!(parameter["AllowedPattern"].is_string(), "{name}");
        }
    }
}

#[test]
fn shell_references_reach_the_node() {
    let made = made(&group("AmazonLinux2", Kind::SelfManaged), &StackOptions::default());
    let data = made.template.value()["Resources"]["NodeLaunchTemplate"]["Properties"]["LaunchTemplateData"]["UserData"].clone();
    let sub = data["Fn::Base64"]["Fn::Sub"].as_str().unwrap();
    assert!(
        sub.contains("\"${!CLUSTER_NAME}\"") && sub.contains("CLUSTER_NAME=\"${ClusterName}\"")
    );
    assert!(!sub.contains("TenonSub0"));
}

#[test]
fn references_that_substitution_could_spoil_are_refused() {
    let group = Group {
        pre_commands: vec!["echo ${A:-${B}}".into()],
        ..group("AmazonLinux2023", Kind::SelfManaged)
    };
    let findings =
        template(&cluster(), &group, Mode::Native, &Options::default(), &StackOptions::default())
            .unwrap_err();
    assert_eq!(findings[0].problem.page.code, "TN03431");
    assert!(template(&cluster(), &group, Mode::Native, &Options::default(), &baked()).is_ok());
}

#[test]
fn updates_that_cannot_start_are_refused() {
    let mut group = group("AmazonLinux2023", Kind::SelfManaged);
    (group.launch.desired_capacity, group.launch.max_size) = (Some(3), Some(3));
    let findings =
        template(&cluster(), &group, Mode::Native, &Options::default(), &StackOptions::default())
            .unwrap_err();
    assert_eq!(findings[0].problem.page.code, "TN03432");
}

#[test]
fn too_many_tags_are_refused() {
    let mut group = group("AmazonLinux2023", Kind::SelfManaged);
    group.launch.tags = (0..47).map(|index| (format!("t{index}"), "x".to_owned())).collect();
    let findings =
        template(&cluster(), &group, Mode::Native, &Options::default(), &StackOptions::default())
            .unwrap_err();
    assert_eq!(findings[0].problem.page.code, "TN03433");
}

#[test]
fn managed_groups_have_no_profile_and_no_signal() {
    let tree = tree(&labelled("AmazonLinux2023", Kind::Managed), &StackOptions::default());
    let text = tree.to_string();
    assert!(
        !text.contains("IamInstanceProfile")
            && !text.contains("SignalResource")
            && !text.contains("AccessEntry")
    );
    let properties = &tree["Resources"]["ManagedNodeGroup"]["Properties"];
    assert_eq!(properties["AmiType"], "AL2023_x86_64_STANDARD");
    assert_eq!(
        properties["Taints"],
        json!([{"Key": "special", "Value": "true", "Effect": "NO_SCHEDULE"}])
    );
    let custom = super::tests::tree(
        &labelled("AmazonLinux2023", Kind::ManagedCustom),
        &StackOptions::default(),
    );
    assert_eq!(custom["Resources"]["ManagedNodeGroup"]["Properties"].get("AmiType"), None);
}

#[test]
fn the_access_entry_follows_the_authentication_mode() {
    for (mode, entry) in [
        (None, false),
        (Some("CONFIG_MAP"), false),
        (Some("API"), true),
        (Some("API_AND_CONFIG_MAP"), true),
    ] {
        let cluster = Cluster { auth_mode: mode.map(str::to_owned), ..cluster() };
        let made = template(
            &cluster,
            &group("AmazonLinux2023", Kind::SelfManaged),
            Mode::Native,
            &Options::default(),
            &StackOptions::default(),
        )
        .unwrap();
        assert_eq!(
            made.template.value()["Resources"].get("NodeAccessEntry").is_some(),
            entry,
            "{mode:?}"
        );
    }
}

#[test]
fn a_launch_template_alone_has_values() {
    let group = labelled("AmazonLinux2023", Kind::SelfManaged);
    let rendered = render(&cluster(), &group, Mode::Native, &Options::default()).unwrap();
    let data = launch_template_data(&cluster(), &group, &rendered);
    assert_eq!(data["InstanceType"], "m5.large");
    assert!(
        data["ImageId"]
            .as_str()
            .unwrap()
            .starts_with("resolve:ssm:/aws/service/eks/optimized-ami/1.32/")
    );
    assert!(!data.to_string().contains("\"Ref\""));
}
