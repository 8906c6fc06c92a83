package debian

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sourceLine is a sources.list line for another release from the mirror that
// the machine itself uses for Debian.
func sourceLine(release Release) (string, error) {
	files, _ := filepath.Glob("/etc/apt/sources.list.d/*")
	for _, file := range append([]string{"/etc/apt/sources.list"}, files...) {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if uri := mirror(string(data)); uri != "" {
			return fmt.Sprintf("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", uri, release), nil
		}
	}
	return "", fmt.Errorf("no source of Debian's packages in /etc/apt/sources.list or /etc/apt/sources.list.d")
}

// mirror finds Debian's main archive in a sources file of either format: that
// of one line each, or deb822 with its fields. Security and update suites are
// elsewhere or not for other releases, and third parties have other keys.
func mirror(sources string) string {
	for block := range strings.SplitSeq(sources, "\n\n") {
		uri, signed := "", ""
		for line := range strings.Lines(block) {
			fields := strings.Fields(line)
			switch {
			case len(fields) < 2 || strings.HasPrefix(fields[0], "#"):
			case fields[0] == "deb":
				if uri := oneLine(line); isDebian(uri) {
					return uri
				}
			case strings.EqualFold(fields[0], "URIs:"):
				uri = fields[1]
			case strings.EqualFold(fields[0], "Signed-By:"):
				signed = fields[1]
			}
		}
		if isDebian(uri) && (signed == "" || strings.Contains(signed, "debian-archive")) {
			return uri
		}
	}
	return ""
}

// oneLine takes the address out of `deb [options] uri suite component...`.
func oneLine(line string) string {
	if before, after, ok := strings.Cut(line, "["); ok {
		_, after, _ = strings.Cut(after, "]")
		line = before + after
	}
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return ""
	}
	return fields[1]
}

// isDebian tells the main archive by its folder, which every mirror names so.
func isDebian(uri string) bool {
	return strings.HasSuffix(strings.TrimSuffix(uri, "/"), "/debian")
}
