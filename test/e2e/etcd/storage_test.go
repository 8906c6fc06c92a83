//go:build e2e

package etcd

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"example.com/fairlead/test/e2e"
)

// storage is where a test's backups are: a bucket called "backups", or a claim.
type storage struct {
	// kind is the storage type, and field the one that belongs to it.
	kind, field string
	// lines are what the field has beside the path.
	lines string
	// bucket is what paths begin with.
	bucket string
	// folder is where objects are to be found on this machine; empty if nowhere.
	folder string
}

// at is the lines of a spec for a path, with the name that the spec has for the storage type.
func (s storage) at(typeField, path string) string {
	return fmt.Sprintf("%s: %s\n  %s: {path: %q, %s}", typeField, s.kind, s.field, s.bucket+path, s.lines)
}

// secret applies a Secret.
func (e etcd) secretOf(name string, keys map[string]string) {
	e.t.Helper()
	var data strings.Builder
	for key, value := range keys {
		fmt.Fprintf(&data, "  %s: %s\n", key, base64.StdEncoding.EncodeToString([]byte(value)))
	}
	e2e.Apply(e.t, e.namespace, "apiVersion: v1\nkind: Secret\nmetadata: {name: "+name+"}\ndata:\n"+data.String())
}

const azureAccount = "fairlead"

// s3 is a bucket of versitygw, which listens at an address of this machine.
func (e etcd) s3() storage {
	e.t.Helper()
	host := e2e.Host(e.t)
	return e.s3At(net.JoinHostPort(host, e2e.FreePort(e.t, host)))
}

func (e etcd) s3At(address string) storage {
	e.t.Helper()
	folder := e2e.ServeS3(e.t, address)
	e.secretOf("aws", map[string]string{"credentials": e2e.S3Credentials(e2e.S3Password)})
	return storage{"S3", "s3", e2e.S3Lines(address), "backups/", folder}
}

// program is one that make build-storage builds.
func program(name string) string {
	file, err := filepath.Abs(filepath.Join(e2e.Root, "bin", name))
	if err != nil {
		return name
	}
	return file
}

// gcs is a bucket of fake-gcs-server.
func (e etcd) gcs() storage {
	e.t.Helper()
	host := e2e.Host(e.t)
	port := e2e.FreePort(e.t, host)
	address := net.JoinHostPort(host, port)
	inBrackets := strings.TrimSuffix(address, ":"+port) // if it is of IPv6: the server puts the two together as they are
	e2e.Serve(e.t, address, program("fake-gcs-server"), "-scheme", "http", "-host", inBrackets, "-port", port,
		"-backend", "filesystem", "-filesystem-root", e.t.TempDir(), "-external-url", "http://"+address, "-public-host", address)
	resp, err := http.Post("http://"+address+"/storage/v1/b?project=test", "application/json", bytes.NewBufferString(`{"name":"backups"}`))
	if err != nil {
		e.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		e.t.Fatalf("the bucket was not made: %s", resp.Status)
	}
	e.secretOf("gcp", map[string]string{"access-token": "any"})
	return storage{"GCS", "gcs", "gcpSecret: gcp, endpoint: \"http://" + address + "\"", "backups/", ""}
}

// abs is a container of azurite.
func (e etcd) abs() storage {
	e.t.Helper()
	host := e2e.Host(e.t)
	port := e2e.FreePort(e.t, host)
	address := net.JoinHostPort(host, port)
	key := base64.StdEncoding.EncodeToString([]byte("a key for tests, of 32 bytes ...."))
	e2e.Serve(e.t, address, "env", "AZURITE_ACCOUNTS="+azureAccount+":"+key,
		program("azurite-blob"), "--blobHost", host, "--blobPort", port, "--location", e.t.TempDir(), "--skipApiVersionCheck", "--disableTelemetry")
	url := "http://" + address + "/" + azureAccount
	credential, err := azblob.NewSharedKeyCredential(azureAccount, key)
	if err != nil {
		e.t.Fatal(err)
	}
	account, err := azblob.NewClientWithSharedKeyCredential(url, credential, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := account.CreateContainer(e.t.Context(), "backups", nil); err != nil {
		e.t.Fatal(err)
	}
	e.secretOf("azure", map[string]string{"storage-account": azureAccount, "storage-key": key})
	return storage{"ABS", "abs", "absSecret: azure, endpoint: \"" + url + "\"", "backups/", ""}
}

// claim is a PersistentVolumeClaim.
func (e etcd) claim() storage {
	e.t.Helper()
	e2e.Apply(e.t, e.namespace, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: backups}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 256Mi}}}
`)
	return storage{"PersistentVolumeClaim", "persistentVolumeClaim", "claimName: backups", "", ""}
}

// needsLocalCluster skips a test on a cluster whose pods do not reach this machine.
func needsLocalCluster(t *testing.T) {
	t.Helper()
	e2e.NeedsLocalCluster(t, "pods reach the storage on this machine")
}
