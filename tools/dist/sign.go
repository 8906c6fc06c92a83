package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const (
	// signature ends the name of the signature of a file: a bundle of sigstore.
	signature = ".sigstore.json"
	// provenance says what the release was made from: a predicate of SLSA 1.0, which is also signed with each image.
	provenance = "provenance.json"
)

// signer is who signs, or who is to have signed: by a key, or, without one, by the OIDC token of a CI.
type signer struct {
	// cosign is the program.
	cosign string
	// key is a file, env://VARIABLE or a KMS's URI, as cosign takes it: the private one to sign, the public one to check.
	key string
	// identity and issuer are whose token it was, where there is no key.
	identity, issuer string
}

// run runs cosign. What is signed by a key is in no public log, so nothing has to be reached but the registry.
func (s signer) run(verb string, args ...string) error {
	all := []string{verb}
	isCheck := strings.HasPrefix(verb, "verify")
	switch {
	case s.key != "" && isCheck:
		all = append(all, "--key", s.key, "--insecure-ignore-tlog")
	case s.key != "":
		all = append(all, "--yes", "--key", s.key, "--tlog-upload=false", "--use-signing-config=false")
	case isCheck && (s.identity == "" || s.issuer == ""):
		return errors.New("who has signed? Say -key (the public one), or -identity and -issuer of the token")
	case isCheck:
		all = append(all, "--certificate-identity", s.identity, "--certificate-oidc-issuer", s.issuer)
	default:
		all = append(all, "--yes")
	}
	said, err := command(s.cosign, append(all, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cosign %s: %w:\n%s", verb, err, said)
	}
	return nil
}

// sign signs the checksums, and each image that was pushed with what there is to say about it.
func (o options) sign() error {
	for _, file := range o.signedFiles() {
		if err := o.signer.run("sign-blob", "--bundle", file+signature, file); err != nil {
			return err
		}
	}
	return o.eachImage("*.tar", func(tag name.Tag, image remote.Taggable, digest v1.Hash) error {
		reference := tag.Context().Digest(digest.String()).String()
		if err := o.signer.run("sign", reference); err != nil {
			return err
		}
		return o.eachAttestation(tag, image, digest, func(image, about, file string) error {
			fmt.Printf("signed %s, with its %s\n", image, filepath.Base(file))
			return o.signer.run("attest", "--type", about, "--predicate", file, image)
		})
	})
}

// signedFiles are signed by themselves: the checksums, and with them every file that they list, and vexFile if it is there.
func (o options) signedFiles() []string {
	files := []string{filepath.Join(o.out, checksums)}
	vex := filepath.Join(o.out, vexFile)
	if _, err := os.Stat(vex); err == nil {
		files = append(files, vex)
	}
	return files
}

// eachAttestation calls do for what is signed about an image: where it comes from; and of the manager's, which known
// vulnerabilities do not reach it, if that has been found out, and what is in each platform's.
func (o options) eachAttestation(tag name.Tag, image remote.Taggable, digest v1.Hash, do func(image, about, file string) error) error {
	in := func(digest v1.Hash) string { return tag.Context().Digest(digest.String()).String() }
	if err := do(in(digest), "slsaprovenance1", filepath.Join(o.out, provenance)); err != nil {
		return err
	}
	index, ok := image.(v1.ImageIndex)
	if !ok {
		return nil
	}
	if vex := filepath.Join(o.out, vexFile); slices.Contains(o.signedFiles(), vex) {
		if err := do(in(digest), "openvex", vex); err != nil {
			return err
		}
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, one := range manifest.Manifests {
		if err := do(in(one.Digest), "spdxjson", filepath.Join(o.out, sbomFile(o.version, one.Platform))); err != nil {
			return err
		}
	}
	return nil
}

// verify checks the signatures, and that the source makes the same files once more.
func (r *release) verify() error {
	want, err := r.verifySignatures()
	if err != nil {
		return err
	}
	return r.rebuild(want)
}

// verifySignatures checks those of the files in the output folder, whose checksums it returns, and of the images in the
// registry.
func (o options) verifySignatures() (string, error) {
	for _, file := range o.signedFiles() {
		if err := o.signer.run("verify-blob", "--bundle", file+signature, file); err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
	}
	want, err := os.ReadFile(filepath.Join(o.out, checksums))
	if err != nil {
		return "", err
	}
	got, err := sums(o.out)
	if err != nil {
		return "", err
	}
	if err := sameSums(string(want), got); err != nil {
		return "", fmt.Errorf("the files in %s are not those that were signed: %w", o.out, err)
	}
	fmt.Printf("%d files are as they were signed\n", strings.Count(got, "\n"))
	err = o.eachImage("*.tar", func(tag name.Tag, image remote.Taggable, digest v1.Hash) error {
		if err := o.signer.run("verify", tag.Context().Digest(digest.String()).String()); err != nil {
			return err
		}
		return o.eachAttestation(tag, image, digest, func(image, about, file string) error {
			fmt.Printf("%s is signed, with its %s\n", image, filepath.Base(file))
			return o.signer.run("verify-attestation", "--type", about, image)
		})
	})
	return string(want), err
}

// rebuild makes the release once more, and compares it with the one that was signed.
func (r *release) rebuild(want string) error {
	text, err := os.ReadFile(filepath.Join(r.out, provenance))
	if err != nil {
		return err
	}
	var said predicate
	if err := json.Unmarshal(text, &said); err != nil {
		return err
	}
	if from := said.commit(); from != r.commit {
		return fmt.Errorf("it was made from commit %s, and this is %s: check that one out", from, r.commit)
	}
	if version := said.BuildDefinition.ExternalParameters.Version; version != r.version {
		return fmt.Errorf("it is version %s: say VERSION=%s", version, version)
	}
	if compiler := said.BuildDefinition.InternalParameters.Go; compiler != runtime.Version() {
		return fmt.Errorf("it was built by %s, and this is %s, which makes other bytes", compiler, runtime.Version())
	}
	again, with := *r, said.BuildDefinition.ExternalParameters
	again.base, again.image, again.operator, again.platforms = with.ImageBase, with.Image, with.Operator, with.Platforms
	again.pluginURL, again.pluginPlatforms = with.PluginURL, with.PluginPlatforms
	if again.out, err = os.MkdirTemp("", "fairlead-again-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(again.out) }()
	if err := again.writeAll(); err != nil {
		return err
	}
	got, err := sums(again.out)
	if err != nil {
		return err
	}
	if err := sameSums(want, got); err != nil {
		return fmt.Errorf("commit %s makes other files: %w", r.commit, err)
	}
	fmt.Printf("commit %s makes the same files\n", r.commit)
	return nil
}

// sameSums names what two lists of checksums do not have in common.
func sameSums(want, got string) error {
	var errs []error
	lines := slices.Collect(strings.Lines(got))
	for line := range strings.Lines(want) {
		if i := slices.Index(lines, line); i >= 0 {
			lines = slices.Delete(lines, i, i+1)
		} else {
			errs = append(errs, fmt.Errorf("signed, and not there: %s", strings.TrimSpace(line)))
		}
	}
	for _, line := range lines {
		errs = append(errs, fmt.Errorf("there, and not signed: %s", strings.TrimSpace(line)))
	}
	return errors.Join(errs...)
}

// predicate is the provenance of SLSA 1.0 (https://slsa.dev/spec/v1.0/provenance), as far as there is something to say
// that is the same every time.
type predicate struct {
	BuildDefinition buildDefinition `json:"buildDefinition"`
	RunDetails      runDetails      `json:"runDetails"`
}

type buildDefinition struct {
	BuildType            string             `json:"buildType"`
	ExternalParameters   externalParameters `json:"externalParameters"`
	InternalParameters   internalParameters `json:"internalParameters"`
	ResolvedDependencies []dependency       `json:"resolvedDependencies"`
}

type externalParameters struct {
	Version         string   `json:"version"`
	ImageBase       string   `json:"imageBase"`
	Image           string   `json:"image"`
	Operator        string   `json:"operator"`
	Platforms       []string `json:"platforms"`
	PluginURL       string   `json:"pluginURL"`
	PluginPlatforms []string `json:"pluginPlatforms"`
}

type internalParameters struct {
	Go string `json:"go"`
}

type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest"`
}

type runDetails struct {
	Builder builder `json:"builder"`
}

type builder struct {
	ID string `json:"id"`
}

// gitCommit is SLSA's name for the digest of a source.
const gitCommit = "gitCommit"

func (p predicate) commit() string {
	for _, d := range p.BuildDefinition.ResolvedDependencies {
		return d.Digest[gitCommit]
	}
	return ""
}

// writeProvenance says from which commit, with which compiler and for what the release was made.
func (r *release) writeProvenance() error {
	about, err := r.texts(all)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(predicate{
		BuildDefinition: buildDefinition{
			BuildType:            about.Repository + "/make-release/v1",
			ExternalParameters:   externalParameters{r.version, r.base, r.image, r.operator, r.platforms, r.pluginURL, r.pluginPlatforms},
			InternalParameters:   internalParameters{runtime.Version()},
			ResolvedDependencies: []dependency{{"git+" + about.Repository, map[string]string{gitCommit: r.commit}}},
		},
		RunDetails: runDetails{builder{about.Repository + "/make-release"}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return r.write(provenance, append(text, '\n'))
}
