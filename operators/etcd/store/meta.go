package store

import (
	"strconv"
	"strings"
	"time"
)

// Meta is stored with an object: as its metadata, and in a volume in a file beside it.
type Meta struct {
	// Owner is the UID of the EtcdBackup. Only who has the same replaces and deletes the object.
	Owner string
	// Number is that of the try.
	Number int64
	// Revision and Time are those of the backup, and those that are in its key if it is periodic.
	Revision int64
	Time     time.Time
	// EtcdVersion is that of the member, and ClusterID etcd's ID of its cluster, as members.ID writes it.
	EtcdVersion string
	ClusterID   string
}

// metaPrefix is what the names of our metadata begin with. Letters alone are let through as they are by
// all storages.
const metaPrefix = "fairlead"

// metadata is a Meta as an object's metadata, legible in the storage's own console.
func (m Meta) metadata() map[string]string {
	all := map[string]string{metaPrefix + "owner": m.Owner}
	for name, value := range map[string]string{
		"number": number(m.Number), "revision": number(m.Revision), "time": date(m.Time), "etcdversion": m.EtcdVersion, "clusterid": m.ClusterID,
	} {
		if value != "" {
			all[metaPrefix+name] = value
		}
	}
	return all
}

// metaOf reads an object's metadata. What is not ours, or not legible, is passed over.
func metaOf(all map[string]string) Meta {
	of := make(map[string]string, len(all))
	for name, value := range all {
		of[strings.ToLower(name)] = value // Azure's server keeps the case, S3's does not
	}
	get := func(name string) string { return of[metaPrefix+name] }
	num := func(name string) int64 {
		n, _ := strconv.ParseInt(get(name), 10, 64)
		return n
	}
	t, _ := time.Parse(time.RFC3339Nano, get("time"))
	return Meta{Owner: get("owner"), Number: num("number"), Revision: num("revision"), Time: t, EtcdVersion: get("etcdversion"), ClusterID: get("clusterid")}
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
