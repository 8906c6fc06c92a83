package store

import (
	"crypto/md5" //nolint:gosec // as S3 does
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/task"
)

// TestS3WithRetention has a bucket with a default retention: it refuses an object, and each part of one, that comes without
// a checksum in a header.
func TestS3WithRetention(t *testing.T) {
	for _, size := range []int{0, 100, 2*partSize + 100} {
		plain := &oldS3{objects: map[string]http.Header{}, sizes: map[string]int{}}
		var summed atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-None-Match") // which that server does not know
			if r.Method == http.MethodPut {
				body, _ := io.ReadAll(r.Body)
				sum := md5.Sum(body) //nolint:gosec // see the import
				if r.Header.Get("Content-MD5") != base64.StdEncoding.EncodeToString(sum[:]) || r.Header.Get("X-Amz-Trailer") != "" {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, "<Error><Code>InvalidRequest</Code><Message>Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters</Message></Error>")
					return
				}
				summed.Add(1)
				r.Body = io.NopCloser(strings.NewReader(string(body)))
			}
			plain.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		o, err := at(t, v1beta2.StorageS3, server.URL, 20*time.Second).Write(t.Context(), "new", owned("me"), strings.NewReader(strings.Repeat("x", size)))
		fine(t, err)
		if want := int32(max(1, (size+partSize-1)/partSize)); o.Size != int64(size) || summed.Load() != want {
			t.Errorf("written is %+v in %d requests, want %d", o, summed.Load(), want)
		}
	}
}

// TestRetained has servers that refuse to delete an object for a rule of theirs, and for other reasons.
func TestRetained(t *testing.T) {
	const held = "Object 'backups/prod' is under active Event-Based hold and cannot be deleted, overwritten or archived until hold is removed."
	cases := []struct {
		kind       v1beta2.StorageType
		status     int
		code, text string
		want       string
	}{
		{v1beta2.StorageS3, 403, "AccessDenied", "Access Denied because object protected by object lock.", task.ReasonObjectRetained},
		{v1beta2.StorageS3, 400, "InvalidRequest", "Object is WORM protected and cannot be overwritten", task.ReasonObjectRetained},
		{v1beta2.StorageS3, 400, "ObjectLocked", "", task.ReasonObjectRetained},
		{v1beta2.StorageS3, 403, "AccessDenied", "Access Denied", task.ReasonAccessDenied},
		{v1beta2.StorageGCS, 403, "retentionPolicyNotMet", "Object 'backups/prod' is subject to bucket's retention policy", task.ReasonObjectRetained},
		{v1beta2.StorageGCS, 403, "forbidden", held, task.ReasonObjectRetained},
		{v1beta2.StorageGCS, 403, "forbidden", "no storage.objects.delete access", task.ReasonAccessDenied},
		{v1beta2.StorageABS, 409, "BlobImmutableDueToPolicy", "", task.ReasonObjectRetained},
		{v1beta2.StorageABS, 403, "AuthorizationPermissionMismatch", "", task.ReasonAccessDenied},
	}
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%s %s %s", tc.kind, tc.code, tc.text), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				header := w.Header()
				if r.Method != http.MethodDelete {
					header.Set("X-Amz-Meta-Fairleadowner", "me")
					header.Set("X-Ms-Meta-Fairleadowner", "me")
					for _, name := range []string{"Last-Modified", "X-Ms-Creation-Time"} {
						header.Set(name, time.Now().UTC().Format(http.TimeFormat))
					}
					header.Set("Etag", "x")
					if tc.kind == v1beta2.StorageGCS {
						header.Set("Content-Type", "application/json")
						_, _ = io.WriteString(w, `{"name": "prod", "bucket": "backups", "size": "1", "metadata": {"fairleadowner": "me"}}`)
					}
					return
				}
				body := fmt.Sprintf("<Error><Code>%s</Code><Message>%s</Message></Error>", tc.code, tc.text)
				if tc.kind == v1beta2.StorageGCS {
					type reason struct{ Reason, Message string }
					answer, _ := json.Marshal(map[string]any{"error": map[string]any{"code": tc.status, "message": tc.text, "errors": []reason{{tc.code, tc.text}}}})
					body = string(answer)
				}
				header.Set("X-Ms-Error-Code", tc.code)
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, body)
			}))
			t.Cleanup(server.Close)
			wants(t, at(t, tc.kind, server.URL, 20*time.Second).Delete(t.Context(), "prod", "me"), tc.want)
		})
	}
}
