package webserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/run"
)

// This file compares the pods of a Deployment to adopt with what the spec requests: what
// they have and it does not would be lost with the next change.

// undescribed are the fields of a Deployment's template that the desired one does not
// have, each with what would be right.
func undescribed(ws *webv1.WebServer, template corev1.PodTemplateSpec, desired podTemplate) []string {
	live, isKnown := asServer(template, desired)
	if !isKnown {
		return []string{"which container is the server cannot be told: describe the others in spec.podTemplate.spec.containers, by their names"}
	}
	want, err := podtemplate.Read(desired.json)
	if err != nil {
		return nil
	}
	withoutCopies(ws, &live, want)
	delete(live.Labels, run.ManagedByLabel)
	delete(live.Annotations, "kubectl.kubernetes.io/restartedAt")
	for i := range live.Spec.Containers {
		withoutPullDefault(&live.Spec.Containers[i])
	}
	for i := range live.Spec.InitContainers {
		withoutPullDefault(&live.Spec.InitContainers[i])
	}
	return lost("", "", withoutDefaults(fieldsOf(live)), fieldsOf(*want))
}

// asServer is a template with its server's container under the operator's name for it. It
// returns false if it cannot be told which one that is.
func asServer(template corev1.PodTemplateSpec, desired podTemplate) (corev1.PodTemplateSpec, bool) {
	renamed := *template.DeepCopy()
	want, err := podtemplate.Read(desired.json)
	if err != nil {
		return renamed, false
	}
	i := serverIn(&renamed.Spec, &want.Spec)
	if i < 0 {
		return renamed, false
	}
	renamed.Spec.Containers[i].Name = serverContainer
	return renamed, true
}

// serverIn is the index of the server's container: the one with the operator's name for it,
// or the only one that is not among the wanted ones; -1 if it cannot be told.
func serverIn(spec, want *corev1.PodSpec) int {
	if i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == serverContainer }); i >= 0 {
		return i
	}
	found := -1
	for i, c := range spec.Containers {
		if want != nil && podtemplate.Container(want, c.Name).Name != "" {
			continue
		}
		if found >= 0 {
			return -1
		}
		found = i
	}
	return found
}

// withoutCopies leaves out the volumes of ConfigMaps and Secrets that the spec names, too:
// there, the operator mounts a copy of each.
func withoutCopies(ws *webv1.WebServer, live, want *corev1.PodTemplateSpec) {
	server := podtemplate.Container(&live.Spec, serverContainer)
	wanted := podtemplate.Container(&want.Spec, serverContainer)
	for _, mount := range slices.Clone(server.VolumeMounts) {
		i := slices.IndexFunc(wanted.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.MountPath == mount.MountPath && strings.HasPrefix(m.Name, volumePrefix)
		})
		j := slices.IndexFunc(live.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if i < 0 || j < 0 || mount.SubPath != "" || !isReplaced(ws, live.Spec.Volumes[j], want, wanted.VolumeMounts[i].Name) {
			continue
		}
		server.VolumeMounts = slices.DeleteFunc(server.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath })
		live.Spec.Volumes = slices.Delete(live.Spec.Volumes, j, j+1)
	}
}

// isReplaced says whether the operator's volume of that name stands for the user's: the
// copy of the ConfigMap or Secret that the spec names, or a folder that is written to.
func isReplaced(ws *webv1.WebServer, user corev1.Volume, want *corev1.PodTemplateSpec, name string) bool {
	for _, v := range want.Spec.Volumes {
		switch {
		case v.Name != name:
		case user.ConfigMap != nil && v.ConfigMap != nil:
			return len(user.ConfigMap.Items) == 0 && slices.Contains(sourcesOf(ws, configMapKind), user.ConfigMap.Name)
		case user.Secret != nil && v.Secret != nil:
			return len(user.Secret.Items) == 0 && slices.Contains(sourcesOf(ws, secretKind), user.Secret.SecretName)
		case user.EmptyDir != nil && v.EmptyDir != nil:
			return user.EmptyDir.Medium == "" && user.EmptyDir.SizeLimit == nil
		}
	}
	return false
}

// withoutPullDefault leaves out the pull policy that the API server gives a container
// which has none.
func withoutPullDefault(c *corev1.Container) {
	if c.ImagePullPolicy == pods.DefaultPullPolicy(c.Image) {
		c.ImagePullPolicy = ""
	}
}

// serviceDefaults are what the API server gives a Service that has nothing else; nil is for any value.
var serviceDefaults = map[string]any{
	"allocateLoadBalancerNodePorts": true, "externalTrafficPolicy": "Cluster", "internalTrafficPolicy": "Cluster", "sessionAffinity": "None",
	"clusterIP": nil, "clusterIPs": nil, "ipFamilies": nil, "ipFamilyPolicy": nil,
}

// staying are the fields of an adopted Service that its former owner has set, and a WebServer's has not.
func staying(ws *webv1.WebServer, s *corev1.Service) []string {
	var all []string
	spec, _ := fieldsOf(s.Spec).(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		usual, is := serviceDefaults[name]
		if is && (usual == nil || usual == spec[name]) || slices.Contains([]string{"type", "selector", "ports"}, name) {
			continue
		}
		all = append(all, "spec."+name)
	}
	for _, p := range s.Spec.Ports {
		if p.Port != serviceSpec(ws).Port && (ws.Spec.TLS == nil || p.Port != httpsPort) {
			all = append(all, fmt.Sprintf("port %d", p.Port))
		}
	}
	return all
}

