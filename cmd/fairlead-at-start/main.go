// Command fairlead-at-start waits in a pod of an At for its instant, and then becomes the command:
//
//	fairlead-at-start install FILE
//	FILE --at INSTANT [--message FILE] -- COMMAND [ARG...]
package main

import (
	"os"

	"example.com/fairlead/operators/at/starter"
)

func main() { os.Exit(starter.Main(os.Args[1:])) }
