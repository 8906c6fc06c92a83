package agent

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

// check reads along what is said to be a snapshot: a database of bbolt, in pages, and after it the
// SHA-256 of that.
type check struct {
	size int64
	head []byte
	// tail are the last bytes so far, which may be the hash, and hash is of those before.
	tail []byte
	hash hash.Hash
}

func newCheck() *check { return &check{hash: sha256.New()} }

// Write never fails: what is wrong is said at the end.
func (c *check) Write(p []byte) (int, error) {
	c.size += int64(len(p))
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

var (
	errEmpty     = errors.New("it is empty")
	errForeign   = errors.New("it is no snapshot of etcd")
	errTruncated = errors.New("its end is missing: a snapshot ends with its SHA-256")
	errHash      = errors.New("its SHA-256 is not the one at its end")
)

// end says what is wrong with all that was read.
func (c *check) end() error {
	switch {
	case c.size == 0:
		return errEmpty
	case len(c.head) < headSize:
		return errForeign
	case binary.LittleEndian.Uint32(c.head[magicAt:]) != boltMagic && binary.BigEndian.Uint32(c.head[magicAt:]) != boltMagic:
		return errForeign
	case c.size%sector != sha256.Size:
		return errTruncated
	case !bytes.Equal(c.tail, c.hash.Sum(nil)):
		return errHash
	}
	return nil
}

// sum is the hash at the end.
func (c *check) sum() []byte { return c.tail }

// snapshot reads the stream of one, and ends with an error unless it is complete.
type snapshot struct {
	recv    func() (*pb.SnapshotResponse, error)
	cancel  context.CancelCauseFunc
	timeout time.Duration

	*check
	rest []byte
	// err is why it ended, if it was not complete.
	err error
}

func newSnapshot(recv func() (*pb.SnapshotResponse, error), cancel context.CancelCauseFunc, timeout time.Duration) *snapshot {
	return &snapshot{recv: recv, cancel: cancel, timeout: timeout, check: newCheck()}
}

// begin waits for the first bytes.
func (s *snapshot) begin() error {
	if len(s.rest) == 0 {
		s.rest, s.err = s.next()
	}
	return s.err
}

// next are the next bytes. Nobody waits for ever: a member that hangs keeps its connection.
func (s *snapshot) next() ([]byte, error) {
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
		if err := s.end(); err != nil {
			return nil, fmt.Errorf("the snapshot is not complete: %w", err)
		}
		return nil, io.EOF
	case err != nil:
		return nil, err
	}
	_, _ = s.Write(got.GetBlob()) // of check
	return got.GetBlob(), nil
}

// Read returns [io.EOF] if all is there, and the hash is right.
func (s *snapshot) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		rest, err := s.next()
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		s.rest, s.err = rest, err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
