// Command kindload loads an archive as `kind load image-archive` does, by kind's
// own code, into a node that is not kind's: its commands are run by a program
// that is given, as kind runs them by `docker exec`.
//
//	kindload ARCHIVE nsenter --all --target PID
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	"sigs.k8s.io/kind/pkg/exec"
)

func main() {
	if err := load(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "kindload: %v\n", err)
		os.Exit(1)
	}
}

func load(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: kindload ARCHIVE PROGRAM [ARGUMENT...]")
	}
	archive, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer func() { _ = archive.Close() }()
	err = nodeutils.LoadImageArchive(node{run: args[1:]}, archive)
	if failed := exec.RunErrorForError(err); failed != nil {
		err = fmt.Errorf("%w\n%s", err, failed.Output)
	}
	return err
}

// node is a node of which kind's code sees no more than its commands.
type node struct {
	nodes.Node
	run []string
}

func (n node) Command(program string, args ...string) exec.Cmd {
	return n.CommandContext(context.Background(), program, args...)
}

func (n node) CommandContext(ctx context.Context, program string, args ...string) exec.Cmd {
	return exec.CommandContext(ctx, n.run[0], slices.Concat(n.run[1:], []string{program}, args)...)
}
