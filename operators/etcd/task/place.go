package task

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"example.com/fairlead/api/etcd/v1beta2"
)

// Where the storage's Secret and the claim are mounted in a pod.
const (
	SecretDir = "/etc/fairlead/storage"
	VolumeDir = "/var/backups"
)

// MaxKey is how many bytes a key may have: S3 and Azure have 1024.
const MaxKey = 1024

// Place is a key, or what keys begin with, in a bucket or in a volume. It has no credentials: it is
// handed to pods as JSON.
type Place struct {
	Type v1beta2.StorageType
	// Bucket is the bucket, the container of Azure, or the name of the claim.
	Bucket string
	// Key is that of an object, or what the keys of a periodic backup begin with: the path of
	// KeyOf and Choose in package store.
	Key string
	// Endpoint is the URL of a server that is not the cloud's own.
	Endpoint string `json:",omitempty"`
	// ForcePathStyle has S3's bucket in the path of URLs.
	ForcePathStyle bool `json:",omitempty"`
	// Identity says that no Secret is named, and the pod's own identity is used.
	Identity bool `json:",omitempty"`
}

// What the names of files in a volume end with that are no objects.
const (
	MetaSuffix = ".fairlead-meta"
	PartSuffix = ".fairlead-part"
)

// IsInternal says whether a file in a volume is no object.
func IsInternal(name string) bool {
	return strings.HasSuffix(name, MetaSuffix) || strings.HasSuffix(name, PartSuffix)
}

// PlaceOf is the place that an API object names. The error is a [*Problem], of [ReasonPlaceInvalid]:
// the CRD's validation lets none of them in, unless it is of another version.
func PlaceOf(t v1beta2.StorageType, s v1beta2.BackupSource) (Place, error) {
	switch {
	case t == v1beta2.StorageS3 && s.S3 != nil:
		p := Place{Type: t, Endpoint: s.S3.Endpoint, ForcePathStyle: s.S3.ForcePathStyle, Identity: s.S3.AWSSecret == ""}
		return p.in("s3.path", s.S3.Path)
	case t == v1beta2.StorageGCS && s.GCS != nil:
		return Place{Type: t, Endpoint: s.GCS.Endpoint, Identity: s.GCS.GCPSecret == ""}.in("gcs.path", s.GCS.Path)
	case t == v1beta2.StorageABS && s.ABS != nil:
		return Place{Type: t, Endpoint: s.ABS.Endpoint}.in("abs.path", s.ABS.Path)
	case t == v1beta2.StorageClaim && s.PersistentVolumeClaim != nil:
		p := Place{Type: t, Bucket: s.PersistentVolumeClaim.ClaimName, Key: s.PersistentVolumeClaim.Path}
		return p, p.Check(p.Key)
	}
	return Place{}, &Problem{Reason: ReasonPlaceInvalid, Message: fmt.Sprintf(
		"The storage type is %q, and the field that belongs to it is not set: use S3 with s3, GCS with gcs, ABS with abs, or PersistentVolumeClaim with persistentVolumeClaim", t)}
}

// in is the place with the bucket and the key of a path.
func (p Place) in(field, text string) (Place, error) {
	bucket, key, _ := strings.Cut(text, "/")
	if bucket == "" || key == "" {
		return Place{}, &Problem{Reason: ReasonPlaceInvalid, Message: fmt.Sprintf("%s is %q: write <bucket>/<key>", field, text)}
	}
	p.Bucket, p.Key = bucket, key
	return p, p.Check(key)
}

// String names the place in messages.
func (p Place) String() string { return p.Of(p.Key) }

// Of names another key of the same bucket or volume in messages.
func (p Place) Of(key string) string {
	if p.Type == v1beta2.StorageClaim {
		return fmt.Sprintf("file %q in PersistentVolumeClaim %q", key, p.Bucket)
	}
	return fmt.Sprintf("object %q in %s %q", key, p.KindOfBucket(), p.Bucket)
}

// KindOfBucket is what the storage calls its buckets.
func (p Place) KindOfBucket() string {
	switch p.Type {
	case v1beta2.StorageABS:
		return "container"
	case v1beta2.StorageClaim:
		return "PersistentVolumeClaim"
	default:
		return "bucket"
	}
}

// Check refuses keys that no storage has, or that lead out of a volume.
func (p Place) Check(key string) error {
	isVolume := p.Type == v1beta2.StorageClaim
	var wrong string
	switch {
	case !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl):
		wrong = "has characters that cannot be printed"
	case len(key) > MaxKey:
		wrong = fmt.Sprintf("has more than %d bytes", MaxKey)
	case key == "" || strings.HasPrefix(key, "/") || strings.HasSuffix(key, "/"):
		wrong = "is empty, or begins or ends with /"
	case strings.Contains(key, "../"):
		wrong = "has ../ in it" // the library would write another key
	case isVolume && (!filepath.IsLocal(key) || path.Clean(key) != key):
		wrong = "has . or .. or // in it"
	case isVolume && IsInternal(key):
		wrong = fmt.Sprintf("ends with %s or %s, which files of ours do", MetaSuffix, PartSuffix)
	default:
		return nil
	}
	return &Problem{Reason: ReasonPlaceInvalid, Message: fmt.Sprintf("The path %.200q %s: change it", key, wrong)}
}

// Wanted says which of the backups of a path: the newest at or before a revision, at or before a
// time, or of all.
type Wanted struct {
	Revision *int64     `json:",omitempty"`
	Time     *time.Time `json:",omitempty"`
	// ClusterID is etcd's ID of the cluster whose backups are taken rather than those of others; empty if it has none yet.
	ClusterID string `json:",omitempty"`
}

func (w Wanted) String() string {
	switch {
	case w.Revision != nil:
		return fmt.Sprintf("at or before revision %d", *w.Revision)
	case w.Time != nil:
		return "at or before " + w.Time.UTC().Format(time.RFC3339)
	}
	return "at all"
}
