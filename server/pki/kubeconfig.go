package pki

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/plinth-io/plinth/sqlstore/atomicfile"
)

// Kubeconfig returns a kubeconfig whose current context is the admin on the server at
// url, with all certificates inside.
func (p *PKI) Kubeconfig(url string) ([]byte, error) {
	cert, key := p.Admin()
	return Access{Server: url, CA: p.CA(), User: AdminName, Cert: cert, Key: key, Context: clusterName}.Kubeconfig()
}

// clusterName is the name of the cluster in a kubeconfig.
const clusterName = "plinth"

// Access is what a client needs to know of a server, and shows to it.
type Access struct {
	Server    string // URL
	CA        []byte // the server's authority, in PEM
	CAFile    string // instead of CA: its file
	User      string
	Cert, Key []byte // in PEM
	Namespace string // of commands that name none; empty: default
	Context   string
}

// Kubeconfig returns a kubeconfig with one context.
func (a Access) Kubeconfig() ([]byte, error) {
	c := clientcmdapi.NewConfig()
	c.Clusters[clusterName] = &clientcmdapi.Cluster{Server: a.Server, CertificateAuthorityData: a.CA, CertificateAuthority: a.CAFile}
	c.AuthInfos[a.User] = &clientcmdapi.AuthInfo{ClientCertificateData: a.Cert, ClientKeyData: a.Key}
	c.Contexts[a.Context] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: a.User, Namespace: a.Namespace}
	c.CurrentContext = a.Context
	return clientcmd.Write(*c)
}

// RefreshKubeconfig puts the authority and the admin's certificate of dir into the admin's
// kubeconfig at path, if it is there.
func RefreshKubeconfig(path, dir string) error {
	there, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	ca, err := ReadAuthority(dir)
	if err != nil {
		return err
	}
	admin, err := loadPair(filepath.Join(dir, "admin"))
	if err != nil {
		return err
	}
	cluster, user := there.Clusters[clusterName], there.AuthInfos[AdminName]
	if cluster == nil || user == nil {
		return nil // it is somebody's own
	}
	cluster.CertificateAuthorityData, user.ClientCertificateData, user.ClientKeyData = ca.PEM(), admin.certPEM, admin.keyPEM
	text, err := clientcmd.Write(*there)
	if err != nil {
		return fmt.Errorf("make kubeconfig: %w", err)
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// WriteKubeconfig writes the kubeconfig to path, mode 0600. A file with the same content is
// left alone but for its mode.
func (p *PKI) WriteKubeconfig(path, url string) error {
	want, err := p.Kubeconfig(url)
	if err != nil {
		return fmt.Errorf("make kubeconfig: %w", err)
	}
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, want) {
		return private(path, 0o600)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	if err := atomicfile.Write(path, want, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// RESTConfig returns the client configuration of the admin on the server at url,
// without client-go's own rate limit: the server has limits of its own.
func (p *PKI) RESTConfig(url string) *clientrest.Config {
	cert, key := p.Admin()
	return &clientrest.Config{
		Host:            url,
		QPS:             -1,
		TLSClientConfig: clientrest.TLSClientConfig{CAData: p.CA(), CertData: cert, KeyData: key},
	}
}
