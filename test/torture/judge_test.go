package main

import (
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/tests/v3/robustness/model"
	"go.etcd.io/etcd/tests/v3/robustness/report"
	"go.uber.org/zap"
)

// TestJudge records a short load on a real etcd. As it was it is accepted; with each lie that is planted in it, it is refused.
func TestJudge(t *testing.T) {
	lg := zap.NewNop()
	clients, persisted := record(t, lg)
	f := count(clients)
	t.Log(f)
	if f.writes < 100 || f.reads < 100 || f.revisionReads < 10 || f.events < 100 {
		t.Fatal("there is too little to judge")
	}
	if err := judgeAgainst(lg, clients, persisted); err != nil {
		t.Fatalf("a good history is refused: %v", err)
	}
	dropped := withDropped(t, clients)
	if kept := withoutDropped(dropped, persisted); len(kept[len(kept)-1].KeyValue) != 0 || count(kept).acknowledged != f.acknowledged {
		t.Errorf("of %s, and a transaction that was dropped, is left: %s", f, count(kept))
	}
	if err := judgeAgainst(lg, dropped, persisted); err != nil {
		t.Errorf("a good history with a transaction that was dropped is refused: %v", err)
	}
	lies := map[string]struct {
		tell func(testing.TB, []report.ClientReport, []model.EtcdRequest) []model.EtcdRequest
		want string
	}{
		"the last write is lost":           {lostWrite, "linearizable"},
		"a write is in no member's log":    {lostInBetween, "watches"},
		"a read is stale":                  {staleRead, "linearizable"},
		"a read of a revision is wrong":    {wrongRevisionRead, "reads of a revision"},
		"a watch misses an event":          {missedEvent, "broke Reliable"},
		"a watch has an event twice":       {doubledEvent, "broke Unique"},
		"a watch has events in bad order":  {swappedEvents, "broke Ordered"},
		"a watch is resumed with a gap":    {badlyResumed, "broke Resumable"},
		"nothing is in the members' logs":  {nothingPersisted, "watches"},
		"the database was not a new one":   {notEmpty, "assumptions"},
		"a progress notification is early": {earlyNotification, "broke Bookmarkable"},
	}
	for _, name := range slices.Sorted(maps.Keys(lies)) {
		t.Run(name, func(t *testing.T) {
			told := copied(clients)
			err := judgeAgainst(lg, told, lies[name].tell(t, told, slices.Clone(persisted)))
			if err == nil || !strings.Contains(err.Error(), lies[name].want) {
				t.Errorf("the verdict is %v, want %s", err, lies[name].want)
			}
		})
	}
}

// withDropped has a transaction fail that is in no log, with the deletion of a key that somebody else deletes.
func withDropped(t testing.TB, clients []report.ClientReport) []report.ClientReport {
	t.Helper()
	clients = copied(clients)
	at := find(t, clients, func(r model.EtcdRequest, _ model.MaybeEtcdResponse) bool {
		return r.Type == model.Txn && len(r.Txn.OperationsOnSuccess) == 1 && r.Txn.OperationsOnSuccess[0].Type == model.DeleteOperation
	})[0]
	deletion := clients[at.client].KeyValue[at.operation]
	dropped, request := deletion, deletion.Input.(model.EtcdRequest)
	request.Txn = &model.TxnRequest{OperationsOnSuccess: []model.EtcdOperation{
		request.Txn.OperationsOnSuccess[0], {Type: model.PutOperation, Put: model.PutOptions{Key: "key1", Value: model.ToValueOrHash("dropped")}},
	}}
	dropped.Input, dropped.Output = request, model.MaybeEtcdResponse{Error: "raft proposal dropped"}
	dropped.ClientId = 1 << 20 // as each that fails
	return append(clients, report.ClientReport{ClientID: 1 << 20, KeyValue: []porcupine.Operation{dropped}})
}

// record has clients use an etcd for a while, and returns what they recorded and what is in its log.
func record(t *testing.T, lg *zap.Logger) ([]report.ClientReport, []model.EtcdRequest) {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.Logger, cfg.LogLevel = t.TempDir(), "zap", "fatal"
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = []url.URL{anyPort}, []url.URL{anyPort}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	<-e.Server.ReadyNotify()
	endpoints := []string{e.Clients[0].Addr().String()}
	l, err := startLoad(t.Context(), lg, endpoints)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second)
	clients, err := l.stop(t.Context(), endpoints)
	if err != nil {
		t.Fatal(err)
	}
	persisted, err := report.PersistedRequests(lg, []string{cfg.Dir})
	if err != nil {
		t.Fatal(err)
	}
	return clients, persisted
}

