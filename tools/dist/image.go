package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	program = "fairlead"
	// nonRoot is the user that the distroless images call nonroot.
	nonRoot = "65532:65532"
	// runPackage has the variables that the linker sets.
	runPackage = "example.com/fairlead/internal/kit/run"
)

// writeImage makes the manager's image for all platforms: one static program
// and nothing else, no shell, not root. And an SBOM per platform.
func (r *release) writeImage() error {
	temp, err := os.MkdirTemp("", "fairlead-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()

	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, name := range r.platforms {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return err
		}
		file := filepath.Join(temp, strings.ReplaceAll(name, "/", "-"))
		if err := r.compile(platform, file); err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		image, err := imageOf(files{program: {mode: 0o755, content: content}}, v1.ConfigFile{
			OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
			Created: v1.Time{Time: r.date},
			Config: v1.Config{
				User: nonRoot, WorkingDir: "/", Entrypoint: []string{"/" + program},
				Env:    []string{"PATH=/"},
				Labels: r.imageLabels("Fairlead", "Kubernetes operators that keep a workload running true"),
			},
		})
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})

		bill, err := r.sbom(file, platform)
		if err != nil {
			return err
		}
		if err := r.write(sbomFile(r.version, platform), bill); err != nil {
			return err
		}
	}
	return r.writeArchive("fairlead-v"+r.version+".tar", r.image, index)
}

// compile builds the program, the same bytes wherever it is done with the same
// version of Go.
func (r *release) compile(platform *v1.Platform, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	flags := fmt.Sprintf("-s -w -X %s.Version=%s -X %s.Commit=%s", runPackage, r.version, runPackage, r.commit)
	cmd := command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", to, "./cmd/"+program)
	cmd.Dir = r.tree
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off",
		"GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOAMD64=v1", "GOARM64=v8.0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w\n%s", platform, err, out)
	}
	return nil
}

// imageLabels say what an image is and where it is from.
func (r *release) imageLabels(title, description string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":       title,
		"org.opencontainers.image.description": description,
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.revision":    r.commit,
		"org.opencontainers.image.created":     r.date.Format("2006-01-02T15:04:05Z"),
	}
}
