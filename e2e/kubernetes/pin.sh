#!/bin/sh
# Writes go.mod, go.sum and programs.go of one Kubernetes version, from the module's own go.mod:
#   e2e/kubernetes/pin.sh 1.34.10
# Kubernetes names its parts by paths inside its repository; as modules they have versions.
set -eu
version=$1 minor=${1%.*}
cd "$(dirname "$0")"
own=$(cd / && go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
mkdir -p "$minor"
cd "$minor"
{
    printf 'module tenon.dev/lab/kubernetes\n\n'
    # The setting is not inherited from a required module.
    grep -E '^(go|godebug) ' "$own"
    printf '\nrequire k8s.io/kubernetes v%s\n\n' "$version"
    sed -n 's|^[[:space:]]*\(replace \)\{0,1\}\([^ ]*\) => \./staging/.*|replace \2 => \2 v0.'"${version#1.}"'|p' "$own"
} >go.mod
cat >programs.go <<'END'
//go:build programs

// The programs that the lab runs. Never built as a package: it only names what go.mod must hold.
package programs

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubeadm"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
END
go mod tidy
