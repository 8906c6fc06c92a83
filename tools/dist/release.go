package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// checksums lists every other file of the release, for sha256sum --check.
const checksums = "SHA256SUMS"

// writeAll makes the whole release.
func (r *release) writeAll() error {
	// What an earlier one left would be in the checksums.
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	for _, step := range []func() error{
		r.writeYAML, r.writeCharts, r.writeImage, r.writeBundles, r.writeCatalog, r.writePlugins, r.writeChangelog,
		r.writeProvenance, r.writeChecksums,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// writeChangelog is the version's section of CHANGELOG.md, and the subjects of
// the commits since the version before.
func (r *release) writeChangelog() error {
	text, err := os.ReadFile(filepath.Join(r.repo, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	section, err := sectionOf(string(text), r.version)
	if err != nil {
		return err
	}
	revisions := strings.TrimSuffix(r.commit, "-dirty")
	if len(r.past) > 0 {
		revisions = r.past[len(r.past)-1].commit + ".." + revisions
	}
	commits, err := r.git("log", "--no-merges", "--format=- %s", revisions)
	if err != nil {
		return errors.New("the changelog takes the repository's history, which is not here")
	}
	return r.write("CHANGELOG.md", []byte(section+"\n### Commits\n"+commits))
}

// sectionOf is what CHANGELOG.md says of a version.
func sectionOf(changelog, version string) (string, error) {
	_, after, found := strings.Cut(changelog, "\n## "+version+"\n")
	if !found {
		return "", fmt.Errorf("CHANGELOG.md says nothing of version %s: write what changes for users", version)
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return "# " + version + "\n" + strings.TrimRight(text, "\n") + "\n", nil
}

func (r *release) writeChecksums() error {
	list, err := sums(r.out)
	if err != nil {
		return err
	}
	return r.write(checksums, []byte(list))
}

// sums are the checksums of the files in a folder, a line each.
func sums(folder string) (string, error) {
	all, err := readFiles(folder)
	if err != nil {
		return "", err
	}
	for _, other := range []string{checksums, checksums + signature, vexFile, vexFile + signature} {
		delete(all, other)
	}
	var list strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(all[name].content), name)
	}
	return list.String(), nil
}
