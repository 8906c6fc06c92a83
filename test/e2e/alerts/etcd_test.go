//go:build e2e

package alerts

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/operators/etcd/pki"
	"example.com/fairlead/test/e2e"
)

func init() { maps.Copy(objects, ofEtcd) }

// ofEtcd are those of them that are about etcd.
var ofEtcd = map[string]cause{
	"two of three members lose their data": {
		alerts: []string{"FairleadEtcdQuorumLost"},
		name:   "halved",
		absent: "backups",
		cause: func(s *scene) {
			members := s.etcd("halved", "size: 3")
			s.kubectl("delete", "pod", members[0], members[1], "--force", "--grace-period=0")
		},
	},
	"two of three members stand still": {
		alerts: []string{"FairleadEtcdNoQuorum", "FairleadEtcdNoLeader/"},
		name:   "still",
		cause: func(s *scene) {
			members := s.etcd("still", "size: 3")
			e2e.Signal(s, syscall.SIGSTOP, members[:2]...)
		},
		mend: func(s *scene) { e2e.Signal(s, syscall.SIGCONT, s.members("still")[:2]...) },
	},
	"one of three members stands still": {
		alerts: []string{"FairleadEtcdMemberDown"},
		name:   "limping",
		cause: func(s *scene) {
			members := s.etcd("limping", "size: 3", "pod: {"+volumes+"}")
			s.variables["MEMBER"] = members[0]
			e2e.Signal(s, syscall.SIGSTOP, members[0])
		},
	},
	"a version that cannot be gone to": {
		alerts: []string{"FairleadEtcdNotReady"},
		name:   "backwards",
		cause: func(s *scene) {
			s.etcd("backwards", "size: 1")
			s.patch("etcd/backwards", `{"version":"3.4.30"}`)
		},
		mend: func(s *scene) { s.patch("etcd/backwards", `{"version":"3.6.16"}`) },
	},
	"keys fill most of a small quota": {
		alerts: []string{"FairleadEtcdDatabaseNearQuota"},
		name:   "filled",
		cause: func(s *scene) {
			const quota = 16 << 20
			// The volume has room for the larger quota that the runbook sets.
			member := s.etcd("filled", "size: 1", "quotaBackendBytes: 16Mi", "pod: {"+strings.Replace(volumes, "64Mi", "16Gi", 1)+"}")[0]
			for range 130 { // of some 160
				if err := s.fill(member); err != nil {
					s.Fatal(err)
				}
			}
			for {
				if err := s.fill(member); err != nil {
					s.Fatal(err)
				}
				size, err := strconv.Atoi(regexp.MustCompile(`"dbSize":(\d+)`).FindStringSubmatch(s.kubectl("exec", member, "-c", "etcd", "--", "etcdctl", "endpoint", "status", "-w", "json"))[1])
				if err != nil || size > 85*quota/100 {
					break
				}
			}
		},
	},
	"keys fill a small quota": {
		alerts: []string{"FairleadEtcdDatabaseFull"},
		name:   "full",
		cause: func(s *scene) {
			s.variables["MEMBER"], s.variables["PREFIX"] = s.etcd("full", "size: 1", "pod: {"+small+"}")[0], "/fill/"
			// The operator makes room as long as there is some to be had.
			pace.Eventually(s, 2*time.Minute, func() error {
				err := s.fill(s.variables["MEMBER"])
				if stalled := s.kubectl("get", "etcd", "full", "-o", `jsonpath={.status.conditions[?(@.type=="Stalled")].status}`); stalled != "True" {
					return fmt.Errorf("the database is not full (%w)", err)
				}
				return nil
			})
		},
	},
	"a certificate that ends soon": {
		alerts: []string{"FairleadEtcdCertificateExpiring/warning", "FairleadEtcdCertificateExpiring/critical"},
		name:   "expiring",
		cause: func(s *scene) {
			s.variables["SECRET"] = "servers"
			ca, err := pki.MakeCA(rand.Reader, "our CA", time.Now(), 24*time.Hour)
			if err != nil {
				s.Fatal(err)
			}
			s.issue(ca, "expiring", time.Hour)
			s.end = func() { s.issue(ca, "expiring", time.Hour) }
			s.etcd("expiring", "size: 1", "TLS: {static: {member: {peerSecret: peers, serverSecret: servers}, operatorSecret: clients}}")
			s.issue(ca, "expiring", 2*time.Minute)
		},
		mend: func(s *scene) { s.end() },
	},
	// The alert's two hours are two seconds here: between two backups there is a time when none is overdue.
	"a backup without its Secret": {
		alerts: []string{"FairleadEtcdBackupFailing", "FairleadEtcdBackupTooOld", "FairleadEtcdBackupProofTooOld"},
		name:   "often",
		cause: func(s *scene) {
			s.etcd("saved", "size: 1")
			s.apply(`
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata: {name: often}
spec:
  etcdCluster: saved
  storageType: S3
  s3: {path: backups/often, ` + s.storage() + `}
  backupPolicy: {backupIntervalInSecond: 30, maxBackups: 2}
  verify: Restore
`)
		},
		mend: func(s *scene) { s.credentials() },
	},
	"a restore of what is no backup": {
		alerts: []string{"FairleadEtcdRestoreFailed"},
		name:   "foreign",
		cause: func(s *scene) {
			s.etcd("kept", "size: 1")
			storage := s.storage()
			s.credentials()
			s.restore("foreign", "kept", storage)
		},
	},
	"a restore of a cluster that is not there": {
		alerts: []string{"FairleadEtcdRestoreStuck"},
		name:   "waiting",
		absent: "clusters and pods",
		cause: func(s *scene) {
			storage := s.storage()
			s.credentials()
			s.restore("waiting", "absent", storage)
		},
	},
}

