package etcd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGuideHasReasons: what a user may find in the conditions of an EtcdBackup or an EtcdRestore is in
// their guide.
func TestGuideHasReasons(t *testing.T) {
	guide, err := os.ReadFile("../../docs/etcd-backup.md")
	if err != nil {
		t.Fatal(err)
	}
	reason := regexp.MustCompile(`(?m)^\t[rR]eason\w+\s+= "(\w+)"$`)
	for _, folder := range []string{"backup", "job", "restore", "task", "../../internal/kit/apply"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range reason.FindAllStringSubmatch(string(source), -1) {
				found++
				if !strings.Contains(string(guide), "`"+match[1]+"`") {
					t.Errorf("%s: docs/etcd-backup.md says nothing of the reason %s", file, match[1])
				}
			}
		}
		if found == 0 {
			t.Errorf("no reasons are found in %s", folder)
		}
	}
}
