package agent

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/store"
	"example.com/fairlead/operators/etcd/task"
)

// TestPruneRetained: what the storage has a retention for is counted, and tried again by a later task; the rest is removed.
func TestPruneRetained(t *testing.T) {
	const owner = "uid"
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	var keys []string
	for i := range 5 {
		keys = append(keys, store.KeyOf("prod", int64(10+i), begin.Add(time.Duration(i)*time.Hour)))
	}
	locked := []string{keys[1]}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := strings.TrimPrefix(r.URL.Path, "/backups/")
		switch {
		case r.URL.Query().Has("list-type"):
			_, _ = io.WriteString(w, "<ListBucketResult>")
			for _, key := range keys {
				_, _ = fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>1</Size><LastModified>2026-01-02T12:00:00Z</LastModified></Contents>", key)
			}
			_, _ = io.WriteString(w, "</ListBucketResult>")
		case r.Method == http.MethodHead:
			w.Header().Set("X-Amz-Meta-Fairleadowner", owner)
			w.Header().Set("X-Amz-Meta-Fairleadnumber", fmt.Sprint(slices.Index(keys, key)+1))
			w.Header().Set("Last-Modified", begin.Format(http.TimeFormat))
		case r.Method == http.MethodDelete && slices.Contains(locked, key):
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code><Message>Access Denied because object protected by object lock.</Message></Error>")
		case r.Method == http.MethodDelete:
			keys = slices.DeleteFunc(keys, func(k string) bool { return k == key })
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(server.Close)
	secret := t.TempDir()
	credentials := []byte("[default]\naws_access_key_id = x\naws_secret_access_key = y\n")
	if err := os.WriteFile(filepath.Join(secret, "credentials"), credentials, 0o600); err != nil {
		t.Fatal(err)
	}
	a := &agent{secretDir: secret, log: t.Output(), now: func() time.Time { return begin }}
	todo := task.Task{
		Action: task.Prune, Owner: owner, Timeout: 20 * time.Second, Keep: &task.Retention{Max: 2},
		Place: task.Place{Type: v1beta2.StorageS3, Bucket: "backups", Key: "prod", Endpoint: server.URL, ForcePathStyle: true},
	}
	if r := a.do(t.Context(), todo); r.Problem != nil || r.Pruned != 2 || r.Left != 3 || r.Retained != 1 {
		t.Errorf("pruned %d, left %d, retained %d: %+v", r.Pruned, r.Left, r.Retained, r.Problem)
	}
	locked = nil
	if r := a.do(t.Context(), todo); r.Problem != nil || r.Pruned != 1 || r.Left != 2 || r.Retained != 0 {
		t.Errorf("later: pruned %d, left %d, retained %d: %+v", r.Pruned, r.Left, r.Retained, r.Problem)
	}
}
