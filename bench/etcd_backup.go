package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/test/e2e/etcd/load"
)

const (
	// backupBound is the speed of a backup, as a part of that of the pipe.
	backupBound = 0.7
	// backupMemoryBound is what the operator's pod may take more, in bytes.
	backupMemoryBound = 64 << 20
	// writesBound is the part of the writes that may be lost while a backup is made.
	writesBound = 0.1
	// asFast is more writes a second than are ever answered: each writer writes again when it has an
	// answer, at once.
	asFast = 20_000
)

// backUpEtcd takes a backup of a large database, and pipes a snapshot of it to the same place: alone, and while
// clients write.
func backUpEtcd(ctx context.Context, b *bench) ([]figure, error) {
	const namespace = "bench-etcd-backup"
	remove, err := b.scratch(ctx, namespace)
	if err != nil {
		return nil, err
	}
	s, err := b.newStorage(ctx, namespace)
	if err != nil {
		return nil, err
	}
	ec, address, err := b.newLargeEtcd(ctx, namespace)
	if err != nil {
		return nil, err
	}
	figures, alone, err := s.backUpAlone(ctx, ec)
	if err != nil {
		return nil, err
	}
	backup := func(ctx context.Context, key string) error {
		_, err := s.backUp(ctx, ec, key)
		return err
	}
	pipe := func(ctx context.Context, key string) error {
		_, _, err := s.pipeEtcd(ctx, ec, key)
		return err
	}
	fast := fmt.Sprintf("%d clients that write as fast as they are answered: writes lost during ", writers)
	paced := fmt.Sprintf("%d clients that write %d times a second in all: writes lost during ", writers, writeRate)
	for _, how := range []loaded{
		// How much of the machine etcd's own snapshot takes from clients that leave none of it unused is
		// seen with the pipe: it is for the comparison of the two that there is no bound.
		{what: fast + "a backup", rate: asFast, copyTo: backup},
		{what: fast + "the pipe", rate: asFast, copyTo: pipe},
		{what: paced + "a backup", rate: writeRate, copyTo: backup, isBounded: true},
	} {
		made, err := s.copyLoaded(ctx, address, alone, how)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", how.what, err)
		}
		figures = append(figures, made)
	}
	return figures, remove(ctx)
}

// backUpAlone compares the two while nothing else is done. It also returns how long a backup took.
func (s *storage) backUpAlone(ctx context.Context, ec *v1beta2.EtcdCluster) ([]figure, time.Duration, error) {
	var ours, piped, itself []time.Duration
	var operators, agents []float64 // in bytes
	var size int64
	for round := range s.rounds + 1 {
		if err := s.quiet(ctx); err != nil {
			return nil, 0, err
		}
		tookPipe, said, err := s.pipeEtcd(ctx, ec, "piped")
		if err != nil {
			return nil, 0, err
		}
		if err := s.end(ctx, "piped"); err != nil {
			return nil, 0, err
		}
		made, err := s.backUp(ctx, ec, "made")
		if err != nil {
			return nil, 0, err
		}
		if size, err = s.size(ctx, "made"); err != nil {
			return nil, 0, err
		}
		if err := s.end(ctx, "made"); err != nil {
			return nil, 0, err
		}
		text := fmt.Sprintf("%s, the pipe %s (%s of its program); operator %d to %d MiB, agent %d MiB", inSeconds(made.took),
			inSeconds(tookPipe), inSeconds(said.Took), made.before>>20, made.operator>>20, made.agent>>20)
		if round == 0 {
			s.say("a warm-up, not counted: %s", text)
			continue
		}
		s.say("round %d: %s", round, text)
		ours, piped, itself = append(ours, made.took), append(piped, tookPipe), append(itself, said.Took)
		operators = append(operators, float64(made.operator)-float64(made.before))
		agents = append(agents, float64(made.agent))
	}
	speeds := quotients(piped, ours)
	percent := func(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }
	mib := func(bytes float64) string { return fmt.Sprintf("%.1f MiB", bytes/(1<<20)) }
	what := fmt.Sprintf("%d MiB to S3", size>>20)
	more := slices.Max(operators)
	return []figure{
		{
			measure: "etcd backup", what: what + ", from the EtcdBackup's creation until it has succeeded", value: inSeconds(median(ours)),
			spread: fmt.Sprintf("each: %s; %.0f MiB a second", spread(ours, inSeconds), rate(int(size>>20), median(ours))),
		},
		{
			measure: "etcd backup", what: what + ", etcdctl's snapshot piped, from the pod's creation until it has succeeded", value: inSeconds(median(piped)),
			spread: fmt.Sprintf("each: %s; of the program alone: %s", spread(piped, inSeconds), spread(itself, inSeconds)),
		},
		{
			measure: "etcd backup", what: "speed, against the pipe", value: percent(median(speeds)), spread: "rounds: " + spread(speeds, percent),
			bound: "≥ " + percent(backupBound), missed: median(speeds) < backupBound,
		},
		{
			measure: "etcd backup", what: "more memory in the operator's pod, at most", value: mib(more), spread: "each: " + spread(operators, mib),
			bound: "≤ " + mib(backupMemoryBound), missed: more > backupMemoryBound,
		},
		{
			measure: "etcd backup", what: "memory of the agent's pod, at most", value: mib(slices.Max(agents)), spread: "each: " + spread(agents, mib),
		},
	}, median(ours), nil
}

