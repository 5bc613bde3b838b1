#!/bin/bash
# Joins through the image's own program, then merges the group's kubelet settings.
set -o errexit -o nounset -o pipefail

# The sender of the stack's signal reads how this ended.
record() {
  local status=$?
  mkdir -p /run/tenon
  echo "${status}" > /run/tenon/join-status
}
trap record EXIT

source /var/lib/cloud/scripts/eksctl/bootstrap.helper.sh

options=()
[[ -z "${PIN_ENDPOINT:-}" ]] || options+=(--apiserver-endpoint "${API_SERVER_URL}" --b64-cluster-ca "${B64_CLUSTER_CA}")
[[ -z "${CLUSTER_DNS}" ]] || options+=(--dns-cluster-ip "${CLUSTER_DNS}")
[[ -z "${SERVICE_IPV6_CIDR:-}" ]] || options+=(--ip-family ipv6 --service-ipv6-cidr "${SERVICE_IPV6_CIDR}")
/etc/eks/bootstrap.sh "${CLUSTER_NAME}" "${options[@]}" --kubelet-extra-args "${KUBELET_EXTRA_ARGS}"

if [[ "$(< "${KUBELET_EXTRA_CONFIG}")" != '{}' ]]; then
  merged=$(mktemp "${KUBELET_CONFIG}.XXXXXX")
  jq --slurp '.[0] * .[1]' "${KUBELET_CONFIG}" "${KUBELET_EXTRA_CONFIG}" > "${merged}"
  chmod 0644 "${merged}"
  mv "${merged}" "${KUBELET_CONFIG}"
fi
snap restart kubelet-eks
