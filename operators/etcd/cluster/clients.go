package cluster

import (
	"fmt"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/members"
)

// This file is for those who are clients of an EtcdCluster.

// ClientURLs are where clients reach the members that status has.
func ClientURLs(ec *v1beta2.EtcdCluster) []string {
	var all []string
	for _, m := range ec.Status.MemberList {
		if isOurs(ec, m.Name) {
			all = append(all, fmt.Sprintf("%s://%s:%d", scheme(ec), hostOf(ec, m.Name), members.ClientPort))
		}
	}
	return all
}

// ClientSecret is the name of the Secret with a client's certificate; empty without TLS.
func ClientSecret(ec *v1beta2.EtcdCluster) string {
	if ec.Spec.TLS == nil {
		return ""
	}
	uses := usesOf(ec)
	return uses[len(uses)-1].secret // the operator's own
}

// Image is the image of a version.
func Image(ec *v1beta2.EtcdCluster, version string) string { return imageOf(ec, version) }

// Static is what the operator's role has to allow for EtcdClusters, among other things.
var Static = kind
