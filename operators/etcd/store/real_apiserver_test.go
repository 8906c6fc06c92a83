//go:build apiserver

package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/store/storetest"
	"example.com/fairlead/operators/etcd/task"
)

// clouds are real servers, by the type of the storage.
var clouds = map[v1beta2.StorageType]func(t testing.TB) storetest.Server{
	v1beta2.StorageS3:  func(t testing.TB) storetest.Server { return storetest.S3(t, "") },
	v1beta2.StorageGCS: storetest.GCS,
	v1beta2.StorageABS: storetest.ABS,
}

func placeIn(kind v1beta2.StorageType, s storetest.Server) task.Place {
	return task.Place{Type: kind, Bucket: s.Bucket, Key: "prod", Endpoint: s.Endpoint, ForcePathStyle: true}
}

func TestRealServers(t *testing.T) {
	for kind, start := range clouds {
		t.Run(string(kind), func(t *testing.T) {
			server := start(t)
			secret := secretOf(t, server.Secret)
			s := opens(t, placeIn(kind, server), Options{SecretDir: secret, Timeout: 20 * time.Second})
			behaves(t, s)
			if kind == v1beta2.StorageS3 {
				if left := uploads(t, server, ""); left > 0 {
					t.Errorf("%d uploads are left behind", left)
				}
			}
			t.Run("problems", func(t *testing.T) { realProblems(t, kind, server) })
			t.Run("silence", func(t *testing.T) { realSilence(t, kind, server, s) })
			t.Run("broken connections", func(t *testing.T) { realCuts(t, kind, server, s) })
			t.Run("killed", func(t *testing.T) { realKill(t, kind, server, s) })
		})
	}
}

// TestRealRetention has a bucket with a default retention: what is stored there cannot be deleted.
func TestRealRetention(t *testing.T) {
	server := storetest.S3(t, "")
	server.Bucket = "locked"
	client := server.S3Client()
	_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(server.Bucket), ObjectLockEnabledForBucket: aws.Bool(true)})
	fine(t, err)
	_, err = client.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{
		Bucket: aws.String(server.Bucket),
		ObjectLockConfiguration: &types.ObjectLockConfiguration{
			ObjectLockEnabled: types.ObjectLockEnabledEnabled,
			Rule:              &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{Days: aws.Int32(1), Mode: types.ObjectLockRetentionModeGovernance}},
		},
	})
	fine(t, err)
	s := opens(t, placeIn(v1beta2.StorageS3, server), Options{SecretDir: secretOf(t, server.Secret), Timeout: 20 * time.Second})
	for name, size := range map[string]int{"small": 100, "parts": 2*partSize + 100} {
		_, err := s.Write(t.Context(), name, owned("me"), bytes.NewReader(data(1, size)))
		fine(t, err)
		wants(t, s.Delete(t.Context(), name, "me"), task.ReasonObjectRetained)
		reads(t, s, name, data(1, size), owned("me"))
	}
}

