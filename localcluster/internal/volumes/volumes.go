// Package volumes provisions PersistentVolumes as folders of the nodes, or of
// none of them: what stands in for a network disk.
//
// kube-controller-manager's --enable-hostpath-provisioner would do nearly the
// same, but it makes folders of mode 0750 that belong to root, which a pod
// that meets the restricted Pod Security Standard cannot write to. A volume
// here is of type local, so that fsGroup is applied, and open to every user,
// as those of the provisioners of kind and k3s are.
package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli/flag"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// Provisioner is the name that a StorageClass asks for these volumes by.
const Provisioner = "localcluster/folder"

// Command is the component's command line.
func Command() *cobra.Command {
	var kubeconfig, nodes string
	command := &cobra.Command{
		Use:   "volume-provisioner",
		Short: "Provision PersistentVolumes as folders of the nodes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			controller.NewProvisionController(cmd.Context(), client, Provisioner, folders{nodes: nodes},
				controller.LeaderElection(false)).Run(cmd.Context())
			return nil
		},
	}
	command.Flags().SetNormalizeFunc(flag.WordSepNormalizeFunc)
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "credentials for the API server")
	command.Flags().StringVar(&nodes, "nodes", "", "where the nodes' disks are, a folder for each by its name")
	return command
}

// anyNode is the parameter of a StorageClass whose volumes any node can mount.
const anyNode = "anyNode"

// shared is the folder, beside the nodes' own, of volumes that any node can
// mount. No node has that name.
const shared = "shared"

// folders makes one folder per volume, named like it, on the disk of the node
// that its first pod is scheduled to, or beside those of all nodes.
type folders struct{ nodes string }

// Provision makes the volume's folder. All nodes see all of them, at the same
// path: only the volume's affinity keeps pods on its node.
func (f folders) Provision(_ context.Context, o controller.ProvisionOptions) (
	*corev1.PersistentVolume, controller.ProvisioningState, error) {
	if o.SelectedNodeName == "" {
		return nil, controller.ProvisioningFinished,
			fmt.Errorf("the storage class must have volumeBindingMode: WaitForFirstConsumer")
	}
	disk, affinity := o.SelectedNodeName, onNodes(corev1.LabelHostname, o.SelectedNodeName)
	if o.StorageClass.Parameters[anyNode] == "true" {
		disk, affinity = shared, onNodes(corev1.LabelOSStable, "linux") // one is a must
	}
	path := filepath.Join(f.nodes, disk, "var/lib/volumes", o.PVName)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	if err := os.Chmod(path, 0o777); err != nil { // MkdirAll's mode goes through the umask
		return nil, controller.ProvisioningFinished, err
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   o.PVC.Spec.AccessModes,
			Capacity:                      o.PVC.Spec.Resources.Requests,
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			VolumeMode:                    o.PVC.Spec.VolumeMode,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}},
			NodeAffinity:                  affinity,
		},
	}, controller.ProvisioningFinished, nil
}

func (f folders) Delete(_ context.Context, pv *corev1.PersistentVolume) error {
	return os.RemoveAll(pv.Spec.Local.Path)
}

func onNodes(label, value string) *corev1.VolumeNodeAffinity {
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value},
			}},
		}},
	}}
}
