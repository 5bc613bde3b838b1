#!/bin/bash
# Asks the metadata service who this machine is and writes what the kubelet's unit needs.
# Arguments: config directory, ipv4 or ipv6, hostname or instance-id, pod limit for types
# without a row in the map. MAX_PODS and MAX_PODS_CEILING come from the unit's environment.
set -o errexit -o nounset -o pipefail

dir=$1 family=$2 name_rule=$3 limit=${MAX_PODS:-} fallback=${4:-}
imds="${AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}/latest"
deadline=$((SECONDS + ${TENON_IMDS_SECONDS:-300}))
local_env=/run/tenon/kubelet.local.env

fail() {
  echo "tenon: $1" >&2
  exit 1
}

# Repeats a request until it is answered or the time is over. An answer is used whole or not
# at all.
request() {
  local answer
  until answer=$(curl --silent --show-error --fail --noproxy '*' --max-time 5 "$@"); do
    ((SECONDS < deadline)) || fail "no answer from ${*: -1}"
    sleep 1
  done
  printf '%s' "${answer}"
}

# One value, refused unless it has the expected shape: a proxy may answer for the service.
value() {
  local answer
  answer=$(request --header "X-aws-ec2-metadata-token: ${token}" "${imds}/meta-data/$1")
  [[ "${answer}" =~ ^($2)$ ]] || fail "unexpected answer for $1"
  printf '%s' "${answer}"
}

token=$(request --request PUT --header 'X-aws-ec2-metadata-token-ttl-seconds: 600' "${imds}/api/token")
instance_id=$(value instance-id 'i-[0-9a-f]+')
instance_type=$(value instance-type '[a-z0-9-]+\.[a-z0-9-]+')
life_cycle=$(value instance-life-cycle '[a-z-]+')
zone=$(value placement/availability-zone '[a-z0-9-]+')
hostname=$(value local-hostname '[A-Za-z0-9. -]+')
[[ "${life_cycle}" == spot ]] || life_cycle=on-demand
if [[ "${family}" == ipv6 ]]; then node_ip=$(value ipv6 '[0-9a-f:]+'); else node_ip=$(value local-ipv4 '[0-9.]+'); fi
if [[ "${name_rule}" == instance-id ]]; then node_name=${instance_id}; else node_name=${hostname%% *}; fi

if [[ -z "${limit}" && -r "${dir}/max_pods.map" ]]; then
  while read -r name count; do
    if [[ "${name}" == "${instance_type}" ]]; then limit=${count}; fi
  done < "${dir}/max_pods.map"
fi
[[ -n "${limit}" ]] || limit=${fallback}
[[ "${limit}" =~ ^[0-9]+$ ]] || fail "no pod limit is known for instance type ${instance_type}"
if [[ -n "${MAX_PODS_CEILING:-}" ]] && ((MAX_PODS_CEILING < limit)); then limit=${MAX_PODS_CEILING}; fi

mkdir -p /run/tenon
printf '%s="%s"\n' NODE_IP "${node_ip}" NODE_NAME "${node_name}" INSTANCE_ID "${instance_id}" \
  INSTANCE_TYPE "${instance_type}" INSTANCE_LIFECYCLE "${life_cycle}" \
  PROVIDER_ID "aws:///${zone}/${instance_id}" MAX_PODS "${limit}" > "${local_env}.new"
mv "${local_env}.new" "${local_env}"
