package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
)

const (
	// restoreBound is how much longer a restore takes than a copy of the object, for each GiB or for less than one.
	restoreBound = 20 * time.Second
	// ageKey tells a client whether the cluster has what was backed up, or what was written later.
	ageKey, backedUpAge, laterAge = "age", "backed up", "written later"
)

// restoreEtcd restores a large database into a cluster that runs, again and again, and takes the time until
// a client reads what was backed up and can write. In the end a member loses its volume, and takes all of it
// from the others.
func restoreEtcd(ctx context.Context, b *bench) ([]figure, error) {
	const namespace, key = "bench-etcd-restore", "made"
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
	if err := putAge(ctx, address, backedUpAge); err != nil {
		return nil, err
	}
	backup, err := s.backUp(ctx, ec, key)
	if err != nil {
		return nil, err
	}
	size, err := s.size(ctx, key)
	if err != nil {
		return nil, err
	}
	var more, copied, served, away, whole []time.Duration
	for round := range s.rounds {
		if err := putAge(ctx, address, laterAge); err != nil {
			return nil, err
		}
		if err := b.quiet(ctx); err != nil {
			return nil, err
		}
		_, said, err := s.pipe(ctx, "fetch", bucketName, key, filesPath+"/copy")
		if err != nil {
			return nil, err
		}
		if err := b.quiet(ctx); err != nil {
			return nil, err
		}
		made, err := s.restore(ctx, ec, address, key, fmt.Sprintf("restore-%d", round))
		if err != nil {
			return nil, err
		}
		b.say("round %d: copied in %s, restored and serving after %s, away for %s, three members after %s", round+1,
			inSeconds(said.Took), inSeconds(made.served), inSeconds(made.away), inSeconds(made.whole))
		more, copied = append(more, made.served-said.Took), append(copied, said.Took)
		served, away, whole = append(served, made.served), append(away, made.away), append(whole, made.whole)
	}
	if err := b.quiet(ctx); err != nil {
		return nil, err
	}
	replaced, err := b.repairMember(ctx, ec, ec.Status.Members.Ready[0], lostMember{hasVolumes: true, deletesVolume: true})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d MiB from S3", size>>20)
	bound := restoreBound * time.Duration(max(1, b.databaseSize()>>30))
	return []figure{
		{measure: "etcd restore", what: what + ", copied to a file by a program in a pod", value: inSeconds(median(copied)), spread: "each: " + spread(copied, inSeconds)},
		etcdFigure("etcd restore", what+", from the EtcdRestore's creation until a client reads and writes, less that", more, bound,
			"with it "+spread(served, inSeconds)),
		{measure: "etcd restore", what: "no answer to a client, of that time", value: inSeconds(median(away)), spread: "each: " + spread(away, inSeconds)},
		{measure: "etcd restore", what: "until three members serve and the cluster is Ready", value: inSeconds(median(whole)), spread: "each: " + spread(whole, inSeconds)},
		{measure: "etcd restore", what: "a backup of as much before, once", value: inSeconds(backup.took)},
		{measure: "etcd restore", what: "a pod and its volume deleted: until another member has all of it, once", value: inSeconds(replaced)},
	}, remove(ctx)
}

func putAge(ctx context.Context, address, age string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := etcdClient(address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // nothing is under way
	_, err = c.Put(ctx, ageKey, age)
	return err
}

// restored is what became of a restore: the times from the creation of the EtcdRestore until a client
// was served, and until the cluster was as its spec requests; and the time between the client's last answer
// of the cluster before and the first of the restored one.
type restored struct{ served, away, whole time.Duration }

// restore restores a backup into a cluster, while a client asks it.
func (s *storage) restore(ctx context.Context, ec *v1beta2.EtcdCluster, address, key, name string) (made restored, err error) {
	r := &v1beta2.EtcdRestore{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: v1beta2.RestoreSpec{
			EtcdCluster:   v1beta2.ClusterReference{Name: ec.Name},
			RestoreSource: v1beta2.RestoreSource{BackupStorageType: v1beta2.StorageS3, BackupSource: s.source(key)},
		},
	}
	began := time.Now()
	if err := s.client.Create(ctx, r); err != nil {
		return made, err
	}
	// The cluster before has the later value, so that it is not its answer.
	last := began
	for age := ""; age != backedUpAge; {
		age, err = answers(ctx, address, ageKey)
		now := time.Now()
		switch {
		case err != nil:
		case age == laterAge:
			last = now
		case age == backedUpAge:
			made.away = now.Sub(last)
		default:
			return made, fmt.Errorf("the key %s is %q", ageKey, age)
		}
		if err := s.restoreGoesOn(ctx, r, began); err != nil {
			return made, err
		}
		if err := sleep(ctx, etcdPoll); err != nil {
			return made, err
		}
	}
	if err := putAge(ctx, address, laterAge); err != nil {
		return made, fmt.Errorf("the restored cluster takes no write: %w", err)
	}
	made.served = time.Since(began)
	for !r.Status.Succeeded {
		if err := s.restoreGoesOn(ctx, r, began); err != nil {
			return made, err
		}
		if err := sleep(ctx, etcdPoll); err != nil {
			return made, err
		}
	}
	whole, err := s.etcdWhole(ctx, ec, asCreated)
	made.whole = whole.Sub(began)
	return made, err
}

// restoreGoesOn reads an EtcdRestore, which has not failed.
func (s *storage) restoreGoesOn(ctx context.Context, r *v1beta2.EtcdRestore, began time.Time) error {
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(r), r); err != nil {
		return err
	}
	if r.Status.Phase == v1beta2.RestoreFailed {
		return fmt.Errorf("EtcdRestore %s failed: %s", r.Name, r.Status.Reason)
	}
	if time.Since(began) > etcdPatience {
		return fmt.Errorf("not within %s: EtcdRestore %s: %+v", etcdPatience, r.Name, r.Status)
	}
	return nil
}
