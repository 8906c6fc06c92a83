//go:build apiserver

package webserver

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/internal/kit/testkit"
)

// TestValidation: bad input is refused at the door, with a message that says
// what would be right.
func TestValidation(t *testing.T) {
	server := testkit.Server(t)
	ns := server.NewNamespace(t)
	c, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		spec string
		want string // "" if it is valid
	}{
		"the guide's":                 {spec: "{image: 'nginx:1.23.1', replicas: 3}"},
		"an image only":               {spec: "{image: nginx}"},
		"no replicas":                 {spec: "{image: nginx, replicas: 0}"},
		"a port":                      {spec: "{image: nginx, port: 65535}"},
		"a node port":                 {spec: "{image: nginx, service: {nodePort: 30500}}"},
		"a page":                      {spec: "{image: nginx, content: {inline: hello}}"},
		"a budget in percent":         {spec: "{image: nginx, disruption: {minAvailable: '50%'}}"},
		"a container beside":          {spec: "{image: nginx, podTemplate: {spec: {containers: [{name: log, image: busybox}]}}}"},
		"a template without":          {spec: "{image: nginx, podTemplate: {spec: {nodeSelector: {a: b}}}}"},
		"autoscaling":                 {spec: "{image: nginx, autoscaling: {maxReplicas: 3}}"},
		"no image":                    {spec: "{replicas: 1}", want: "spec.image: Required value"},
		"an empty image":              {spec: "{image: ''}", want: "spec.image"},
		"spaces for an image":         {spec: "{image: '  '}", want: "must be the name of an image, without spaces"},
		"negative replicas":           {spec: "{image: nginx, replicas: -1}", want: "should be greater than or equal to 0"},
		"port 0":                      {spec: "{image: nginx, port: 0}", want: "should be greater than or equal to 1"},
		"port 70000":                  {spec: "{image: nginx, port: 70000}", want: "should be less than or equal to 65535"},
		"node port 70000":             {spec: "{image: nginx, service: {nodePort: 70000}}", want: "should be less than or equal to 65535"},
		"a node port without nodes":   {spec: "{image: nginx, service: {type: ClusterIP, nodePort: 30500}}", want: "a Service of type ClusterIP has no nodePort"},
		"another type of Service":     {spec: "{image: nginx, service: {type: ExternalName}}", want: "Unsupported value"},
		"two pages":                   {spec: "{image: nginx, content: {inline: a, configMap: b}}", want: "give exactly one of configMap"},
		"no page":                     {spec: "{image: nginx, content: {}}", want: "give exactly one of configMap"},
		"two budgets":                 {spec: "{image: nginx, disruption: {minAvailable: 1, maxUnavailable: 1}}", want: "give exactly one of minAvailable and maxUnavailable"},
		"less at most than at least":  {spec: "{image: nginx, autoscaling: {minReplicas: 4, maxReplicas: 3}}", want: "must not be less than minReplicas"},
		"HTTP on HTTPS' port":         {spec: "{image: nginx, port: 443, tls: {secretName: s}}", want: "port 443 is the one for HTTPS"},
		"HTTP on the Service's HTTPS": {spec: "{image: nginx, service: {port: 443}, tls: {secretName: s}}", want: "the Service's port 443 is the one for HTTPS"},
		"pods that end":               {spec: "{image: nginx, podTemplate: {spec: {restartPolicy: Never}}}", want: "must be Always or left out"},
		"a deadline of no time":       {spec: "{image: nginx, rollout: {deadlineSeconds: 0}}", want: "should be greater than or equal to 5"},
		"a relative path":             {spec: "{image: nginx, content: {inline: a, path: www}}", want: "should match"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ws := &unstructured.Unstructured{Object: map[string]any{}}
			if err := yaml.Unmarshal([]byte("{apiVersion: my.domain/v1, kind: WebServer, metadata: {generateName: w-}, spec: "+tc.spec+"}"), &ws.Object); err != nil {
				t.Fatal(err)
			}
			ws.SetNamespace(ns)
			err := c.Create(context.Background(), ws, client.DryRunAll)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && err == nil:
				t.Errorf("accepted, want an error with %q", tc.want)
			case tc.want != "" && !strings.Contains(err.Error(), tc.want):
				t.Errorf("refused with %v, want %q", err, tc.want)
			}
		})
	}
}
