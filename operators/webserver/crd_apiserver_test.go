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
		"a percentage of pods":        {spec: "{image: nginx, disruption: {maxUnavailable: '100%'}}"},
		"more than all pods":          {spec: "{image: nginx, disruption: {maxUnavailable: '999%'}}", want: "a percentage from 0% to 100%"},
		"101 percent":                 {spec: "{image: nginx, disruption: {minAvailable: '101%'}}", want: "a percentage from 0% to 100%"},
		"less than no pod":            {spec: "{image: nginx, disruption: {maxUnavailable: -1}}", want: "a number of pods, 0 or more"},
		"a word for a number":         {spec: "{image: nginx, disruption: {minAvailable: all}}", want: "a percentage from 0% to 100%"},
		"a host":                      {spec: "{image: nginx, ingress: {host: '*.example.com'}}"},
		"a host with a space":         {spec: "{image: nginx, ingress: {host: 'A b'}}", want: "must be a host name in lower case"},
		"an address for a host":       {spec: "{image: nginx, ingress: {host: '192.0.2.1'}}", want: "must be a host name in lower case"},
		"a path that goes up":         {spec: "{image: nginx, ingress: {host: a.b, path: /a/../b}}", want: "must be a path without"},
		"a path with dots":            {spec: "{image: nginx, ingress: {host: a.b, path: /a..b/.well-known}}"},
		"a class with a space":        {spec: "{image: nginx, ingress: {host: a.b, className: 'A b'}}", want: "must be the name of an IngressClass"},
		"a Route's host":              {spec: "{image: nginx, route: {host: 'A b'}}", want: "must be a host name in lower case"},
		"a Gateway's hosts":           {spec: "{image: nginx, gateway: {name: g, hostnames: [a.b, 'A b']}}", want: "must be host names in lower case"},
		"a Gateway":                   {spec: "{image: nginx, gateway: {name: g, namespace: gateways, hostnames: [a.b, '*.b']}}"},
		"a Gateway with a space":      {spec: "{image: nginx, gateway: {name: 'A b'}}", want: "must be the name of a Gateway"},
		"a namespace with a dot":      {spec: "{image: nginx, gateway: {name: g, namespace: a.b}}", want: "must be the name of a namespace"},
		"a ConfigMap with a space":    {spec: "{image: nginx, content: {configMap: 'A b'}}", want: "must be the name of a ConfigMap"},
		"a configuration's name":      {spec: "{image: nginx, config: {configMap: 'A_b'}}", want: "must be the name of a ConfigMap"},
		"a Secret with a space":       {spec: "{image: nginx, tls: {secretName: 'A b'}}", want: "must be the name of a Secret"},
		"too many pods":               {spec: "{image: nginx, replicas: 2147483647}", want: "should be less than or equal to 10000"},
		"too many pods at most":       {spec: "{image: nginx, autoscaling: {maxReplicas: 2147483647}}", want: "should be less than or equal to 10000"},
		"a path that ends a line":     {spec: "{image: nginx, content: {inline: a, path: '/a;b'}}", want: "must be an absolute path without spaces"},
		"one folder for two":          {spec: "{image: nginx, content: {inline: a, path: /x}, config: {configMap: c, path: /x}}", want: "must not be config.path"},
		"pages for a configuration":   {spec: "{image: nginx, content: {inline: a, path: /etc/nginx/conf.d}, tls: {secretName: s}}", want: "is for the configuration that the operator writes"},
		"a key among the pages":       {spec: "{image: nginx, content: {inline: a, path: /x}, tls: {secretName: s, path: /x}}", want: "must not be content.path"},
		"a key for a configuration":   {spec: "{image: nginx, tls: {secretName: s, path: /etc/nginx/conf.d}}", want: "must not be the folder of the configuration"},
		"pods that end in time":       {spec: "{image: nginx, podTemplate: {spec: {activeDeadlineSeconds: 9}}}", want: "must be left out"},
		"no time to drain":            {spec: "{image: nginx, podTemplate: {spec: {terminationGracePeriodSeconds: 3}}}", want: "must not be less than rollout.drainSeconds"},
		"time to drain":               {spec: "{image: nginx, podTemplate: {spec: {terminationGracePeriodSeconds: 9}}}"},
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
