// Package storetest runs servers of object storage on loopback addresses, for tests: what `make
// build-storage` has built.
package storetest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Server is a server that ends with the test.
type Server struct {
	// Endpoint is its URL, and Secret the keys of a Secret for it.
	Endpoint string
	Secret   map[string]string
	// Bucket is one that is empty.
	Bucket string
	// Dir is where it keeps objects.
	Dir string
}

// Whom the servers know.
const (
	AccessKey = "AKIAFAIRLEADTEST"
	SecretKey = "fairlead/secret+key/of/the/tests"
	Account   = "devstoreaccount1"
	// AccountKey is Azurite's own, known to everybody.
	AccountKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	Bucket     = "backups"
)

// S3 is versitygw over a folder: dir, or one of its own.
func S3(t testing.TB, dir string) Server {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	address := freeAddress(t)
	start(t, address, []string{"HOME=" + t.TempDir()}, asset(t, "versitygw"), "--access", AccessKey, "--secret", SecretKey, "--port", address, "--quiet", "posix", dir)
	s := Server{Endpoint: "http://" + address, Dir: dir, Bucket: Bucket, Secret: map[string]string{
		"credentials": fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", AccessKey, SecretKey),
	}}
	_, err := s.S3Client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(Bucket)})
	must(t, err)
	return s
}

// S3Client is a client of it.
func (s Server) S3Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(s.Endpoint), UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
	})
}

// GCS is fake-gcs-server. It takes any token.
func GCS(t testing.TB) Server {
	t.Helper()
	address, dir := freeAddress(t), t.TempDir()
	host, port, _ := strings.Cut(address, ":")
	url := "http://" + address
	start(t, address, nil, asset(t, "fake-gcs-server"), "-scheme", "http", "-host", host, "-port", port, "-external-url", url, "-public-host", address,
		"-backend", "filesystem", "-filesystem-root", dir)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/storage/v1/b?project=test", strings.NewReader(fmt.Sprintf(`{"name": %q}`, Bucket)))
	must(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("create a bucket: %s", resp.Status)
	}
	return Server{Endpoint: url, Dir: dir, Bucket: Bucket, Secret: map[string]string{"access-token": "a-token-of-the-tests"}}
}

// ABS is Azurite.
func ABS(t testing.TB) Server {
	t.Helper()
	node, err := exec.LookPath("node")
	must(t, err)
	address, dir := freeAddress(t), t.TempDir()
	host, port, _ := strings.Cut(address, ":")
	start(t, address, nil, node, asset(t, "azurite/node_modules/azurite/dist/src/blob/main.js"),
		"--blobHost", host, "--blobPort", port, "--location", dir, "--silent", "--skipApiVersionCheck", "--disableTelemetry")
	s := Server{Endpoint: "http://" + address + "/" + Account, Dir: dir, Bucket: Bucket, Secret: map[string]string{"storage-account": Account, "storage-key": AccountKey}}
	key, err := container.NewSharedKeyCredential(Account, AccountKey)
	must(t, err)
	c, err := container.NewClientWithSharedKeyCredential(s.Endpoint+"/"+Bucket, key, nil)
	must(t, err)
	_, err = c.Create(t.Context(), nil)
	must(t, err)
	return s
}

// asset is a program, or a file of one, in the folder of $STORAGE_ASSETS.
func asset(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv("STORAGE_ASSETS")
	if dir == "" {
		t.Fatal("STORAGE_ASSETS is not set: run `make build-storage`, and set it to the folder bin")
	}
	path, err := filepath.Abs(filepath.Join(dir, name))
	must(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("run `make build-storage`: %v", err)
	}
	return path
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// start starts a server, waits until its port is open, and ends it with the test. The kernel ends it
// with this process, which it takes for that of the thread that has started it: so the thread lasts as
// long.
func start(t testing.TB, address string, env []string, program string, args ...string) {
	t.Helper()
	var log lockedBuffer
	c := exec.CommandContext(context.Background(), program, args...) // the clean-up ends it
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = &log, &log
	c.SysProcAttr = endsWithParent()
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			_ = c.Wait()
		}
		close(ended)
	}()
	must(t, <-started)
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the log of %s:\n%s", filepath.Base(program), log.tail())
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s has ended:\n%s", filepath.Base(program), log.tail())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", filepath.Base(program), err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lockedBuffer is a log that two may use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.b.Bytes()
	return string(b[max(0, len(b)-4000):])
}

// Proxy forwards connections to a server until it is told otherwise.
type Proxy struct {
	// Endpoint is the server's, by way of the proxy.
	Endpoint string

	mu    sync.Mutex
	wake  *sync.Cond
	after int64 // how many bytes may still go to the server; less than 0 for any number
	cuts  bool
	conns []net.Conn
	bytes int64
}

// NewProxy is a proxy of the server.
func NewProxy(t testing.TB, s Server) *Proxy {
	t.Helper()
	address := strings.TrimPrefix(s.Endpoint, "http://")
	host, path, _ := strings.Cut(address, "/")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	p := &Proxy{Endpoint: strings.TrimSuffix("http://"+l.Addr().String()+"/"+path, "/"), after: -1}
	p.wake = sync.NewCond(&p.mu)
	t.Cleanup(func() {
		_ = l.Close()
		p.set(0, true)
	})
	ctx := context.WithoutCancel(t.Context())
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
			if err != nil {
				_ = in.Close()
				continue
			}
			p.mu.Lock()
			p.conns = append(p.conns, in, out)
			p.mu.Unlock()
			go p.forward(out, in, true)
			go p.forward(in, out, false)
		}
	}()
	return p
}

// StallAfter lets that many bytes go to the server, and then no byte in either direction, while all
// connections stay open.
func (p *Proxy) StallAfter(n int64) { p.set(n, false) }

// CutAfter lets that many bytes go to the server, and then closes all connections.
func (p *Proxy) CutAfter(n int64) { p.set(n, true) }

// Forward forwards everything again.
func (p *Proxy) Forward() { p.set(-1, false) }

// Bytes is how many have gone to the server.
func (p *Proxy) Bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

func (p *Proxy) set(after int64, cuts bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after, p.cuts = after, cuts
	if after == 0 {
		p.stop()
	}
	p.wake.Broadcast()
}

// stop is called when no more bytes may go.
func (p *Proxy) stop() {
	if p.cuts {
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.conns = nil
	}
}

func (p *Proxy) forward(to, from net.Conn, up bool) {
	defer func() { _, _ = to.Close(), from.Close() }()
	b := make([]byte, 16<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			p.allow(int64(n), up)
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// allow waits until the bytes may go.
func (p *Proxy) allow(n int64, up bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if up && p.after > 0 {
		if p.after = max(0, p.after-n); p.after == 0 {
			p.stop()
		}
	}
	for p.after == 0 && !p.cuts {
		p.wake.Wait()
	}
	if up {
		p.bytes += n
	}
}
