package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Krew finds nothing wrong with the manifests, and installs the archive of every platform from where they say that it
// is. What is made again is the same bytes.
func TestPlugins(t *testing.T) {
	first := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Join(first, pluginsFolder))))
	defer server.Close()
	writeSmallPlugins(t, first, server.URL)
	made, err := readFiles(first)
	if err != nil {
		t.Fatal(err)
	}
	second := t.TempDir()
	writeSmallPlugins(t, second, server.URL)
	again, err := readFiles(second)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(pluginNames) + strings.Count(pluginPlatforms, ",") + 1; len(made) != want || len(again) != want {
		t.Errorf("%d and %d files, want %d", len(made), len(again), want)
	}
	for name, file := range again {
		if !bytes.Equal(made[name].content, file.content) {
			t.Errorf("%s differs when it is made again", name)
		}
	}

	validate := krewValidator(t)
	for name := range pluginNames {
		if said, err := validate(filepath.Join(first, pluginsFolder, name+".yaml")); err != nil {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
	archive := filepath.Join(first, pluginsFolder, plugin+"-v"+current+"-windows-arm64.tar.gz")
	if err := os.WriteFile(archive, made["plugins/at.yaml"].content, 0o644); err != nil {
		t.Fatal(err)
	}
	if said, err := validate(filepath.Join(first, pluginsFolder, "at.yaml")); err == nil || !strings.Contains(said, "checksum does not match") {
		t.Errorf("an archive that is not the manifest's: %v\n%s", err, said)
	}
}

// writeSmallPlugins makes archives and manifests with a program in the plugin's place that is compiled at once.
func writeSmallPlugins(t *testing.T, to, url string) {
	t.Helper()
	tree := t.TempDir()
	license, err := os.ReadFile(filepath.Join(repo, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"go.mod": "module example.com/fairlead\n", "cmd/" + plugin + "/main.go": "package main\n\nfunc main() {}\n", "LICENSE": string(license),
	} {
		if err := (&release{options: options{out: tree}}).write(name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	r := &release{tree: tree, options: options{
		repo: repo, out: to, version: current, pluginURL: url, pluginPlatforms: strings.Split(pluginPlatforms, ","),
	}}
	if err := r.writePlugins(); err != nil {
		t.Fatal(err)
	}
}

// krewValidator is Krew's own validation, which the index of Krew's plugins uses; it returns what it prints.
func krewValidator(t *testing.T) func(manifest string) (string, error) {
	t.Helper()
	tool := func(name string) string {
		found, err := command("go", "-C", "../krew", "tool", "-n", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(found))
	}
	folder := t.TempDir()
	// It runs `kubectl krew install`, and all else that kubectl would do is to find Krew.
	kubectl := "#!/bin/sh\nshift\nKREW_NO_UPGRADE_CHECK=1 exec " + tool("krew") + " \"$@\"\n"
	if err := os.WriteFile(filepath.Join(folder, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	program := tool("validate-krew-manifest")
	return func(manifest string) (string, error) {
		cmd := command(program, "-manifest", manifest)
		cmd.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
}
