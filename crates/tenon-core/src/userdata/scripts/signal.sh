#!/bin/bash
# Tells the stack how the bootstrap ended, once per instance, and ends with the same status.
# Arguments: stack, logical id, region, how long the stack waits (PT15M), and where the status
# of the join is known: a file, or units separated by commas.
set -o nounset -o pipefail

stack=$1 resource=$2 region=$3 patience=$4 source=$5
imds="${AWS_EC2_METADATA_SERVICE_ENDPOINT:-http://169.254.169.254}/latest"

# Hours, minutes and seconds of the patience, less one minute.
if ! [[ "${patience}" =~ ^PT(([0-9]+)H)?(([0-9]+)M)?(([0-9]+)S)?$ ]]; then
  echo "tenon: ${patience} is not a duration such as PT15M" >&2
  exit 1
fi
hours=${BASH_REMATCH[2]:-0} minutes=${BASH_REMATCH[4]:-0} seconds=${BASH_REMATCH[6]:-0}
deadline=$((SECONDS + 10#${hours} * 3600 + 10#${minutes} * 60 + 10#${seconds} - 60))

ask() {
  curl --silent --show-error --fail --noproxy '*' --max-time 5 --retry 5 "$@"
}

get() {
  ask --header "X-aws-ec2-metadata-token: ${token}" "${imds}/meta-data/$1"
}

# A value of the credentials document, which has one pair in each line.
field() {
  sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p" <<< "${credentials}"
}

join_status() {
  local status unit result
  if [[ "${source}" == /* ]]; then
    if [[ -r "${source}" ]]; then cat "${source}"; else echo 1; fi
    return
  fi
  status=0
  for unit in ${source//,/ }; do
    result=$(systemctl show --property Result --value "${unit}")
    [[ "${result}" == success ]] || status=1
  done
  echo "${status}"
}

healthy() {
  until curl --silent --fail --max-time 5 --output /dev/null http://127.0.0.1:10248/healthz; do
    ((SECONDS < deadline)) || return 1
    sleep 2
  done
}

token=$(ask --request PUT --header 'X-aws-ec2-metadata-token-ttl-seconds: 600' "${imds}/api/token")
instance_id=$(get instance-id)
marker=/var/lib/tenon/signalled-${instance_id}
[[ ! -e "${marker}" ]] || exit 0

status=$(join_status)
reason="the join ended with status ${status}"
if [[ "${status}" == 0 ]] && ! healthy; then
  status=1 reason='the kubelet is not healthy'
fi
if [[ "${status}" == 0 ]]; then answer=SUCCESS; else answer=FAILURE; fi
echo "tenon: signalling ${answer} to ${stack}: ${reason}" >&2

# The credentials travel through standard input: an argument list is readable by everyone.
send() {
  local role credentials domain url
  role=$(get iam/security-credentials/) || return 1
  credentials=$(get "iam/security-credentials/${role}") || return 1
  domain=$(get services/domain) || return 1
  url=${TENON_CLOUDFORMATION_ENDPOINT:-}
  [[ -n "${url}" ]] || url="https://cloudformation.${region}.${domain}"
  curl --silent --show-error --fail --max-time 20 --config - \
    --aws-sigv4 "aws:amz:${region}:cloudformation" \
    --data-urlencode Action=SignalResource --data-urlencode Version=2010-05-15 \
    --data-urlencode "StackName=${stack}" --data-urlencode "LogicalResourceId=${resource}" \
    --data-urlencode "UniqueId=${instance_id}" --data-urlencode "Status=${answer}" \
    "${url}/" > /dev/null << CONFIG
user = "$(field AccessKeyId):$(field SecretAccessKey)"
header = "X-Amz-Security-Token: $(field Token)"
CONFIG
}

for ((try = 1; try <= 5; try++)); do
  if [[ -x /opt/aws/bin/cfn-signal ]]; then
    /opt/aws/bin/cfn-signal --exit-code "${status}" --stack "${stack}" --resource "${resource}" \
      --region "${region}" --id "${instance_id}"
  else
    send
  fi && mkdir -p /var/lib/tenon && : > "${marker}" && exit "${status}"
  sleep "$((try * 2))"
done
echo "tenon: the signal could not be sent" >&2
exit 1
