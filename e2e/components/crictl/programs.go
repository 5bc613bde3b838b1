//go:build programs

// The program that the lab builds. Never built as a package: it only names what go.mod must hold.
package programs

import _ "sigs.k8s.io/cri-tools/cmd/crictl"
