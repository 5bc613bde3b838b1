//go:build programs

// The program that the lab runs. Never built as a package: it only names what go.mod must hold.
package programs

import _ "github.com/awslabs/amazon-eks-ami/nodeadm/cmd/nodeadm"
