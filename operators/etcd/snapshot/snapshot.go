// Package snapshot reads snapshots of etcd, and ends with an error unless all is there and the hash is right.
package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Check reads along what is said to be a snapshot: a database of bbolt, in pages, and after it the
// SHA-256 of that.
type Check struct {
	// Size is how many bytes there were so far.
	Size int64
	head []byte
	// tail are the last bytes so far, which may be the hash, and hash is of those before.
	tail []byte
	hash hash.Hash
}

// NewCheck has read nothing yet.
func NewCheck() *Check { return &Check{hash: sha256.New()} }

// Write never fails: what is wrong is said at the end.
func (c *Check) Write(p []byte) (int, error) {
	c.Size += int64(len(p))
	if missing := headSize - len(c.head); missing > 0 {
		c.head = append(c.head, p[:min(missing, len(p))]...)
	}
	c.tail = append(c.tail, p...)
	if over := len(c.tail) - sha256.Size; over > 0 {
		c.hash.Write(c.tail[:over])
		c.tail = append(c.tail[:0], c.tail[over:]...)
	}
	return len(p), nil
}

// What a file of bbolt begins with: the header of its first page, and its magic number.
const (
	headSize  = 20
	magicAt   = 16
	boltMagic = 0xED0CDAED
	// sector divides the size of every database: pages are greater.
	sector = 512
)

// What is wrong with what is no whole snapshot.
var (
	ErrEmpty     = errors.New("it is empty")
	ErrForeign   = errors.New("it is no snapshot of etcd")
	ErrTruncated = errors.New("its end is missing: a snapshot ends with its SHA-256")
	ErrHash      = errors.New("its SHA-256 is not the one at its end")
)

// End says what is wrong with all that was read.
func (c *Check) End() error {
	switch {
	case c.Size == 0:
		return ErrEmpty
	case len(c.head) < headSize:
		return ErrForeign
	case binary.LittleEndian.Uint32(c.head[magicAt:]) != boltMagic && binary.BigEndian.Uint32(c.head[magicAt:]) != boltMagic:
		return ErrForeign
	case c.Size%sector != sha256.Size:
		return ErrTruncated
	case !bytes.Equal(c.tail, c.hash.Sum(nil)):
		return ErrHash
	}
	return nil
}

// Sum is the hash at the end.
func (c *Check) Sum() []byte { return c.tail }

// Reader reads the stream of a snapshot, and ends with an error unless it is complete.
type Reader struct {
	recv    func() (*pb.SnapshotResponse, error)
	cancel  context.CancelCauseFunc
	timeout time.Duration

	*Check
	rest []byte
	// Err is why it ended, if it was not complete.
	Err error
}

// NewReader reads what recv gives, and calls cancel if there is no byte within the timeout.
func NewReader(recv func() (*pb.SnapshotResponse, error), cancel context.CancelCauseFunc, timeout time.Duration) *Reader {
	return &Reader{recv: recv, cancel: cancel, timeout: timeout, Check: NewCheck()}
}

// Begin waits for the first bytes.
func (s *Reader) Begin() error {
	if len(s.rest) == 0 {
		s.rest, s.Err = s.next()
	}
	return s.Err
}

// next are the next bytes. Nobody waits for ever: a member that hangs keeps its connection.
func (s *Reader) next() ([]byte, error) {
	hangs := fmt.Errorf("no byte of the snapshot within %s", s.timeout)
	var isLate bool
	late := make(chan struct{})
	timer := time.AfterFunc(s.timeout, func() { isLate = true; close(late); s.cancel(hangs) })
	got, err := s.recv()
	if !timer.Stop() {
		<-late
	}
	switch {
	case isLate:
		return nil, hangs
	case errors.Is(err, io.EOF):
		if err := s.End(); err != nil {
			return nil, fmt.Errorf("the snapshot is not complete: %w", err)
		}
		return nil, io.EOF
	case err != nil:
		return nil, err
	}
	_, _ = s.Write(got.GetBlob()) // of Check
	return got.GetBlob(), nil
}

// Read returns [io.EOF] if all is there, and the hash is right.
func (s *Reader) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.Err != nil {
			return 0, s.Err
		}
		rest, err := s.next()
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		s.rest, s.Err = rest, err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
