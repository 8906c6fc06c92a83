package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	ct "github.com/google/certificate-transparency-go"
	"github.com/google/certificate-transparency-go/tls"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"
)

const (
	// jobToken is what a job of a workflow shows to get a token about itself.
	jobToken = "of the job"
	// workflow is whose token it is.
	workflow = "you/fairlead/.github/workflows/release.yaml@refs/tags/v0.1.0"
)

// serveTokens is what GitHub has for the jobs of its workflows: tokens that say which workflow runs, for whoever asks in
// the name of a job (https://docs.github.com/en/actions/reference/security/oidc), and the key that they are signed by.
func serveTokens() (url string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "test"}}, nil)
	if err != nil {
		return "", err
	}
	commit := strings.Repeat("5", 40)
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": url, "jwks_uri": url + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"},
			"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "test", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "bearer "+jobToken {
			http.Error(w, "that is no job's", http.StatusUnauthorized)
			return
		}
		now := time.Now()
		token, err := jwt.Signed(signer).Claims(map[string]any{
			"iss": url, "aud": r.URL.Query().Get("audience"), "sub": "repo:you/fairlead:ref:refs/tags/v0.1.0",
			"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
			"workflow": "release", "workflow_ref": workflow, "workflow_sha": commit, "job_workflow_ref": workflow, "job_workflow_sha": commit,
			"repository": "you/fairlead", "repository_id": "1", "repository_owner": "you", "repository_owner_id": "2", "repository_visibility": "public",
			"ref": "refs/tags/v0.1.0", "sha": commit, "event_name": "push", "runner_environment": "github-hosted", "run_id": "3", "run_attempt": "1",
		}).Serialize()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, map[string]string{"value": token})
	})
	url, err = serve(mux)
	return url, err
}

// serveCertificateLog promises for each certificate to log it (RFC 6962), and does not. Its public key is in
// certificates.pub.
func (s *sigstore) serveCertificateLog() (url string, err error) {
	key, err := s.newKey("certificates")
	if err != nil {
		return "", err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", err
	}
	id := sha256.Sum256(public)
	promise := func(r *http.Request) (*ct.AddChainResponse, error) {
		var request ct.AddChainRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			return nil, err
		}
		var chain []ct.ASN1Cert
		for _, certificate := range request.Chain {
			chain = append(chain, ct.ASN1Cert{Data: certificate})
		}
		now := uint64(time.Now().UnixMilli()) //nolint:gosec // after 1970
		leaf, err := ct.MerkleTreeLeafFromRawChain(chain, ct.PrecertLogEntryType, now)
		if err != nil {
			return nil, err
		}
		said := ct.SignedCertificateTimestamp{SCTVersion: ct.V1, LogID: ct.LogID{KeyID: id}, Timestamp: now}
		signed, err := ct.SerializeSCTSignatureInput(said, ct.LogEntry{Leaf: *leaf})
		if err != nil {
			return nil, err
		}
		by, err := tls.CreateSignature(*key, tls.SHA256, signed)
		if err != nil {
			return nil, err
		}
		signature, err := tls.Marshal(by)
		return &ct.AddChainResponse{SCTVersion: ct.V1, ID: id[:], Timestamp: now, Signature: signature}, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(ct.AddPreChainPath, func(w http.ResponseWriter, r *http.Request) {
		promised, err := promise(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, promised)
	})
	return serve(mux)
}

func answer(w http.ResponseWriter, what any) { _ = json.NewEncoder(w).Encode(what) }

// serveTUF serves files by TUF, and makes the root that a client has to know beforehand.
func (s *sigstore) serveTUF(files ...string) (url, root string, err error) {
	folder := s.file("tuf")
	if err := os.MkdirAll(filepath.Join(folder, "targets"), 0o700); err != nil {
		return "", "", err
	}
	expires := time.Now().Add(24 * time.Hour)
	top, targets, snapshot, timestamp := metadata.Root(expires), metadata.Targets(expires), metadata.Snapshot(expires), metadata.Timestamp(expires)
	for _, file := range files {
		target, err := metadata.TargetFile().FromFile(file, "sha256")
		if err != nil {
			return "", "", err
		}
		name := filepath.Base(file)
		targets.Signed.Targets[name] = target
		if err := os.Rename(file, filepath.Join(folder, "targets", target.Hashes["sha256"].String()+"."+name)); err != nil {
			return "", "", err
		}
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	key, err := metadata.KeyFromPublicKey(private.Public())
	if err != nil {
		return "", "", err
	}
	for _, role := range []string{metadata.ROOT, metadata.TARGETS, metadata.SNAPSHOT, metadata.TIMESTAMP} {
		if err := top.Signed.AddKey(key, role); err != nil {
			return "", "", err
		}
	}
	signer, err := signature.LoadSigner(private, crypto.Hash(0))
	if err != nil {
		return "", "", err
	}
	root = filepath.Join(folder, "1.root.json")
	err = errors.Join(
		sign(top, signer, root), sign(targets, signer, filepath.Join(folder, "1.targets.json")),
		sign(snapshot, signer, filepath.Join(folder, "1.snapshot.json")), sign(timestamp, signer, filepath.Join(folder, "timestamp.json")))
	if err != nil {
		return "", "", err
	}
	url, err = serve(http.FileServer(http.Dir(folder)))
	return url, root, err
}

func sign[T metadata.Roles](m *metadata.Metadata[T], by signature.Signer, file string) error {
	if _, err := m.Sign(by); err != nil {
		return err
	}
	return m.ToFile(file, false)
}

// newKey makes a key, and writes it to name.key and its public half to name.pub.
func (s *sigstore) newKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return key, errors.Join(
		os.WriteFile(s.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
		os.WriteFile(s.file(name+".pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600))
}
