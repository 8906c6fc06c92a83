package rollout

import (
	"errors"
	"fmt"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/view"
)

// Authenticate turns authentication on, if spec.auth requests it and it is off: by one request, which may be repeated
// whatever of it was done. Where the operator is root by its certificate, it also gives root the password that the
// Secret has: nobody else can say which of the two is right. Otherwise etcd knows the operator only by the password, and
// a wrong one is the user's to correct. An etcd that is being taken over stays as it is until that is done.
func Authenticate(ec *v1beta2.EtcdCluster, v *view.View) (s step.Step) {
	if ec.Spec.Auth == nil || v.AsksElsewhere {
		return s
	}
	err, isRoot := v.Auth.LoggedIn, ec.Spec.TLS != nil && ec.Spec.TLS.Generated != nil
	switch {
	case v.Auth.Problem != nil:
		s.Note(*v.Auth.Problem)
	case errors.Is(err, members.ErrAuthOff):
		s.Report(reason.Authenticating, "Turning authentication on, with the password of root in Secret %q", ec.Spec.Auth.RootSecret)
		s.Request = step.AskedLeader(ec, v, "authentication is on", members.Request{What: members.EnableAuth})
		s.Soon()
		return s.Last()
	case errors.Is(err, members.ErrPassword) && isRoot:
		s.Report(reason.Authenticating, "Giving root the password in Secret %q", ec.Spec.Auth.RootSecret)
		s.Request = step.AskedLeader(ec, v, "root has another password", members.Request{What: members.SetPassword})
		s.Soon()
		return s.Last()
	case errors.Is(err, members.ErrAuth):
		s.Note(Refusal(ec, v))
		s.Later()
	case err != nil:
		s.Report(reason.Authenticating, "It is not known whether authentication is on: %v", err)
		s.Later()
	}
	return s
}

// Refusal is what to do where etcd refuses the operator.
func Refusal(ec *v1beta2.EtcdCluster, v *view.View) status.Problem {
	p := status.Problem{Reason: reason.Refused}
	switch {
	case v.Auth.Problem != nil:
		return *v.Auth.Problem
	case ec.Spec.Auth != nil:
		p.Message = fmt.Sprintf("Etcd refuses the operator: root's password is not that in Secret %q. Put the one that root has in etcd into the Secret, "+
			"or change it in etcd with `etcdctl user passwd root`", ec.Spec.Auth.RootSecret)
	case ec.Spec.TLS != nil && ec.Spec.TLS.Static != nil:
		p.Message = fmt.Sprintf("Etcd refuses the operator: authentication is on, and the common name of the certificate in Secret %q is no user with the role root. "+
			"Set spec.auth.rootSecret to the name of a Secret that has root's password under the key password", ec.Spec.TLS.Static.OperatorSecret)
	default:
		p.Message = "Etcd refuses the operator: authentication is on. Set spec.auth.rootSecret to the name of a Secret that has root's password under the key password"
	}
	return p
}
