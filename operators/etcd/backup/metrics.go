package backup

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"example.com/fairlead/api/etcd/v1beta2"
)

// Metrics have no label with an object's name: their number does not grow with the number of
// EtcdBackups. So each is of the EtcdBackup that is worst off.
var (
	lastSuccess = prometheus.NewDesc("fairlead_etcd_backup_last_success_timestamp_seconds",
		"When the last backup was made, of the periodic EtcdBackup where that is longest ago; of one without a backup, when it was created. Paused ones are left out.", nil, nil)
	lastProof = prometheus.NewDesc("fairlead_etcd_backup_last_proof_timestamp_seconds",
		"When a backup was last proved, of the periodic EtcdBackup with verify: Restore where that is longest ago; of one without a proof, when it was created. Paused ones are left out.", nil, nil)
	failing = prometheus.NewDesc("fairlead_etcd_backup_failures",
		"EtcdBackups of which the last try has failed.", nil, nil)
)

// figures are those of all EtcdBackups.
var figures = &board{all: map[types.NamespacedName]figure{}}

// figure is what counts of an EtcdBackup; a zero time is of one that does not.
type figure struct {
	success, proof time.Time
	fails          bool
}

// board collects the figures when somebody looks.
type board struct {
	mu  sync.Mutex
	all map[types.NamespacedName]figure
}

func (m *board) note(b *v1beta2.EtcdBackup) {
	f := figure{fails: b.Status.LastFailure != nil}
	if isPeriodic(b) && !b.Spec.Paused {
		f.success = b.CreationTimestamp.Time
		if at := b.Status.LastSuccessDate; at != nil {
			f.success = at.Time
		}
		if isProved(b) {
			f.proof = b.CreationTimestamp.Time
			if proof := b.Status.LastProof; proof != nil {
				f.proof = proof.Time.Time
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[types.NamespacedName{Namespace: b.Namespace, Name: b.Name}] = f
}

func (m *board) forget(b types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, b)
}

// Describe implements prometheus.Collector.
func (m *board) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lastSuccess, lastProof, failing} {
		descs <- d
	}
}

// Collect implements prometheus.Collector. A process that does not lead knows no EtcdBackup, and has no
// figures.
func (m *board) Collect(metrics chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) == 0 {
		return
	}
	var success, proof time.Time
	fails := 0
	for _, f := range m.all {
		success, proof = earlier(success, f.success), earlier(proof, f.proof)
		if f.fails {
			fails++
		}
	}
	gauge := func(d *prometheus.Desc, value float64) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	if !success.IsZero() {
		gauge(lastSuccess, float64(success.Unix()))
	}
	if !proof.IsZero() {
		gauge(lastProof, float64(proof.Unix()))
	}
	gauge(failing, float64(fails))
}

// earlier is the earlier of two times, of which either may be none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
