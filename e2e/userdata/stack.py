"""Deploys templates to a local moto and reads the user data back.

Argument: a directory with NAME.template.json and NAME.bin, the user data with the cluster's
values in it. Ends with the number of bad ones.
"""
import base64
import json
import pathlib
import sys

import boto3
from moto import mock_aws

REGION = "us-west-2"


def client(name):
    return boto3.client(name, region_name=REGION, aws_access_key_id="x", aws_secret_access_key="x")


@mock_aws
def check(path):
    ec2, formation = client("ec2"), client("cloudformation")
    template = json.loads(path.read_text())
    vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
    subnets = [subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]][:2]
    group = ec2.create_security_group(GroupName="plane", Description="plane", VpcId=vpc)["GroupId"]
    image = ec2.describe_images()["Images"][0]["ImageId"]
    client("ssm").put_parameter(Name="/image", Value=image, Type="String")
    client("eks").create_cluster(name="ironman-2022", roleArn="arn:aws:iam::123456789012:role/r", resourcesVpcConfig={"subnetIds": subnets})
    given = {"VpcId": vpc, "Subnets": ",".join(subnets), "ClusterSecurityGroup": group, "ImageIdSsmParameter": "/image"}
    if "ImageId" in template["Parameters"] and "ImageIdSsmParameter" not in template["Parameters"]:
        given["ImageId"] = image
    parameters = [
        {"ParameterKey": key, "ParameterValue": value} for key, value in given.items() if key in template["Parameters"]
    ]
    formation.create_stack(StackName="my-stack", TemplateBody=path.read_text(), Parameters=parameters, Capabilities=["CAPABILITY_IAM"])
    stack = formation.describe_stacks(StackName="my-stack")["Stacks"][0]
    assert stack["StackStatus"] == "CREATE_COMPLETE", stack["StackStatus"]
    found = ec2.describe_launch_template_versions(LaunchTemplateId=ec2.describe_launch_templates()["LaunchTemplates"][0]["LaunchTemplateId"])
    data = found["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    assert data["MetadataOptions"]["HttpTokens"] == "required"
    expected = path.with_name(path.name.replace(".template.json", ".bin")).read_bytes()
    got = base64.b64decode(data["UserData"]) if "UserData" in data else b""
    assert got == expected, f"user data differs: {len(got)} and {len(expected)} bytes"
    if "NodeGroup" in template["Resources"]:
        groups = client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        assert len(groups) == 1 and groups[0]["DesiredCapacity"] == 2
        names = {output["OutputKey"] for output in stack["Outputs"]}
        assert names == set(template["Outputs"]), names


bad = 0
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.template.json")):
    try:
        check(path)
        print(path.name, "ok")
    except Exception as error:  # every stack is tried, each failure is shown
        bad += 1
        print(path.name, type(error).__name__, error)
sys.exit(min(bad, 100))