// defaults are the values that the API server gives to fields of pods that have none, and
// the fields of which any value says nothing.
var defaults = map[string]any{
	"apiVersion": "v1", "defaultMode": 420.0, "divisor": "0", "dnsPolicy": "ClusterFirst", "failureThreshold": 3.0, "periodSeconds": 10.0,
	"protocol": "TCP", "restartPolicy": "Always", "schedulerName": "default-scheduler", "scheme": "HTTP", "successThreshold": 1.0,
	"terminationGracePeriodSeconds": 30.0, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
	"timeoutSeconds": 1.0,
}

// withoutDefaults is a value of the API without what the API server has added.
func withoutDefaults(value any) any {
	switch value := value.(type) {
	case map[string]any:
		rest := map[string]any{}
		for name, v := range value {
			if name == "serviceAccount" || v == nil || defaults[name] == v { // the former is serviceAccountName
				continue
			}
			bare := withoutDefaults(v)
			if m, is := bare.(map[string]any); is && len(m) == 0 && name != "emptyDir" {
				continue
			}
			rest[name] = bare
		}
		return rest
	case []any:
		var rest []any
		for _, v := range value {
			rest = append(rest, withoutDefaults(v))
		}
		return rest
	}
	return value
}

// keys are the fields by which the items of lists are known.
var keys = map[string]string{
	"containers": "name", "initContainers": "name", "volumes": "name", "env": "name", "imagePullSecrets": "name",
	"volumeMounts": "mountPath", "ports": "containerPort",
}

// lost are the fields of live that want does not have, or has otherwise.
func lost(path, field string, live, want any) []string {
	switch live := live.(type) {
	case map[string]any:
		wanted, is := want.(map[string]any)
		if !is && path != "" {
			return []string{advice(path, live)}
		}
		var all []string
		for _, name := range slices.Sorted(maps.Keys(live)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			if field == "labels" || field == "annotations" {
				at = fmt.Sprintf("%s[%s]", path, name)
			}
			all = append(all, lost(at, name, live[name], wanted[name])...)
		}
		return all
	case []any:
		wanted, _ := want.([]any)
		if key := keys[field]; key != "" {
			return lostItems(path, key, live, wanted)
		}
		for _, item := range live {
			_, isObject := item.(map[string]any)
			isThere := func(w any) bool { return reflect.DeepEqual(item, withoutDefaults(w)) }
			if isObject && !slices.ContainsFunc(wanted, isThere) || !isObject && !reflect.DeepEqual(live, wanted) {
				return []string{advice(path, live)}
			}
		}
		return nil
	}
	if live == want {
		return nil
	}
	return []string{advice(path, live)}
}

// lostItems compares lists whose items are known by a field of theirs.
func lostItems(path, key string, live, want []any) []string {
	var all []string
	for _, item := range live {
		id := item.(map[string]any)[key]
		i := slices.IndexFunc(want, func(w any) bool { return w.(map[string]any)[key] == id })
		at := fmt.Sprintf("%s[%v]", path, id)
		if i < 0 {
			all = append(all, advice(at, item))
			continue
		}
		all = append(all, lost(at, "", item, want[i])...)
	}
	return all
}

const serverPath = "spec.containers[" + serverContainer + "]."

// ownFields are the fields of a WebServer's spec for what the server's container has.
var ownFields = []struct{ of, is string }{
	{"image", "spec.image"}, {"env", "spec.env"}, {"resources", "spec.resources"}, {"readinessProbe", "spec.probes.readiness"},
	{"livenessProbe", "spec.probes.liveness"}, {"startupProbe", "spec.probes.startup"},
}

// advice says what would be right for a field of the pods.
func advice(path string, live any) string {
	if strings.HasPrefix(path, serverPath+"ports[") {
		if strings.HasSuffix(path, ".name") {
			return fmt.Sprintf("the pods' port has the name %v, which a WebServer calls %s: it cannot be kept", live, httpName)
		}
		return fmt.Sprintf("spec.port must be %v, or spec.podTemplate have the port beside it", live.(map[string]any)["containerPort"])
	}
	field := "spec.podTemplate." + path
	for _, own := range ownFields {
		if rest, is := strings.CutPrefix(path, serverPath+own.of); is && (rest == "" || strings.ContainsAny(rest[:1], ".[")) {
			field = own.is + rest
		}
	}
	for _, label := range []string{"app", "app.kubernetes.io/name", "app.kubernetes.io/instance", podsOf} {
		if path == "metadata.labels["+label+"]" {
			return fmt.Sprintf("the pods' label %s is %v, which the operator sets to something else: it cannot be kept", label, live)
		}
	}
	switch live.(type) {
	case map[string]any, []any:
		return field + " must be as in the Deployment"
	}
	if strings.HasPrefix(field, "spec.env") { // it may be secret
		return field + " must be as in the Deployment"
	}
	return field + " must be " + inJSON(live)
}

// fieldsOf is a value as the API's JSON has it.
func fieldsOf(value any) any {
	data, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	var fields any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil
	}
	return fields
}
