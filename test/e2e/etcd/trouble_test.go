//go:build e2e

package etcd

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEtcdBackupTrouble: what cannot work says why, and is made good when it can.
func TestEtcdBackupTrouble(t *testing.T) {
	t.Parallel()
	needsLocalCluster(t)
	e := create(t, "size: 1")
	s := e.s3()
	absent := net.JoinHostPort(e2e.Host(t), e2e.FreePort(t, e2e.Host(t)))
	silent, err := net.Listen("tcp", net.JoinHostPort(e2e.Host(t), "0")) // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	e.secretOf("wrong", map[string]string{"credentials": e2e.S3Credentials("another password")})
	at := func(change ...string) string {
		return strings.NewReplacer(change...).Replace(s.at("storageType", "key"))
	}
	address := strings.Split(s.lines, `"`)[1]
	for name, tt := range map[string]struct{ spec, reason string }{
		"no-bucket":   {at("backups/", "absent/"), "BucketNotFound"},
		"no-secret":   {at("awsSecret: aws", "awsSecret: absent"), "SecretNotFound"},
		"wrong":       {at("awsSecret: aws", "awsSecret: wrong"), "CredentialsInvalid"},
		"unreachable": {at(address, "http://"+absent), "StorageUnreachable"},
		"hangs":       {at(address, "http://"+silent.Addr().String()), "StorageHangs"},
		"no-claim":    {"storageType: PersistentVolumeClaim\n  persistentVolumeClaim: {claimName: absent, path: key}", "Unschedulable"},
	} {
		e.backUp(name, "etcdCluster: example", tt.spec, fmt.Sprintf("backupPolicy: {timeoutInSecond: %d}", pace.Seconds(5)))
		e.backup(name, func(b *v1beta2.EtcdBackup) error {
			isTried := tt.reason != "Unschedulable" && tt.reason != "SecretNotFound"
			if b.Status.Succeeded || isTried && b.Status.Reason == "" || !strings.Contains(fmt.Sprint(b.Status.Conditions), tt.reason) {
				return fmt.Errorf("%s: the backup says %+v, want %s", name, b.Status, tt.reason)
			}
			if strings.Contains(fmt.Sprint(b.Status), e2e.S3Password) || strings.Contains(fmt.Sprint(b.Status), "another password") {
				t.Errorf("%s: the status tells a password", name)
			}
			return nil
		})
	}
	e.secretOf("absent", map[string]string{"credentials": e2e.S3Credentials(e2e.S3Password)})
	e.backup("no-secret", isMade)
	if logs := e2e.ManagerLogs(t, "etcd"); strings.Contains(logs, e2e.S3Password) {
		t.Error("the operator's log tells a password")
	}
}

// TestEtcdBackupCut: the storage dies in the middle of uploads. The backup is made when it is back,
// and until then there is none at all.
func TestEtcdBackupCut(t *testing.T) {
	t.Parallel()
	needsLocalCluster(t)
	e := create(t, "size: 3")
	for i := range 120 { // some 12 MiB, more than one part
		e.put(fmt.Sprintf("/fill/%d", i), strings.Repeat("x", 100<<10))
	}
	s := e.s3()
	e.backUp("prod", "etcdCluster: example", s.at("storageType", "prod"),
		fmt.Sprintf("backupPolicy: {backupIntervalInSecond: 1, timeoutInSecond: %d}", pace.Seconds(5)))
	e.backup("prod", isMade)
	for kill := range 5 {
		pace.Eventually(t, time.Minute, func() error {
			return e.killAgent("prod")
		})
		t.Logf("kill %d", kill+1)
	}
	made := e.backup("prod", isMade).Status.LastSuccessDate
	e.backup("prod", func(b *v1beta2.EtcdBackup) error {
		if b.Status.LastSuccessDate.Equal(made) {
			return fmt.Errorf("no other backup was made: %+v", b.Status)
		}
		return nil
	})
	e.kubectl("delete", "etcdbackup", "prod")
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if info.Size() < 12<<20 {
			t.Errorf("a part of a backup is left: %s has %d bytes", entry.Name(), info.Size())
		}
	}
}

// killAgent deletes the pod of a backup, at once, while it is at work.
func (e etcd) killAgent(name string) error {
	out, err := e2e.TryKubectl("", "get", "pods", "-n", e.namespace, "-l", "app.kubernetes.io/instance="+name, "--field-selector=status.phase=Running", "-o", "name")
	if err != nil {
		return err
	}
	pods := strings.Fields(out)
	if len(pods) == 0 {
		return fmt.Errorf("no pod of the backup is running")
	}
	_, err = e2e.TryKubectl("", append([]string{"delete", "-n", e.namespace, "--force", "--grace-period=0"}, pods...)...)
	return err
}
