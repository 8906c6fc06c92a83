// Command cp copies files, as OLM's pods do it out of their image: cp [-Rv]
// FROM TO. It is there because the image has no other program to do it.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	var files []string
	for _, argument := range os.Args[1:] {
		if !strings.HasPrefix(argument, "-") {
			files = append(files, argument)
		}
	}
	if len(files) != 2 {
		fmt.Fprintln(os.Stderr, "usage: cp [-Rv] FROM TO")
		os.Exit(2)
	}
	if err := copyFile(files[0], files[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}
