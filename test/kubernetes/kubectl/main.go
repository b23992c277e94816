// Command kubectl is kubectl, of the version that go.mod names: its module has no program.
package main

import (
	"os"

	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	if cmd.NewDefaultKubectlCommand().Execute() != nil {
		os.Exit(1)
	}
}
