package backup

import (
	"fmt"
	"strings"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/names"
)

const (
	// gate keeps a pod from being scheduled until status names it.
	gate = "etcd-operator/backup"

	// maxPodFolder is how long the name of a pod's log folder on the node may be, which the
	// kubelet makes of namespace, name and UID with an underscore between them.
	maxPodFolder = 255
	uidLength    = 36
	// maxName is how long the name of an object may be.
	maxName = 253
)

// podName is the name of the pod of a try: the same for every operator that asks, and never that of
// another try, or of another EtcdBackup, also of one that has the same name later.
func podName(b *v1beta2.EtcdBackup, number int64, step v1beta2.BackupStep) string {
	end := fmt.Sprintf("-%s-%s", strings.ToLower(string(step)), names.Hash(fmt.Sprintf("%s/%d/%s", b.UID, number, step)))
	limit := min(maxName, maxPodFolder-len(b.Namespace)-uidLength-2) - len(end)
	return names.Bounded(b.Name, limit) + end
}
