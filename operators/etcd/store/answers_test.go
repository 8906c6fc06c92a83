package store

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/task"
)

const (
	anID       = "AKIAOFNOBODYATALL"
	aKey       = "secret/of/nobody+at+all"
	aToken     = "token-of-nobody-at-all"
	azureKey   = "c2VjcmV0LW9mLW5vYm9keQ=="
	azureKeyIs = "storage-key"
)

// secrets are credentials in the right form, by the type of the storage.
func secrets(t testing.TB, kind v1beta2.StorageType) string {
	t.Helper()
	switch kind {
	case v1beta2.StorageS3:
		return awsSecret(t, anID, aKey)
	case v1beta2.StorageGCS:
		return secretOf(t, map[string]string{gcsToken: aToken})
	default:
		return secretOf(t, map[string]string{absAccount: "nobody", azureKeyIs: azureKey})
	}
}

var cloudTypes = []v1beta2.StorageType{v1beta2.StorageS3, v1beta2.StorageGCS, v1beta2.StorageABS}

// at is a storage with a server of the test's own.
func at(t testing.TB, kind v1beta2.StorageType, endpoint string, timeout time.Duration) *Store {
	t.Helper()
	p := task.Place{Type: kind, Bucket: "backups", Key: "prod", Endpoint: endpoint, ForcePathStyle: true}
	return opens(t, p, Options{SecretDir: secrets(t, kind), Timeout: timeout})
}

// everything is each thing that is done with storage, and its error.
func everything(t *testing.T, s *Store) map[string]error {
	all := map[string]error{}
	_, all["write"] = s.Write(t.Context(), "prod", owned("me"), strings.NewReader("x"))
	_, _, all["read"] = s.Read(t.Context(), "prod")
	for _, err := range s.List(t.Context(), "prod") {
		all["list"] = err
	}
	for _, err := range s.Owned(t.Context(), "prod", "me") {
		all["owned"] = err
	}
	all["delete"] = s.Delete(t.Context(), "prod", "me")
	return all
}

// TestSilence has a server that takes connections, and says nothing.
func TestSilence(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	fine(t, err)
	t.Cleanup(func() { _ = l.Close() })
	for _, kind := range cloudTypes {
		t.Run(string(kind), func(t *testing.T) {
			start := time.Now()
			for what, err := range everything(t, at(t, kind, "http://"+l.Addr().String(), 200*time.Millisecond)) {
				t.Log(what)
				wants(t, err, task.ReasonStorageHangs)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("that took %v", took)
			}
		})
	}
}

// TestUnreachable has no server.
func TestUnreachable(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	fine(t, err)
	fine(t, l.Close())
	for _, kind := range cloudTypes {
		t.Run(string(kind), func(t *testing.T) {
			_, err := at(t, kind, "http://"+l.Addr().String(), time.Minute).Stat(t.Context(), "prod")
			wants(t, err, task.ReasonStorageUnreachable)
		})
	}
}

// TestSlowSource has a member of etcd that is slower than the storage may be. The clock stands still while the
// disk works, however long that takes.
func TestSlowSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := opens(t, task.Place{Type: v1beta2.StorageClaim}, Options{VolumeDir: t.TempDir(), Timeout: time.Minute})
		_, err := s.Write(t.Context(), "slow", owned("me"), calling{strings.NewReader("x"), func() { time.Sleep(time.Hour) }})
		fine(t, err)
		reads(t, s, "slow", []byte("x"), owned("me"))
	})
}

// TestStuckReader has a volume that hangs in the middle of a file: a pipe that nobody writes to.
func TestStuckReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		t.Cleanup(func() { _ = out.Close() })
		ctx, cancel := context.WithCancelCause(t.Context())
		p := newPump(ctx, cancel, newWatch(time.Minute), in)
		go func() { _, _ = out.Write([]byte("abc")) }()
		got, err := io.ReadAll(p)
		if string(got) != "abc" || !errors.Is(err, errHangs) {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

// TestTLS has a server with a certificate of a CA of its own.
func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	server.Config.ErrorLog = nil
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for _, kind := range cloudTypes {
		t.Run(string(kind), func(t *testing.T) {
			_, err := at(t, kind, server.URL, 20*time.Second).Stat(t.Context(), "prod")
			wants(t, err, task.ReasonStorageUnreachable)

			dir := secrets(t, kind)
			fine(t, os.WriteFile(dir+"/"+caKey, ca, 0o600))
			p := task.Place{Type: kind, Bucket: "backups", Endpoint: server.URL, ForcePathStyle: true}
			_, err = opens(t, p, Options{SecretDir: dir}).Stat(t.Context(), "prod")
			if p, ok := errors.AsType[*task.Problem](err); !ok || p.Reason == task.ReasonStorageUnreachable {
				t.Errorf("with the CA: %v", err)
			}
			fine(t, os.WriteFile(dir+"/"+caKey, []byte("no PEM"), 0o600))
			_, err = Open(t.Context(), p, Options{SecretDir: dir})
			wants(t, err, task.ReasonCredentialsInvalid)
		})
	}
}

