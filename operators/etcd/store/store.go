package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/task"
)

// Options are for [Open]. The zero value is right in a pod.
type Options struct {
	// SecretDir and VolumeDir are where the Secret and the claim are mounted, if not at the
	// constants of those names in package task.
	SecretDir, VolumeDir string
	// Timeout is how long the storage may go on without a byte of progress. Defaults to 60 s.
	Timeout time.Duration
}

// Store is a bucket or a volume. It is safe for concurrent use.
type Store struct {
	place   task.Place
	watch   *watch
	secret  *secret
	storage storage
}

// storage is what one kind of storage does. Errors are its own: problem knows what they mean.
type storage interface {
	// stat is an object, with its Meta. One that is not there is errNoObject, if that is known.
	stat(ctx context.Context, key string) (Object, error)
	// write stores r; complete, or absent. Without replace, one that is there is errOccupied.
	write(ctx context.Context, key string, meta Meta, replace bool, r io.Reader) error
	// read opens an object. ctx is for as long as it is read.
	read(ctx context.Context, key string) (io.ReadCloser, error)
	// list is a page of the objects whose keys begin with the prefix, and where the next one begins: nil
	// for none, and for the first.
	list(ctx context.Context, prefix string, page []byte) (objects []Object, next []byte, err error)
	// remove removes an object.
	remove(ctx context.Context, key string) error
	// tidy removes what uploads have left that began before the time, of the keys of the path.
	tidy(ctx context.Context, path string, before time.Time) error
	// problem is what an error means, if it is one of this storage's.
	problem(op *operation, err error) *task.Problem
	close() error
}

// What storages answer.
var (
	errNoObject = errors.New("no such object")
	errNoBucket = errors.New("no such bucket")
	errOccupied = errors.New("the object is there")
)

// Open is the storage of a place. It reads the credentials, and asks nobody yet, except for a token
// and the region of a bucket where these are not in them.
func Open(ctx context.Context, p task.Place, o Options) (*Store, error) {
	if o.SecretDir == "" {
		o.SecretDir = task.SecretDir
	}
	if o.VolumeDir == "" {
		o.VolumeDir = task.VolumeDir
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	open, field := openVolume, ""
	switch p.Type {
	case v1beta2.StorageS3:
		open, field = openS3, "s3.awsSecret"
	case v1beta2.StorageGCS:
		open, field = openGCS, "gcs.gcpSecret"
	case v1beta2.StorageABS:
		open, field = openABS, "abs.absSecret"
	case v1beta2.StorageClaim:
	default:
		_, err := task.PlaceOf(p.Type, v1beta2.BackupSource{})
		return nil, err
	}
	s := &Store{place: p, watch: newWatch(o.Timeout), secret: &secret{dir: o.SecretDir, none: p.Identity, field: field}}
	var made storage
	err := s.do(ctx, opening, "", func(ctx context.Context) (err error) {
		made, err = open(ctx, opened{Place: p, secret: s.secret, watch: s.watch, volumeDir: o.VolumeDir})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.storage = made
	return s, nil
}

// opened is what a storage is made of.
type opened struct {
	task.Place
	secret    *secret
	watch     *watch
	volumeDir string
}

// Close ends its connections.
func (s *Store) Close() error { return s.storage.close() }

// do does something with a key, and says what went wrong as a problem.
func (s *Store) do(ctx context.Context, kind verb, key string, f func(ctx context.Context) error) error {
	if kind != opening && kind != listing {
		if err := s.place.Check(key); err != nil {
			return err
		}
	}
	if err := s.watch.do(ctx, f); err != nil {
		return s.problem(&operation{verb: kind, key: key, place: s.place, watch: s.watch}, err)
	}
	return nil
}

// Stat is what is known of an object, with its Meta.
func (s *Store) Stat(ctx context.Context, key string) (Object, error) {
	var o Object
	err := s.do(ctx, reading, key, func(ctx context.Context) (err error) {
		o, err = s.storage.stat(ctx, key)
		return err
	})
	if err != nil {
		return Object{}, err
	}
	return o, nil
}

// Write stores all that r has under the key. The object is complete or absent: if r fails, or the
// storage does, or ctx is cancelled, or the process dies, no part of it is to be seen, and an object
// that was there before is as it was. One that is not of meta.Owner is not replaced:
// [task.ReasonObjectOfAnother].
//
// An error of r is returned as it is. Only the storage's own silence is timed: it is the caller's
// to cancel ctx when r hangs.
func (s *Store) Write(ctx context.Context, key string, meta Meta, r io.Reader) (Object, error) {
	var o Object
	from := &source{r: r, watch: s.watch}
	err := s.do(ctx, writing, key, func(ctx context.Context) error {
		before, err := s.storage.stat(ctx, key)
		switch {
		case errors.Is(err, errNoObject):
		case err != nil:
			return err
		case before.Meta.Owner != meta.Owner || meta.Owner == "":
			return errOccupied
		}
		replace := err == nil
		err = s.storage.write(ctx, key, meta, replace, from)
		if failed := from.failure(); err != nil && failed != nil {
			return failed
		}
		if err != nil && !errors.Is(err, errOccupied) {
			return err
		}
		now, errNow := s.storage.stat(ctx, key)
		switch {
		case err != nil && errors.Is(errNow, errNoObject):
			return &task.Problem{Reason: task.ReasonStorageFailed, Retriable: true, Message: s.place.Of(key) + " was not stored, because there was one meanwhile that is gone again: something else writes there"}
		case err != nil && (errNow != nil || now.Meta != meta || now.Size != from.n.Load()):
			return err
		case err != nil:
			// The answer to a first request was lost, and a second one saw what that did.
		case errNow != nil:
			return errNow
		case now.Size != from.n.Load():
			return &task.Problem{Reason: task.ReasonObjectDamaged, Retriable: true, Message: s.place.Of(key) + " was stored, and is now not as long as what was stored: something else writes there"}
		}
		o = now
		return nil //nolint:nilerr // what went wrong first was made good
	})
	switch failed := from.failure(); {
	case err == nil:
		return o, nil
	case failed != nil:
		return Object{}, failed
	}
	return Object{}, err
}

// Read opens an object. Errors of the reader are problems, too; if the object ends before its Size,
// that is [task.ReasonObjectDamaged] and no EOF. Close it.
func (s *Store) Read(ctx context.Context, key string) (io.ReadCloser, Object, error) {
	o, err := s.Stat(ctx, key)
	if err != nil {
		return nil, Object{}, err
	}
	// The context of do ends with it, and that of the body must not.
	lasting, cancel := context.WithCancelCause(ctx)
	var body io.ReadCloser
	err = s.do(ctx, reading, key, func(ctx context.Context) (err error) {
		stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
		body, err = s.storage.read(lasting, key)
		if !stop() && err == nil {
			_ = body.Close()
			return context.Cause(ctx)
		}
		return err
	})
	if err != nil {
		cancel(nil)
		return nil, Object{}, err
	}
	return &reader{pump: newPump(lasting, cancel, s.watch, body), store: s, object: o}, o, nil
}

// reader is an object that is being read.
type reader struct {
	*pump
	store  *Store
	object Object
	n      int64
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.pump.Read(p)
	r.n += int64(n)
	if err == nil || errors.Is(err, io.EOF) && r.n == r.object.Size {
		return n, err
	}
	op := &operation{verb: reading, key: r.object.Key, place: r.store.place, watch: r.store.watch, size: r.object.Size, n: r.n}
	return n, r.store.problem(op, err)
}

// List is all objects whose keys begin with the prefix, without their Meta. It ends after the first
// error.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		var page []byte
		for {
			objects, next, err := s.page(ctx, prefix, page)
			if err != nil {
				yield(Object{}, err)
				return
			}
			for _, o := range objects {
				if !yield(o, nil) {
					return
				}
			}
			if page = next; len(page) == 0 {
				return
			}
		}
	}
}

func (s *Store) page(ctx context.Context, prefix string, page []byte) ([]Object, []byte, error) {
	var objects []Object
	var next []byte
	err := s.do(ctx, listing, prefix, func(ctx context.Context) (err error) {
		objects, next, err = s.storage.list(ctx, prefix, page)
		return err
	})
	if err != nil {
		return nil, nil, err // what the others are is not known: see watch.do
	}
	return objects, next, nil
}

// statsAtOnce is how many objects are asked for at once: no storage has metadata in all its lists.
const statsAtOnce = 8

// Owned is the objects of the owner that [Store.Periodic] has.
func (s *Store) Owned(ctx context.Context, path, owner string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o, err := range s.Periodic(ctx, path) {
			if isOwned := o.Meta.Owner == owner && owner != ""; (err != nil || isOwned) && !yield(o, err) {
				return
			}
		}
	}
}