// end makes room, and waits until nothing of the last copy goes on.
func (s *storage) end(ctx context.Context, key string) error {
	if err := s.remove(ctx, key); err != nil {
		return err
	}
	return s.quiet(ctx)
}

// pipeEtcd pipes a snapshot of a member to an object: of one that does not lead, as backups are.
func (s *storage) pipeEtcd(ctx context.Context, ec *v1beta2.EtcdCluster, key string) (time.Duration, piped, error) {
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(ec), ec); err != nil {
		return 0, piped{}, err
	}
	for _, member := range ec.Status.Members.Ready {
		if member == ec.Status.Leader {
			continue
		}
		took, said, err := s.pipe(ctx, "save", fmt.Sprintf("http://%s.%s.%s.svc:2379", member, ec.Name, ec.Namespace), bucketName, key)
		if err == nil {
			_, err = s.size(ctx, key)
		}
		return took, said, err
	}
	return 0, piped{}, fmt.Errorf("EtcdCluster %s has no member to take a snapshot of: %s", ec.Name, etcdState(ec))
}

// backedUp is what became of a backup. Memory is working sets of pods, in bytes.
type backedUp struct {
	took time.Duration
	// before is the operator's right before the backup, and operator and agent are the most that was seen
	// while it was made.
	before, operator, agent uint64
}

// backUp makes a backup, once, and removes the EtcdBackup.
func (s *storage) backUp(ctx context.Context, ec *v1beta2.EtcdCluster, key string) (made backedUp, err error) {
	manager, err := s.managerPod(ctx, etcdOperator)
	if err != nil {
		return made, err
	}
	if made.before, err = workingSet(string(manager.UID)); err != nil {
		return made, err
	}
	backup := &v1beta2.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: key},
		Spec:       v1beta2.BackupSpec{EtcdCluster: ec.Name, StorageType: v1beta2.StorageS3, BackupSource: s.source(key)},
	}
	began := time.Now()
	if err := s.client.Create(ctx, backup); err != nil {
		return made, err
	}
	for done := false; !done; {
		if err := sleep(ctx, etcdPoll); err != nil {
			return made, err
		}
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(backup), backup); err != nil {
			return made, err
		}
		made.took, done = time.Since(began), backup.Status.Succeeded
		if failure := backup.Status.LastFailure; failure != nil {
			return made, fmt.Errorf("EtcdBackup %s failed: %s: %s", key, failure.Reason, failure.Message)
		}
		if made.took > etcdPatience {
			return made, fmt.Errorf("not within %s: EtcdBackup %s: %+v", etcdPatience, key, backup.Status)
		}
		now, err := workingSet(string(manager.UID))
		if err != nil {
			return made, err
		}
		made.operator = max(made.operator, now)
		running := backup.Status.Running
		if running == nil || running.PodUID == "" {
			continue
		}
		now, err = workingSet(string(running.PodUID))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) {
			return made, err
		}
		made.agent = max(made.agent, now) // 0 before the pod is there, and after
	}
	if made.agent == 0 {
		return made, fmt.Errorf("the memory of the agent of EtcdBackup %s was not seen", key)
	}
	after, err := s.managerPod(ctx, etcdOperator)
	if err == nil && after.UID != manager.UID {
		err = errors.New("the operator's pod was replaced meanwhile")
	}
	if err != nil {
		return made, err
	}
	return made, s.client.Delete(ctx, backup)
}

