package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// database looks like one of bbolt: its first page, and more.
func database(pages int) []byte {
	data := bytes.Repeat([]byte("etcd"), pages*1024)
	binary.LittleEndian.PutUint32(data[magicAt:], boltMagic)
	return data
}

// withHash is a snapshot of a database.
func withHash(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(slices.Clone(data), sum[:]...)
}

func TestCheck(t *testing.T) {
	good := withHash(database(3))
	changed := slices.Clone(good)
	changed[5000]++
	for name, tc := range map[string]struct {
		data []byte
		want error
	}{
		"good":                       {good, nil},
		"empty":                      {nil, ErrEmpty},
		"short":                      {[]byte("hello"), ErrForeign},
		"a text":                     {bytes.Repeat([]byte("hello\n"), 4000), ErrForeign},
		"a database without hash":    {database(3), ErrTruncated},
		"truncated":                  {good[:8000], ErrTruncated},
		"truncated by the last byte": {good[:len(good)-1], ErrTruncated},
		"truncated by a page":        {good[:len(good)-4096], ErrHash},
		"a byte is another":          {changed, ErrHash},
		"something behind":           {append(slices.Clone(good), 0), ErrTruncated},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 31, 33, 4096, 1 << 20} {
				c := NewCheck()
				for part := range slices.Chunk(tc.data, size) {
					_, _ = c.Write(part)
				}
				if err := c.End(); !errors.Is(err, tc.want) || err == nil && c.Size != int64(len(tc.data)) {
					t.Errorf("in parts of %d bytes: %v, want %v", size, err, tc.want)
				}
			}
		})
	}
}

// stream gives data in parts, and then ends with an error.
func stream(data []byte, end error) func() (*pb.SnapshotResponse, error) {
	parts := slices.Collect(slices.Chunk(data, 1000))
	return func() (*pb.SnapshotResponse, error) {
		if len(parts) == 0 {
			return nil, end
		}
		part := parts[0]
		parts = parts[1:]
		return &pb.SnapshotResponse{Blob: part}, nil
	}
}

func TestSnapshotIsCompleteOrAnError(t *testing.T) {
	good, broken := withHash(database(2)), errors.New("broken")
	for name, tc := range map[string]struct {
		data []byte
		end  error
		want error
	}{
		"complete":          {good, io.EOF, nil},
		"another hash":      {withHash(append(database(2), 1))[:len(good)], io.EOF, ErrHash},
		"ends early":        {good[:5000], io.EOF, ErrTruncated},
		"breaks":            {good[:5000], broken, broken},
		"breaks at the end": {good, broken, broken},
		"nothing":           {nil, io.EOF, ErrEmpty},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewReader(stream(tc.data, tc.end), func(error) {}, time.Minute)
			err := s.Begin()
			var got []byte
			if err == nil {
				got, err = io.ReadAll(iotest.OneByteReader(s))
			}
			if !errors.Is(err, tc.want) || (err == nil) != (s.Err == nil) {
				t.Fatalf("%v, want %v; known as %v", err, tc.want, s.Err)
			}
			if err == nil && !bytes.Equal(got, tc.data) {
				t.Error("other bytes came out")
			}
		})
	}
}

// A member that hangs is given up, and one that is slow, or whose reader is, is not.
func TestSnapshotHangs(t *testing.T) {
	const timeout = 50 * time.Millisecond
	good := withHash(database(1))
	ctx, cancel := context.WithCancelCause(t.Context())
	recv := stream(good[:1000], nil)
	s := NewReader(func() (*pb.SnapshotResponse, error) {
		if got, _ := recv(); got != nil {
			return got, nil
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}, cancel, timeout)
	if _, err := io.ReadAll(s); err == nil || !strings.Contains(err.Error(), "no byte of the snapshot within 50ms") {
		t.Errorf("a member that hangs: %v", err)
	}

	s = NewReader(stream(good, io.EOF), func(err error) { t.Errorf("cancelled: %v", err) }, timeout)
	if err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * timeout)
	if _, err := io.ReadAll(s); err != nil {
		t.Errorf("a slow reader: %v", err)
	}
}