// TestAnswers has servers that refuse, and put the credentials into their texts.
func TestAnswers(t *testing.T) {
	s3 := func(code string) string {
		return fmt.Sprintf(`<?xml version="1.0"?><Error><Code>%s</Code><Message>it is %s and %s</Message></Error>`, code, anID, aKey)
	}
	gcs := func(status int, reason string) string {
		return fmt.Sprintf(`{"error":{"code":%d,"message":"it is %s","errors":[{"reason":%q,"message":"it is %s"}]}}`, status, aToken, reason, aToken)
	}
	cases := []struct {
		kind      v1beta2.StorageType
		status    int
		code      string
		want      string
		retriable bool
	}{
		{v1beta2.StorageS3, 403, "InvalidAccessKeyId", task.ReasonCredentialsInvalid, true},
		{v1beta2.StorageS3, 403, "SignatureDoesNotMatch", task.ReasonCredentialsInvalid, true},
		{v1beta2.StorageS3, 400, "ExpiredToken", task.ReasonCredentialsInvalid, true},
		{v1beta2.StorageS3, 403, "RequestTimeTooSkewed", task.ReasonCredentialsInvalid, true},
		{v1beta2.StorageS3, 403, "AccessDenied", task.ReasonAccessDenied, true},
		{v1beta2.StorageS3, 404, "NoSuchBucket", task.ReasonBucketNotFound, true},
		{v1beta2.StorageS3, 507, "XMinioStorageFull", task.ReasonStorageFull, true},
		{v1beta2.StorageS3, 403, "QuotaExceeded", task.ReasonStorageFull, true},
		{v1beta2.StorageS3, 500, "InternalError", task.ReasonStorageFailed, true},
		{v1beta2.StorageS3, 301, "PermanentRedirect", task.ReasonStorageFailed, false},
		{v1beta2.StorageGCS, 401, "authError", task.ReasonCredentialsInvalid, true},
		{v1beta2.StorageGCS, 403, "forbidden", task.ReasonAccessDenied, true},
		{v1beta2.StorageGCS, 404, "notFound", task.ReasonBucketNotFound, true},
		{v1beta2.StorageGCS, 403, "quotaExceeded", task.ReasonStorageFull, true},
		{v1beta2.StorageGCS, 400, "invalid", task.ReasonStorageFailed, false},
		{v1beta2.StorageABS, 403, "AuthenticationFailed", task.ReasonCredentialsInvalid, true},
		{v1beta2.StorageABS, 403, "AuthorizationPermissionMismatch", task.ReasonAccessDenied, true},
		{v1beta2.StorageABS, 404, "ContainerNotFound", task.ReasonBucketNotFound, true},
		{v1beta2.StorageABS, 507, "AccountQuotaExceeded", task.ReasonStorageFull, true},
		{v1beta2.StorageABS, 400, "InvalidHeaderValue", task.ReasonStorageFailed, false},
	}
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%s %d %s", tc.kind, tc.status, tc.code), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := s3(tc.code)
				if tc.kind == v1beta2.StorageGCS {
					body = gcs(tc.status, tc.code)
					w.Header().Set("Content-Type", "application/json")
				}
				w.Header().Set("x-ms-error-code", tc.code)
				w.WriteHeader(tc.status)
				if r.Method != http.MethodHead {
					_, _ = io.WriteString(w, body)
				}
			}))
			t.Cleanup(server.Close)
			for what, err := range everything(t, at(t, tc.kind, server.URL, 20*time.Second)) {
				t.Log(what)
				wants(t, err, tc.want)
				p, ok := errors.AsType[*task.Problem](err)
				if !ok {
					continue
				}
				if p.Retriable != tc.retriable {
					t.Errorf("retriable is %v", p.Retriable)
				}
				for _, secret := range []string{anID, aKey, aToken, azureKey} {
					if strings.Contains(p.Message, secret) {
						t.Errorf("the message has a credential: %s", p.Message)
					}
				}
			}
		})
	}
}