// workingSet is the memory of a pod, in bytes, as the kubelet counts it: all but the pages of
// files that were not used lately. The kubelet itself looks every ten seconds only, which is longer than a
// backup takes; so this reads the same files of the pod's cgroup. The local cluster's are the machine's.
func workingSet(pod string) (uint64, error) {
	for _, version := range []struct{ root, usage, inactive string }{
		{"/sys/fs/cgroup/memory", "memory.usage_in_bytes", "total_inactive_file"},
		{"/sys/fs/cgroup", "memory.current", "inactive_file"},
	} {
		for _, class := range []string{"", "burstable", "besteffort"} {
			found, err := filepath.Glob(filepath.Join(version.root, "localcluster-*", "kubepods", class, "pod"+pod))
			if err != nil {
				return 0, err
			}
			if len(found) > 0 {
				return workingSetOf(found[0], version.usage, version.inactive)
			}
		}
	}
	return 0, fmt.Errorf("the cgroup of pod %s: %w", pod, fs.ErrNotExist)
}

func workingSetOf(cgroup, usage, inactive string) (uint64, error) {
	used, err := os.ReadFile(filepath.Join(cgroup, usage))
	if err != nil {
		return 0, err
	}
	bytesUsed, err := strconv.ParseUint(strings.TrimSpace(string(used)), 10, 64)
	if err != nil {
		return 0, err
	}
	stat, err := os.ReadFile(filepath.Join(cgroup, "memory.stat"))
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(stat)); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), " "); name == inactive {
			idle, err := strconv.ParseUint(value, 10, 64)
			return bytesUsed - min(idle, bytesUsed), err
		}
	}
	return 0, fmt.Errorf("%s/memory.stat has no %s", cgroup, inactive)
}

// loaded is a copy that is made while clients write, rate times a second in all.
type loaded struct {
	what      string
	rate      int
	copyTo    func(ctx context.Context, key string) error
	isBounded bool
}

// copyLoaded copies the database while clients write, and tells how many fewer writes were acknowledged
// meanwhile than in the same time before and after. Alone is how long a copy takes when nobody writes.
func (s *storage) copyLoaded(ctx context.Context, address string, alone time.Duration, how loaded) (figure, error) {
	var lost, with, without []float64
	for round := range s.rounds {
		key := fmt.Sprintf("loaded-%d", round)
		if err := s.quiet(ctx); err != nil {
			return figure{}, err
		}
		l, err := load.Start(ctx, load.Config{
			Endpoints: func() []string { return []string{address} }, Rate: how.rate, Writers: writers,
		})
		if err != nil {
			return figure{}, err
		}
		// Under a load it takes longer than alone. Clients have connected after two seconds.
		before := 2 * alone
		began, ended, failure := amid(ctx, 2*time.Second+before, func() error { return how.copyTo(ctx, key) })
		history, err := l.Stop(context.WithoutCancel(ctx))
		if err := errors.Join(failure, err); err != nil {
			return figure{}, err
		}
		took := ended.Sub(began)
		usual := (acknowledged(history, began.Add(-min(took, before)), began) + acknowledged(history, ended, ended.Add(took))) / 2
		meanwhile := acknowledged(history, began, ended)
		if usual == 0 {
			return figure{}, errors.New("no write was acknowledged before and after")
		}
		s.say("%s: %.0f writes a second for %s, and %.0f before and after", how.what, meanwhile, inSeconds(took), usual)
		lost, with, without = append(lost, 1-meanwhile/usual), append(with, meanwhile), append(without, usual)
		if err := s.remove(ctx, key); err != nil {
			return figure{}, err
		}
	}
	percent := func(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }
	made := figure{
		measure: "etcd backup", what: how.what, value: percent(median(lost)),
		spread: fmt.Sprintf("rounds: %s; %.0f writes a second in place of %.0f", spread(lost, percent), median(with), median(without)),
	}
	if how.isBounded {
		made.bound, made.missed = "≤ "+percent(writesBound), median(lost) > writesBound
	}
	return made, nil
}

// amid does something after a load has gone on for a while, and lets the load go on for as long as
// that took.
func amid(ctx context.Context, lead time.Duration, do func() error) (began, ended time.Time, err error) {
	if err := sleep(ctx, lead); err != nil {
		return began, ended, err
	}
	began = time.Now()
	if err := do(); err != nil {
		return began, ended, err
	}
	ended = time.Now()
	return began, ended, sleep(ctx, ended.Sub(began))
}

// acknowledged is how many writes were, a second.
func acknowledged(history load.History, from, to time.Time) float64 {
	begin, end, n := from.Sub(history.Start), to.Sub(history.Start), 0
	for i := range history.Ops {
		if op := &history.Ops[i]; op.Kind == load.Write && op.Outcome == load.Done && op.Return >= begin && op.Return < end {
			n++
		}
	}
	return rate(n, to.Sub(from))
}
