#!/bin/bash
# Reads the group's values and the machine's, and exports them. Written to be sourced by the
# join script and by override commands.
set -o errexit -o nounset -o pipefail

source /etc/eksctl/kubelet.env

tenon_imds="${AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}/latest"
tenon_deadline=$((SECONDS + ${TENON_IMDS_SECONDS:-60}))

# Repeats a request until it is answered or the time is over.
tenon_request() {
  local answer
  until answer=$(curl --silent --show-error --fail --noproxy '*' --max-time 5 "$@"); do
    if ((SECONDS >= tenon_deadline)); then
      echo "tenon: no answer from ${*: -1}" >&2
      return 1
    fi
    sleep 1
  done
  printf '%s' "${answer}"
}

tenon_token=$(tenon_request --request PUT --header 'X-aws-ec2-metadata-token-ttl-seconds: 600' "${tenon_imds}/api/token")
INSTANCE_ID=$(tenon_request --header "X-aws-ec2-metadata-token: ${tenon_token}" "${tenon_imds}/meta-data/instance-id")
INSTANCE_LIFECYCLE=$(tenon_request --header "X-aws-ec2-metadata-token: ${tenon_token}" "${tenon_imds}/meta-data/instance-life-cycle")
[[ "${INSTANCE_LIFECYCLE}" == spot ]] || INSTANCE_LIFECYCLE=on-demand

CLUSTER_DNS="${CLUSTER_DNS:-}"
MAX_PODS="${MAX_PODS:-}"
NODE_TAINTS="${NODE_TAINTS:-}"
[[ -z "${NODE_LABELS:-}" ]] || NODE_LABELS+=,
NODE_LABELS="${NODE_LABELS:-}node-lifecycle=${INSTANCE_LIFECYCLE},alpha.eksctl.io/instance-id=${INSTANCE_ID}"
KUBELET_EXTRA_ARGS="--node-labels=${NODE_LABELS}"
[[ -z "${NODE_TAINTS}" ]] || KUBELET_EXTRA_ARGS+=" --register-with-taints=${NODE_TAINTS}"
[[ -z "${MAX_PODS}" ]] || KUBELET_EXTRA_ARGS+=" --max-pods=${MAX_PODS}"
[[ -z "${KUBELET_FLAGS:-}" ]] || KUBELET_EXTRA_ARGS+=" ${KUBELET_FLAGS}"
KUBELET_CONFIG=/etc/kubernetes/kubelet/kubelet-config.json
KUBELET_EXTRA_CONFIG=/etc/eksctl/kubelet-extra.json
export API_SERVER_URL B64_CLUSTER_CA CLUSTER_DNS CLUSTER_ID CLUSTER_NAME CONTAINER_RUNTIME
export ENABLE_LOCAL_OUTPOST MAX_PODS NODE_LABELS NODE_TAINTS INSTANCE_ID INSTANCE_LIFECYCLE
export KUBELET_EXTRA_ARGS KUBELET_CONFIG KUBELET_EXTRA_CONFIG
