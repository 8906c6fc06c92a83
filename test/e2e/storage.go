//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

const s3User = "fairlead"

// S3Password is that of the storage of [ServeS3].
const S3Password = "a-password-for-tests"

// ServeS3 has a bucket of versitygw, called "backups", at an address of this machine until the test ends. Its objects
// are the files of the folder.
func ServeS3(t testing.TB, address string) (folder string) {
	t.Helper()
	root := t.TempDir()
	folder = filepath.Join(root, "backups")
	program, err := filepath.Abs(filepath.Join(Root, "bin", "versitygw"))
	if err == nil {
		err = os.Mkdir(folder, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	Serve(t, address, program, "--access", s3User, "--secret", S3Password, "--port", address, "posix", root)
	return folder
}

// S3Lines are the lines of a spec for that storage beside the path, with the Secret aws.
func S3Lines(address string) string {
	return `awsSecret: aws, forcePathStyle: true, endpoint: "http://` + address + `"`
}

// S3Credentials is what a Secret for that storage has in its key "credentials".
func S3Credentials(password string) string {
	return "[default]\naws_access_key_id = " + s3User + "\naws_secret_access_key = " + password + "\nregion = us-east-1\n"
}
