// Command fairlead runs one operator, or all of them:
//
//	fairlead [flags] at|webserver|all
//	fairlead version
package main

import (
	"os"
	_ "time/tzdata" // time zones, whatever the image has

	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators"
)

func main() {
	os.Exit(run.Main(ctrl.SetupSignalHandler(), os.Args[1:], operators.All))
}
