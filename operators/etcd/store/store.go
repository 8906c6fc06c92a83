package store

import (
	"context"
	"io"
	"iter"
	"time"
)

// Store is a bucket or a volume. It is safe for concurrent use.
type Store struct{}

// Open is the storage of a place. It reads the credentials, and asks nobody yet, unless that is what
// the region of a bucket takes.
func Open(ctx context.Context, p Place, o Options) (*Store, error) { panic("soon") }

// Close ends its connections.
func (s *Store) Close() error { panic("soon") }

// Write stores all that r has under the key. The object is complete or absent: if r fails, or the storage does,
// or ctx is cancelled, or the process dies, no part of it is to be seen, and an object that was
// there before is as it was. One that is not of meta.Owner is not replaced: [ReasonObjectOfAnother].
//
// An error of r is returned as it is. Only the storage's own silence is timed: it is the caller's
// to cancel ctx when r hangs.
func (s *Store) Write(ctx context.Context, key string, meta Meta, r io.Reader) (Object, error) {
	panic("soon")
}

// Read opens an object. Errors of the reader are problems, too; if the object ends before its Size, that is
// [ReasonObjectDamaged] and no EOF. Close it.
func (s *Store) Read(ctx context.Context, key string) (io.ReadCloser, Object, error) {
	panic("soon")
}

// Stat is what is known of an object, with its Meta.
func (s *Store) Stat(ctx context.Context, key string) (Object, error) { panic("soon") }

// List is all objects whose keys begin with the prefix, without their Meta. It ends after the first error.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] { panic("soon") }

// Owned is the objects of the owner, with their Meta, whose keys [KeyOf] made of the path. It ends after the
// first error. The order is none.
func (s *Store) Owned(ctx context.Context, path, owner string) iter.Seq2[Object, error] {
	panic("soon")
}

// Delete removes an object if it is of the owner: otherwise [ReasonObjectOfAnother]. That there is none is
// no error.
func (s *Store) Delete(ctx context.Context, key, owner string) error { panic("soon") }

// Tidy removes what uploads have left that died before the time: those of keys that [KeyOf] made of the path, or of the
// path itself. Storage keeps them although nobody sees them. It is no error if that is not allowed.
func (s *Store) Tidy(ctx context.Context, path string, before time.Time) error { panic("soon") }
