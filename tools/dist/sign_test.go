package main

import (
	"bytes"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// What was signed is found to be so, and nothing else is: another file, another image, another's key.
func TestSign(t *testing.T) {
	cosign, err := filepath.Abs(filepath.Join(repo, "bin", "cosign"))
	if err != nil {
		t.Fatal(err)
	}
	keys := t.TempDir()
	t.Setenv("COSIGN_PASSWORD", "of the test")
	for _, name := range []string{"mine", "theirs"} {
		generate := exec.CommandContext(t.Context(), cosign, "generate-key-pair", "--output-key-prefix", name)
		generate.Dir = keys
		if said, err := generate.CombinedOutput(); err != nil {
			t.Fatalf("%v, make build-cosign builds it: %s", err, said)
		}
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	o := options{
		repo: repo, out: t.TempDir(), version: current, base: strings.TrimPrefix(server.URL, "http://") + "/you/fairlead", operator: all,
		signer: signer{cosign: cosign, key: filepath.Join(keys, "mine.key")},
	}
	r, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	write := func(program string) {
		image, err := imageOf(files{programs[0]: {mode: 0o755, content: []byte(program)}}, v1.ConfigFile{OS: "linux", Architecture: "amd64"})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.writeArchive("images/catalog-v"+current+".tar", o.base+"-catalog:v"+current, image); err != nil {
			t.Fatal(err)
		}
	}
	write("a program")
	_, index := imageFor(t, "amd64", "arm64")
	if err := r.writeArchive(r.imageArchive(), r.image, index); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		sbomFile(current, &v1.Platform{OS: "linux", Architecture: "amd64"}): `{"spdxVersion": "SPDX-2.3"}`,
		sbomFile(current, &v1.Platform{OS: "linux", Architecture: "arm64"}): `{"spdxVersion": "SPDX-2.3"}`,
		vexFile: `{"@context": "https://openvex.dev/ns/v0.2.0"}`,
	} {
		if err := r.write(file, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []func() error{
		r.writeProvenance, r.writeChecksums, func() error { return o.push("*.tar") }, o.sign,
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	archive := filepath.Join(o.out, "images", "catalog-v"+current+".tar")
	signed, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}

	check := func(wrong string, key string) {
		t.Helper()
		o.signer.key = filepath.Join(keys, key)
		switch _, err := o.verifySignatures(); {
		case wrong == "" && err != nil:
			t.Error(err)
		case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%v; it does not say %q", err, wrong)
		}
	}
	check("", "mine.pub")
	signs(t, o, map[string]int{"slsaprovenance1": 2, "spdxjson": 2, "openvex": 1})
	check("cosign verify-blob", "theirs.pub")
	write("another program")
	check("there, and not signed", "mine.pub")
	// Whoever can sign the files has not signed the image that they have.
	o.signer.key = filepath.Join(keys, "mine.key")
	if err := r.writeChecksums(); err != nil {
		t.Fatal(err)
	}
	sums := filepath.Join(o.out, checksums)
	if err := o.signer.run("sign-blob", "--bundle", sums+signature, sums); err != nil {
		t.Fatal(err)
	}
	check("cosign verify:", "mine.pub")
	// It is in no checksums, and signed all the same.
	if err := r.write(vexFile, []byte(`{"statements": []}`)); err != nil {
		t.Fatal(err)
	}
	check(vexFile, "mine.pub")
	if again, err := os.ReadFile(archive); err != nil || bytes.Equal(again, signed) {
		t.Errorf("the archives do not differ: %v", err)
	}
}

// signs counts what is signed about the images in the registry, by cosign alone.
func signs(t *testing.T, o options, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	err := o.eachImage("*.tar", func(tag name.Tag, image remote.Taggable, digest v1.Hash) error {
		digests := []v1.Hash{digest}
		if index, ok := image.(v1.ImageIndex); ok {
			manifest, err := index.IndexManifest()
			if err != nil {
				return err
			}
			for _, one := range manifest.Manifests {
				digests = append(digests, one.Digest)
			}
		}
		for _, digest := range digests {
			for about := range want {
				if o.signer.run("verify-attestation", "--type", about, tag.Context().Digest(digest.String()).String()) == nil {
					got[about]++
				}
			}
		}
		return nil
	})
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("signed about the images: %v, want %v: %v", got, want, err)
	}
}

// What is made anew is compared file by file.
func TestSameSums(t *testing.T) {
	if err := sameSums("1  a\n2  b\n", "2  b\n1  a\n"); err != nil {
		t.Error(err)
	}
	err := sameSums("1  a\n2  b\n", "1  a\n3  b\n")
	if err == nil || err.Error() != "signed, and not there: 2  b\nthere, and not signed: 3  b" {
		t.Error(err)
	}
}

// Without a key, it has to be said whose token signed.
func TestWhoSigned(t *testing.T) {
	if err := (signer{}).run("verify"); err == nil || !strings.Contains(err.Error(), "-identity") {
		t.Error(err)
	}
}
