package model

import (
	"context"
	"testing"
	"time"
)

// TestRestore: a cluster that begins with a backup has what is in it, and nothing else in common with
// that which it was made of.
func TestRestore(t *testing.T) {
	p := newPlay(t, "abc")
	p.put("a", nil)
	s, err := p.Snapshot("a:2379")
	if err != nil {
		t.Fatal(err)
	}
	p.put("a", nil)
	d := p.NewDisk()
	d.Restore(s, "s", "http://s:2380", "token", 1000)
	if d.Cluster() == p.disks["a"].Cluster() || d.Cluster() == 0 || d.Member() == 0 {
		t.Errorf("it is cluster %s, member %s", d.Cluster(), d.Member())
	}
	if _, exit := p.Start(Config{Name: "s", PeerURL: "http://s:2380", Address: "s:2379", Version: "3.6.16", InitialCluster: "none=http://none:2380", Existing: true, Disk: d}); exit != "" {
		t.Fatal(exit)
	}
	p.pass(2 * time.Second)
	status, err := p.client.Status(context.Background(), on("s"))
	if err != nil || status.Leader != d.Member() || status.ClusterID != d.Cluster() || status.Revision != 1000 {
		t.Errorf("%+v, %v", status, err)
	}
	acked := p.Acknowledged()
	if !d.Has(acked[0]) || !s.Has(acked[0]) || d.Has(acked[1]) || s.Has(acked[1]) {
		t.Error("it has not what was written before the backup, or what was written after it")
	}
	p.put("s", nil)
	if p.AcknowledgedBy(p.Acknowledged()[2]) != d.Cluster() || p.AcknowledgedBy(acked[0]) != p.disks["a"].Cluster() {
		t.Error("writes were acknowledged by another cluster")
	}
	p.add("s", "d", true, nil)
	p.put("a", nil)
}
