package store

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"example.com/fairlead/operators/etcd/task"
)

const (
	// Whoever is of the volume's group may remove backups: pods may have other users.
	fileMode = 0o660
	dirMode  = 0o770
	// syncEvery keeps what the kernel has not yet written small, so that the last sync is no silence.
	syncEvery = 32 << 20
	// tailSize is how many of a file's last bytes tell it from others of the same size: in a snapshot of etcd
	// they are the SHA-256 of the rest.
	tailSize = 32
)

// volume is a folder. An object is a file, with its Meta in a second one beside it. That is written before,
// and says of which file it is: if the two do not fit, because somebody died in between, only the
// owner in it counts, which is the same for both.
//
// No symbolic link leads out of it: see [os.Root].
type volume struct {
	root  *os.Root
	watch *watch
}

// beside is what is in the second file.
type beside struct {
	Meta Meta
	Size int64
	Tail string
}

func openVolume(_ context.Context, o opened) (storage, error) {
	root, err := os.OpenRoot(o.volumeDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &task.Problem{Reason: task.ReasonClaimNotFound, Retriable: true, Message: fmt.Sprintf("PersistentVolumeClaim %q is not mounted at %s", o.Bucket, o.volumeDir)}
	}
	if err != nil {
		return nil, err
	}
	return &volume{root: root, watch: o.watch}, nil
}

func (v *volume) close() error { return v.root.Close() }

func (v *volume) stat(_ context.Context, key string) (Object, error) {
	info, err := v.root.Stat(key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Object{}, errNoObject
	case err != nil:
		return Object{}, err
	case !info.Mode().IsRegular():
		return Object{}, &task.Problem{Reason: task.ReasonPlaceInvalid, Message: fmt.Sprintf("The path %q is no file in the volume: change it", key)}
	}
	meta, err := v.meta(key, info.Size())
	return Object{Key: key, Size: info.Size(), Time: info.ModTime(), Meta: meta}, err
}

// meta is what is known of a file of that size.
func (v *volume) meta(key string, size int64) (Meta, error) {
	text, err := v.root.ReadFile(key + task.MetaSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return Meta{}, nil
	}
	if err != nil {
		return Meta{}, err
	}
	var b beside
	if json.Unmarshal(text, &b) != nil {
		return Meta{}, nil
	}
	f, err := v.root.Open(key)
	if err != nil {
		return Meta{}, err
	}
	defer func() { _ = f.Close() }()
	tail := make([]byte, min(size, tailSize))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return Meta{}, err
	}
	if b.Size != size || b.Tail != hex.EncodeToString(tail) {
		return Meta{Owner: b.Meta.Owner}, nil
	}
	return b.Meta, nil
}

func (v *volume) write(ctx context.Context, key string, meta Meta, _ bool, r io.Reader) (err error) {
	dir := path.Dir(key)
	if err := v.mkdir(dir); err != nil {
		return err
	}
	var parts []string
	defer func() {
		for _, p := range parts {
			_ = v.root.Remove(p)
		}
	}()
	add := func() string {
		parts = append(parts, key+"."+rand.String(8)+task.PartSuffix)
		return parts[len(parts)-1]
	}
	data, b := add(), beside{Meta: meta}
	if b.Size, b.Tail, err = v.part(ctx, data, r); err != nil {
		return err
	}
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	about := add()
	if _, _, err := v.part(ctx, about, strings.NewReader(string(text))); err != nil {
		return err
	}

	unlock, err := v.lock(ctx, dir)
	if err != nil {
		return err
	}
	defer unlock()
	// What was seen before the data came is long ago.
	switch now, err := v.stat(ctx, key); {
	case errors.Is(err, errNoObject):
	case err != nil:
		return err
	case now.Meta.Owner != meta.Owner:
		return errOccupied
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := v.root.Rename(about, key+task.MetaSuffix); err != nil {
		return err
	}
	if err := v.sync(dir); err != nil {
		return err
	}
	if err := v.root.Rename(data, key); err != nil {
		return err
	}
	return v.sync(dir)
}

// part writes a file that is no object, until it is on the disk.
func (v *volume) part(ctx context.Context, name string, r io.Reader) (size int64, tail string, err error) {
	f, err := v.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return 0, "", err
	}
	w := &part{File: f, ctx: ctx, watch: v.watch}
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, make([]byte, 1<<20))
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return w.size, hex.EncodeToString(w.tail), err
}

