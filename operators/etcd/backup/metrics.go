package backup

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/metrics"
)

var (
	lastSuccess = metrics.Gauge("fairlead_etcd_backup_last_success_timestamp_seconds",
		"When the last backup was made and, with verify: Restore, proved, of the periodic EtcdBackup where that is longest ago (a Unix time); of one without a backup, when it was created. Paused ones are left out.",
		"namespace", "name")
	nextDue = metrics.Gauge("fairlead_etcd_backup_due_timestamp_seconds",
		"When the backup after the last good one is due, or was, by the interval or schedule of the periodic EtcdBackup where that is earliest (a Unix time); of one without a backup, when its first was. Paused ones are left out.",
		"namespace", "name")
	lastProof = metrics.Gauge("fairlead_etcd_backup_last_proof_timestamp_seconds",
		"When a backup was last proved, of the periodic EtcdBackup with verify: Restore where that is longest ago (a Unix time); of one without a proof, when it was created. Paused ones are left out.",
		"namespace", "name")
	proofDue = metrics.Gauge("fairlead_etcd_backup_proof_due_timestamp_seconds",
		"When the backup after the last proved one is due, or was, by the interval or schedule of the periodic EtcdBackup with verify: Restore where that is earliest (a Unix time); of one without a proof, when its next backup is, or its first was. Paused ones are left out.",
		"namespace", "name")
	failing = metrics.Gauge("fairlead_etcd_backup_failures",
		"EtcdBackups of which the last try has failed.")
	duration = metrics.Histogram("fairlead_etcd_backup_duration_seconds",
		"How long it took to save a backup that was made, without its proof and the start of its pod.",
		[]float64{1, 2.5, 5, 10, 30, 60, 150, 300, 600, 1800, 3600})
	size = metrics.Histogram("fairlead_etcd_backup_size_bytes",
		"Size of each backup that was made. Its _sum is what was stored in all, also if it was removed since.",
		[]float64{1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30, 1 << 32, 1 << 34})
)

// figures are those of all EtcdBackups.
var figures = newFigures()

func newFigures() *metrics.Board[types.NamespacedName, figure] {
	return metrics.NewBoard(sum, lastSuccess, nextDue, lastProof, proofDue, failing)
}

// figure is what counts of an EtcdBackup; a zero time is of one that does not.
type figure struct {
	success, due, proof, proofDue time.Time
	fails                         bool
}

// noteFigure keeps what the metrics say of an EtcdBackup.
func noteFigure(b *v1beta2.EtcdBackup, _ observation) {
	figures.Note(client.ObjectKeyFromObject(b), figureOf(b))
}

func figureOf(b *v1beta2.EtcdBackup) figure {
	f := figure{fails: b.Status.LastFailure != nil}
	if isPeriodic(b) && !b.Spec.Paused {
		f.success = b.CreationTimestamp.Time
		if at := b.Status.LastSuccessDate; at != nil {
			f.success = at.Time
		}
		f.due = dueAfter(b, f.success)
		if isProved(b) {
			f.proof, f.proofDue = b.CreationTimestamp.Time, f.due
			if proof := b.Status.LastProof; proof != nil {
				f.proof, f.proofDue = proof.Time.Time, dueAfter(b, proof.Time.Time)
			}
		}
	}
	return f
}

// dueAfter is when a periodic EtcdBackup is due again that had its last good backup, or began, at a time. One whose
// schedule is wrong will not have another: it is due since then.
func dueAfter(b *v1beta2.EtcdBackup, last time.Time) time.Time {
	if every := interval(b); every > 0 {
		if b.Status.LastSuccessDate == nil {
			return last // the first is made at once
		}
		return last.Add(every)
	}
	next, err := nextTime(b.Spec.BackupPolicy.Schedule, b.Spec.BackupPolicy.TimeZone, last)
	if err != nil {
		return last
	}
	return next
}

func sum(all map[types.NamespacedName]figure, say metrics.Say) {
	success, next, proof, nextProof, fails := metrics.Worst{}, metrics.Worst{}, metrics.Worst{}, metrics.Worst{}, 0
	for object, f := range all {
		if !f.success.IsZero() {
			success.Note(object, float64(f.success.Unix()))
			next.Note(object, float64(f.due.Unix()))
		}
		if !f.proof.IsZero() {
			proof.Note(object, float64(f.proof.Unix()))
			nextProof.Note(object, float64(f.proofDue.Unix()))
		}
		if f.fails {
			fails++
		}
	}
	success.Say(say, lastSuccess)
	next.Say(say, nextDue)
	proof.Say(say, lastProof)
	nextProof.Say(say, proofDue)
	say(failing, float64(fails))
}

// count counts a backup that was made.
func count(made *v1beta2.StoredBackup) {
	size.WithLabelValues().Observe(float64(made.Size))
	if made.Duration != nil {
		duration.WithLabelValues().Observe(made.Duration.Seconds())
	}
}

func registerMetrics() error {
	duration.WithLabelValues()
	size.WithLabelValues()
	return metrics.Register(figures, duration, size)
}
