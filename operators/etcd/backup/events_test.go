package backup

import (
	"fmt"
	"strings"
	"testing"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
)

// TestAnnounce: each thing is reported once.
func TestAnnounce(t *testing.T) {
	absent := func(b *v1beta2.EtcdBackup) {
		conditions := status.Conditions{List: &b.Status.Conditions, Generation: b.Generation}
		conditions.MarkStalled(reasonNoSecret, "Secret \"aws\" does not exist")
	}
	retains := func(b *v1beta2.EtcdBackup) {
		b.Status.PrunedAfter, b.Status.StoredBackups, b.Status.RetainedBackups = 1, new(int32(4)), 2
	}
	for name, tc := range map[string]struct {
		before, after *v1beta2.EtcdBackup
		want          string
	}{
		"nothing":         {aBackup(), aBackup(), ""},
		"made":            {aBackup(), aBackup(made(1, noon)), "Normal BackupMade: Made backup etcd.backup_v000001 of revision 101: 4096 bytes"},
		"made again":      {aBackup(made(1, noon)), aBackup(made(2, noon)), "Normal BackupMade: Made backup etcd.backup_v000002 of revision 102: 4096 bytes"},
		"known":           {aBackup(made(1, noon)), aBackup(made(1, noon), runs(save)), ""},
		"proved":          {aBackup(byRestore, made(1, noon)), aBackup(byRestore, made(1, noon), proved), "Normal BackupProved: Proved backup etcd.backup_v000001: an etcd that was started from it serves revision 101"},
		"retained":        {aBackup(made(1, noon)), aBackup(made(1, noon), retains), "Normal BackupsRetained: Of 4 backups, 2 are to be removed, but the storage does not delete them yet (retention or hold): they are removed later"},
		"retained still":  {aBackup(made(2, noon), retains), aBackup(made(2, noon), retains, func(b *v1beta2.EtcdBackup) { b.Status.PrunedAfter = 2 }), ""},
		"failed":          {aBackup(), aBackup(hasFailed(save, 1, noon)), "Warning BackupFailed: BucketNotFound: There is no bucket \"mybucket\": create it."},
		"failed again":    {aBackup(hasFailed(save, 1, noon)), aBackup(hasFailed(save, 2, noon)), ""},
		"fails otherwise": {aBackup(hasFailed(prune, 1, noon)), aBackup(hasFailed(save, 2, noon)), "Warning BackupFailed: BucketNotFound: There is no bucket \"mybucket\": create it."},
		"is stopped":      {aBackup(), aBackup(absent), "Warning SecretNotFound: Secret \"aws\" does not exist"},
		"remains stopped": {aBackup(absent), aBackup(absent), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var all []string
			for _, e := range announce(t.Context(), tc.before, tc.after) {
				if e.Type == "" {
					e.Type = "Normal"
				}
				all = append(all, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
			}
			if got := strings.Join(all, "; "); got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}
