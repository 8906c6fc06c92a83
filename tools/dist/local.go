package main

import (
	"fmt"
	"path/filepath"
)

// localArchive is the image for a cluster that does not pull it: in one file,
// of one name, whatever the version.
const localArchive = "fairlead.tar"

// writeLocal makes what a cluster without a registry takes: the manager's image,
// and the manifests that run it. It says how to load the one and apply the other.
func (r *release) writeLocal() error {
	fmt.Println("building the operators (minutes the first time, seconds after that)")
	image, _, err := r.buildImage()
	if err != nil {
		return err
	}
	if err := r.writeArchive(localArchive, r.image, image); err != nil {
		return err
	}
	if err := r.writeYAML(); err != nil {
		return err
	}
	manifest := "install.yaml"
	if r.operator != all {
		manifest = "install-" + r.operator + ".yaml"
	}
	archive := filepath.Join(r.out, localArchive)
	fmt.Println("Load it into your cluster, by one of")
	for _, load := range []string{
		"kind load image-archive " + archive, "minikube image load " + archive, "k3d image import " + archive,
		"ctr -n k8s.io images import " + archive + "   (on every node)",
	} {
		fmt.Println("  " + load)
	}
	fmt.Printf("and then\n  kubectl apply -f %s\n", filepath.Join(r.out, manifest))
	return nil
}
