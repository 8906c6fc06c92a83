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
	cosign := builtFile(t, "cosign")
	keys := t.TempDir()
	t.Setenv("COSIGN_PASSWORD", "of the test")
	for _, name := range []string{"mine", "theirs"} {
		generate := exec.CommandContext(t.Context(), cosign, "generate-key-pair", "--output-key-prefix", name)
		generate.Dir = keys
		if said, err := generate.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	r := signed(t, signer{cosign: cosign, key: filepath.Join(keys, "mine.key")})
	archive := filepath.Join(r.out, "images", "catalog-v"+current+".tar")
	before, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}

	check := func(wrong string, key string) {
		t.Helper()
		r.signer.key = filepath.Join(keys, key)
		r.isSigned(t, wrong)
	}
	check("", "mine.pub")
	r.signs(t, map[string]int{"slsaprovenance1": 2, "spdxjson": 2, "openvex": 1})
	check("cosign verify-blob", "theirs.pub")
	r.writeCatalogOf(t, "another program")
	check("there, and not signed", "mine.pub")
	// Whoever can sign the files has not signed the image that they have.
	r.signer.key = filepath.Join(keys, "mine.key")
	if err := r.writeChecksums(); err != nil {
		t.Fatal(err)
	}
	sums := filepath.Join(r.out, checksums)
	if err := r.signer.run("sign-blob", "--bundle", sums+signature, sums); err != nil {
		t.Fatal(err)
	}
	check("cosign verify:", "mine.pub")
	// It is in no checksums, and signed all the same.
	if err := r.write(vexFile, []byte(`{"statements": []}`)); err != nil {
		t.Fatal(err)
	}
	check(vexFile, "mine.pub")
	if again, err := os.ReadFile(archive); err != nil || bytes.Equal(again, before) {
		t.Errorf("the archives do not differ: %v", err)
	}
}

// Without a key, cosign is told nothing to sign with, so that it takes the token of a CI, and what is checked is whose token
// that was. Nothing is said to be signed otherwise.
func TestSignByToken(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	cosign := filepath.Join(t.TempDir(), "cosign")
	script := "#!/bin/sh\necho \"$@\" >>" + told + "\ntest -z \"$REFUSES\" || { echo \"$REFUSES\" >&2; exit 1; }\n"
	if err := os.WriteFile(cosign, []byte(script), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	r := signed(t, signer{cosign: cosign, identity: "the workflow", issuer: "the forge"})
	r.isSigned(t, "")
	text, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"sign-blob": " --yes", "sign": " --yes", "attest": " --yes",
		"verify-blob": " --certificate-identity the workflow --certificate-oidc-issuer the forge",
	}
	want["verify"], want["verify-attestation"] = want["verify-blob"], want["verify-blob"]
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		verb, args, _ := strings.Cut(line, " ")
		counts[verb]++
		if !strings.HasPrefix(" "+args, want[verb]+" ") || strings.Contains(args, "--key") || strings.Contains(args, "insecure") {
			t.Errorf("cosign %s", line)
		}
	}
	// The checksums and the VEX file; two images; their provenances, and the manager's VEX and two SBOMs.
	if all := map[string]int{"sign-blob": 2, "sign": 2, "attest": 5, "verify-blob": 2, "verify": 2, "verify-attestation": 5}; !maps.Equal(counts, all) {
		t.Errorf("cosign is told %v, want %v", counts, all)
	}

	for _, who := range []signer{{cosign: cosign, identity: "the workflow"}, {cosign: cosign, issuer: "the forge"}} {
		r.signer = who
		r.isSigned(t, "who has signed?")
	}
	r.signer = signer{cosign: cosign, identity: "the workflow", issuer: "the forge"}
	t.Setenv("REFUSES", "none of the expected identities matched")
	r.isSigned(t, "none of the expected identities matched")
	if err := r.sign(); err == nil || !strings.Contains(err.Error(), "cosign sign-blob") {
		t.Errorf("signed, although cosign refuses: %v", err)
	}
}

// signed is a release of two small images, which are in a registry, signed.
func signed(t *testing.T, by signer) *release {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	t.Cleanup(server.Close)
	r, err := open(options{
		repo: repo, out: t.TempDir(), version: current, base: strings.TrimPrefix(server.URL, "http://") + "/you/fairlead", operator: all, signer: by,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.writeCatalogOf(t, "a program")
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
		r.writeProvenance, r.writeChecksums, func() error { return r.push("*.tar") }, r.sign,
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *release) writeCatalogOf(t *testing.T, program string) {
	t.Helper()
	image, err := imageOf(files{programs[0]: {mode: 0o755, content: []byte(program)}}, v1.ConfigFile{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.writeArchive("images/catalog-v"+current+".tar", r.base+"-catalog:v"+current, image); err != nil {
		t.Fatal(err)
	}
}

// isSigned fails unless the check finds this wrong, or nothing.
func (r *release) isSigned(t *testing.T, wrong string) {
	t.Helper()
	switch _, err := r.verifySignatures(); {
	case wrong == "" && err != nil:
		t.Error(err)
	case wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)):
		t.Errorf("%v; it does not say %q", err, wrong)
	}
}

// builtFile is a program that make dist-test builds.
func builtFile(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(repo, "bin", name))
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		t.Fatalf("%v: make dist-test builds it", err)
	}
	return file
}

// signs counts what is signed about the images in the registry, by cosign alone.
func (r *release) signs(t *testing.T, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	err := r.eachImage("*.tar", func(tag name.Tag, image remote.Taggable, digest v1.Hash) error {
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
				if r.signer.run("verify-attestation", "--type", about, tag.Context().Digest(digest.String()).String()) == nil {
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
