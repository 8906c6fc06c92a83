package job

import (
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/task"
)

// ImageVariable has the image of the agent: that of the manager itself.
const ImageVariable = "ETCD_AGENT_IMAGE"

// defaultImage is the image where nothing says another one.
const defaultImage = "fairlead:dev"

// Image is the image of the agent.
func Image() string {
	if image := os.Getenv(ImageVariable); image != "" {
		return image
	}
	return defaultImage
}

// The names of the containers.
const (
	// AgentContainer does the task.
	AgentContainer = "agent"
	// FetchContainer is an init container that makes a data directory.
	FetchContainer = "fetch"
	// EtcdContainer is the throw-away etcd of a proof.
	EtcdContainer = "etcd"
)

// ComponentLabel has the action of a task, in lower case, such as save.
const ComponentLabel = "app.kubernetes.io/component"

func componentOf(a task.Action) string { return strings.ToLower(string(a)) }

// user is the user and group that the agent runs as: that of members, so that they can read what it
// writes.
const user = 65532

// Where the throw-away etcd of a proof has its data, and serves.
const (
	proofPath      = "/var/etcd"
	proofClientURL = "http://127.0.0.1:2379"
	proofPeerURL   = "http://127.0.0.1:2380"
)

// Pod says what the pod of a task is made of.
type Pod struct {
	Namespace, Name string
	// Owner is the EtcdBackup, and Instance its name.
	Owner    metav1.OwnerReference
	Instance string
	// Image is the agent's, see [Image].
	Image string
	// Task is Save, Prove or Prune. Prove needs Task.Saved; its Member and Endpoints are set by [New].
	Task task.Task
	// Source is where backups are.
	Source v1beta2.BackupSource
	// ClientSecret is the name of the Secret with a client's certificate. For Task.TLS.
	ClientSecret string
	// UserSecret is the name of the Secret with etcd's user. For Task.User.
	UserSecret string
	// EtcdImage is the image of the throw-away etcd. For Prove.
	EtcdImage string
	// Settings are spec.pod of the EtcdBackup, or nil.
	Settings *v1beta2.JobPod
}

// secretOf is the name of the Secret with the credentials; empty for the identity of the pod.
func secretOf(s v1beta2.BackupSource) string {
	switch {
	case s.S3 != nil:
		return s.S3.AWSSecret
	case s.GCS != nil:
		return s.GCS.GCPSecret
	case s.ABS != nil:
		return s.ABS.ABSSecret
	}
	return ""
}