// copied is deep enough to lie in.
func copied(clients []report.ClientReport) []report.ClientReport {
	clients = slices.Clone(clients)
	for i := range clients {
		clients[i].KeyValue = slices.Clone(clients[i].KeyValue)
		clients[i].Watch = slices.Clone(clients[i].Watch)
		for j := range clients[i].Watch {
			clients[i].Watch[j].Responses = slices.Clone(clients[i].Watch[j].Responses)
			for k := range clients[i].Watch[j].Responses {
				clients[i].Watch[j].Responses[k].Events = slices.Clone(clients[i].Watch[j].Responses[k].Events)
			}
		}
	}
	return clients
}

// place is where an operation is.
type place struct{ client, operation int }

// find returns where the acknowledged operations of a kind are, in the order of their calls.
func find(t testing.TB, clients []report.ClientReport, is func(model.EtcdRequest, model.MaybeEtcdResponse) bool) []place {
	t.Helper()
	var found []place
	for c := range clients {
		for o, op := range clients[c].KeyValue {
			answer := op.Output.(model.MaybeEtcdResponse)
			if answer.Error == "" && is(op.Input.(model.EtcdRequest), answer) {
				found = append(found, place{c, o})
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("there is no such operation")
	}
	slices.SortFunc(found, func(a, b place) int {
		return int(clients[a.client].KeyValue[a.operation].Call - clients[b.client].KeyValue[b.operation].Call)
	})
	return found
}

func isList(r model.EtcdRequest, _ model.MaybeEtcdResponse) bool {
	return r.Type == model.Range && r.Range.Revision == 0 && r.Range.End != "" && !r.Range.KeysOnly
}

// lostWrite has a client read all keys after the last write, and not find it: it is in no log either.
func lostWrite(t testing.TB, clients []report.ClientReport, persisted []model.EtcdRequest) []model.EtcdRequest {
	lists := find(t, clients, isList)
	last := lists[len(lists)-1]
	read := clients[last.client].KeyValue[last.operation]
	write := find(t, clients, func(r model.EtcdRequest, _ model.MaybeEtcdResponse) bool {
		return r.Type == model.Txn && len(r.Txn.OperationsOnSuccess) == 1 && r.Txn.OperationsOnSuccess[0].Put.Key == "last"
	})[0]
	c := &clients[write.client]
	acknowledged := c.KeyValue[write.operation]
	answer := acknowledged.Output.(model.MaybeEtcdResponse)
	request := read.Input.(model.EtcdRequest)
	request.Range = &model.RangeRequest{RangeOptions: model.RangeOptions{Start: "last"}}
	read.Input, read.ClientId, read.Call, read.Return = request, acknowledged.ClientId, acknowledged.Return+1, acknowledged.Return+2
	read.Output = model.MaybeEtcdResponse{EtcdResponse: model.EtcdResponse{Range: &model.RangeResponse{KVs: []model.KeyValue{}}, Revision: answer.Revision - 1}}
	c.KeyValue = append(c.KeyValue, read)
	return persisted[:len(persisted)-1]
}

// lostInBetween removes an acknowledged put from the members' logs.
func lostInBetween(t testing.TB, clients []report.ClientReport, persisted []model.EtcdRequest) []model.EtcdRequest {
	puts := find(t, clients, func(r model.EtcdRequest, _ model.MaybeEtcdResponse) bool {
		return r.Type == model.Txn && len(r.Txn.Conditions) == 0 && len(r.Txn.OperationsOnSuccess) == 1 && r.Txn.OperationsOnSuccess[0].Type == model.PutOperation
	})
	at := puts[len(puts)/2]
	lost := clients[at.client].KeyValue[at.operation].Input.(model.EtcdRequest).Txn.OperationsOnSuccess[0].Put
	return slices.DeleteFunc(persisted, func(r model.EtcdRequest) bool {
		return r.Type == model.Txn && len(r.Txn.OperationsOnSuccess) == 1 && r.Txn.OperationsOnSuccess[0].Put == lost
	})
}

// staleRead answers a read with what was there long before.
func staleRead(t testing.TB, clients []report.ClientReport, persisted []model.EtcdRequest) []model.EtcdRequest {
	lists := find(t, clients, isList)
	old, late := lists[len(lists)/3], lists[2*len(lists)/3]
	clients[late.client].KeyValue[late.operation].Output = clients[old.client].KeyValue[old.operation].Output
	return persisted
}

func wrongRevisionRead(t testing.TB, clients []report.ClientReport, persisted []model.EtcdRequest) []model.EtcdRequest {
	at := find(t, clients, func(r model.EtcdRequest, a model.MaybeEtcdResponse) bool {
		return r.Type == model.Range && r.Range.Revision != 0 && a.Range != nil && len(a.Range.KVs) > 0
	})[0]
	op := &clients[at.client].KeyValue[at.operation]
	answer := op.Output.(model.MaybeEtcdResponse)
	answer.Range = &model.RangeResponse{KVs: slices.Clone(answer.Range.KVs), Count: answer.Range.Count}
	answer.Range.KVs[0].Value = model.ValueOrHash{Value: "another"}
	op.Output = answer
	return persisted
}

// longest is the watch with the most responses: one of those that watch everything.
func longest(clients []report.ClientReport) *model.WatchOperation {
	var found *model.WatchOperation
	for c := range clients {
		for w := range clients[c].Watch {
			if watch := &clients[c].Watch[w]; found == nil || len(watch.Responses) > len(found.Responses) {
				found = watch
			}
		}
	}
	return found
}

// inside is a response with events, in the middle of a watch.
func inside(t testing.TB, watch *model.WatchOperation) int {
	t.Helper()
	for i := len(watch.Responses) / 2; i < len(watch.Responses); i++ {
		if len(watch.Responses[i].Events) > 0 {
			return i
		}
	}
	t.Fatal("there are no events")
	return 0
}

func missedEvent(t testing.TB, clients []report.ClientReport, persisted []model.EtcdRequest) []model.EtcdRequest {
	watch := longest(clients)
	at := inside(t, watch)
	watch.Responses = slices.Delete(watch.Responses, at, at+1)
	return persisted
}

func doubledEvent(t testing.TB, clients []report.ClientReport, persisted []model.EtcdRequest) []model.EtcdRequest {
	watch := longest(clients)
	at := inside(t, watch)
	events := &watch.Responses[at].Events
	*events = append(*events, (*events)[len(*events)-1])
	return persisted
}

func swappedEvents(t testing.TB, clients []report.ClientReport, persisted []model.EtcdRequest) []model.EtcdRequest {
	watch := longest(clients)
	at := inside(t, watch)
	for next := at + 1; next < len(watch.Responses); next++ {
		if len(watch.Responses[next].Events) > 0 {
			watch.Responses[at].Events, watch.Responses[next].Events = watch.Responses[next].Events, watch.Responses[at].Events
			return persisted
		}
	}
	t.Fatal("there is no next event")
	return nil
}

// badlyResumed is a watch from a revision on whose first event is missing.
func badlyResumed(t testing.TB, clients []report.ClientReport, persisted []model.EtcdRequest) []model.EtcdRequest {
	watch := longest(clients)
	at := inside(t, watch)
	watch.Request.Revision = watch.Responses[at].Events[0].Revision
	watch.Responses = watch.Responses[at+1:]
	return persisted
}

func earlyNotification(t testing.TB, clients []report.ClientReport, persisted []model.EtcdRequest) []model.EtcdRequest {
	watch := longest(clients)
	at := inside(t, watch)
	early := model.WatchResponse{IsProgressNotify: true, Revision: math.MaxInt32, Time: watch.Responses[at].Time}
	watch.Responses = slices.Insert(watch.Responses, at, early)
	return persisted
}

func nothingPersisted(testing.TB, []report.ClientReport, []model.EtcdRequest) []model.EtcdRequest {
	return nil
}

func notEmpty(_ testing.TB, clients []report.ClientReport, persisted []model.EtcdRequest) []model.EtcdRequest {
	for c := range clients {
		for o, op := range clients[c].KeyValue {
			if answer := op.Output.(model.MaybeEtcdResponse); answer.Revision == 1 {
				answer.Revision = 2
				clients[c].KeyValue[o].Output = answer
			}
		}
	}
	return persisted
}
