// Command slowregistry is a registry for the benchmarks that takes its time: whatever image it is asked for, it answers
// after a while, with an image that consists of this program. Run in such an image, as "slowregistry stamp", it stores
// the time since the machine was started as the container's termination message.
//
//	slowregistry stamp
//	slowregistry [-listen 127.0.0.1:5000] [-after 20s]
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:5000", "the `address`")
	after := flag.Duration("after", 20*time.Second, "how long a manifest takes")
	flag.Parse()
	if err := run(flag.Arg(0), *listen, *after); err != nil {
		fmt.Fprintln(os.Stderr, "slowregistry:", err)
		os.Exit(1)
	}
}

func run(command, listen string, after time.Duration) error {
	if command == "stamp" {
		up, err := os.ReadFile("/proc/uptime")
		if err != nil {
			return err
		}
		return os.WriteFile("/dev/termination-log", up, 0o600)
	}
	image, err := newImage()
	if err != nil {
		return err
	}
	server := http.Server{Addr: listen, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/manifests/"):
			if !strings.Contains(r.URL.Path, "sha256:") { // by its tag, with which every pull begins
				time.Sleep(after)
			}
			w.Header().Set("Docker-Content-Digest", digest(image.manifest))
			w.Header().Set("Content-Type", manifestType)
			_, _ = w.Write(image.manifest)
		case strings.Contains(r.URL.Path, "/blobs/"):
			blob, ok := image.blobs[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
			if !ok {
				http.NotFound(w, r)
				return
			}
			_, _ = w.Write(blob)
		}
	})}
	return server.ListenAndServe()
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

// image is what is served (OCI image specification 1.1).
type image struct {
	manifest []byte
	blobs    map[string][]byte
}

func newImage() (*image, error) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	if err := files.WriteHeader(&tar.Header{Name: "slowregistry", Mode: 0o755, Size: int64(len(program))}); err != nil {
		return nil, err
	}
	if _, err := files.Write(program); err != nil {
		return nil, err
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH, "config": map[string]any{},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer.Bytes())}},
	})
	if err != nil {
		return nil, err
	}
	part := func(kind string, blob []byte) map[string]any {
		return map[string]any{"mediaType": "application/vnd.oci.image." + kind, "digest": digest(blob), "size": len(blob)}
	}
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": part("config.v1+json", config), "layers": []any{part("layer.v1.tar", layer.Bytes())},
	})
	return &image{manifest, map[string][]byte{digest(config): config, digest(layer.Bytes()): layer.Bytes()}}, err
}

func digest(blob []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(blob)) }
