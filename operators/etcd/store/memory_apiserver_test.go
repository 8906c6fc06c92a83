//go:build apiserver

package store

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/store/storetest"
	"example.com/fairlead/operators/etcd/task"
)

// mostMiB is how much memory of its own a process may have that stores or reads a large object.
const mostMiB = 64

// sizeFor is how much: fake-gcs-server copies all that it has for each part that comes.
func sizeFor(kind v1beta2.StorageType) int64 {
	if kind == v1beta2.StorageGCS {
		return 256 << 20
	}
	return 1 << 30
}

// TestMemory stores and reads that much in a process of its own, in every kind of storage.
func TestMemory(t *testing.T) {
	if kind := v1beta2.StorageType(os.Getenv("MEMORY_TYPE")); kind != "" {
		streams(t, kind)
		return
	}
	clouds := map[v1beta2.StorageType]func(t testing.TB) storetest.Server{
		v1beta2.StorageClaim: func(t testing.TB) storetest.Server { return storetest.Server{Dir: t.TempDir(), Bucket: "claim"} },
		v1beta2.StorageS3:    clouds[v1beta2.StorageS3], v1beta2.StorageGCS: clouds[v1beta2.StorageGCS], v1beta2.StorageABS: clouds[v1beta2.StorageABS],
	}
	for kind, start := range clouds {
		t.Run(string(kind), func(t *testing.T) {
			server := start(t)
			c := exec.Command(os.Args[0], "-test.run", "^TestMemory$", "-test.v")
			c.Env = append(os.Environ(), "GOGC=", "GOMEMLIMIT=", "MEMORY_TYPE="+string(kind), "MEMORY_ENDPOINT="+server.Endpoint,
				"MEMORY_SECRET="+secretOf(t, server.Secret), "MEMORY_DIR="+server.Dir)
			out, err := c.CombinedOutput()
			t.Logf("%s", out)
			fine(t, err)
		})
	}
}

func streams(t *testing.T, kind v1beta2.StorageType) {
	p := task.Place{Type: kind, Bucket: storetest.Bucket, Endpoint: os.Getenv("MEMORY_ENDPOINT"), ForcePathStyle: true}
	s := opens(t, p, Options{SecretDir: os.Getenv("MEMORY_SECRET"), VolumeDir: os.Getenv("MEMORY_DIR")})
	stop, most := make(chan struct{}), make(chan int)
	go func() {
		top := 0
		for {
			select {
			case <-stop:
				most <- top
				return
			case <-time.After(5 * time.Millisecond):
				top = max(top, anonymous(t))
			}
		}
	}()
	size := sizeFor(kind)
	start := time.Now()
	_, err := s.Write(t.Context(), "big", owned("me"), io.LimitReader(endless{}, size))
	fine(t, err)
	wrote := time.Since(start)
	r, _, err := s.Read(t.Context(), "big")
	fine(t, err)
	n, err := io.Copy(io.Discard, r)
	if err != nil || n != size {
		t.Errorf("%d bytes, %v", n, err)
	}
	close(stop)
	kib := <-most
	t.Logf("%s: %d MiB written in %.1f s, read in %.1f s, with at most %.1f MiB of anonymous memory", kind, size>>20, wrote.Seconds(), (time.Since(start) - wrote).Seconds(), float64(kib)/1024)
	if kib > mostMiB<<10 {
		t.Errorf("at most %d MiB are allowed", mostMiB)
	}
}

// anonymous is the process's own memory in KiB: the rest is files that the kernel can read again.
func anonymous(t testing.TB) int {
	text, err := os.ReadFile("/proc/self/status")
	fine(t, err)
	_, rest, _ := strings.Cut(string(text), "RssAnon:")
	var kib int
	_, err = fmt.Sscanf(rest, "%d", &kib)
	fine(t, err)
	return kib
}
