package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/types"
	etcdutl "go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/task"
	"example.com/fairlead/operators/etcd/versions"
)

// databaseName is etcd's database in a data directory.
const databaseName = "member/snap/db"

// restore makes a data directory of a snapshot whose hash is right, and says what it has. Etcd's
// packages panic where a database is not what they think.
func restore(file, data string, m *task.Member, made *task.Fetched) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	quiet := zap.New(zapcore.NewNopCore(), zap.WithFatalHook(zapcore.WriteThenPanic))
	has, err := contentOf(file)
	if err != nil {
		return err
	}
	made.Revision = has.revision
	if err := servedBy(m.Version, has.format); err != nil {
		return err
	}
	config := etcdutl.RestoreConfig{
		SnapshotPath: file, OutputDataDir: data,
		Name: m.Name, PeerURLs: []string{m.PeerURL},
		InitialCluster: m.Name + "=" + m.PeerURL, InitialClusterToken: m.Token,
	}
	if begins := m.Begins(has.revision); begins > has.revision {
		config.RevisionBump, config.MarkCompacted = uint64(begins-has.lastKey), true
	}
	if err := etcdutl.NewV3(quiet).Restore(config); err != nil {
		return err
	}
	now, err := contentOf(filepath.Join(data, databaseName))
	if err != nil {
		return err
	}
	made.Offset = now.revision - has.revision
	if m.ThrowAway {
		if err := openToAll(filepath.Join(data, databaseName)); err != nil {
			return err
		}
	}
	urls, err := types.NewURLsMap(m.Name + "=" + m.PeerURL)
	if err != nil {
		return err
	}
	cluster, err := membership.NewClusterFromURLsMap(quiet, m.Token, urls)
	if err != nil {
		return err
	}
	made.ClusterID = members.ID(cluster.ID()).String()
	for _, id := range cluster.MemberIDs() {
		made.MemberID = members.ID(id).String()
	}
	return nil
}

// The parts of etcd's database that are read here (go.etcd.io/etcd/server/v3/storage/schema).
var (
	keyBucket, metaBucket, authBucket = []byte("key"), []byte("meta"), []byte("auth")

	compactedKeys = [][]byte{[]byte("scheduledCompactRev"), []byte("finishedCompactRev")}
	authKey       = []byte("authEnabled")
	formatKey     = []byte("storageVersion")
)

// lockPatience is for a lock that only this process can have.
const lockPatience = 10 * time.Second

// content is what is read of a database.
type content struct {
	// revision is that of the store: that of the last change or, if a compaction has removed what was changed then, that of
	// the compaction. lastKey is that of the last change that is there; 0 if none is.
	revision, lastKey int64
	// format is the version in whose format it is, such as 3.6.0: since 3.6 etcd says so.
	format string
}

// contentOf reads the database in a file.
func contentOf(file string) (has content, err error) {
	db, err := bolt.Open(file, 0o400, &bolt.Options{ReadOnly: true, Timeout: lockPatience})
	if err != nil {
		return content{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bolt.Tx) error {
		keys, meta := tx.Bucket(keyBucket), tx.Bucket(metaBucket)
		if keys == nil || meta == nil {
			return errors.New("it is a database, but not one of etcd")
		}
		if last, _ := keys.Cursor().Last(); last != nil {
			has.lastKey = mainRevision(last)
		}
		has.revision = max(1, has.lastKey) // 1 is that of a store that is empty
		for _, key := range compactedKeys {
			if value := meta.Get(key); value != nil {
				has.revision = max(has.revision, mainRevision(value))
			}
		}
		has.format = string(meta.Get(formatKey))
		return nil
	})
	return has, err
}

// newerError says that a snapshot is in the format of a later minor version than that of the etcd that is to serve it.
type newerError struct{ format string }

func (e *newerError) Error() string { return "it has data in the format of etcd " + e.format }

// servedBy returns an error unless an etcd of a version knows a format. Else it does not start, as 3.6 with that of 3.7; or it
// serves, as 3.5, and leaves the format as it is, so that 3.6 does not start with it later. To go back there are etcd's
// downgrades, before the backup.
func servedBy(version, format string) error {
	if version == "" || format == "" {
		return nil
	}
	has, err := versions.ParseMinor(format)
	if err != nil {
		return fmt.Errorf("its format: %w", err)
	}
	knows, err := versions.Parse(version)
	if err != nil {
		return err
	}
	if has > knows.Minor() {
		return &newerError{format: versions.MinorOf(format)}
	}
	return nil
}

// mainRevision is that of a revision as etcd stores it.
func mainRevision(stored []byte) int64 {
	if len(stored) < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(stored))
}

// openToAll has etcd ask nobody for a password.
func openToAll(file string) (err error) {
	db, err := bolt.Open(file, 0o600, &bolt.Options{Timeout: lockPatience})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Update(func(tx *bolt.Tx) error {
		if auth := tx.Bucket(authBucket); auth != nil && auth.Get(authKey) != nil {
			return auth.Put(authKey, []byte{0})
		}
		return nil
	})
}

// isVolumes says whether an error is of the volume, and not of what is restored.
func isVolumes(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO) ||
		errors.As(err, new(*os.PathError)) || errors.As(err, new(*os.LinkError))
}
