package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/task"
)

func TestVolume(t *testing.T) {
	s, dir := aVolume(t)
	behaves(t, s)
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		if strings.HasSuffix(path, task.PartSuffix) {
			t.Errorf("left behind is %s", path)
		}
		return nil
	})
}

func TestVolumeProblems(t *testing.T) {
	place := task.Place{Type: v1beta2.StorageClaim, Bucket: "backups", Key: "prod"}
	_, err := Open(t.Context(), place, Options{VolumeDir: filepath.Join(t.TempDir(), "none")})
	wants(t, err, task.ReasonClaimNotFound)

	s, dir := aVolume(t)
	outside := t.TempDir()
	fine(t, os.WriteFile(filepath.Join(outside, "x"), []byte("theirs"), 0o600))
	fine(t, os.Symlink(outside, filepath.Join(dir, "link")))
	fine(t, os.Symlink(filepath.Join(outside, "x"), filepath.Join(dir, "file-link")))
	fine(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	for key, reason := range map[string]string{
		"link/x": task.ReasonStorageFailed, "file-link": task.ReasonStorageFailed, "folder": task.ReasonPlaceInvalid, strings.Repeat("n", 250): task.ReasonPlaceInvalid,
	} {
		_, err := s.Write(t.Context(), key, owned("me"), strings.NewReader("ours"))
		wants(t, err, reason)
	}
	if got, _ := os.ReadFile(filepath.Join(outside, "x")); string(got) != "theirs" {
		t.Errorf("a symbolic link led out of the volume: %s", got)
	}
	fine(t, os.WriteFile(filepath.Join(dir, "theirs"), []byte("theirs"), 0o600))
	_, err = s.Write(t.Context(), "theirs", owned("me"), strings.NewReader("ours"))
	wants(t, err, task.ReasonObjectOfAnother)
	wants(t, s.Delete(t.Context(), "theirs", "me"), task.ReasonObjectOfAnother)
	_, err = s.Write(t.Context(), "theirs/x", owned("me"), strings.NewReader("ours"))
	wants(t, err, task.ReasonPlaceInvalid)
}

// TestVolumeAfterDeath has what is in a volume when a pod died between two of its writes.
func TestVolumeAfterDeath(t *testing.T) {
	s, dir := aVolume(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(t *testing.T, b string) {
		t.Helper()
		_, err := s.Write(t.Context(), "prod", owned("me"), strings.NewReader(b))
		fine(t, err)
	}
	write(t, "one")

	// The second file is of an object that did not come.
	next, err := os.ReadFile(at("prod" + task.MetaSuffix))
	fine(t, err)
	fine(t, os.WriteFile(at("prod"+task.MetaSuffix), bytes.Replace(next, []byte(`"Size":3`), []byte(`"Size":4`), 1), 0o600))
	reads(t, s, "prod", []byte("one"), Meta{Owner: "me"})
	write(t, "two")
	reads(t, s, "prod", []byte("two"), owned("me"))

	// There is a second file, and no object: not of this owner, or half written.
	fine(t, os.Remove(at("prod")))
	absent(t, s, "prod")
	fine(t, os.WriteFile(at("prod"+task.MetaSuffix), []byte(`{"Meta":{"Owner":"other"}}`), 0o600))
	write(t, "three")
	reads(t, s, "prod", []byte("three"), owned("me"))
	fine(t, os.WriteFile(at("prod"+task.MetaSuffix), []byte(`{"Me`), 0o600))
	reads(t, s, "prod", []byte("three"), Meta{})

	// Parts of those that died are nobody's object, and are removed when they are old.
	old, young := "prod.abcdefgh"+task.PartSuffix, "prod_v1_2026-01-02-12:00:00.abcdefgh"+task.PartSuffix
	foreign := "prod-2.abcdefgh" + task.PartSuffix
	for _, name := range []string{old, young, foreign} {
		fine(t, os.WriteFile(at(name), []byte("x"), 0o600))
	}
	long := time.Now().Add(-24 * time.Hour)
	fine(t, os.Chtimes(at(old), long, long))
	fine(t, os.Chtimes(at(foreign), long, long))
	if got := keys(t, s, ""); len(got) != 1 || got[0] != "prod" {
		t.Errorf("listed are %v", got)
	}
	fine(t, s.Tidy(t.Context(), "prod", time.Now().Add(-time.Hour)))
	for name, want := range map[string]bool{old: false, young: true, foreign: true} {
		if _, err := os.Stat(at(name)); errors.Is(err, fs.ErrNotExist) == want {
			t.Errorf("%s: is there: %v, want %v", name, err == nil, want)
		}
	}
}
