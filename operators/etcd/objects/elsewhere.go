package objects

import (
	"net/url"
	"strings"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
)

// Elsewhere are the members that the operator does not run and asks all the same, by their URLs: those of the etcd that
// is being taken over.
func Elsewhere(ec *v1beta2.EtcdCluster) map[string]members.Endpoint {
	join := ec.Spec.JoinFrom
	if join == nil || ec.Status.Join != nil && ec.Status.Join.Phase == v1beta2.JoinComplete {
		return nil
	}
	all := map[string]members.Endpoint{}
	for _, text := range join.EtcdEndpoints {
		if u, err := url.Parse(strings.TrimSuffix(text, "/")); err == nil {
			all[text] = members.Endpoint{Address: u.Host, ServerName: u.Hostname()}
		}
	}
	return all
}
