package images

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
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
	program := image.Config.Entrypoint[0]
	loader, err := loaderOf(image.Files[program[1:]].Source)
	if _, ok := image.Files[strings.TrimPrefix(loader, "/")]; err == nil && loader != "" && !ok {
		// In the pod it would fail with "no such file or directory", of itself.
		err = fmt.Errorf("image %s: %s is not static and needs %s: build it with CGO_ENABLED=0", name, program, loader)
	}
	return image, err
}

// loaderOf is the loader that a dynamic program names, or empty: for a static
// one, and for a script.
func loaderOf(file string) (string, error) {
	binary, err := elf.Open(file)
	if notELF := new(elf.FormatError); errors.As(err, &notELF) || errors.Is(err, io.EOF) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer binary.Close()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			loader, err := io.ReadAll(segment.Open())
			return strings.TrimRight(string(loader), "\x00"), err
		}
	}
	return "", nil
}
