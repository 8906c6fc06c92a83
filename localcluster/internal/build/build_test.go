package build

import (
	"strings"
	"testing"
)

func TestStamp(t *testing.T) {
	got := stamp("v1.36.3")
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.36.3",
		"-X k8s.io/component-base/version.gitMajor=1 ",
		"-X k8s.io/component-base/version.gitMinor=36 ",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.36.3",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("stamp() = %q, lacks %q", got, want)
		}
	}
}

func TestWithoutDownloads(t *testing.T) {
	in := "go: downloading a v1\n# pkg\nfile.go:1: wrong\ngo: downloading b v2\n"
	if got, want := string(withoutDownloads([]byte(in))), "# pkg\nfile.go:1: wrong\n"; got != want {
		t.Errorf("withoutDownloads() = %q, want %q", got, want)
	}
}
