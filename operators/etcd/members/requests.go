package members

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/prototext"

	"example.com/fairlead/internal/kit/outside"
	"example.com/fairlead/operators/etcd/versions"
)

// call makes a request that tests can get in between.
func (c *client) call(ctx context.Context, verb, what string, at Endpoint, patience time.Duration, request func(context.Context, grpc.ClientConnInterface) error) error {
	return outside.Do(ctx, outside.Call{Verb: verb, What: what, Name: at.Address}, func() error {
		return c.Do(ctx, at, patience, request)
	})
}

// Status takes the alarms from the errors of the status: the request for alarms needs a quorum.
func (c *client) Status(ctx context.Context, at Endpoint) (Status, error) {
	var got *pb.StatusResponse
	err := c.call(ctx, "get", "status", at, Patience, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		got, err = pb.NewMaintenanceClient(conn).Status(ctx, &pb.StatusRequest{})
		return err
	})
	if err != nil {
		return Status{}, err
	}
	s := Status{
		ClusterID: ID(got.GetHeader().GetClusterId()), ID: ID(got.GetHeader().GetMemberId()),
		Version: got.GetVersion(), Leader: ID(got.GetLeader()), IsLearner: got.GetIsLearner(),
		RaftTerm: got.GetRaftTerm(), RaftIndex: got.GetRaftIndex(), Applied: got.GetRaftAppliedIndex(),
		Revision: got.GetHeader().GetRevision(),
		DBSize:   got.GetDbSize(), DBSizeInUse: got.GetDbSizeInUse(), Quota: got.GetDbSizeQuota(),
		StorageVersion: versions.MinorOf(got.GetStorageVersion()),
	}
	s.Alarms, s.Errors = alarmsOf(got.GetErrors())
	if d := got.GetDowngradeInfo(); d.GetEnabled() {
		s.Downgrading = versions.MinorOf(d.GetTargetVersion())
	}
	return s, nil
}

// noLeader is what etcd says in a status that has no leader. Status has that as a value, too.
const noLeader = "etcdserver: no leader"

// alarmsOf reads the alarms in the errors of a status, and returns what is none as it is. Etcd writes an alarm as
// protobuf's text, in which a zero is left out, such as a member that is not known.
func alarmsOf(texts []string) (alarms []Alarm, others []string) {
	for _, text := range texts {
		var raised pb.AlarmMember
		switch {
		case text == noLeader:
		case prototext.Unmarshal([]byte(text), &raised) != nil, raised.GetAlarm().String() != NoSpace && raised.GetAlarm().String() != Corrupt:
			others = append(others, text)
		default:
			alarms = append(alarms, Alarm{Member: ID(raised.GetMemberID()), Type: raised.GetAlarm().String()})
		}
	}
	return alarms, others
}

// List does not ask for a linearizable list. Etcd before 3.5 does not know the field: its
// lists are always those that the member has.
func (c *client) List(ctx context.Context, at Endpoint) (List, error) {
	var got *pb.MemberListResponse
	err := c.call(ctx, "get", "members", at, Patience, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		got, err = pb.NewClusterClient(conn).MemberList(ctx, &pb.MemberListRequest{Linearizable: false})
		return err
	})
	if err != nil {
		return List{}, err
	}
	list := List{ClusterID: ID(got.GetHeader().GetClusterId()), By: ID(got.GetHeader().GetMemberId())}
	for _, m := range got.GetMembers() {
		list.Members = append(list.Members, memberOf(m))
	}
	return list, nil
}

func memberOf(m *pb.Member) Member {
	return Member{
		ID: ID(m.GetID()), Name: m.GetName(), IsLearner: m.GetIsLearner(),
		PeerURLs: m.GetPeerURLs(), ClientURLs: m.GetClientURLs(),
	}
}