// part is a file that is being written.
type part struct {
	*os.File
	ctx            context.Context
	watch          *watch
	size, unsynced int64
	tail           []byte
}

func (p *part) Write(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := p.File.Write(b)
	p.size, p.unsynced = p.size+int64(n), p.unsynced+int64(n)
	p.tail = append(p.tail, b[max(0, n-tailSize):n]...)
	p.tail = p.tail[max(0, len(p.tail)-tailSize):]
	if err == nil && p.unsynced >= syncEvery {
		p.unsynced, err = 0, p.Sync()
	}
	p.watch.touch()
	return n, err
}

// mkdir creates a folder and those that it is in, each on the disk before the next.
func (v *volume) mkdir(dir string) error {
	if dir == "." {
		return nil
	}
	if _, err := v.root.Stat(dir); err == nil {
		return nil
	}
	if err := v.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	if err := v.root.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return v.sync(path.Dir(dir))
}

// sync has the names in a folder on the disk.
func (v *volume) sync(dir string) error {
	d, err := v.root.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err // some network file systems have no sync of folders
	}
	return nil
}

// lock keeps other pods from putting an object into a folder meanwhile, where the file system has locks.
func (v *volume) lock(ctx context.Context, dir string) (func(), error) {
	d, err := v.root.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return func() { _ = d.Close() }, nil
		}
		select {
		case <-ctx.Done():
			_ = d.Close()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (v *volume) read(_ context.Context, key string) (io.ReadCloser, error) {
	f, err := v.root.Open(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoObject
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// list is all in one page. Only folders are looked into that may have what is wanted: of others the
// agent may know nothing, as of lost+found.
func (v *volume) list(ctx context.Context, prefix string, _ []byte) (objects []Object, next []byte, err error) {
	err = fs.WalkDir(v.root.FS(), path.Dir(prefix+"x"), func(name string, entry fs.DirEntry, err error) error {
		v.watch.touch()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone meanwhile, or no folder of the name
		case err != nil:
			return err
		case entry.IsDir() && name != "." && !strings.HasPrefix(name+"/", prefix) && !strings.HasPrefix(prefix, name+"/"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || task.IsInternal(name) || !strings.HasPrefix(name, prefix):
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			objects = append(objects, Object{Key: name, Size: info.Size(), Time: info.ModTime()})
		}
		return err
	})
	return objects, nil, err
}

// remove removes the object, and then what is beside it.
func (v *volume) remove(_ context.Context, key string) error {
	if err := v.root.Remove(key); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return errNoObject
		}
		return err
	}
	if err := v.sync(path.Dir(key)); err != nil {
		return err
	}
	if err := v.root.Remove(key + task.MetaSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (v *volume) tidy(ctx context.Context, of string, before time.Time) error {
	d, err := v.root.Open(path.Dir(of))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	entries, err := d.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(path.Join(path.Dir(of), e.Name()), task.PartSuffix)
		if !ok || !mayBe(of, strings.TrimSuffix(name, path.Ext(name))) {
			continue
		}
		// One that is being written was changed just now.
		if info, err := e.Info(); err == nil && info.ModTime().Before(before) {
			if err := v.root.Remove(name + task.PartSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (v *volume) problem(o *operation, err error) *task.Problem {
	inner := innermost(err)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return o.full(inner.Error())
	case errors.Is(err, syscall.EROFS):
		return o.problem(task.ReasonAccessDenied, true, "the volume is mounted read-only, or its file system had errors: check the claim")
	case errors.Is(err, fs.ErrPermission):
		return o.problem(task.ReasonAccessDenied, true, "the pod's user may not (%v): the volume's files must be accessible to group 65532, which fsGroup does for most drivers", inner)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return o.problem(task.ReasonPlaceInvalid, false, "the name is too long for the file system: choose a shorter path")
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR):
		return o.problem(task.ReasonPlaceInvalid, false, "there is a file where the path has a folder, or a folder where it has a file: choose another path")
	}
	return o.problem(task.ReasonStorageFailed, true, "%v", inner)
}
