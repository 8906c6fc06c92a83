package v1beta2

// StorageType is where backups are stored.
//
// +kubebuilder:validation:Enum=S3;GCS;ABS;PersistentVolumeClaim
type StorageType string

// The storage types. The CoreOS operator's OSS is refused: there is no library for it in which
// uploads are complete or absent.
const (
	StorageS3    StorageType = "S3"
	StorageGCS   StorageType = "GCS"
	StorageABS   StorageType = "ABS"
	StorageClaim StorageType = "PersistentVolumeClaim"
)

// BackupSource is where a backup is stored: the field that belongs to the storage type is set.
type BackupSource struct {
	// s3 is for the storage type S3.
	// +optional
	S3 *S3Source `json:"s3,omitempty"`

	// gcs is for the storage type GCS.
	// +optional
	GCS *GCSSource `json:"gcs,omitempty"`

	// abs is for the storage type ABS.
	// +optional
	ABS *ABSSource `json:"abs,omitempty"`

	// persistentVolumeClaim is for the storage type PersistentVolumeClaim.
	// +optional
	PersistentVolumeClaim *ClaimSource `json:"persistentVolumeClaim,omitempty"`
}

// S3Source is a place in S3, or in storage that has S3's API.
type S3Source struct {
	// path is `<bucket>/<key>`. For a backup that is made once, and for a restore, the key is that of
	// the object; for a periodic backup, objects have names that begin with it.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^/]+/[^/]([^\n]*[^/\n])?$`
	Path string `json:"path"`

	// awsSecret is the name of a Secret with the keys credentials, and if needed config, in the
	// format of the AWS CLI's files, profile default; and if needed ca.crt, the CA of the endpoint.
	// Without it, the identity of the pod is used: see serviceAccountName.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	AWSSecret string `json:"awsSecret,omitempty"`

	// endpoint is the URL of storage that is not AWS's, such as https://minio.example.com:9000.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[^/\s]+/?$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must have no user and password: those belong into the Secret"
	Endpoint string `json:"endpoint,omitempty"`

	// forcePathStyle has the bucket in the path of URLs rather than in the host's name.
	// +optional
	ForcePathStyle bool `json:"forcePathStyle,omitempty"`
}

// GCSSource is a place in Google Cloud Storage.
type GCSSource struct {
	// path is `<bucket>/<key>`, as for S3.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^/]+/[^/]([^\n]*[^/\n])?$`
	Path string `json:"path"`

	// gcpSecret is the name of a Secret with one of the keys access-token and credentials.json; and if
	// needed ca.crt, the CA of the endpoint. Without it, the identity of the pod is used.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	GCPSecret string `json:"gcpSecret,omitempty"`

	// endpoint is the URL of another server with the API of Google Cloud Storage.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[^/\s]+/?$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must have no user and password: those belong into the Secret"
	Endpoint string `json:"endpoint,omitempty"`
}

// ABSSource is a place in Azure Blob Storage.
type ABSSource struct {
	// path is `<container>/<key>`, as for S3.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^/]+/[^/]([^\n]*[^/\n])?$`
	Path string `json:"path"`

	// absSecret is the name of a Secret with the keys storage-account and storage-key, and if needed
	// cloud, such as AzureChinaCloud, and ca.crt, the CA of the endpoint. With storage-account alone,
	// the identity of the pod is used.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ABSSecret string `json:"absSecret"`

	// endpoint is the URL of another server with the API of Azure Blob Storage, with its account if
	// that is in the path, such as http://azurite:10000/devstoreaccount1.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^https?://[^\s]+$`
	// +kubebuilder:validation:XValidation:rule="!self.contains('@')",message="must have no user and password: those belong into the Secret"
	Endpoint string `json:"endpoint,omitempty"`
}

// ClaimSource is a place in a volume.
type ClaimSource struct {
	// claimName is the name of the PersistentVolumeClaim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`

	// path is the file, from the volume's root, as the key of S3's path.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^/\n]([^\n]*[^/\n])?$`
	// +kubebuilder:validation:XValidation:rule="!self.split('/').exists(p, p == '.' || p == '..' || p == '')",message="must be a path without . and .. and //"
	Path string `json:"path"`
}
