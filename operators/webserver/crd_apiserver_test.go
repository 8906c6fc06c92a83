//go:build apiserver

package webserver

import (
	"testing"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/testkit"
)

// TestValidation: bad input is refused at the door, with a message that says
// what would be right.
func TestValidation(t *testing.T) {
	testkit.CheckSpecs(t, map[string]testkit.SpecCase{
		"the tutorial's":              {Spec: "image: 'nginx:1.23.1', replicas: 3"},
		"an image only":               {Spec: "image: nginx"},
		"no replicas":                 {Spec: "image: nginx, replicas: 0"},
		"a port":                      {Spec: "image: nginx, port: 65535"},
		"a node port":                 {Spec: "image: nginx, service: {nodePort: 30500}"},
		"a page":                      {Spec: "image: nginx, content: {inline: hello}"},
		"no budget":                   {Spec: "image: nginx, disruption: {enabled: false}"},
		"the default budget":          {Spec: "image: nginx, disruption: {enabled: true}"},
		"a budget in percent":         {Spec: "image: nginx, disruption: {minAvailable: '50%'}"},
		"a container beside":          {Spec: "image: nginx, podTemplate: {spec: {containers: [{name: log, image: busybox}]}}"},
		"a template without":          {Spec: "image: nginx, podTemplate: {spec: {nodeSelector: {a: b}}}"},
		"autoscaling":                 {Spec: "image: nginx, autoscaling: {maxReplicas: 3}"},
		"to adopt":                    {Spec: "image: nginx, adopt: {selector: {app: web}, service: web}"},
		"to adopt anything":           {Spec: "image: nginx, adopt: {}", Want: "spec.adopt.selector: Required value"},
		"to adopt all pods":           {Spec: "image: nginx, adopt: {selector: {}}", Want: "should have at least 1 properties"},
		"to adopt what Helm manages":  {Spec: "image: nginx, adopt: {selector: {app.kubernetes.io/managed-by: Helm}}", Want: "such a Deployment cannot be adopted"},
		"to adopt no Service":         {Spec: "image: nginx, adopt: {selector: {a: b}, service: A.b}", Want: "must be the name of a Service"},
		"no image":                    {Spec: "replicas: 1", Want: "spec.image: Required value"},
		"an empty image":              {Spec: "image: ''", Want: "spec.image"},
		"spaces for an image":         {Spec: "image: '  '", Want: "must be the name of an image, without spaces"},
		"negative replicas":           {Spec: "image: nginx, replicas: -1", Want: "should be greater than or equal to 0"},
		"port 0":                      {Spec: "image: nginx, port: 0", Want: "should be greater than or equal to 1"},
		"port 70000":                  {Spec: "image: nginx, port: 70000", Want: "should be less than or equal to 65535"},
		"node port 70000":             {Spec: "image: nginx, service: {nodePort: 70000}", Want: "should be less than or equal to 65535"},
		"a node port without nodes":   {Spec: "image: nginx, service: {type: ClusterIP, nodePort: 30500}", Want: "a Service of type ClusterIP has no nodePort"},
		"another type of Service":     {Spec: "image: nginx, service: {type: ExternalName}", Want: "Unsupported value"},
		"two pages":                   {Spec: "image: nginx, content: {inline: a, configMap: b}", Want: "give exactly one of configMap"},
		"no page":                     {Spec: "image: nginx, content: {}", Want: "give exactly one of configMap"},
		"two budgets":                 {Spec: "image: nginx, disruption: {minAvailable: 1, maxUnavailable: 1}", Want: "give one of minAvailable and maxUnavailable, not both"},
		"less at most than at least":  {Spec: "image: nginx, autoscaling: {minReplicas: 4, maxReplicas: 3}", Want: "must not be less than minReplicas"},
		"HTTP on HTTPS' port":         {Spec: "image: nginx, port: 443, tls: {secretName: s}", Want: "port 443 is the one for HTTPS"},
		"HTTP on the Service's HTTPS": {Spec: "image: nginx, service: {port: 443}, tls: {secretName: s}", Want: "the Service's port 443 is the one for HTTPS"},
		"pods that end":               {Spec: "image: nginx, podTemplate: {spec: {restartPolicy: Never}}", Want: "must be Always or left out"},
		"a deadline of no time":       {Spec: "image: nginx, rollout: {deadlineSeconds: 0}", Want: "should be greater than or equal to 5"},
		"a deadline for no room":      {Spec: "image: nginx, rollout: {pendingDeadlineSeconds: 1}"},
		"no time to wait for room":    {Spec: "image: nginx, rollout: {pendingDeadlineSeconds: 0}", Want: "should be greater than or equal to 1"},
		"room is made first":          {Spec: "image: nginx, rollout: {maxUnavailable: 1}"},
		"room is made for all":        {Spec: "image: nginx, rollout: {maxSurge: 0, maxUnavailable: 1}"},
		"neither more pods nor less":  {Spec: "image: nginx, rollout: {maxSurge: 0}", Want: "must not be 0 while maxSurge is 0"},
		"neither more nor less, said": {Spec: "image: nginx, rollout: {maxSurge: 0, maxUnavailable: 0}", Want: "must not be 0 while maxSurge is 0"},
		"fewer than all pods missing": {Spec: "image: nginx, rollout: {maxUnavailable: -1}", Want: "should be greater than or equal to 0"},
		"a percentage of pods":        {Spec: "image: nginx, disruption: {maxUnavailable: '100%'}"},
		"more than all pods":          {Spec: "image: nginx, disruption: {maxUnavailable: '999%'}", Want: "a percentage from 0% to 100%"},
		"101 percent":                 {Spec: "image: nginx, disruption: {minAvailable: '101%'}", Want: "a percentage from 0% to 100%"},
		"less than no pod":            {Spec: "image: nginx, disruption: {maxUnavailable: -1}", Want: "a number of pods, 0 or more"},
		"a word for a number":         {Spec: "image: nginx, disruption: {minAvailable: all}", Want: "a percentage from 0% to 100%"},
		"a host":                      {Spec: "image: nginx, ingress: {host: '*.example.com'}"},
		"a host with a space":         {Spec: "image: nginx, ingress: {host: 'A b'}", Want: "must be a host name in lower case"},
		"an address for a host":       {Spec: "image: nginx, ingress: {host: '192.0.2.1'}", Want: "must be a host name in lower case"},
		"a path that goes up":         {Spec: "image: nginx, ingress: {host: a.b, path: /a/../b}", Want: "must be a path without"},
		"a path with dots":            {Spec: "image: nginx, ingress: {host: a.b, path: /a..b/.well-known}"},
		"a class with a space":        {Spec: "image: nginx, ingress: {host: a.b, className: 'A b'}", Want: "must be the name of an IngressClass"},
		"a Route's host":              {Spec: "image: nginx, route: {host: 'A b'}", Want: "must be a host name in lower case"},
		"a Gateway's hosts":           {Spec: "image: nginx, gateway: {name: g, hostnames: [a.b, 'A b']}", Want: "must be host names in lower case"},
		"a Gateway":                   {Spec: "image: nginx, gateway: {name: g, namespace: gateways, sectionName: https, hostnames: [a.b, '*.b']}"},
		"a listener with a space":     {Spec: "image: nginx, gateway: {name: g, sectionName: 'A b'}", Want: "must be the name of a listener"},
		"a Gateway with a space":      {Spec: "image: nginx, gateway: {name: 'A b'}", Want: "must be the name of a Gateway"},
		"a namespace with a dot":      {Spec: "image: nginx, gateway: {name: g, namespace: a.b}", Want: "must be the name of a namespace"},
		"a ConfigMap with a space":    {Spec: "image: nginx, content: {configMap: 'A b'}", Want: "must be the name of a ConfigMap"},
		"a configuration's name":      {Spec: "image: nginx, config: {configMap: 'A_b'}", Want: "must be the name of a ConfigMap"},
		"a Secret with a space":       {Spec: "image: nginx, tls: {secretName: 'A b'}", Want: "must be the name of a Secret"},
		"too many pods":               {Spec: "image: nginx, replicas: 2147483647", Want: "should be less than or equal to 10000"},
		"too many pods at most":       {Spec: "image: nginx, autoscaling: {maxReplicas: 2147483647}", Want: "should be less than or equal to 10000"},
		"a path that ends a line":     {Spec: "image: nginx, content: {inline: a, path: '/a;b'}", Want: "must be an absolute path without spaces"},
		"one folder for two":          {Spec: "image: nginx, content: {inline: a, path: /x}, config: {configMap: c, path: /x}", Want: "must not be config.path"},
		"pages for a configuration":   {Spec: "image: nginx, content: {inline: a, path: /etc/nginx/conf.d}, tls: {secretName: s}", Want: "is for the configuration that the operator writes"},
		"a key among the pages":       {Spec: "image: nginx, content: {inline: a, path: /x}, tls: {secretName: s, path: /x}", Want: "must not be content.path"},
		"a key for a configuration":   {Spec: "image: nginx, tls: {secretName: s, path: /etc/nginx/conf.d}", Want: "must not be the folder of the configuration"},
		"pods that end in time":       {Spec: "image: nginx, podTemplate: {spec: {activeDeadlineSeconds: 9}}", Want: "must be left out"},
		"no time to drain":            {Spec: "image: nginx, podTemplate: {spec: {terminationGracePeriodSeconds: 3}}", Want: "must not be less than rollout.drainSeconds"},
		"time to drain":               {Spec: "image: nginx, podTemplate: {spec: {terminationGracePeriodSeconds: 9}}"},
		"a relative path":             {Spec: "image: nginx, content: {inline: a, path: www}", Want: "should match"},
	}, webv1.GroupVersion.WithKind("WebServer"))
}
