package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.etcd.io/etcd/tests/v3/robustness/validate"
	"go.uber.org/zap"
)

// patience is how long etcd's validators may look for an order of the operations that explains all answers.
const patience = 5 * time.Minute

// judge has etcd's own validators look at what clients recorded and at what the members have in their logs, which
// are in these data directories. What they skip counts as refused.
func judge(lg *zap.Logger, clients []report.ClientReport, dataDirs []string) error {
	persisted, err := report.PersistedRequests(lg, dataDirs)
	if err != nil {
		return fmt.Errorf("the members' logs: %w", err)
	}
	return judgeAgainst(lg, clients, persisted)
}

func judgeAgainst(lg *zap.Logger, clients []report.ClientReport, persisted []model.EtcdRequest) error {
	clients = withoutDropped(clients, persisted)
	result := validate.ValidateAndReturnVisualize(lg, validate.Config{}, clients, persisted, patience)
	var errs []error
	for _, r := range []struct {
		what   string
		result validate.Result
	}{
		{"assumptions", result.Assumptions},
		{"linearizable", result.Linearization.Result},
		{"watches", result.Watch},
		{"reads of a revision", result.Serializable},
	} {
		if r.result.Status != validate.Success {
			errs = append(errs, fmt.Errorf("%s: %q %s", r.what, r.result.Status, r.result.Message))
		}
	}
	return errors.Join(errs...)
}

// withoutDropped leaves out the transactions that failed and are in no log: each writes a value that no other does. The validators
// mean to do so, but take one that also deletes a key for carried out if anybody has deleted that key. Then they try it in every
// place, which takes minutes in place of seconds.
func withoutDropped(clients []report.ClientReport, persisted []model.EtcdRequest) []report.ClientReport {
	inLog := map[model.ValueOrHash]bool{}
	for _, request := range persisted {
		if request.Type == model.Txn {
			for _, op := range request.Txn.AllOperations() {
				inLog[op.Put.Value] = true
			}
		}
	}
	clients = slices.Clone(clients)
	for i := range clients {
		clients[i].KeyValue = slices.DeleteFunc(slices.Clone(clients[i].KeyValue), func(op porcupine.Operation) bool {
			request, answer := op.Input.(model.EtcdRequest), op.Output.(model.MaybeEtcdResponse)
			return answer.Error != "" && request.Type == model.Txn && slices.ContainsFunc(request.Txn.AllOperations(), func(op model.EtcdOperation) bool {
				return op.Type == model.PutOperation && !inLog[op.Put.Value]
			})
		})
	}
	return clients
}

// figures are what was judged.
type figures struct {
	acknowledged, failed, reads, writes, revisionReads, watches, events, notifications int
}

func count(clients []report.ClientReport) (f figures) {
	for _, c := range clients {
		for _, op := range c.KeyValue {
			request, answer := op.Input.(model.EtcdRequest), op.Output.(model.MaybeEtcdResponse)
			switch {
			case answer.Error != "":
				f.failed++
				continue
			case request.Type == model.Range && request.Range.Revision != 0:
				f.revisionReads++
			case request.IsRead():
				f.reads++
			default:
				f.writes++
			}
			f.acknowledged++
		}
		for _, watch := range c.Watch {
			f.watches++
			for _, response := range watch.Responses {
				f.events += len(response.Events)
				if response.IsProgressNotify {
					f.notifications++
				}
			}
		}
	}
	return f
}

func (f *figures) add(o figures) {
	f.acknowledged += o.acknowledged
	f.failed += o.failed
	f.reads += o.reads
	f.writes += o.writes
	f.revisionReads += o.revisionReads
	f.watches += o.watches
	f.events += o.events
	f.notifications += o.notifications
}

func (f figures) String() string {
	return fmt.Sprintf("%d operations acknowledged (%d writes, %d reads, %d reads of a revision), %d failed; %d watches, %d events, %d progress notifications",
		f.acknowledged, f.writes, f.reads, f.revisionReads, f.failed, f.watches, f.events, f.notifications)
}
