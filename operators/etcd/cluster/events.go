package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/versions"
)

// The reasons of the CoreOS operator's events.
const (
	eventAdded     = "New Member Added"
	eventRemoved   = "Member Removed"
	eventReplacing = "Replacing Dead Member"
	eventUpgraded  = "Member Upgraded"
)

// announce is about a change of status, when it is one to report.
func announce(ctx context.Context, before, after *v1beta2.EtcdCluster) []loop.Event {
	events := append(announceRestore(ctx, before, after), disruption.Announce(before.Status.Conditions, after.Status.Conditions)...)
	events = append(events, announceDrain(before, after)...)
	if !isSwitch(before, after) {
		events = append(events, announceMembers(before, after)...)
	}
	if before.Status.Recovered.IDOf() != after.Status.Recovered.IDOf() {
		r := after.Status.Recovered
		note := "Started an empty cluster: the data of all members was lost"
		switch {
		case r.Backup != "":
			note = fmt.Sprintf("Started again from backup %s, of revision %d: the last one known before was %d, and the next ones are above %d", r.Backup, r.Revision, r.LostRevision, r.Revision+r.RevisionOffset)
		case r.Member != "":
			note = fmt.Sprintf("Started again from member %s at revision %d", r.Member, r.Revision)
		}
		log.FromContext(ctx).Info("quorum recovered", "member", r.Member, "revision", r.Revision)
		events = append(events, loop.Event{Type: corev1.EventTypeWarning, Reason: "QuorumRecovered", Action: "Recover", Note: note})
	}
	for _, kept := range after.Status.KeptVolumes {
		if !slices.ContainsFunc(before.Status.KeptVolumes, func(was v1beta2.KeptVolume) bool { return was.PersistentVolumeClaim == kept.PersistentVolumeClaim }) {
			events = append(events, loop.Event{Type: corev1.EventTypeWarning, Reason: "VolumeKept", Action: "Keep", Note: fmt.Sprintf(
				"PersistentVolumeClaim %s of a replaced member is kept until %s: %s. Delete it to let it go", kept.PersistentVolumeClaim, kept.Until.UTC().Format(time.RFC3339), kept.Reason)})
		}
	}
	if before.Status.ObservedGeneration != after.Status.ObservedGeneration {
		if ignored := ignoredFields(after); len(ignored) > 0 {
			events = append(events, loop.Event{Type: corev1.EventTypeWarning, Reason: "FieldIgnored", Action: "Read",
				Note: fmt.Sprintf("These fields of spec are of earlier versions of the API or of etcd, and have no effect: %s", strings.Join(ignored, ", "))})
		}
	}
	isStalled := meta.IsStatusConditionTrue(after.Status.Conditions, status.Stalled)
	return append(events, loop.AnnounceReady(ctx, before.Status.Conditions, after.Status.Conditions, "Serve", func(is metav1.Condition) bool {
		return is.Status == metav1.ConditionTrue || is.Reason == reason.NotTrusted || isStalled && is.Reason != reason.Paused
	})...)
}

// isSwitch says whether a change of status is that to a restored cluster.
func isSwitch(before, after *v1beta2.EtcdCluster) bool {
	was, is := before.Status.Restoring, after.Status.Restoring
	return was != nil && is != nil && was.Phase == v1beta2.RestoreSwitching && is.Phase == v1beta2.RestoreCompleting
}