// TestCredentials has Secrets that cannot be used: nobody is asked.
func TestCredentials(t *testing.T) {
	const keys = "[default]\naws_access_key_id = " + anID + "\naws_secret_access_key = " + aKey + "\n"
	cases := map[string]struct {
		kind v1beta2.StorageType
		keys map[string]string
		fine bool
	}{
		"S3, no Secret":                   {kind: v1beta2.StorageS3},
		"S3, empty":                       {kind: v1beta2.StorageS3, keys: map[string]string{s3Credentials: ""}},
		"S3, no file of the CLI":          {kind: v1beta2.StorageS3, keys: map[string]string{s3Credentials: aKey}},
		"S3, no default profile":          {kind: v1beta2.StorageS3, keys: map[string]string{s3Credentials: strings.Replace(keys, "default", "prod", 1)}},
		"S3, half":                        {kind: v1beta2.StorageS3, keys: map[string]string{s3Credentials: "[default]\naws_access_key_id = " + anID + "\n"}},
		"S3, a program":                   {kind: v1beta2.StorageS3, keys: map[string]string{s3Credentials: "[default]\ncredential_process = /bin/true\n"}},
		"S3, a role of the machine":       {kind: v1beta2.StorageS3, keys: map[string]string{s3Credentials: "[default]\nrole_arn = arn:aws:iam::1:role/x\ncredential_source = Ec2InstanceMetadata\n"}},
		"S3, a role by a web identity":    {kind: v1beta2.StorageS3, keys: map[string]string{s3Credentials: "[x]\n", s3Config: "[default]\nrole_arn = arn:aws:iam::1:role/x\nweb_identity_token_file = /x\n"}},
		"S3, a role with a code":          {kind: v1beta2.StorageS3, keys: map[string]string{s3Credentials: strings.Replace(keys, "default", "base", 1), s3Config: "[default]\nregion = eu-west-1\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = base\nmfa_serial = x\n"}},
		"S3, a role with keys":            {kind: v1beta2.StorageS3, fine: true, keys: map[string]string{s3Credentials: strings.Replace(keys, "default", "base", 1), s3Config: "[default]\nregion = eu-west-1\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = base\n"}},
		"S3, keys":                        {kind: v1beta2.StorageS3, fine: true, keys: map[string]string{s3Credentials: keys, s3Config: "[default]\nregion = eu-west-1\n"}},
		"GCS, no Secret":                  {kind: v1beta2.StorageGCS},
		"GCS, no JSON":                    {kind: v1beta2.StorageGCS, keys: map[string]string{gcsCredentials: aKey}},
		"GCS, a federation":               {kind: v1beta2.StorageGCS, keys: map[string]string{gcsCredentials: `{"type": "external_account"}`}},
		"GCS, no private key":             {kind: v1beta2.StorageGCS, fine: true, keys: map[string]string{gcsCredentials: `{"type": "service_account", "private_key": "x"}`}},
		"GCS, a token":                    {kind: v1beta2.StorageGCS, fine: true, keys: map[string]string{gcsToken: aToken + "\n"}},
		"ABS, no Secret":                  {kind: v1beta2.StorageABS},
		"ABS, no base64":                  {kind: v1beta2.StorageABS, keys: map[string]string{absAccount: "x", absKey: "%%"}},
		"ABS, no such cloud":              {kind: v1beta2.StorageABS, keys: map[string]string{absAccount: "x", absKey: azureKey, absCloud: "AzureMoonCloud"}},
		"ABS, China":                      {kind: v1beta2.StorageABS, fine: true, keys: map[string]string{absAccount: "x", absKey: azureKey, absCloud: "AzureChinaCloud"}},
		"ABS, a key with an end of line ": {kind: v1beta2.StorageABS, fine: true, keys: map[string]string{absAccount: "x\n", absKey: azureKey + "\n"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := Open(t.Context(), task.Place{Type: tc.kind, Bucket: "backups"}, Options{SecretDir: secretOf(t, tc.keys)})
			if tc.fine {
				fine(t, err)
				fine(t, s.Close())
				return
			}
			wants(t, err, task.ReasonCredentialsInvalid)
			if err != nil && (strings.Contains(err.Error(), aKey) || strings.Contains(err.Error(), anID)) {
				t.Error("the message has a credential")
			}
		})
	}
	_, err := Open(t.Context(), task.Place{Type: "OSS"}, Options{})
	wants(t, err, task.ReasonPlaceInvalid)
}

