package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/fairlead/operators/etcd/task"
)

// behaves is what every storage does. The bucket is empty.
func behaves(t *testing.T, s *Store) {
	const me, other = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	write := func(t *testing.T, key, owner string, b []byte) error {
		t.Helper()
		o, err := s.Write(t.Context(), key, owned(owner), bytes.NewReader(b))
		if err == nil && (o.Key != key || o.Size != int64(len(b)) || o.Meta != owned(owner) || time.Since(o.Time) > time.Hour || time.Until(o.Time) > time.Hour) {
			t.Errorf("written is %+v", o)
		}
		return err
	}

	t.Run("an object is as it was written", func(t *testing.T) {
		for name, size := range map[string]int{"empty": 0, "small": 1, "odd": 1<<20 + 1, "a part": partSize, "parts": 2*partSize + 12345, "over a part": partSize + 1} {
			key := "a/b c+ä/" + name + "_v1_2026-01-02-12:00:00"
			fine(t, write(t, key, me, data(1, size)))
			reads(t, s, key, data(1, size), owned(me))
		}
	})
	t.Run("none is there", func(t *testing.T) {
		absent(t, s, "none")
		_, _, err := s.Read(t.Context(), "none")
		wants(t, err, task.ReasonObjectNotFound)
		fine(t, s.Delete(t.Context(), "none", me))
		if got := keys(t, s, "folder/none"); len(got) > 0 {
			t.Errorf("there is %v", got)
		}
	})
	t.Run("its owner replaces it, and nobody else", func(t *testing.T) {
		for _, size := range []int{100, partSize + 100} {
			key := fmt.Sprintf("replaced-%d", size)
			fine(t, write(t, key, me, data(1, size)))
			fine(t, write(t, key, me, data(2, size)))
			reads(t, s, key, data(2, size), owned(me))
			for _, owner := range []string{other, ""} {
				wants(t, write(t, key, owner, data(3, size)), task.ReasonObjectOfAnother)
				wants(t, s.Delete(t.Context(), key, owner), task.ReasonObjectOfAnother)
			}
			reads(t, s, key, data(2, size), owned(me))
			fine(t, s.Delete(t.Context(), key, me))
			absent(t, s, key)
			fine(t, write(t, key, other, data(4, size)))
			reads(t, s, key, data(4, size), owned(other))
		}
	})
	t.Run("one that came while it was written is not replaced", func(t *testing.T) {
		for _, size := range []int{100, 2*partSize + 100} {
			key := fmt.Sprintf("contended-%d", size)
			r := calling{bytes.NewReader(data(1, size)), sync.OnceFunc(func() {
				if err := write(t, key, other, data(2, size+1)); err != nil { // in a goroutine of the library
					t.Error(err)
				}
			})}
			_, err := s.Write(t.Context(), key, owned(me), r)
			wants(t, err, task.ReasonObjectOfAnother)
			reads(t, s, key, data(2, size+1), owned(other))
		}
	})
	t.Run("cut in the middle, there is none, or what there was", func(t *testing.T) {
		failed := errors.New("etcd is gone")
		for _, size := range []int{0, 100, partSize, partSize + 100, 3 * partSize} {
			key := fmt.Sprintf("cut-%d", size)
			_, err := s.Write(t.Context(), key, owned(me), breaking{bytes.NewReader(data(1, size)), failed})
			if !errors.Is(err, failed) {
				t.Errorf("the error is %v, want the reader's", err)
			}
			absent(t, s, key)
			ctx, cancel := context.WithCancel(t.Context())
			_, err = s.Write(ctx, key, owned(me), calling{bytes.NewReader(data(1, size)), cancel})
			wants(t, err, task.ReasonInterrupted)
			absent(t, s, key)

			// Not of a smaller one: Azurite takes blocks that a larger one has left for an object.
			fine(t, write(t, key, me, data(2, size+1)))
			_, err = s.Write(t.Context(), key, owned(me), breaking{bytes.NewReader(data(1, size)), failed})
			if !errors.Is(err, failed) {
				t.Errorf("the error is %v, want the reader's", err)
			}
			reads(t, s, key, data(2, size+1), owned(me))
		}
	})
	t.Run("nothing is left of what was cut", func(t *testing.T) {
		fine(t, s.Tidy(t.Context(), "cut-100", time.Now().Add(time.Hour)))
	})
	t.Run("only what was made of the path, and by the owner, is owned", func(t *testing.T) {
		const path = "own/prod"
		var want []string
		for i, revision := range []int64{8, 9, 10, 11, 98, 99, 100, 101, 999, 1000} {
			key := KeyOf(path, revision, noon.Add(time.Duration(i)*time.Minute))
			fine(t, write(t, key, me, data(i, 10)))
			want = append(want, key)
		}
		slices.Sort(want)
		fine(t, write(t, KeyOf(path, 5, noon), other, data(1, 10)))
		for _, key := range []string{path, path + "_v1", path + "-2_v1_2026-01-02-12:00:00", path + "_v1_2026-01-02-12:00:00.bak", "own/x"} {
			fine(t, write(t, key, me, data(1, 10)))
		}
		var got []string
		for o, err := range s.Owned(t.Context(), path, me) {
			fine(t, err)
			if o.Meta != owned(me) || o.Size != 10 {
				t.Errorf("owned is %+v", o)
			}
			got = append(got, o.Key)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("owned (-want +got):\n%s", diff)
		}
		if got := keys(t, s, path); len(got) != len(want)+5 {
			t.Errorf("listed are %v", got)
		}
		if got := keys(t, s, "own/"); len(got) != len(want)+6 {
			t.Errorf("listed are %v", got)
		}
		for _, err := range s.Owned(t.Context(), path, me) {
			fine(t, err)
			break // somebody who has seen enough
		}
		for _, key := range want {
			fine(t, s.Delete(t.Context(), key, me))
		}
		if got := keys(t, s, path); len(got) != 5 {
			t.Errorf("left are %v", got)
		}
	})
	t.Run("a reader that is closed early ends", func(t *testing.T) {
		key := "early"
		fine(t, write(t, key, me, data(1, 3<<20)))
		r, _, err := s.Read(t.Context(), key)
		fine(t, err)
		if _, err := r.Read(make([]byte, 10)); err != nil {
			t.Error(err)
		}
		fine(t, r.Close())
		ctx, cancel := context.WithCancel(t.Context())
		r, _, err = s.Read(ctx, key)
		fine(t, err)
		cancel()
		for err == nil {
			_, err = r.Read(make([]byte, 1<<20))
		}
		wants(t, err, task.ReasonInterrupted)
		fine(t, r.Close())
	})
	t.Run("a path that no storage has is refused", func(t *testing.T) {
		for _, key := range []string{"", "/a", "a/", "a\nb", "a\x00b", strings.Repeat("a", task.MaxKey+1), "a/../../b", "\xff"} {
			_, err := s.Write(t.Context(), key, owned(me), strings.NewReader("x"))
			wants(t, err, task.ReasonPlaceInvalid)
		}
	})
}
