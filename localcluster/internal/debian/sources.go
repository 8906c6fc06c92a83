package debian

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MirrorVariable names the environment variable with the address of a mirror
// of Debian's archive, for machines whose own sources name none, such as
// Ubuntu's.
const MirrorVariable = "DEBIAN_MIRROR"

// system is a machine, by its root folder.
type system string

func (s system) read(file string) string {
	data, _ := os.ReadFile(filepath.Join(string(s), file)) // what is not there says nothing
	return string(data)
}

// release is the one that the machine itself runs, if that is Debian.
func (s system) release() Release {
	values := map[string]string{}
	for line := range strings.Lines(s.read("/etc/os-release")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[name] = strings.Trim(value, `"`)
	}
	if values["ID"] != "debian" {
		return ""
	}
	return Release(values["VERSION_CODENAME"])
}

// sourceLine is a sources.list line for a release, from the mirror that the
// machine itself uses for Debian.
func (s system) sourceLine(release Release) (string, error) {
	uri := os.Getenv(MirrorVariable)
	if uri == "" {
		uri = s.mirror()
	}
	if uri == "" {
		return "", fmt.Errorf("apt's sources on this machine name no archive of Debian's: set %s to the address of a mirror "+
			"(https://www.debian.org/mirror/list has them)", MirrorVariable)
	}
	const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	if _, err := os.Stat(filepath.Join(string(s), keyring)); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is missing, which Debian's packages are checked with: apt-get install debian-archive-keyring", keyring)
	}
	return fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, uri, release), nil
}

// mirror finds Debian's main archive in the machine's sources.
func (s system) mirror() string {
	files, _ := filepath.Glob(filepath.Join(string(s), "/etc/apt/sources.list.d/*"))
	for _, file := range append([]string{filepath.Join(string(s), "/etc/apt/sources.list")}, files...) {
		data, err := os.ReadFile(file)
		if err != nil || !slices.Contains([]string{".list", ".sources"}, filepath.Ext(file)) {
			continue // apt takes no others either
		}
		for _, source := range parse(string(data)) {
			for _, uri := range source.uris {
				if s.isDebian(source, uri) {
					return uri
				}
			}
		}
	}
	return ""
}

// isDebian tells the main archive by its folder, which nearly every mirror
// names so, or else by the keys. Security updates are elsewhere, and third
// parties have no component "main" there, or keys of their own.
func (s system) isDebian(source source, uri string) bool {
	signed := strings.Contains(source.signedBy, "debian-archive")
	if !slices.Contains(source.components, "main") || source.signedBy != "" && !signed {
		return false
	}
	place := uri
	if list, ok := strings.CutPrefix(uri, "mirror+file:"); ok {
		// A list of mirrors, the best one first, each with what apt may take from it.
		place = ""
		for line := range strings.Lines(s.read(strings.TrimPrefix(list, "//"))) {
			if fields := strings.Fields(line); len(fields) > 0 && !strings.HasPrefix(fields[0], "#") {
				place = fields[0]
				break
			}
		}
	}
	return strings.HasSuffix(strings.TrimSuffix(place, "/"), "/debian") || signed && !strings.Contains(place, "security")
}

// source is where apt gets packages from.
type source struct {
	uris, components []string
	signedBy         string
}

// parse reads a sources file of either format: that of one line each, or
// deb822 with its fields, in blocks.
func parse(file string) []source {
	var sources []source
	for block := range strings.SplitSeq(file, "\n\n") {
		var fields source
		types, enabled := []string{}, true
		for line := range strings.Lines(block) {
			words := strings.Fields(line)
			if len(words) < 2 || strings.HasPrefix(words[0], "#") {
				continue
			}
			switch strings.ToLower(words[0]) {
			case "deb":
				sources = append(sources, oneLine(line))
			case "types:":
				types = words[1:]
			case "enabled:":
				enabled = words[1] != "no"
			case "uris:":
				fields.uris = words[1:]
			case "components:":
				fields.components = words[1:]
			case "signed-by:":
				fields.signedBy = words[1]
			}
		}
		if enabled && slices.Contains(types, "deb") {
			sources = append(sources, fields)
		}
	}
	return sources
}

// oneLine reads `deb [option=value...] uri suite component...`.
func oneLine(line string) source {
	var result source
	if before, after, ok := strings.Cut(line, "["); ok {
		options, rest, _ := strings.Cut(after, "]")
		for option := range strings.FieldsSeq(options) {
			if key, found := strings.CutPrefix(option, "signed-by="); found {
				result.signedBy = key
			}
		}
		line = before + rest
	}
	if fields := strings.Fields(line); len(fields) > 3 {
		result.uris, result.components = fields[1:2], fields[3:]
	}
	return result
}
