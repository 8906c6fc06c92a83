package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"example.com/fairlead/operators/etcd/task"
)

// secret is the Secret of a storage, as it is mounted.
type secret struct {
	dir   string
	none  bool   // none is named
	field string // of the API, that names it
	// hidden is what must not be seen in any message.
	hidden []string
}

// path is the file of one of its keys, whether it is there or not.
func (s *secret) path(key string) string { return filepath.Join(s.dir, key) }

// has says whether the key is there.
func (s *secret) has(key string) bool {
	info, err := os.Stat(s.path(key))
	return !s.none && err == nil && info.Size() > 0
}

// read is the value of a key; none if it is not there.
func (s *secret) read(key string) ([]byte, error) {
	if s.none {
		return nil, nil
	}
	b, err := os.ReadFile(s.path(key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, s.invalid("key %s cannot be read", key)
	}
	return b, nil
}

// line is the value of a key that is a single line.
func (s *secret) line(key string) (string, error) {
	b, err := s.read(key)
	return string(bytes.TrimSpace(b)), err
}

// hide keeps texts out of messages.
func (s *secret) hide(texts ...string) {
	for _, t := range texts {
		if len(t) >= 4 {
			s.hidden = append(s.hidden, t)
		}
	}
}

// scrub is the text without what is hidden.
func (s *secret) scrub(text string) string {
	for _, h := range s.hidden {
		text = strings.ReplaceAll(text, h, "(hidden)")
	}
	return text
}

// missing says that the Secret has none of the keys that are needed.
func (s *secret) missing(keys string) *task.Problem {
	return s.invalid("the Secret is not there, or has no key %s: create it", keys)
}

// invalid says what is wrong with the Secret. No argument may be a value of it.
func (s *secret) invalid(format string, args ...any) *task.Problem {
	return &task.Problem{Reason: task.ReasonCredentialsInvalid, Retriable: true, Message: s.field + ": " + fmt.Sprintf(format, args...)}
}
