// Command drawn prints those of its arguments that this landing runs: targets of the Makefile, each with git's patterns
// of what it is always run for once it has changed, as in localcluster-test:localcluster. See package draw.
package main

import (
	"fmt"
	"os"
	"strings"

	"example.com/fairlead/internal/testkit/draw"
)

func main() {
	for _, arg := range os.Args[1:] {
		target, paths, _ := strings.Cut(arg, ":")
		if draw.Target(target, strings.FieldsFunc(paths, func(r rune) bool { return r == ',' })...) {
			fmt.Println(target)
		} else {
			fmt.Fprintf(os.Stderr, "drawn for another landing: make %s\n", target)
		}
	}
}