// realProblems are those that a user makes.
func realProblems(t *testing.T, kind v1beta2.StorageType, server storetest.Server) {
	tries := func(t *testing.T, p task.Place, keys map[string]string, reason string) {
		t.Helper()
		s := opens(t, p, Options{SecretDir: secretOf(t, keys), Timeout: 20 * time.Second})
		_, err := s.Write(t.Context(), "x", owned("me"), strings.NewReader("x"))
		wants(t, err, reason)
		_, _, err = s.Read(t.Context(), "x")
		wants(t, err, reason)
		for _, err := range s.List(t.Context(), "x") {
			wants(t, err, reason)
		}
		wants(t, s.Delete(t.Context(), "x", "me"), reason)
		if p, ok := errors.AsType[*task.Problem](err); ok {
			for _, value := range []string{storetest.SecretKey, storetest.AccountKey, "wrong/wrong"} {
				if strings.Contains(p.Message, value) {
					t.Errorf("a credential is in %q", p.Message)
				}
			}
		}
	}
	place := placeIn(kind, server)
	nowhere := place
	nowhere.Bucket = "there-is-none"
	t.Run("no such bucket", func(t *testing.T) { tries(t, nowhere, server.Secret, task.ReasonBucketNotFound) })
	wrong := maps.Clone(server.Secret)
	switch kind {
	case v1beta2.StorageS3:
		wrong[s3Credentials] = strings.Replace(wrong[s3Credentials], storetest.SecretKey, "wrong/wrong", 1)
		t.Run("wrong key", func(t *testing.T) { tries(t, place, wrong, task.ReasonCredentialsInvalid) })
		nobody := maps.Clone(server.Secret)
		nobody[s3Credentials] = strings.Replace(nobody[s3Credentials], storetest.AccessKey, "NOBODY", 1)
		t.Run("nobody", func(t *testing.T) { tries(t, place, nobody, task.ReasonCredentialsInvalid) })
	case v1beta2.StorageABS:
		wrong[absKey] = "d3Jvbmcvd3Jvbmc="
		// Azurite says AuthorizationFailure. Azure says AuthenticationFailed: see TestAnswers.
		t.Run("wrong key", func(t *testing.T) { tries(t, place, wrong, task.ReasonAccessDenied) })
	default: // fake-gcs-server takes any token
	}
}

// realSilence has the network stop in the middle.
func realSilence(t *testing.T, kind v1beta2.StorageType, server storetest.Server, direct *Store) {
	proxy := storetest.NewProxy(t, server)
	place := placeIn(kind, server)
	place.Endpoint = proxy.Endpoint
	s := opens(t, place, Options{SecretDir: secretOf(t, server.Secret), Timeout: time.Second})
	const size = 4 * partSize
	start := time.Now()
	proxy.StallAfter(2*partSize + partSize/2)
	_, err := s.Write(t.Context(), "silence", owned("me"), bytes.NewReader(data(1, size)))
	wants(t, err, task.ReasonStorageHangs)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("that took %v", took)
	}
	absent(t, direct, "silence")
	proxy.Forward()

	if kind == v1beta2.StorageGCS {
		return // fake-gcs-server names itself in its answers, so that reads do not go by the proxy
	}
	_, err = direct.Write(t.Context(), "silence", owned("me"), bytes.NewReader(data(1, size)))
	fine(t, err)
	r, _, err := s.Read(t.Context(), "silence")
	fine(t, err)
	if _, err = io.CopyN(io.Discard, r, partSize); err != nil {
		t.Fatal(err)
	}
	proxy.StallAfter(0)
	_, err = io.Copy(io.Discard, r)
	wants(t, err, task.ReasonStorageHangs)
	fine(t, r.Close())
}

// realCuts has all connections closed in the middle, and the server reachable again at once: an upload is
// complete, or a problem that can be retried and nothing else.
func realCuts(t *testing.T, kind v1beta2.StorageType, server storetest.Server, direct *Store) {
	proxy := storetest.NewProxy(t, server)
	place := placeIn(kind, server)
	place.Endpoint = proxy.Endpoint
	s := opens(t, place, Options{SecretDir: secretOf(t, server.Secret), Timeout: 10 * time.Second})
	for i, after := range []int64{1, partSize / 2, partSize + 1000, 3 * partSize} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { // whoever tries again gets through
			for ctx.Err() == nil {
				time.Sleep(300 * time.Millisecond)
				proxy.Forward()
			}
		}()
		proxy.CutAfter(after)
		_, err := s.Write(t.Context(), "cuts", owned("me"), bytes.NewReader(data(i, 4*partSize)))
		cancel()
		if err == nil {
			reads(t, direct, "cuts", data(i, 4*partSize), owned("me"))
			fine(t, direct.Delete(t.Context(), "cuts", "me"))
			continue
		}
		if p, ok := errors.AsType[*task.Problem](err); !ok || !p.Retriable {
			t.Errorf("cut after %d bytes: %v", after, err)
		}
		absent(t, direct, "cuts")
	}
}

