#!/bin/bash
# A flow like that of the shell bootstrap of Amazon Linux 2 images, in its kinds and numbers of
# steps: a session token, one curl for each value, JSON files changed by jq one field at a time,
# a kubeconfig changed by sed, a table read by awk. No cloud API, no service manager.
#   ROOT=DIR METADATA=http://ADDRESS benches/peers/al2.sh
set -o errexit -o pipefail -o nounset
kubernetes=$ROOT/etc/kubernetes
config=$kubernetes/kubelet/kubelet-config.json
kubeconfig=$ROOT/var/lib/kubelet/kubeconfig

token=$(curl --silent --fail -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 600' "$METADATA/latest/api/token")
ask() { curl --silent --fail -H "X-aws-ec2-metadata-token: $token" "$METADATA/latest/$1"; }

# Changes the kubelet's config with one jq program.
change() {
    local text
    text=$(jq "$@" "$config")
    echo "$text" >"$config"
}

region=$(ask dynamic/instance-identity/document | jq --raw-output .region)
zone=$(ask meta-data/placement/availability-zone)
id=$(ask meta-data/instance-id)
type=$(ask meta-data/instance-type)
mac=$(ask meta-data/mac)
address=$(ask meta-data/local-ipv4)
name=$(ask meta-data/local-hostname)
domain=$(ask meta-data/services/domain)
ranges=$(ask "meta-data/network/interfaces/macs/$mac/vpc-ipv4-cidr-blocks")
ask meta-data/ami-id >/dev/null

# The cluster's name server follows from the range of the VPC.
server=10.100.0.10
if grep --quiet '^10\.' <<<"$ranges"; then server=172.20.0.10; fi

mkdir -p "$kubernetes/pki"
base64 --decode <<<"$CLUSTER_CA" >"$kubernetes/pki/ca.crt"
sed -i -e "s,MASTER_ENDPOINT,$ENDPOINT,g" -e "s,CLUSTER_NAME,$CLUSTER,g" -e "s,AWS_REGION,$region,g" "$kubeconfig"

pods=$(awk -v type="$type" '$1 == type { print $2 }' "$ROOT/etc/eks/eni-max-pods.txt")
cores=$(awk '/^processor/ { count++ } END { print count }' /proc/cpuinfo)

change --arg server "$server" '.clusterDNS = [$server]'
change --arg memory "$((11 * pods + 255))Mi" '.kubeReserved.memory = $memory'
change --arg cpu "$((60 + 10 * (cores - 1)))m" '.kubeReserved.cpu = $cpu'
change '.evictionHard = {"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%"}'
change --argjson pods "$pods" '.maxPods = $pods'
change --arg id "aws:///$zone/$id" '.providerID = $id'
change '.featureGates.RotateKubeletServerCertificate = true'

mkdir -p "$ROOT/etc/systemd/system/kubelet.service.d" "$ROOT/etc/containerd"
cat >"$ROOT/etc/systemd/system/kubelet.service.d/10-kubelet-args.conf" <<END
[Service]
Environment='KUBELET_ARGS=--node-ip=$address --hostname-override=$name --v=2'
END
sed "s,SANDBOX_IMAGE,602401143452.dkr.ecr.$region.$domain/eks/pause:3.5,g" \
    "$ROOT/etc/eks/containerd-config.toml" >"$ROOT/etc/containerd/config.toml"
