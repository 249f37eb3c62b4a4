// Package join gives a sled the certificate of its Node: the first one by a token, each later one by the one before. A
// sled that has joined keeps a directory with a kubeconfig, and its certificate and key in one file, which is replaced as a whole.
package join

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/certificate/csr"

	"github.com/sledctl/sledctl/fleet/replace"
)

// The files of a sled that has joined.
const (
	Kubeconfig = "kubeconfig"
	credential = "sled.pem" // certificate and key
)

// Join asks the control plane for the certificate of a sled, waits until it is signed, and writes what the sled's node
// reaches the API server with. A sled may join again, under its own name. Errors: *FieldError, *OtherError, *TokenError,
// *UnsignedError; those of the API server and of files.
func Join(ctx context.Context, r Request) error {
	if err := r.check(); err != nil {
		return err
	}
	switch was, err := Name(r.Dir); {
	case err == nil && was != r.Name:
		return &OtherError{Dir: r.Dir, Name: was}
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	c := &rest.Config{Host: r.Server, BearerToken: r.Token, TLSClientConfig: rest.TLSClientConfig{CAData: r.Authority}}
	both, err := issue(ctx, c, r.Name)
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return &TokenError{Err: err}
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	if err := replace.File(filepath.Join(r.Dir, credential), both); err != nil {
		return err
	}
	config, err := clientcmd.Write(kubeconfig(r))
	if err != nil {
		return err
	}
	return replace.File(filepath.Join(r.Dir, Kubeconfig), config) // last: by it the sled has joined
}

// Renew replaces the certificate of a sled that has joined, by that certificate.
func Renew(ctx context.Context, dir string) error {
	name, err := Name(dir)
	if err != nil {
		return err
	}
	c, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, Kubeconfig))
	if err != nil {
		return err
	}
	both, err := issue(ctx, c, name)
	if err != nil {
		return err
	}
	return replace.File(filepath.Join(dir, credential), both)
}

// Certificate is that of a sled that has joined. Errors: fs.ErrNotExist, where none has.
func Certificate(dir string) (*x509.Certificate, error) {
	data, err := os.ReadFile(filepath.Join(dir, credential))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s does not begin with a certificate", filepath.Join(dir, credential))
	}
	return x509.ParseCertificate(block.Bytes)
}

// Name is the name of the sled that has joined.
func Name(dir string) (string, error) {
	c, err := Certificate(dir)
	if err != nil {
		return "", err
	}
	return c.Subject.CommonName[min(len(user), len(c.Subject.CommonName)):], nil
}

// user begins the name of a Node's user, and group is that of all Nodes (kubernetes.io/docs/reference/access-authn-authz/node).
const (
	user  = "system:node:"
	group = "system:nodes"
)

// issue has a new key signed for a sled: certificate and key, as PEM.
func issue(ctx context.Context, c *rest.Config, name string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	asked, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user + name, Organization: []string{group}}}, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	request, uid, err := csr.RequestCertificateWithContext(ctx, client, encode("CERTIFICATE REQUEST", asked), "", certificatesv1.KubeAPIServerClientKubeletSignerName, nil, usages, key)
	if err != nil {
		return nil, fmt.Errorf("ask for the certificate of sled %s: %w", name, err)
	}
	signed, err := csr.WaitForCertificate(ctx, client, request, uid)
	if err != nil {
		return nil, &UnsignedError{Request: request, Err: err}
	}
	return append(append(bytes.TrimSpace(signed), '\n'), encode("PRIVATE KEY", secret)...), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// kubeconfig names the file with the certificate instead of having it: clients read it again when it has changed.
func kubeconfig(r Request) clientapi.Config {
	c := clientapi.NewConfig()
	file := filepath.Join(r.Dir, credential)
	c.Clusters["fleet"] = &clientapi.Cluster{Server: r.Server, CertificateAuthorityData: r.Authority}
	c.AuthInfos["sled"] = &clientapi.AuthInfo{ClientCertificate: file, ClientKey: file}
	c.Contexts["fleet"] = &clientapi.Context{Cluster: "fleet", AuthInfo: "sled"}
	c.CurrentContext = "fleet"
	return *c
}

// due is when a certificate is replaced: two thirds of its time are over.
func due(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3)
}
