package build

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStamp(t *testing.T) {
	got := stamp("v1.36.3")
	for _, want := range []string{
		"-X k8s.io/component-base/version.gitVersion=v1.36.3",
		"-X k8s.io/component-base/version.gitMajor=1 ",
		"-X k8s.io/component-base/version.gitMinor=36 ",
		"-X k8s.io/client-go/pkg/version.gitVersion=v1.36.3",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("stamp() = %q, lacks %q", got, want)
		}
	}
}

func TestModuleFor(t *testing.T) {
	var theirs goMod
	if err := json.Unmarshal([]byte(`{"Go": "1.22.0",
		"Require": [{"Path": "go.etcd.io/etcd/client/v3", "Version": "v3.5.14"}, {"Path": "k8s.io/api", "Version": "v0.0.0"}],
		"Replace": [{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}}]}`), &theirs); err != nil {
		t.Fatal(err)
	}
	const want = `module kubernetes

go 1.22.0

require k8s.io/kubernetes v1.31.0
require go.etcd.io/etcd/server/v3 v3.5.14
replace k8s.io/api => k8s.io/api v0.31.0
`
	got, err := moduleFor("v1.31.0", theirs)
	if err != nil || string(got) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	if _, err := moduleFor("1.31", theirs); err == nil || !strings.Contains(err.Error(), "v1.<minor>.<patch>") {
		t.Errorf("1.31: %v", err)
	}
}

func TestEtcdModuleFor(t *testing.T) {
	const want = `module etcd

go 1.26.0

require go.etcd.io/etcd/server/v3 v3.6.16
require go.etcd.io/etcd/etcdctl/v3 v3.6.16
require go.etcd.io/etcd/etcdutl/v3 v3.6.16
`
	if got := string(etcdModuleFor("v3.6.16", goMod{Go: "1.26.0"})); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEtcdRefuses(t *testing.T) {
	for _, version := range []string{"", "3.6.16", "v3.6", "v3.06.16", "v3.4.33", "v4.0.0", "v3.6.16-rc.0", "v3.6.16/../x"} {
		folder := filepath.Join(t.TempDir(), "etcd")
		if err := (Builder{}).Etcd(t.Context(), folder, version); err == nil || !strings.Contains(err.Error(), "v3.<minor>.<patch>") {
			t.Errorf("%q: %v", version, err)
		}
		if _, err := os.Stat(folder + "-source"); !os.IsNotExist(err) {
			t.Errorf("%q has left a folder (%v)", version, err)
		}
	}
}

func TestTags(t *testing.T) {
	for release, want := range map[string]string{"v1.31.0": "before_1_34", "v1.33.12": "before_1_34", "v1.34.4": "", "v1.36.3": "", "": ""} {
		if got := tags(release); got != want {
			t.Errorf("%q: %q, want %q", release, got, want)
		}
	}
}
