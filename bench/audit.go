package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// request is what the API server's audit log tells of a request.
type request struct {
	Verb      string
	User      struct{ Username string }
	UserAgent string
	ObjectRef struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time // the API server's clock, which is ours
	StageTimestamp           time.Time // when it was answered
}

// what names the kind of request: "patch pods", "update ats/status".
func (r request) what() string {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	return r.Verb + " " + resource
}

// isWrite says whether it changes something. Watches and leases go on all the
// time, and events are apart, in the bounds as well.
func (r request) isWrite() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) && !r.isBackground()
}

func (r request) isRead() bool { return (r.Verb == "get" || r.Verb == "list") && !r.isBackground() }

func (r request) isBackground() bool {
	return r.Verb == "watch" || r.ObjectRef.Resource == "leases" || r.ObjectRef.Resource == "events" ||
		r.ObjectRef.Resource == "" // discovery, health
}

// auditTail reads what the API server adds to its audit log, which it replaces
// when it is full.
type auditTail struct {
	seen []request // all that was read

	path   string
	file   *os.File
	reader *bufio.Reader
	half   []byte // the beginning of a line that is still being written
}

// tailAudit reads from the present end.
func (b *bench) tailAudit() (*auditTail, error) {
	file, err := os.Open(b.auditLog())
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	return &auditTail{path: b.auditLog(), file: file, reader: bufio.NewReaderSize(file, 1<<20)}, nil
}

func (t *auditTail) close() { t.file.Close() }

// next returns the requests that were answered since the last call.
func (t *auditTail) next() ([]request, error) {
	from := len(t.seen)
	for {
		// Asked before reading: what is written to a file that was replaced
		// already is all there is.
		replaced, err := t.replaced()
		if err != nil {
			return nil, err
		}
		if err := t.rest(); err != nil {
			return nil, err
		}
		if !replaced {
			return t.seen[from:], nil
		}
		file, err := os.Open(t.path)
		if err != nil {
			return nil, err
		}
		t.file.Close()
		t.file = file
		t.reader.Reset(file)
	}
}

func (t *auditTail) rest() error {
	for {
		line, err := t.reader.ReadBytes('\n')
		t.half = append(t.half, line...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var r request
		if err := json.Unmarshal(t.half, &r); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		t.half = t.half[:0]
		t.seen = append(t.seen, r)
	}
}

func (t *auditTail) replaced() (bool, error) {
	now, err := os.Stat(t.path)
	if errors.Is(err, os.ErrNotExist) { // just being replaced
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ours, err := t.file.Stat()
	return !os.SameFile(now, ours), err
}

// by are the requests that an operator made.
func by(o operator, requests []request) []request {
	return slices.DeleteFunc(slices.Clone(requests), func(r request) bool { return r.User.Username != o.user() })
}

func count(requests []request, is func(request) bool) int {
	n := 0
	for _, r := range requests {
		if is(r) {
			n++
		}
	}
	return n
}

// summary counts requests by kind, the most frequent first.
func summary(requests []request) string {
	byKind := map[string]int{}
	for _, r := range requests {
		kind := r.what()
		if r.ResponseStatus.Code >= 300 {
			kind += fmt.Sprintf(" (%d)", r.ResponseStatus.Code)
		}
		byKind[kind]++
	}
	kinds := make([]string, 0, len(byKind))
	for kind := range byKind {
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if d := byKind[b] - byKind[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", byKind[kind], kind)
	}
	if len(kinds) == 0 {
		return "none"
	}
	return strings.Join(kinds, ", ")
}

// answered waits until the API server has answered n requests of a kind for
// objects whose names start with prefix, without an error, and returns when it
// did for each. It looks at the log once a second, so as not to be in the way of
// what is measured.
func (t *auditTail) answered(ctx context.Context, patience time.Duration, what, prefix string, n int) (map[string]request, error) {
	answered := map[string]request{}
	for started := time.Now(); ; {
		for _, r := range t.seen {
			if r.what() == what && strings.HasPrefix(r.ObjectRef.Name, prefix) && r.ResponseStatus.Code < 300 {
				answered[r.ObjectRef.Name] = r
			}
		}
		if len(answered) >= n {
			return answered, nil
		}
		if time.Since(started) > patience {
			return nil, fmt.Errorf("not within %s: %d times %s (%d were)", patience, n, what, len(answered))
		}
		if err := sleep(ctx, time.Second); err != nil {
			return nil, err
		}
		if _, err := t.next(); err != nil {
			return nil, err
		}
	}
}

// last is when the last of them was answered.
func last(answered map[string]request) time.Time {
	var last time.Time
	for _, r := range answered {
		if r.StageTimestamp.After(last) {
			last = r.StageTimestamp
		}
	}
	return last
}
