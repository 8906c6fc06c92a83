package store

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"

	"example.com/fairlead/operators/etcd/task"
)

// The keys of the Secret.
const (
	absAccount = "storage-account"
	absKey     = "storage-key"
	absCloud   = "cloud"
)

// absClouds are the clouds by their names in Azure's command line.
var absClouds = map[string]struct {
	suffix string
	cloud  cloud.Configuration
}{
	"":                       {"core.windows.net", cloud.AzurePublic},
	"azurecloud":             {"core.windows.net", cloud.AzurePublic},
	"azurepubliccloud":       {"core.windows.net", cloud.AzurePublic},
	"azurechinacloud":        {"core.chinacloudapi.cn", cloud.AzureChina},
	"azureusgovernment":      {"core.usgovcloudapi.net", cloud.AzureGovernment},
	"azureusgovernmentcloud": {"core.usgovcloudapi.net", cloud.AzureGovernment},
}

type absContainer struct{ bucket }

func openABS(ctx context.Context, o opened) (storage, error) {
	t, err := newTransport(o.secret, o.watch)
	if err != nil {
		return nil, err
	}
	s := o.secret
	account, err := s.line(absAccount)
	if err != nil {
		return nil, err
	}
	key, err := s.line(absKey)
	if err != nil {
		return nil, err
	}
	name, err := s.line(absCloud)
	if err != nil {
		return nil, err
	}
	if account == "" {
		return nil, s.missing(absAccount)
	}
	of, ok := absClouds[strings.ToLower(name)]
	if !ok {
		return nil, s.invalid("key %s is not the name of a cloud: write AzurePublicCloud, AzureChinaCloud or AzureUSGovernmentCloud", absCloud)
	}
	url := strings.TrimSuffix(o.Endpoint, "/")
	if url == "" {
		url = "https://" + account + ".blob." + of.suffix
	}
	url += "/" + o.Bucket
	options := azcore.ClientOptions{
		Cloud: of.cloud, Transport: &http.Client{Transport: t},
		Retry: policy.RetryOptions{MaxRetries: 3, MaxRetryDelay: 10 * time.Second},
	}
	var client *container.Client
	if key == "" {
		client, err = absByIdentity(ctx, s, url, options)
	} else {
		client, err = absByKey(s, url, account, key, options)
	}
	if err != nil {
		return nil, err
	}
	b, err := azureblob.OpenBucket(ctx, client, nil)
	if err != nil {
		return nil, err
	}
	return &absContainer{bucket{Bucket: b, transport: t}}, nil
}

func absByKey(s *secret, url, account, key string, options azcore.ClientOptions) (*container.Client, error) {
	s.hide(key)
	if _, err := base64.StdEncoding.DecodeString(key); err != nil {
		return nil, s.invalid("key %s is not in base64, as Azure's access keys are", absKey)
	}
	shared, err := container.NewSharedKeyCredential(account, key)
	if err != nil {
		return nil, s.invalid("keys %s and %s are no access key of Azure", absAccount, absKey)
	}
	return container.NewClientWithSharedKeyCredential(url, shared, &container.ClientOptions{ClientOptions: options})
}

// absByIdentity is for the pod's own identity: of workload identity, or of the node.
func absByIdentity(ctx context.Context, s *secret, url string, options azcore.ClientOptions) (*container.Client, error) {
	var identity azcore.TokenCredential
	var err error
	if os.Getenv("AZURE_FEDERATED_TOKEN_FILE") != "" {
		identity, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options})
	} else {
		node := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: options}
		if id := os.Getenv("AZURE_CLIENT_ID"); id != "" {
			node.ID = azidentity.ClientID(id)
		}
		identity, err = azidentity.NewManagedIdentityCredential(node)
	}
	if err == nil {
		_, err = identity.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, s.invalid("there is no key %s, and the pod has no identity in the cloud: add the key, or name a ServiceAccount with workload identity", absKey)
	}
	return container.NewClient(url, identity, &container.ClientOptions{ClientOptions: options})
}

func (b *absContainer) stat(ctx context.Context, key string) (Object, error) {
	o, err := b.attributes(ctx, key)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return Object{}, errNoObject
	}
	return o, err
}

func (b *absContainer) write(ctx context.Context, key string, meta Meta, replace bool, r io.Reader) error {
	return b.upload(ctx, key, meta, replace, r)
}

// tidy has nothing to do: blocks that are in no blob are removed by Azure, after a week.
func (*absContainer) tidy(context.Context, string, time.Time) error { return nil }

func (b *absContainer) problem(o *operation, err error) *task.Problem {
	e, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		return nil
	}
	code := e.ErrorCode
	switch bloberror.Code(code) {
	case bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted:
		return o.known(errNoBucket)
	case bloberror.BlobNotFound:
		return o.known(errNoObject)
	case bloberror.AuthenticationFailed, bloberror.InvalidAuthenticationInfo, bloberror.NoAuthenticationInformation:
		return o.problem(task.ReasonCredentialsInvalid, true, "%s does not accept the credentials (%s): correct the Secret", o.server(), code)
	case bloberror.BlobImmutableDueToPolicy:
		return o.retained(code)
	case bloberror.SnapshotsPresent:
		return o.problem(task.ReasonStorageFailed, false, "the object has snapshots of Azure's own (%s): delete those", code)
	default:
	}
	if strings.Contains(code, "Quota") || strings.Contains(code, "LimitExceeded") {
		return o.full(code)
	}
	return o.answered(e.StatusCode, code, "")
}
