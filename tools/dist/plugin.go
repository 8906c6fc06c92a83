package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"
)

// plugin is the plugin of kubectl.
const plugin = "kubectl-fairlead"

const (
	// pluginsFolder is where its archives and manifests go, in the output folder.
	pluginsFolder = "plugins"
	// pluginPlatforms are what it is for unless others are named.
	pluginPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"
)

// pluginNames are the plugin's names, and what it is by each. Krew installs a plugin under one name, so there is a
// manifest for each name, with the same archives.
var pluginNames = map[string]string{
	"fairlead": "Look at, and work with, what Fairlead's operators run",
	"at":       "Run a command in the cluster at a time, as at(1) does",
}

const pluginDescription = `The plugin of Fairlead's operators: status, bug reports, and verbs for
EtcdClusters, Memcacheds, WebServers and Ats.
One program has two names, each a plugin for Krew: kubectl fairlead, and
kubectl at, which is the same as kubectl fairlead at.
`

// writePlugins makes the plugin's archives, and its manifests for Krew. A version that is older than the plugin has none.
func (r *release) writePlugins() error {
	if _, err := os.Stat(filepath.Join(r.tree, "cmd", plugin)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	about, err := r.texts(all)
	if err != nil {
		return err
	}
	if r.pluginURL == "" {
		r.pluginURL = about.Repository + "/releases/v" + r.version
	}
	var platforms []any
	for _, name := range r.pluginPlatforms {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return err
		}
		made, err := r.writePlugin(platform)
		if err != nil {
			return err
		}
		platforms = append(platforms, made)
	}
	for name, summary := range pluginNames {
		manifest, err := yaml.Marshal(map[string]any{
			"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
			"kind":       "Plugin",
			"metadata":   map[string]any{"name": name},
			"spec": map[string]any{
				"version":          "v" + r.version,
				"homepage":         about.Repository,
				"shortDescription": summary,
				"description":      pluginDescription,
				"platforms":        platforms,
			},
		})
		if err != nil {
			return err
		}
		if err := r.write(path.Join(pluginsFolder, name+".yaml"), manifest); err != nil {
			return err
		}
	}
	return nil
}

// writePlugin makes the archive for a platform, and returns what a manifest has about it.
func (r *release) writePlugin(platform *v1.Platform) (map[string]any, error) {
	temp, err := os.MkdirTemp("", "fairlead-plugin-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	program := plugin
	if platform.OS == "windows" {
		program += ".exe"
	}
	if err := r.compile(platform, plugin, filepath.Join(temp, program)); err != nil {
		return nil, err
	}
	content := files{}
	for name, from := range map[string]string{program: temp, "LICENSE": r.tree} {
		read, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return nil, err
		}
		content[name] = file{mode: 0o644, content: read}
	}
	content[program] = file{mode: 0o755, content: content[program].content}
	packed, err := content.tgz()
	if err != nil {
		return nil, err
	}
	archive := fmt.Sprintf("%s-v%s-%s-%s.tar.gz", plugin, r.version, platform.OS, platform.Architecture)
	fmt.Printf("%s, %.1f MB, in %s\n", archive, float64(len(packed))/1e6, filepath.Join(r.out, pluginsFolder))
	return map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"os": platform.OS, "arch": platform.Architecture}},
		"uri":      strings.TrimSuffix(r.pluginURL, "/") + "/" + archive,
		"sha256":   digestOf(packed),
		"bin":      program,
	}, r.write(path.Join(pluginsFolder, archive), packed)
}