// Hash asks for the revision, so that answers can be compared. Etcd before 3.6 does not repeat it.
func (c *client) Hash(ctx context.Context, at Endpoint, revision int64, patience time.Duration) (Hash, error) {
	var got *pb.HashKVResponse
	err := c.call(ctx, "get", "hash", at, patience, func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		got, err = pb.NewMaintenanceClient(conn).HashKV(ctx, &pb.HashKVRequest{Revision: revision})
		return err
	})
	if err != nil {
		return Hash{}, err
	}
	return Hash{Revision: revision, Compacted: got.GetCompactRevision(), Sum: got.GetHash()}, nil
}

// Serves reads what etcd's own health check reads.
func (c *client) Serves(ctx context.Context, at Endpoint) error {
	return c.call(ctx, "get", "health", at, Patience, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		_, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte("health"), Limit: 1, KeysOnly: true})
		return err
	})
}

// Send asks for the status before it cancels a downgrade: from 3.6 on, etcd answers a request to cancel
// with success, whether it could or not.
func (c *client) Send(ctx context.Context, r Request) error {
	cancels := r.What == Downgrade && r.Version == ""
	if cancels {
		switch s, err := c.Status(ctx, r.At); {
		case err != nil:
			return err
		case s.StorageVersion != "" && s.Downgrading == "":
			return ErrNoDowngrade
		}
	}
	if r.What == EnableAuth {
		return c.enableAuth(ctx, r.At)
	}
	if r.What == SetPassword {
		return c.setPassword(ctx, r.At)
	}
	verb, about, _ := strings.Cut(string(r.What), " ")
	return c.call(ctx, verb, cmp.Or(about, "members"), r.At, cmp.Or(r.Patience, ChangePatience), func(ctx context.Context, conn grpc.ClientConnInterface) (err error) {
		switch cluster, maintenance := pb.NewClusterClient(conn), pb.NewMaintenanceClient(conn); {
		case r.What == Add:
			_, err = cluster.MemberAdd(ctx, &pb.MemberAddRequest{PeerURLs: r.PeerURLs, IsLearner: r.Learner})
		case r.What == Promote:
			_, err = cluster.MemberPromote(ctx, &pb.MemberPromoteRequest{ID: uint64(r.ID)})
		case r.What == Rewrite:
			_, err = cluster.MemberUpdate(ctx, &pb.MemberUpdateRequest{ID: uint64(r.ID), PeerURLs: r.PeerURLs})
		case r.What == Remove:
			_, err = cluster.MemberRemove(ctx, &pb.MemberRemoveRequest{ID: uint64(r.ID)})
		case r.What == MoveLeader:
			_, err = maintenance.MoveLeader(ctx, &pb.MoveLeaderRequest{TargetID: uint64(r.ID)})
		case r.What == Compact:
			_, err = pb.NewKVClient(conn).Compact(ctx, &pb.CompactionRequest{Revision: r.Revision, Physical: true})
		case r.What == DropHistory:
			_, err = pb.NewKVClient(conn).Compact(ctx, &pb.CompactionRequest{Revision: r.Revision})
		case r.What == Defragment:
			_, err = maintenance.Defragment(ctx, &pb.DefragmentRequest{})
		case r.What == Disarm:
			_, err = maintenance.Alarm(ctx, &pb.AlarmRequest{
				Action: pb.AlarmRequest_DEACTIVATE, MemberID: uint64(r.Alarm.Member), Alarm: pb.AlarmType(pb.AlarmType_value[r.Alarm.Type]),
			})
		case cancels:
			_, err = maintenance.Downgrade(ctx, &pb.DowngradeRequest{Action: pb.DowngradeRequest_CANCEL})
		case r.What == Downgrade:
			_, err = maintenance.Downgrade(ctx, &pb.DowngradeRequest{Action: pb.DowngradeRequest_ENABLE, Version: r.Version})
		default:
			err = fmt.Errorf("no such request: %q", r.What)
		}
		return err
	})
}
