//go:build programs

// The program that the lab builds. Never built as a package: it only names what go.mod must hold.
package programs

import _ "k8s.io/cloud-provider-aws/cmd/ecr-credential-provider"