// realKill kills a process in the middle of its upload.
func realKill(t *testing.T, kind v1beta2.StorageType, server storetest.Server, direct *Store) {
	proxy := storetest.NewProxy(t, server)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := exec.Command(os.Args[0], "-test.run", "^TestUploadForEver$")
	c.Env = append(os.Environ(), "UPLOAD_TYPE="+string(kind), "UPLOAD_TO="+proxy.Endpoint, "UPLOAD_SECRET="+secretOf(t, server.Secret))
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	fine(t, c.Start())
	for deadline := time.Now().Add(time.Minute); proxy.Bytes() < 5*partSize && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	if proxy.Bytes() < 5*partSize {
		t.Error("the upload does not get on")
	}
	fine(t, c.Process.Kill())
	_ = c.Wait()
	absent(t, direct, "prod")
	if kind == v1beta2.StorageS3 {
		fine(t, direct.Tidy(t.Context(), "prod", time.Now().Add(-time.Hour)))
		fine(t, direct.Tidy(t.Context(), "pro", time.Now().Add(time.Hour)))
		if left := uploads(t, server, "prod"); left != 1 {
			t.Errorf("%d uploads are there, want the one that died", left)
		}
	}
	fine(t, direct.Tidy(t.Context(), "prod", time.Now().Add(time.Hour)))
	if kind == v1beta2.StorageS3 && uploads(t, server, "prod") > 0 {
		t.Error("the upload that died is still there")
	}
}

// TestUploadForEver is what is killed.
func TestUploadForEver(t *testing.T) {
	kind := v1beta2.StorageType(os.Getenv("UPLOAD_TYPE"))
	if kind == "" {
		return // it is started by the other test
	}
	p := task.Place{Type: kind, Bucket: storetest.Bucket, Key: "prod", Endpoint: os.Getenv("UPLOAD_TO"), ForcePathStyle: true}
	s := opens(t, p, Options{SecretDir: os.Getenv("UPLOAD_SECRET")})
	_, err := s.Write(t.Context(), "prod", owned("me"), endless{})
	t.Fatal(err)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// uploads is how many are there that are not complete.
func uploads(t testing.TB, server storetest.Server, prefix string) int {
	t.Helper()
	out, err := server.S3Client().ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: aws.String(server.Bucket), Prefix: aws.String(prefix)})
	fine(t, err)
	return len(out.Uploads)
}

// TestFull has storage that is full: a small file system, that nobody else sees.
func TestFull(t *testing.T) {
	if os.Getenv("FULL_DIR") == "" {
		c := exec.Command(os.Args[0], "-test.run", "^TestFull$", "-test.v")
		c.Env = append(os.Environ(), "FULL_DIR="+t.TempDir())
		c.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	dir := os.Getenv("FULL_DIR")
	fine(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=20m"))
	server := storetest.S3(t, dir)
	for kind, s := range map[string]*Store{
		"S3":     opens(t, placeIn(v1beta2.StorageS3, server), Options{SecretDir: secretOf(t, server.Secret), Timeout: 20 * time.Second}),
		"volume": opens(t, task.Place{Type: v1beta2.StorageClaim, Bucket: "backups"}, Options{VolumeDir: dir, Timeout: 20 * time.Second}),
	} {
		_, err := s.Write(t.Context(), "before", owned("me"), bytes.NewReader(data(1, 1000)))
		fine(t, err)
		for _, key := range []string{"full", "before"} {
			_, err = s.Write(t.Context(), key, owned("me"), bytes.NewReader(data(1, 5*partSize)))
			if t.Logf("%s: %v", kind, err); kind == "volume" {
				wants(t, err, task.ReasonStorageFull)
			} else if p, ok := errors.AsType[*task.Problem](err); !ok || !p.Retriable {
				t.Errorf("the error is %v", err) // versitygw does not say why
			}
		}
		absent(t, s, "full")
		reads(t, s, "before", data(1, 1000), owned("me"))
	}
	if left := uploads(t, server, ""); left > 0 {
		t.Errorf("%d uploads are left behind", left)
	}
}
