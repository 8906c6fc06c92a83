package webserver

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	webv1 "example.com/fairlead/api/web/v1"
)

// TestListensOnIPv6: where pods have IPv6, the official image gets the configuration that its own script would make.
func TestListensOnIPv6(t *testing.T) {
	mounting := func(path string) webOption {
		return func(ws *webv1.WebServer) {
			ws.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "webserver", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: path}}}}}}
		}
	}
	cases := map[string]struct {
		ipv6   bool
		change webOption
		want   bool
	}{
		"IPv4":                         {false, image("nginx:1.26.3"), false},
		"IPv6":                         {true, image("nginx:1.26.3"), true},
		"without a tag":                {true, image("nginx"), true},
		"with its registry":            {true, image("docker.io/library/nginx:1.26.3-alpine"), true},
		"from a mirror":                {true, image("mirror.example:5000/hub/library/nginx@sha256:0a"), true},
		"another image":                {true, image("registry.example/nginx:1"), false},
		"a longer name":                {true, image("nginx-unprivileged:1"), false},
		"the template mounts files":    {true, mounting("/etc/nginx/conf.d/site.conf"), false},
		"the template mounts the page": {true, mounting("/usr/share/nginx/html"), true},
	}
	for name, tc := range cases {
		ws := aWeb(image("nginx:1.26.3"), tc.change)
		in, err := (&observer{ipv6: tc.ipv6}).observeInputs(t.Context(), nil, ws, nil)
		if err != nil || (in.config != nil) != tc.want {
			t.Errorf("%s: a configuration: %t (%v), want %t", name, in.config != nil, err, tc.want)
			continue
		}
		spec := podOf(t, ws, in)
		mounted := slices.ContainsFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == "/etc/nginx/conf.d" })
		if mounted != tc.want || len(spec.InitContainers) > 0 {
			t.Errorf("%s: mounted: %t, %d containers to check it; want %t and none", name, mounted, len(spec.InitContainers), tc.want)
		}
	}
}

// TestNginxConfig: without IPv6 it is, to the byte, what version 0.0.2 wrote, and what that version has started keeps it.
func TestNginxConfig(t *testing.T) {
	ws := aWeb(func(ws *webv1.WebServer) {
		ws.Spec.Port, ws.Spec.TLS = 80, &webv1.TLSSpec{SecretName: "s", Path: "/etc/nginx/tls"}
	})
	const rest = `    ssl_certificate /etc/nginx/tls/tls.crt;
    ssl_certificate_key /etc/nginx/tls/tls.key;
    location / {
        root /usr/share/nginx/html;
        index index.html index.htm;
    }
}
`
	for ipv6, want := range map[bool]string{
		false: "server {\n    listen 80;\n    listen 443 ssl;\n" + rest,
		true:  "server {\n    listen 80;\n    listen [::]:80;\n    listen 443 ssl;\n    listen [::]:443 ssl;\n" + rest,
	} {
		if got := string(nginxConfig(ws, ipv6).data["default.conf"]); got != want {
			t.Errorf("with IPv6 %t:\n%s\nwant\n%s", ipv6, got, want)
		}
	}
	in := inputs{config: nginxConfig(ws, true), check: []string{"nginx", "-t"}, isGenerated: true, generatedOf002: nginxConfig(ws, false)}
	before := inputs{config: nginxConfig(ws, false), check: in.check, as: asOf002}
	old, err := desiredTemplate(ws, before)
	if err != nil {
		t.Fatal(err)
	}
	seen := somethingSeen(aDeployment(old, podTemplate{}))
	seen.inputs = in
	if got, err := requestedTemplate(ws, seen); err != nil || got != old {
		t.Errorf("a template of version 0.0.2 becomes %s (%v)", got.json, err)
	}
}
