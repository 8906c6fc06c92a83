package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// TestAuthProviders: the plugin logs in as kubectl does.
func TestAuthProviders(t *testing.T) {
	for name, want := range map[string]string{"oidc": "", "gcp": "has been removed", "other": "no Auth Provider found"} {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		if err := os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {auth-provider: {name: `+name+`, config: {idp-issuer-url: "https://127.0.0.1:2", client-id: me}}}}]
`), 0o600); err != nil {
			t.Fatal(err)
		}
		c := New(genericiooptions.IOStreams{})
		c.Config.KubeConfig = &file
		config, _, err := c.Connect()
		if err == nil {
			_, err = rest.TransportFor(config)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
