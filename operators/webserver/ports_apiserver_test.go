//go:build apiserver

package webserver

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/fairlead/api/web/v1"
)

// TestPortsStay: a Service that is deleted, or whose ports are changed, gets both node
// ports again.
func TestPortsStay(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, aCertificate(t, s.R.Namespace, "cert")))
	s.Must(s.Create(ctx, story(s.R, func(ws *webv1.WebServer) {
		ws.Spec.TLS = &webv1.TLSSpec{SecretName: "cert", Path: "/etc/nginx/tls"}
	})))
	s.settled(reasonReady, "nginx:1")
	ports := func() ([2]int32, error) {
		svc, err := read(ctx, s.R, "web-service", &corev1.Service{})
		return [2]int32{currentNodePort(svc, httpName), currentNodePort(svc, httpsName)}, err
	}
	before, err := ports()
	s.Must(err)
	if st := mustCurrent(s).Status; before != [2]int32{st.NodePort, st.HTTPSNodePort} || st.HTTPSNodePort == 0 {
		t.Errorf("node ports %v, in status %d and %d", before, st.NodePort, st.HTTPSNodePort)
	}
	stay := func() error {
		got, err := ports()
		if err == nil && got != before {
			err = fmt.Errorf("node ports %v, want %v", got, before)
		}
		return err
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "web-service"}}
	s.Must(s.Delete(ctx, svc.DeepCopy()))
	s.Within(5*time.Second, stay)
	spoiled, err := read(ctx, s.R, "web-service", &corev1.Service{})
	s.Must(err)
	spoiled.Spec.Ports[0].Port, spoiled.Spec.Ports[1].Port = 8080, 8443
	s.Must(s.Update(ctx, spoiled))
	s.Within(5*time.Second, stay)
}
