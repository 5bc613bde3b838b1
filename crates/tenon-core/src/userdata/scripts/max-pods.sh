#!/bin/bash
# Adds the pod limit to the kubelet arguments that EKS has set. Argument: the limit.
set -o errexit -o nounset -o pipefail

limit=$1
arguments=${KUBELET_EXTRA_ARGS:-}
mkdir -p /run/tenon
case " ${arguments} " in
  *' --max-pods='*) ;;
  *) arguments+=" --max-pods=${limit}" ;;
esac
escaped=$(printf '%s' "${arguments}" | sed 's/[\\"$`]/\\&/g')
printf 'KUBELET_EXTRA_ARGS="%s"\n' "${escaped}" > /run/tenon/kubelet-extra.env.new
mv /run/tenon/kubelet-extra.env.new /run/tenon/kubelet-extra.env