// TestIdentity names no Secret: what is in the folder of one by chance is not used.
func TestIdentity(t *testing.T) {
	var user string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchBucket</Code></Error>")
	}))
	t.Cleanup(server.Close)
	none := filepath.Join(t.TempDir(), "none")
	for name, value := range map[string]string{
		"AWS_CA_BUNDLE": "", "AWS_CONFIG_FILE": none, "AWS_SHARED_CREDENTIALS_FILE": none, "AWS_EC2_METADATA_DISABLED": "true", "GOOGLE_APPLICATION_CREDENTIALS": none,
		"AZURE_FEDERATED_TOKEN_FILE": none, "AWS_ACCESS_KEY_ID": "AKIAOFTHEPOD", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "eu-west-1",
	} {
		t.Setenv(name, value)
	}
	p := task.Place{Type: v1beta2.StorageS3, Bucket: "backups", Endpoint: server.URL, ForcePathStyle: true, Identity: true}
	o := Options{SecretDir: secrets(t, v1beta2.StorageS3), Timeout: 20 * time.Second}
	_, err := opens(t, p, o).Stat(t.Context(), "prod")
	wants(t, err, task.ReasonBucketNotFound)
	if !strings.Contains(user, "AKIAOFTHEPOD/") || !strings.Contains(user, "/eu-west-1/") {
		t.Errorf("the request is authorized by %q", user)
	}
	p.Identity = false
	_, err = opens(t, p, o).Stat(t.Context(), "prod")
	wants(t, err, task.ReasonBucketNotFound)
	if !strings.Contains(user, anID+"/") {
		t.Errorf("the request is authorized by %q", user)
	}

	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	for kind, keys := range map[v1beta2.StorageType]map[string]string{v1beta2.StorageS3: nil, v1beta2.StorageGCS: nil, v1beta2.StorageABS: {absAccount: "nobody"}} {
		_, err := Open(t.Context(), task.Place{Type: kind, Bucket: "backups", Identity: kind != v1beta2.StorageABS}, Options{SecretDir: secretOf(t, keys), Timeout: 20 * time.Second})
		wants(t, err, task.ReasonCredentialsInvalid)
	}
}

// TestRegion asks a server that is AWS's for where a bucket is.
func TestRegion(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/backups" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("x-amz-bucket-region", "eu-central-1")
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	got, err := regionOf(t.Context(), http.DefaultClient, server.URL, "backups")
	if err != nil || got != "eu-central-1" {
		t.Errorf("regionOf() = %q, %v", got, err)
	}
	if _, err := regionOf(t.Context(), http.DefaultClient, server.URL, "none"); !errors.Is(err, errNoBucket) {
		t.Errorf("the error is %v", err)
	}
}

// oldS3 is a server of S3 that has no conditional writes, and says so.
type oldS3 struct {
	mu      sync.Mutex
	objects map[string]http.Header
	sizes   map[string]int
	before  func() // what happens before a write without condition
}

func (o *oldS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fails := func(status int, code string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	meta, there := o.objects[r.URL.Path]
	q := r.URL.Query()
	switch {
	case r.Header.Get("If-None-Match") != "":
		if o.before != nil {
			o.before()
		}
		fails(http.StatusNotImplemented, "NotImplemented")
	case r.Method == http.MethodHead && there:
		for name, values := range meta {
			if strings.HasPrefix(name, "X-Amz-Meta-") {
				w.Header()[name] = values
			}
		}
		w.Header().Set("Content-Length", fmt.Sprint(o.sizes[r.URL.Path]))
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
	case r.Method == http.MethodHead, r.Method == http.MethodGet:
		fails(http.StatusNotFound, "NoSuchKey")
	case r.Method == http.MethodPost && q.Has("uploads"):
		o.objects["upload"], o.sizes["upload"] = r.Header.Clone(), 0
		_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
	case r.Method == http.MethodPut && q.Has("partNumber"):
		o.sizes["upload"] += len(body)
		w.Header().Set("ETag", `"x"`)
	case r.Method == http.MethodPost:
		o.objects[r.URL.Path], o.sizes[r.URL.Path] = o.objects["upload"], o.sizes["upload"]
		_, _ = io.WriteString(w, "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
	case r.Method == http.MethodPut:
		o.objects[r.URL.Path], o.sizes[r.URL.Path] = r.Header.Clone(), len(body)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	}
}

// TestS3WithoutConditions has storage that takes no If-None-Match: objects are written all the same,
// and one of another is still not replaced.
func TestS3WithoutConditions(t *testing.T) {
	for _, size := range []int{100, partSize + 100} {
		old := &oldS3{objects: map[string]http.Header{}, sizes: map[string]int{}}
		server := httptest.NewServer(old)
		t.Cleanup(server.Close)
		s := at(t, v1beta2.StorageS3, server.URL, 20*time.Second)
		o, err := s.Write(t.Context(), "new", owned("me"), strings.NewReader(strings.Repeat("x", size)))
		fine(t, err)
		if o.Size != int64(size) || o.Meta != owned("me") {
			t.Errorf("written is %+v", o)
		}
		old.before = func() {
			old.objects["/backups/contended"] = http.Header{"X-Amz-Meta-Fairleadowner": {"other"}}
		}
		_, err = s.Write(t.Context(), "contended", owned("me"), strings.NewReader(strings.Repeat("x", size)))
		wants(t, err, task.ReasonObjectOfAnother)
	}
}