// Periodic is the objects, with their Meta, whose keys [KeyOf] made of the path. It ends after the first error. The order
// is none.
func (s *Store) Periodic(ctx context.Context, path string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		var batch []string
		// flush is whether to go on.
		flush := func() bool {
			found, errs := make([]Object, len(batch)), make([]error, len(batch))
			var all sync.WaitGroup
			for i, key := range batch {
				all.Go(func() { found[i], errs[i] = s.Stat(ctx, key) })
			}
			all.Wait()
			batch = batch[:0]
			for i, o := range found {
				if p, ok := errors.AsType[*task.Problem](errs[i]); ok && p.Reason == task.ReasonObjectNotFound {
					continue // gone since
				}
				if errs[i] != nil {
					yield(Object{}, errs[i])
					return false
				}
				if !yield(o, nil) {
					return false
				}
			}
			return true
		}
		for o, err := range s.List(ctx, path+"_v") {
			if err != nil {
				yield(Object{}, err)
				return
			}
			if _, _, ok := ParseKey(path, o.Key); !ok {
				continue
			}
			if batch = append(batch, o.Key); len(batch) == statsAtOnce && !flush() {
				return
			}
		}
		flush()
	}
}

// Delete removes an object if it is of the owner: otherwise [task.ReasonObjectOfAnother]. That there is
// none is no error.
func (s *Store) Delete(ctx context.Context, key, owner string) error {
	return s.do(ctx, deleting, key, func(ctx context.Context) error {
		o, err := s.storage.stat(ctx, key)
		switch {
		case errors.Is(err, errNoObject):
			return nil
		case err != nil:
			return err
		case o.Meta.Owner != owner || owner == "":
			return errOccupied
		}
		if err = s.storage.remove(ctx, key); errors.Is(err, errNoObject) {
			return nil
		}
		return err
	})
}

// Tidy removes what uploads have left that began before the time and died: those of keys that
// [KeyOf] made of the path, or of the path itself. Storage keeps them although nobody sees them. It is
// no error if that is not allowed.
func (s *Store) Tidy(ctx context.Context, path string, before time.Time) error {
	err := s.do(ctx, deleting, path, func(ctx context.Context) error { return s.storage.tidy(ctx, path, before) })
	if p, ok := errors.AsType[*task.Problem](err); ok && p.Reason == task.ReasonAccessDenied {
		return nil
	}
	return err
}

// mayBe says whether a key is one of the path: that itself, or one that KeyOf made of it.
func mayBe(path, key string) bool {
	_, _, ok := ParseKey(path, key)
	return ok || key == path
}
