package store

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
)

// racingS3 is a server of S3 to which a part of an upload comes, now and then, just after the upload was
// aborted, so that there is one again.
type racingS3 struct {
	mu      sync.Mutex
	late    []time.Duration // after the next aborts
	coming  int             // parts that are on their way
	uploads int
}

func (s *racingS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
		s.uploads++
		_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
	case r.Method == http.MethodPut:
		w.Header().Set("ETag", `"x"`)
	case r.Method == http.MethodDelete && s.uploads == 0:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchUpload</Code></Error>")
	case r.Method == http.MethodDelete:
		s.uploads--
		if len(s.late) > 0 {
			s.coming++
			time.AfterFunc(s.late[0], func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.coming--
				s.uploads++
			})
			s.late = s.late[1:]
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
	}
}

// TestLateParts: nothing is left of an upload that failed, also when parts come after it was aborted.
func TestLateParts(t *testing.T) {
	failed := errors.New("etcd is gone")
	for name, late := range map[string][]time.Duration{
		"none":            nil,
		"at once":         {0},
		"a little later":  {100 * time.Millisecond},
		"one after other": {10 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			racing := &racingS3{late: late}
			server := httptest.NewServer(racing)
			t.Cleanup(server.Close)
			s := at(t, v1beta2.StorageS3, server.URL, 20*time.Second)
			_, err := s.Write(t.Context(), "prod", owned("me"), breaking{strings.NewReader(strings.Repeat("x", partSize+100)), failed})
			if !errors.Is(err, failed) {
				t.Errorf("the error is %v, want the reader's", err)
			}
			racing.mu.Lock()
			defer racing.mu.Unlock()
			if racing.uploads > 0 || racing.coming+len(racing.late) > 0 {
				t.Errorf("%d uploads are left behind, and %d parts still come", racing.uploads, racing.coming+len(racing.late))
			}
		})
	}
}
