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
	if made.Revision, err = revisionOf(file); err != nil {
		return err
	}
	err = etcdutl.NewV3(quiet).Restore(etcdutl.RestoreConfig{
		SnapshotPath: file, OutputDataDir: data,
		Name: m.Name, PeerURLs: []string{m.PeerURL},
		InitialCluster: m.Name + "=" + m.PeerURL, InitialClusterToken: m.Token,
	})
	if err != nil {
		return err
	}
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
)

// lockPatience is for a lock that only this process can have.
const lockPatience = 10 * time.Second

// revisionOf is the revision of a snapshot's store: that of the last change or, if a compaction has
// removed what was changed then, that of the compaction.
func revisionOf(file string) (revision int64, err error) {
	db, err := bolt.Open(file, 0o400, &bolt.Options{ReadOnly: true, Timeout: lockPatience})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bolt.Tx) error {
		keys, meta := tx.Bucket(keyBucket), tx.Bucket(metaBucket)
		if keys == nil || meta == nil {
			return errors.New("it is a database, but not one of etcd")
		}
		revision = 1 // of a store that is empty
		if last, _ := keys.Cursor().Last(); last != nil {
			revision = max(revision, mainRevision(last))
		}
		for _, key := range compactedKeys {
			if value := meta.Get(key); value != nil {
				revision = max(revision, mainRevision(value))
			}
		}
		return nil
	})
	return revision, err
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