const (
	volumes = "persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}"
	small   = `etcdEnv: [{name: ETCD_QUOTA_BACKEND_BYTES, value: "4194304"}]`
)

// etcd creates an EtcdCluster, waits for it, and has the names of its members.
func (s *scene) etcd(name string, spec ...string) []string {
	s.Helper()
	s.apply("apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdCluster\nmetadata: {name: " + name + "}\nspec:\n  version: 3.6.16\n  " + strings.Join(spec, "\n  ") + "\n")
	s.ready("etcd/" + name)
	return s.members(name)
}

func (s *scene) members(name string) []string {
	s.Helper()
	return strings.Fields(s.kubectl("get", "etcd", name, "-o", "jsonpath={.status.memberList[*].name}"))
}

// fill writes 100 KiB.
func (s *scene) fill(member string) error {
	_, err := e2e.TryKubectl("", "exec", "-n", s.namespace, member, "-c", "etcd", "--", "etcdctl", "--command-timeout=1m",
		"put", fmt.Sprintf("/fill/%d", time.Now().UnixNano()), strings.Repeat("x", 100<<10))
	return err
}

// issue writes the Secrets of a cluster, with certificates that are valid for so long.
func (s *scene) issue(ca pki.KeyPair, name string, validFor time.Duration) {
	s.Helper()
	for secret, role := range map[string]pki.Role{"peers": pki.Peer, "servers": pki.Server, "clients": pki.Client} {
		e2e.Issue(s, s.namespace, secret, role.Files, ca, role, pki.Names(role, name, s.namespace, ""), validFor)
	}
}

// storage is a bucket "backups" with an object that is none. Credentials for it are not there yet.
func (s *scene) storage() string {
	s.Helper()
	host := e2e.Host(s)
	address := net.JoinHostPort(host, e2e.FreePort(s, host))
	if err := os.WriteFile(filepath.Join(e2e.ServeS3(s, address), "foreign"), []byte("no backup"), 0o600); err != nil {
		s.Fatal(err)
	}
	return e2e.S3Lines(address)
}

func (s *scene) credentials() {
	s.Helper()
	s.kubectl("create", "secret", "generic", "aws", "--from-literal=credentials="+e2e.S3Credentials(e2e.S3Password))
}

func (s *scene) restore(name, cluster, storage string) {
	s.Helper()
	s.apply(`
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata: {name: ` + name + `}
spec:
  etcdCluster: {name: ` + cluster + `}
  backupStorageType: S3
  s3: {path: backups/foreign, ` + storage + `}
`)
}