// announceRestore reports a restore that has begun, that has switched, and that is over.
func announceRestore(ctx context.Context, before, after *v1beta2.EtcdCluster) []loop.Event {
	logger := log.FromContext(ctx)
	var events []loop.Event
	was, is := before.Status.Restoring, after.Status.Restoring
	if is != nil && (was == nil || was.ID != is.ID) {
		logger.Info("restore begun", "restore", is.Name, "seed", is.Seed)
		events = append(events, loop.Event{Reason: "RestoreBegun", Action: "Restore", Note: fmt.Sprintf("Member %s reads a backup, while the cluster goes on as it is", is.Seed)})
	}
	if isSwitch(before, after) {
		logger.Info("switched to a restored cluster", "seed", is.Seed, "key", is.Key, "revision", is.Revision, "lostRevision", is.LostRevision)
		events = append(events, loop.Event{Reason: "Switched", Action: "Restore",
			Note: fmt.Sprintf("Member %s, restored from %s with revision %d, has replaced a cluster whose last revision known is %d", is.Seed, is.Key, is.Revision, is.LostRevision)})
	}
	done, old := after.Status.Restored, before.Status.Restored
	if done == nil || old != nil && old.ID == done.ID {
		return events
	}
	logger.Info("restore over", "restore", done.Name, "failed", done.FailureMessage, "key", done.Key, "revision", done.Revision)
	if done.FailureMessage != "" {
		return append(events, loop.Event{Type: corev1.EventTypeWarning, Reason: reason.RestoreFailed, Action: "Restore", Note: status.Shortened(done.FailureMessage)})
	}
	return append(events, loop.Event{Reason: "Restored", Action: "Restore", Note: fmt.Sprintf("Restored from %s with revision %d: the cluster is complete", done.Key, done.Revision)})
}

// announceMembers reports members that came, went or changed their version.
func announceMembers(before, after *v1beta2.EtcdCluster) []loop.Event {
	var events []loop.Event
	was := map[string]v1beta2.MemberStatus{}
	for _, m := range before.Status.MemberList {
		was[m.Name] = m
	}
	for _, m := range after.Status.MemberList {
		old := was[m.Name]
		delete(was, m.Name)
		if m.ID != "" && old.ID == "" {
			events = append(events, loop.Event{Reason: eventAdded, Action: "Add", Note: fmt.Sprintf("New member %s added to cluster", m.Name)})
		}
		if old.Version != "" && m.Version != "" && old.Version != m.Version {
			events = append(events, loop.Event{Reason: eventUpgraded, Action: "Upgrade", Note: fmt.Sprintf("Member %s upgraded from %s to %s", m.Name, old.Version, m.Version)})
		}
	}
	if after.Status.ClusterID == "" {
		return events
	}
	for _, m := range before.Status.MemberList {
		if _, gone := was[m.Name]; !gone {
			continue
		}
		if before.Status.Size <= after.Spec.Size && !objects.GoesBack(after) {
			events = append(events, loop.Event{Type: corev1.EventTypeWarning, Reason: eventReplacing, Action: "Replace", Note: fmt.Sprintf("The data of member %s was lost: it is replaced", m.Name)})
		}
		events = append(events, loop.Event{Reason: eventRemoved, Action: "Remove", Note: fmt.Sprintf("Existing member %s removed from the cluster", m.Name)})
	}
	return events
}

// ignoredFields are the fields of earlier versions of the API that are set.
func ignoredFields(ec *v1beta2.EtcdCluster) []string {
	var all []string
	for field, isSet := range map[string]bool{
		"baseImage": ec.Spec.BaseImage != "", "backup": ec.Spec.Backup != nil, "restore": ec.Spec.Restore != nil, "selfHosted": ec.Spec.SelfHosted != nil,
		"pod.busyboxImage":       ec.Spec.Pod != nil && ec.Spec.Pod.BusyboxImage != "",
		"pod.DNSTimeoutInSecond": ec.Spec.Pod != nil && ec.Spec.Pod.DNSTimeoutInSecond != 0,
	} {
		if isSet {
			all = append(all, field)
		}
	}
	if v, err := versions.Parse(ec.Spec.Version); err == nil && v.Minor() >= versions.Experimental && ec.Spec.Pod != nil {
		for _, variable := range ec.Spec.Pod.EtcdEnv {
			if instead, _ := versions.Replacement(variable.Name); instead != "" {
				all = append(all, fmt.Sprintf("pod.etcdEnv %s (use %s)", variable.Name, instead))
			}
		}
	}
	slices.Sort(all)
	return all
}

func byType(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) }
