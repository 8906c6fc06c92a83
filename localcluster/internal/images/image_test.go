package images

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestFullName(t *testing.T) {
	for short, want := range map[string]string{
		"busybox":               "docker.io/library/busybox:latest",
		"fairlead:dev":          "docker.io/library/fairlead:dev",
		"localcluster/pause:1":  "docker.io/localcluster/pause:1",
		"registry.test/x/y:1.0": "registry.test/x/y:1.0",
	} {
		if got, err := FullName(short); err != nil || got != want {
			t.Errorf("FullName(%s) = %q, %v, want %q", short, got, err, want)
		}
	}
	if _, err := FullName("Not A Name"); err == nil {
		t.Error("FullName() of nonsense: no error")
	}
}

func TestLayer(t *testing.T) {
	files := Files{
		"usr/bin/tool": {Mode: 0o755, Data: []byte("tool")},
		"bin/sh":       {Target: "busybox"},
		"tmp":          {Mode: os.ModeDir | os.ModeSticky | 0o777},
	}
	first, err := files.layer()
	if err != nil {
		t.Fatal(err)
	}
	second, err := files.layer()
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same files give different layers (%v)", err)
	}
	want := []string{"bin/", "bin/sh", "tmp/", "usr/", "usr/bin/", "usr/bin/tool"}
	if got := entries(t, first); !slices.Equal(got, want) {
		t.Errorf("layer has %q, want %q", got, want)
	}
}

func TestArchive(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "fairlead")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	image, err := FromFiles("fairlead:dev", []string{program, "etc/motd=" + program})
	if err != nil {
		t.Fatal(err)
	}
	archive, err := image.Archive()
	if err != nil {
		t.Fatal(err)
	}
	again, err := image.Archive()
	if err != nil || again.Digest != archive.Digest {
		t.Errorf("the same image has the digests %s and %s (%v)", archive.Digest, again.Digest, err)
	}

	var index v1.IndexManifest
	if err := json.Unmarshal(file(t, archive.Data, "index.json"), &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Manifests) != 1 || index.Manifests[0].Annotations["io.containerd.image.name"] != "docker.io/library/fairlead:dev" {
		t.Errorf("index = %+v, want one entry with containerd's name", index)
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(file(t, archive.Data, blob(archive.Digest))))
	if err != nil {
		t.Fatal(err)
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(file(t, archive.Data, blob(manifest.Config.Digest))))
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Config; !slices.Equal(got.Entrypoint, []string{"/fairlead"}) || got.User != nobody {
		t.Errorf("config = %+v, want to run /fairlead as %s", got, nobody)
	}
	layer := file(t, archive.Data, blob(manifest.Layers[0].Digest))
	if got, want := entries(t, layer), []string{"etc/", "etc/motd", "fairlead"}; !slices.Equal(got, want) {
		t.Errorf("layer has %q, want %q", got, want)
	}
}

func TestFromFilesRefuses(t *testing.T) {
	dynamic := filepath.Join(t.TempDir(), "dynamic")
	if err := os.WriteFile(dynamic, elfWithLoader("/lib64/ld-linux-x86-64.so.2"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]string{
		"no file":              nil,
		"no path in the image": {"/=x"},
		"a file that is gone":  {"/nowhere/x"},
		"a dynamic program":    {dynamic},
	} {
		if _, err := FromFiles("x", files); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// elfWithLoader is the least that is an ELF file with a PT_INTERP segment.
func elfWithLoader(loader string) []byte {
	const headers = 64 + 56
	var file bytes.Buffer
	_ = binary.Write(&file, binary.LittleEndian, elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1,
	})
	_ = binary.Write(&file, binary.LittleEndian, elf.Prog64{
		Type: uint32(elf.PT_INTERP), Off: headers, Filesz: uint64(len(loader) + 1), Memsz: uint64(len(loader) + 1),
	})
	file.WriteString(loader + "\x00")
	return file.Bytes()
}

func TestAddProgram(t *testing.T) {
	root := t.TempDir()
	err := addProgram(Files{}, root, "missing")
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("addProgram() of a program that is not there: %v", err)
	}
	if _, err := locate(root, "libnone.so.1"); err == nil {
		t.Error("locate() of a library that is not there: no error")
	}
}

func TestBusyboxIn(t *testing.T) {
	for _, dir := range []string{"bin", "usr/bin"} { // of Debian 12, and of 13
		root := t.TempDir()
		want := filepath.Join(root, dir, "busybox")
		for _, folder := range []string{filepath.Dir(want), filepath.Join(root, "usr/share/doc/busybox")} {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(want, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if got, err := busyboxIn(root); got != want || err != nil {
			t.Errorf("busyboxIn() = %q, %v, want %q", got, err, want)
		}
	}
	if got, err := busyboxIn(t.TempDir()); err == nil {
		t.Errorf("busyboxIn() of an empty folder = %q, want an error", got)
	}
}

func TestNames(t *testing.T) {
	if got, want := Names(false), []string{"busybox", "coredns", "pause"}; !slices.Equal(got, want) {
		t.Errorf("the basic images are %q, want %q", got, want)
	}
	all := Names(true)
	if len(all) != len(recipes)+len(EtcdVersions) {
		t.Errorf("Names(true) = %q, lacks some of the list", all)
	}
	for _, name := range all {
		if _, err := find(name); err != nil {
			t.Errorf("an image of the list cannot be made: %v", err)
		}
	}
	if _, err := find("etcd"); err == nil || !strings.Contains(err.Error(), EtcdImage("v3.6.16")) {
		t.Errorf("an image that cannot be made: %v, want what can", err)
	}
}

func entries(t *testing.T, archive []byte) (names []string) {
	t.Helper()
	for in := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

func file(t *testing.T, archive []byte, name string) []byte {
	t.Helper()
	for in := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := in.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if header.Name == name {
			data, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
}

// An archive that is loaded under another name is the same image.
func TestFromArchive(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "image.tar")
	made, err := Image{Names: []string{"one:1"}, Files: Files{"program": {Mode: 0o755, Data: []byte("program")}}}.Archive()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, made.Data, 0o644); err != nil {
		t.Fatal(err)
	}
	renamed, err := FromArchive("two:2", file)
	if err != nil {
		t.Fatal(err)
	}
	if renamed.Digest != made.Digest || !slices.Equal(renamed.Names, []string{"docker.io/library/two:2"}) ||
		!bytes.Contains(renamed.Data, []byte("library/two:2")) || bytes.Contains(renamed.Data, []byte("library/one:1")) {
		t.Errorf("%v %s, was %s", renamed.Names, renamed.Digest, made.Digest)
	}
	if err := os.WriteFile(file, []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := FromArchive("two:2", file); err == nil {
		t.Error("a file that is no archive is taken")
	}
}
