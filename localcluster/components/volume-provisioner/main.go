// Command volume-provisioner makes the folders behind PersistentVolumes.
package main

import (
	"os"

	"k8s.io/component-base/cli"

	"example.com/fairlead/localcluster/internal/volumes"
)

func main() {
	os.Exit(cli.Run(volumes.Command()))
}
