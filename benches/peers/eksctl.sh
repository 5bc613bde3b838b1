#!/bin/bash
# The flow of the small bootstrap script: three questions to the metadata service, one look into a
# table of pod limits, one environment file. Everything else is in the image or in user data
# already. Starting the kubelet is left out, as for every tool that is measured.
#   ROOT=DIR METADATA=http://ADDRESS benches/peers/eksctl.sh
set -o errexit -o pipefail -o nounset
etc=$ROOT/etc/eksctl

ask() { curl --silent --fail "$METADATA/latest/meta-data/$1"; }

pods_of() {
    local type pods
    while read -r type pods; do
        if [[ $type == "$1" && $pods =~ ^[0-9]+$ ]]; then
            echo "$pods"
            return
        fi
    done <"$etc/max_pods.map"
}

address=$(ask local-ipv4)
id=$(ask instance-id)
type=$(ask instance-type)
# May set MAX_PODS, which then wins.
source "$etc/kubelet.env"

cat >"$etc/kubelet.local.env" <<END
NODE_IP=$address
INSTANCE_ID=$id
INSTANCE_TYPE=$type
MAX_PODS=${MAX_PODS:-$(pods_of "$type")}
END
