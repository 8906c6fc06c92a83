package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/task"
)

// wants is an assertion: the error is a problem of the reason, fit to be shown.
func wants(t testing.TB, err error, reason string) {
	t.Helper()
	p, ok := errors.AsType[*task.Problem](err)
	switch {
	case !ok:
		t.Errorf("the error is %v (%T), want a problem of reason %s", err, err, reason)
	case p.Reason != reason:
		t.Errorf("the problem is %s: %s (retriable: %v), want %s", p.Reason, p.Message, p.Retriable, reason)
	case p.Message == "" || strings.ContainsAny(p.Message, "\n\r") || len(p.Message) > maxMessage+len("…"):
		t.Errorf("the message of %s is %q", reason, p.Message)
	default:
		t.Logf("%s: %s", p.Reason, p.Message)
	}
}

func fine(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// secretOf is the folder of a Secret.
func secretOf(t testing.TB, keys map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for key, value := range keys {
		fine(t, os.WriteFile(filepath.Join(dir, key), []byte(value), 0o600))
	}
	return dir
}

// awsSecret is the one of S3's users.
func awsSecret(t testing.TB, id, key string) string {
	t.Helper()
	return secretOf(t, map[string]string{s3Credentials: "[default]\naws_access_key_id = " + id + "\naws_secret_access_key = " + key + "\n"})
}

// opens is a storage that is closed with the test.
func opens(t testing.TB, p task.Place, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), p, o)
	fine(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// aVolume is a claim, and the folder that is mounted.
func aVolume(t testing.TB) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	return opens(t, task.Place{Type: v1beta2.StorageClaim, Bucket: "backups", Key: "prod"}, Options{VolumeDir: dir, Timeout: 10 * time.Second}), dir
}

func owned(owner string) Meta {
	return Meta{Owner: owner, Number: 3, Revision: 42, Time: noon, EtcdVersion: "3.6.16"}
}

// data is bytes that are not those of another seed.
func data(seed, size int) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// reads is an assertion: the object is that.
func reads(t testing.TB, s *Store, key string, want []byte, meta Meta) {
	t.Helper()
	r, o, err := s.Read(t.Context(), key)
	fine(t, err)
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(r)
	fine(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes that are not the %d ones that were stored", key, len(got), len(want))
	}
	if o.Size != int64(len(want)) || o.Meta != meta || o.Key != key {
		t.Errorf("%s is %+v, want size %d, and meta %+v", key, o, len(want), meta)
	}
}

// absent is an assertion: nothing is to be seen of the object.
func absent(t testing.TB, s *Store, key string) {
	t.Helper()
	_, err := s.Stat(context.WithoutCancel(t.Context()), key)
	wants(t, err, task.ReasonObjectNotFound)
	if got := keys(t, s, key); len(got) > 0 {
		t.Errorf("there is %v", got)
	}
}

// keys is what is listed.
func keys(t testing.TB, s *Store, prefix string) []string {
	t.Helper()
	var all []string
	for o, err := range s.List(t.Context(), prefix) {
		fine(t, err)
		all = append(all, o.Key)
	}
	slices.Sort(all)
	return all
}

// breaking is a reader that ends with an error.
type breaking struct {
	io.Reader
	err error
}

func (b breaking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = b.err
	}
	return n, err
}

// calling calls f before the end.
type calling struct {
	io.Reader
	f func()
}

func (c calling) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		c.f()
	}
	return n, err
}
