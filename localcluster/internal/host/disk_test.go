package host

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExplainDisk(t *testing.T) {
	cases := map[string]struct {
		failure error
		overlay bool
		want    string
	}{
		"a container's own folder":  {failure: unix.EINVAL, overlay: true, want: "--volume"},
		"a kernel without overlays": {failure: unix.ENODEV, want: "modprobe overlay"},
		"not root":                  {failure: unix.EPERM, overlay: true, want: "--privileged"},
		"another file system":       {failure: unix.EINVAL, want: "another file system"},
	}
	for name, tc := range cases {
		err := explainDisk("/somewhere", fmt.Errorf("mount an overlay: %w", tc.failure), tc.overlay)
		if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %q, want %q in it", name, err, tc.want)
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %q", name, err)
		}
	}
	if err := explainDisk("/somewhere", unix.EINVAL, false); !errors.Is(err, unix.EINVAL) {
		t.Errorf("%q lacks the kernel's answer", err)
	}
}

func TestMissingModule(t *testing.T) {
	if got := MissingModule(fmt.Errorf("add: %w", unix.EOPNOTSUPP), "veth"); !strings.Contains(got, "modprobe veth (") {
		t.Errorf("MissingModule() = %q, want the command", got)
	}
	if got := MissingModule(unix.EEXIST, "veth"); got != "" {
		t.Errorf("MissingModule() of another error = %q", got)
	}
}
