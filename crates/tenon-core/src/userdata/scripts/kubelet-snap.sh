#!/bin/bash
# Hands the kubelet snap its options, one argument each, and starts it.
# Argument: config directory. The values come from the unit's environment files; further
# arguments are options as they are.
set -o errexit -o nounset -o pipefail

dir=$1
shift
labels=${NODE_LABELS:-}
[[ -z "${labels}" ]] || labels+=,
labels+="alpha.eksctl.io/instance-id=${INSTANCE_ID},node-lifecycle=${INSTANCE_LIFECYCLE}"
snap set kubelet-eks \
  "config=${dir}/kubelet.yaml" \
  "node-ip=${NODE_IP}" \
  "hostname-override=${NODE_NAME}" \
  "node-labels=${labels}" \
  "max-pods=${MAX_PODS}" \
  "cloud-provider=external" \
  "provider-id=${PROVIDER_ID}" \
  "$@"
snap restart kubelet-eks
