package etcdtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// Fill writes revisions into the database file of a member that has run once and is stopped, as its store does it
// (go.etcd.io/etcd/server/v3/storage/mvcc): so a great database takes seconds for each GiB. Half of the bytes are
// history. All values have valueSize bytes. It returns the size of the database, as etcd has it.
func Fill(t testing.TB, m *Member, bytes int64, valueSize int) int64 {
	t.Helper()
	if m.IsRunning() {
		t.Fatalf("member %s runs", m.Name)
	}
	path := filepath.Join(m.Data, "member", "snap", "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		t.Fatal(err)
	}
	const first, batch = 2, 10_000 // an empty store is at revision 1
	last := first + bytes/int64(valueSize)
	keys := (last - first + 1) / 2
	value := make([]byte, valueSize)
	for revision := int64(first); revision < last && err == nil; revision += batch {
		err = db.Update(func(tx *bbolt.Tx) error {
			bucket := tx.Bucket([]byte("key"))
			bucket.FillPercent = 0.9 // as etcd does, because revisions grow
			for r := revision; r < min(revision+batch, last); r++ {
				binary.BigEndian.PutUint64(value, rand.Uint64())
				n := (r - first) % keys
				kv := &mvccpb.KeyValue{Key: fmt.Appendf(nil, "%012d", n), Value: value, CreateRevision: first + n, ModRevision: r, Version: 1 + (r-first)/keys}
				data, err := proto.Marshal(kv)
				if err != nil {
					return err
				}
				if err := bucket.Put(revisionKey(r), data); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var size int64
	if err == nil {
		err = db.View(func(tx *bbolt.Tx) error { size = tx.Size(); return nil })
	}
	if err = errors.Join(err, db.Sync(), db.Close()); err != nil {
		t.Fatal(err)
	}
	return size
}

// revisionKey is the key of a revision in the bucket of all of them.
func revisionKey(revision int64) []byte {
	key := binary.BigEndian.AppendUint64(nil, uint64(revision))
	return binary.BigEndian.AppendUint64(append(key, '_'), 0)
}
