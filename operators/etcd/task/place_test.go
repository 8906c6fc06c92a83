package task

import (
	"errors"
	"testing"

	"example.com/fairlead/api/etcd/v1beta2"
)

func TestPlaceOf(t *testing.T) {
	cases := map[string]struct {
		kind   v1beta2.StorageType
		source v1beta2.BackupSource
		want   Place
		fails  bool
	}{
		"S3": {kind: v1beta2.StorageS3, source: v1beta2.BackupSource{S3: &v1beta2.S3Source{Path: "b/a/c", Endpoint: "http://x", ForcePathStyle: true, AWSSecret: "s"}},
			want: Place{Type: v1beta2.StorageS3, Bucket: "b", Key: "a/c", Endpoint: "http://x", ForcePathStyle: true}},
		"S3 with the pod's identity": {kind: v1beta2.StorageS3, source: v1beta2.BackupSource{S3: &v1beta2.S3Source{Path: "b/a"}},
			want: Place{Type: v1beta2.StorageS3, Bucket: "b", Key: "a", Identity: true}},
		"GCS": {kind: v1beta2.StorageGCS, source: v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "b/a", GCPSecret: "s"}},
			want: Place{Type: v1beta2.StorageGCS, Bucket: "b", Key: "a"}},
		"ABS": {kind: v1beta2.StorageABS, source: v1beta2.BackupSource{ABS: &v1beta2.ABSSource{Path: "b/a", ABSSecret: "s"}},
			want: Place{Type: v1beta2.StorageABS, Bucket: "b", Key: "a"}},
		"a claim": {kind: v1beta2.StorageClaim, source: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.ClaimSource{ClaimName: "c", Path: "a/b"}},
			want: Place{Type: v1beta2.StorageClaim, Bucket: "c", Key: "a/b"}},
		"an unknown type":       {kind: "OSS", fails: true},
		"a type without source": {kind: v1beta2.StorageS3, source: v1beta2.BackupSource{GCS: &v1beta2.GCSSource{Path: "b/a"}}, fails: true},
		"no key":                {kind: v1beta2.StorageS3, source: v1beta2.BackupSource{S3: &v1beta2.S3Source{Path: "b"}}, fails: true},
		"out of the volume":     {kind: v1beta2.StorageClaim, source: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.ClaimSource{ClaimName: "c", Path: "a/../../b"}}, fails: true},
		"a file of ours":        {kind: v1beta2.StorageClaim, source: v1beta2.BackupSource{PersistentVolumeClaim: &v1beta2.ClaimSource{ClaimName: "c", Path: "a" + MetaSuffix}}, fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := PlaceOf(tc.kind, tc.source)
			if tc.fails {
				if p, ok := errors.AsType[*Problem](err); !ok || p.Reason != ReasonPlaceInvalid {
					t.Errorf("PlaceOf() = %v, want %s", err, ReasonPlaceInvalid)
				}
				return
			}
			if err != nil || got != tc.want {
				t.Errorf("PlaceOf() = %+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}
