package plane

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"
)

// Config is how a user reaches the API server, by a certificate of the control plane's own
// authority. A sled is the user system:node:NAME in the group system:nodes.
func (p *Plane) Config(user string, groups ...string) (*rest.Config, error) {
	one, err := p.ca.issue(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            "https://" + p.Address(),
		TLSClientConfig: rest.TLSClientConfig{CAData: p.ca.pem(), CertData: one.cert, KeyData: one.key},
		QPS:             200, Burst: 400,
	}, nil
}

// Authority is the certificate of the control plane's own authority, as PEM.
func (p *Plane) Authority() []byte { return p.ca.pem() }

// Serving writes tls.crt and tls.key for a server on this machine into a directory.
func (p *Plane) Serving(dir string) error {
	one, err := p.ca.issue("localhost")
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), one.cert, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), one.key, 0o600))
}

// FreePort is one on which nothing listens now.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// Kubeconfig writes a file by which programs reach the API server as a user, and is its name.
func (p *Plane) Kubeconfig(user string, groups ...string) (string, error) {
	one, err := p.ca.issue(user, groups...)
	if err != nil {
		return "", err
	}
	return p.kubeconfig(user, clientapi.AuthInfo{ClientCertificateData: one.cert, ClientKeyData: one.key})
}

// KubeconfigOf is Kubeconfig for a service account with a token.
func (p *Plane) KubeconfigOf(account, token string) (string, error) {
	return p.kubeconfig(account, clientapi.AuthInfo{Token: token})
}

func (p *Plane) kubeconfig(name string, by clientapi.AuthInfo) (string, error) {
	c := clientapi.NewConfig()
	c.Clusters["fleet"] = &clientapi.Cluster{Server: "https://" + p.Address(), CertificateAuthorityData: p.ca.pem()}
	c.AuthInfos[name] = &by
	c.Contexts["fleet"] = &clientapi.Context{Cluster: "fleet", AuthInfo: name}
	c.CurrentContext = "fleet"
	file := p.file(name + ".kubeconfig")
	return file, clientcmd.WriteToFile(*c, file)
}

// Kubectl is a command of kubectl as the administrator.
func (p *Plane) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(p.o.Bin, Kubectl), args...)
	c.Env = []string{"KUBECONFIG=" + p.file("admin.kubeconfig"), "HOME=" + p.o.Dir, "PATH=/usr/bin:/bin"}
	return c
}
