package agent

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/fairlead/internal/kit/words"
	"example.com/fairlead/operators/etcd/snapshot"
	"example.com/fairlead/operators/etcd/store"
	"example.com/fairlead/operators/etcd/task"
)

// reportName is the file, beside etcd's own folders in the data directory, that says what the
// directory was made of.
const reportName = "member/fairlead-fetched.json"

// report is what is in it.
type report struct {
	Member  task.Member
	Fetched task.Fetched
}

// besides is the folder in which a data directory is made. It is on the same volume.
func besides(m *task.Member) string { return m.DataDir + ".fetching" }

// fetch makes a data directory of a backup, unless it was made before. That of a member whose data
// was lost since is not made again: what was acknowledged after the backup is not in it, and its
// etcd would take part as if it were. Without data it exits, and the operator replaces it.
func (a *agent) fetch(ctx context.Context, t task.Task) (*task.Fetched, error) {
	done, err := fetched(t.Member)
	if err != nil {
		return nil, err
	}
	// What is there is half of something, or nobody needs it any more.
	dir := besides(t.Member)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if done != nil {
		a.say("The data directory was made before, of %s", t.Place.Of(done.Key))
		return done, nil
	}
	if a.member != "" {
		a.say("Member %s has lost its data directory: it is not made of a backup again", a.member)
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	from, err := a.open(ctx, t)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }() // nothing was written
	key, err := chosen(ctx, from, t)
	if err != nil {
		return nil, err
	}
	a.say("Fetching %s", t.Place.Of(key))
	file, data := filepath.Join(dir, "snapshot.db"), filepath.Join(dir, "data")
	made := task.Fetched{Key: key}
	if err := download(ctx, from, t.Place, file, &made); err != nil {
		return nil, err
	}
	a.say("Restoring %d bytes", made.Size)
	if err := restore(file, data, t.Member, &made); err != nil {
		return nil, notRestored(err, words.Capitalized(t.Place.Of(key)), t.Member)
	}
	if err := os.Remove(file); err != nil {
		return nil, err
	}
	if err := complete(data, report{Member: *t.Member, Fetched: made}); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	a.say("The data directory has revision %d, and begins at %d", made.Revision, made.Revision+made.Offset)
	return &made, nil
}

// notRestored is why no data directory was made of an object that is whole.
func notRestored(err error, object string, m *task.Member) error {
	var known *task.Problem
	switch newer, is := errors.AsType[*newerError](err); {
	case is:
		return &task.Problem{Reason: task.ReasonObjectTooNew, Message: fmt.Sprintf("%s has data in the format of etcd %s, which the cluster's %s does not know. "+
			"Restore it into an EtcdCluster whose spec.version is one of %[2]s, or set that first; or restore an earlier backup", object, newer.format, m.Version)}
	case isVolumes(err) || errors.As(err, &known):
		return err
	}
	return &task.Problem{Reason: task.ReasonNotRestorable, Message: fmt.Sprintf("%s: etcd cannot be restored from it: %v", object, err)}
}

// fetched is what there is to be reported of a data directory that is complete; nil if there is none.
func fetched(m *task.Member) (*task.Fetched, error) {
	text, err := os.ReadFile(filepath.Join(m.DataDir, reportName))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = os.Lstat(m.DataDir); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err == nil {
			err = inUse(m, "was not made of a backup")
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, inUse(m, "says nothing of the backup that it was made of")
	}
	// The volume may be mounted elsewhere now, and the host's name be in another domain.
	if r.Member.Name != m.Name || r.Member.Token != m.Token {
		return nil, inUse(m, fmt.Sprintf("is that of member %q of another restore", r.Member.Name))
	}
	return &r.Fetched, nil
}

func inUse(m *task.Member, why string) *task.Problem {
	return &task.Problem{Reason: task.ReasonDataDirInUse, Message: fmt.Sprintf("The data directory %s is there, and %s: it is left as it is", m.DataDir, why)}
}

// chosen is the key of the object.
func chosen(ctx context.Context, from *store.Store, t task.Task) (string, error) {
	switch {
	case t.Choose == nil && t.Key != "":
		return t.Key, nil
	case t.Choose == nil:
		return t.Place.Key, nil
	}
	var objects []store.Object
	for object, err := range from.Periodic(ctx, t.Place.Key) {
		if err != nil {
			return "", err
		}
		objects = append(objects, object)
	}
	object, problem := store.Choose(objects, t.Place.Key, *t.Choose)
	if problem != nil {
		return "", problem
	}
	return object.Key, nil
}

// download stores an object in a file, and checks it.
func download(ctx context.Context, from *store.Store, place task.Place, path string, made *task.Fetched) (err error) {
	r, _, err := from.Read(ctx, made.Key)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // all was read, or the error is known
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	c := snapshot.NewCheck()
	_, err = io.Copy(io.MultiWriter(c, file), r)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	made.Size, made.SHA256 = c.Size, hex.EncodeToString(c.Sum())
	object := words.Capitalized(place.Of(made.Key))
	switch err := c.End(); {
	case errors.Is(err, snapshot.ErrForeign):
		return &task.Problem{Reason: task.ReasonObjectForeign, Message: fmt.Sprintf("%s is no snapshot of etcd: name another one", object)}
	case err != nil:
		return &task.Problem{Reason: task.ReasonObjectDamaged, Message: fmt.Sprintf("%s is damaged: %v. Restore an earlier backup", object, err)}
	}
	return nil
}

// complete makes a data directory known, with all that is in it on the disk.
func complete(data string, r report) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, reportName), text, 0o600); err != nil {
		return err
	}
	err = filepath.WalkDir(data, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return fsync(path)
	})
	if err != nil {
		return err
	}
	if err := os.Rename(data, r.Member.DataDir); err != nil {
		return err
	}
	return fsync(filepath.Dir(r.Member.DataDir))
}

// fsync waits until a file, or the names in a folder, are on the disk.
func fsync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
