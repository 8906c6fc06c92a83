package images

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// nobody is the user that images made from a program run as: the one that the
// distroless images call nonroot.
const nobody = "65532:65532"

// FromFiles is an image of files of the host, the first of which is run. Each
// is given as FILE, which goes to the root folder, or as PATH=FILE.
func FromFiles(name string, files []string) (Image, error) {
	image := Image{
		Names:  []string{name},
		Config: v1.Config{User: nobody, WorkingDir: "/", Env: []string{"PATH=/:/bin:/usr/bin"}},
		Files:  Files{},
	}
	for _, file := range files {
		inside, source, ok := strings.Cut(file, "=")
		if !ok {
			inside, source = filepath.Base(file), file
		}
		inside = strings.TrimPrefix(path.Clean("/"+inside), "/")
		if inside == "" {
			return Image{}, fmt.Errorf("%q names no file in the image", file)
		}
		if len(image.Config.Entrypoint) == 0 {
			image.Config.Entrypoint = []string{"/" + inside}
		}
		image.Files[inside] = File{Mode: 0o755, Source: source}
	}
	if len(image.Files) == 0 {
		return Image{}, fmt.Errorf("image %s: no files", name)
	}
	return image, nil
}
