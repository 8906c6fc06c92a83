package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// programs are what is in the image: the manager, which it runs, and what pods that the manager creates run: the start
// program of Ats, and the agent of the etcd operator.
var programs = []string{"fairlead", "fairlead-at-start", "fairlead-etcd-agent"}

const (
	// nonRoot is the user that the distroless images call nonroot.
	nonRoot = "65532:65532"
	// revisionKey is the label, and in an archive the annotation, that names the commit an image is built from.
	revisionKey = "org.opencontainers.image.revision"
	// runPackage has the variables that the linker sets.
	runPackage = "example.com/fairlead/internal/kit/run"
)

// writeImage makes the manager's image for all platforms: static programs
// and nothing else, no shell, not root. And an SBOM per platform.
func (r *release) writeImage() error {
	image, bills, err := r.buildImage()
	if err != nil {
		return err
	}
	for name, bill := range bills {
		if err := r.write(name, bill); err != nil {
			return err
		}
	}
	return r.writeArchive(r.imageArchive(), r.image, image)
}

func (r *release) imageArchive() string {
	return path.Join(imagesFolder, "fairlead-v"+r.version+".tar")
}

// buildImage is the manager's image, of which the release then knows the digest, and the SBOMs by their files.
func (r *release) buildImage() (v1.ImageIndex, map[string][]byte, error) {
	temp, err := os.MkdirTemp("", "fairlead-image-")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = os.RemoveAll(temp) }()

	bills := map[string][]byte{}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, name := range r.platforms {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return nil, nil, err
		}
		inside, built, err := r.buildPrograms(platform, filepath.Join(temp, strings.ReplaceAll(name, "/", "-")))
		if err != nil {
			return nil, nil, err
		}
		image, err := imageOf(inside, v1.ConfigFile{
			OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant,
			Created: v1.Time{Time: r.date},
			Config: v1.Config{
				User: nonRoot, WorkingDir: "/", Entrypoint: []string{"/" + programs[0]},
				Env:    []string{"PATH=/"},
				Labels: r.imageLabels("Fairlead", "Kubernetes operators that keep a workload running true"),
			},
		})
		if err != nil {
			return nil, nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
		if bills[sbomFile(r.version, platform)], err = r.sbom(platform, built...); err != nil {
			return nil, nil, err
		}
	}
	digest, err := index.Digest()
	r.digest = digest.String()
	return index, bills, err
}

// buildPrograms builds what is in the image into a folder; built is where each of them is.
func (r *release) buildPrograms(platform *v1.Platform, folder string) (inside files, built []string, err error) {
	inside = files{}
	for _, program := range r.programs() {
		to := filepath.Join(folder, program)
		if err := r.compile(platform, program, to); err != nil {
			return nil, nil, err
		}
		content, err := os.ReadFile(to)
		if err != nil {
			return nil, nil, err
		}
		inside[program], built = file{mode: 0o755, content: content}, append(built, to)
	}
	return inside, built, nil
}

// programs are those of the image that the version has: the first ones had the manager only.
func (r *release) programs() []string {
	return slices.DeleteFunc(slices.Clone(programs), func(program string) bool {
		_, err := os.Stat(filepath.Join(r.tree, "cmd", program))
		return errors.Is(err, os.ErrNotExist)
	})
}

// imageByDigest is the manager's image as bundles name it: what is installed is then what was built, and mirrors can hold
// it.
func (r *release) imageByDigest() (string, error) {
	if strings.Contains(r.image, "@") {
		return r.image, nil
	}
	if r.digest == "" {
		if _, _, err := r.buildImage(); err != nil {
			return "", err
		}
	}
	repository, _ := splitImage(r.image)
	return repository + "@" + r.digest, nil
}

// compile builds a program: if it is to be published, the same bytes wherever it
// is done with the same version of Go.
func (r *release) compile(platform *v1.Platform, program, to string) error {
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
		revisionKey:                            r.commit,
		"org.opencontainers.image.created":     r.date.Format("2006-01-02T15:04:05Z"),
	}
}
