#!/bin/sh
# Writes go.mod, go.sum and programs.go of one program, at a version of its module:
#   e2e/components/pin.sh crictl sigs.k8s.io/cri-tools v1.36.0 cmd/crictl
set -eu
name=$1 module=$2 version=$3 package=$4
cd "$(dirname "$0")"
own=$(cd / && go mod download -json "$module@$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
mkdir -p "$name"
cd "$name"
{
    printf 'module tenon.dev/lab/%s\n\n' "$name"
    # These settings are not inherited from a required module.
    grep -E '^(go|godebug) ' "$own"
    printf '\nrequire %s %s\n\n' "$module" "$version"
    grep -E '^replace .* => [^.]' "$own" || true
} >go.mod
cat >programs.go <<END
//go:build programs

// The program that the lab builds. Never built as a package: it only names what go.mod must hold.
package programs

import _ "$module/$package"
END
go mod tidy
