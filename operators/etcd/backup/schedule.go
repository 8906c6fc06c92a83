package backup

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/walltime"
)

// This file says which step comes next, and when.

// A step that failed is tried again after firstBackoff, then twice that, and so on up to
// longestBackoff. A variable, so that the sweep need not wait.
var firstBackoff = 10 * time.Second

const longestBackoff = 10 * time.Minute

// turn is the next step, and when it is due. Without a step there is none.
type turn struct {
	step v1beta2.BackupStep
	due  time.Time
}

func (t turn) isDue(now time.Time) bool { return t.step != "" && !now.Before(t.due) }

// nextTurn is the next step of an EtcdBackup that has none under way. The error is about its schedule.
func nextTurn(b *v1beta2.EtcdBackup, seen observation) (turn, error) {
	save, err := nextSave(b, seen)
	if err != nil {
		return turn{}, err
	}
	failed := b.Status.LastFailure
	owed := turn{due: seen.now}
	switch {
	case save.step != "" && failed != nil && failed.Step == v1beta2.BackupSave:
		return save, nil // what is owed to the one before waits, so that its result does not hide this
	case owesProof(b):
		owed.step = v1beta2.BackupProve
	case owesPruning(b):
		owed.step = v1beta2.BackupPrune
	default:
		return save, nil
	}
	if failed == nil || failed.Step != owed.step {
		return owed, nil
	}
	// What fails again and again is not in the way of the next backup.
	if owed.due = retryAt(b, seen); save.step == "" || owed.due.Before(save.due) {
		return owed, nil
	}
	return save, nil
}

// nextSave is the next backup.
func nextSave(b *v1beta2.EtcdBackup, seen observation) (turn, error) {
	next := turn{step: v1beta2.BackupSave}
	regular, err := regularTime(b, seen.now)
	switch {
	case err != nil:
		return turn{}, err
	case regular.IsZero() && isComplete(b):
		return turn{}, nil
	case hasFailedToBack(b):
		next.due = retryAt(b, seen)
		if !regular.IsZero() && regular.Before(next.due) {
			next.due = regular
		}
	case regular.IsZero():
		next.due = seen.now
	default:
		next.due = regular
	}
	return next, nil
}

// regularTime is when the next backup of a periodic EtcdBackup is due; zero if it is not periodic.
func regularTime(b *v1beta2.EtcdBackup, now time.Time) (time.Time, error) {
	last := b.Status.LastTryTime
	switch policy := b.Spec.BackupPolicy; {
	case !isPeriodic(b):
		return time.Time{}, nil
	case policy.Schedule == "" && (last == nil || last.After(now)):
		return now, nil
	case policy.Schedule == "":
		return last.Add(interval(b)), nil
	default:
		from := b.CreationTimestamp.Time
		if last != nil {
			from = last.Time
		}
		if from.After(now) {
			from = now
		}
		return nextTime(policy.Schedule, policy.TimeZone, from)
	}
}

// nextTime is the first time of a schedule after another one, by the clocks of a time zone.
func nextTime(schedule, timeZone string, from time.Time) (time.Time, error) {
	zone, err := time.LoadLocation(timeZone)
	if err != nil || timeZone == "Local" {
		return time.Time{}, fmt.Errorf("spec.backupPolicy.timeZone: %q is not known to this operator: write the name of a time zone such as Europe/Berlin", timeZone)
	}
	times, err := cron.ParseStandard(schedule)
	if err != nil {
		return time.Time{}, fmt.Errorf("spec.backupPolicy.schedule: %q is not in the format of a CronJob's schedule, such as \"30 2 * * *\": %w", schedule, err)
	}
	next := nextIn(zone, times, from)
	if next.IsZero() {
		return next, fmt.Errorf("spec.backupPolicy.schedule: %q is never", schedule)
	}
	return next.UTC(), nil
}

// everyHour is the bit of a schedule's hours that says that they were written as *.
const everyHour = 1 << 63

// nextIn is the first time of a schedule after another one, zero if there is none. Where a schedule names hours, each
// day has all of them once, also one that is skipped or that comes twice; what is made every hour, or every
// quarter, goes by the time that passes.
func nextIn(zone *time.Location, times cron.Schedule, from time.Time) time.Time {
	hours, is := times.(*cron.SpecSchedule)
	if !is || hours.Hour&everyHour != 0 {
		return times.Next(from.In(zone))
	}
	// What the clocks skip comes as late as they are set forward: a day is more than that.
	for wall := hours.Next(walltime.Shown(from, zone).AddDate(0, 0, -1)); !wall.IsZero(); wall = hours.Next(wall) {
		if at := walltime.In(wall, zone); at.After(from) {
			return at
		}
	}
	return time.Time{}
}

// retryAt is when the step that failed last is tried again: at once if the spec was changed, or a
// Secret, or the clock was set back.
func retryAt(b *v1beta2.EtcdBackup, seen observation) time.Time {
	failed := b.Status.LastFailure
	if failed.Generation != b.Generation || failed.SecretsHash != seen.secrets || failed.Time.After(seen.now) {
		return seen.now
	}
	return failed.Time.Add(backoff(b))
}

// backoff is the wait after the failures that there were.
func backoff(b *v1beta2.EtcdBackup) time.Duration {
	wait := firstBackoff
	for range b.Status.Failures - 1 {
		if wait *= 2; wait >= longestBackoff {
			wait = longestBackoff
			break
		}
	}
	if i := interval(b); i > 0 {
		wait = min(wait, i)
	}
	return wait
}

// interval is that of the policy; 0 if there is none.
func interval(b *v1beta2.EtcdBackup) time.Duration {
	if b.Spec.BackupPolicy == nil {
		return 0
	}
	return time.Duration(b.Spec.BackupPolicy.BackupIntervalInSecond) * time.Second
}

func isPeriodic(b *v1beta2.EtcdBackup) bool {
	return interval(b) > 0 || b.Spec.BackupPolicy != nil && b.Spec.BackupPolicy.Schedule != ""
}

func isProved(b *v1beta2.EtcdBackup) bool { return b.Spec.Verify == v1beta2.VerifyRestore }

// isComplete says whether an EtcdBackup that is not periodic has its backup, proved or to be proved.
func isComplete(b *v1beta2.EtcdBackup) bool {
	last := b.Status.LastBackup
	return last != nil && last.Problem == "" && (b.Status.Succeeded || owesProof(b))
}

// hasFailedToBack says whether the last try to make a backup has failed, or what it made is
// not to be relied on.
func hasFailedToBack(b *v1beta2.EtcdBackup) bool {
	failed := b.Status.LastFailure
	return failed != nil && (failed.Step == v1beta2.BackupSave || failed.Step == v1beta2.BackupProve && !owesProof(b))
}

func owesProof(b *v1beta2.EtcdBackup) bool {
	last, proof := b.Status.LastBackup, b.Status.LastProof
	return isProved(b) && last != nil && last.Problem == "" && (proof == nil || proof.Number != last.Number)
}

// owesPruning says whether what is not kept was not removed since the last backup, which is to be
// relied on.
func owesPruning(b *v1beta2.EtcdBackup) bool {
	policy, last := b.Spec.BackupPolicy, b.Status.LastBackup
	keepsSome := isPeriodic(b) && (policy.MaxBackups > 0 || policy.MaxAge != nil)
	return keepsSome && last != nil && last.Problem == "" && !owesProof(b) && b.Status.PrunedAfter != last.Number
}
