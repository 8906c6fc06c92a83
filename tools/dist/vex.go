package main

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// vexFile says which known vulnerabilities are in the manager's modules and do not reach what it runs, and which do. It is
// about the day it was made on, and can be made anew for a release that is out, so it is not among the checksums.
const vexFile = "vex.json"

// writeVEX has govulncheck look for known vulnerabilities in the programs of the image, and writes what it finds as an
// OpenVEX document about that image.
func (r *release) writeVEX() error {
	about, err := r.texts(all)
	if err != nil {
		return err
	}
	image, err := r.imageByDigest()
	if err != nil {
		return err
	}
	args := []string{"-format", "openvex"}
	if r.vulnerabilities != "" {
		args = append(args, "-db", r.vulnerabilities)
	}
	for _, program := range r.programs() {
		args = append(args, "./cmd/"+program)
	}
	cmd := command(r.govulncheck, args...)
	cmd.Dir, cmd.Stderr = r.tree, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS=linux")
	found, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("govulncheck: %w", err)
	}
	repository, digest, _ := strings.Cut(image, "@")
	product := fmt.Sprintf("pkg:oci/%s@%s?repository_url=%s", path.Base(repository), url.QueryEscape(digest), repository)
	// What govulncheck leaves to be filled in.
	text := strings.NewReplacer(`"Unknown Author"`, strconv.Quote(about.Provider.Name), `"Unknown Product"`, strconv.Quote(product)).Replace(string(found))
	fmt.Printf("%s: %d known vulnerabilities reach the programs\n", filepath.Join(r.out, vexFile), strings.Count(text, `"status": "affected"`))
	return r.write(vexFile, []byte(text+"\n"))
}
