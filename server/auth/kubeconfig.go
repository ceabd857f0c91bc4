package auth

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig whose current context is the admin on the server at
// url, with all certificates inside.
func (p *PKI) Kubeconfig(url string) ([]byte, error) {
	cert, key := p.Admin()
	c := clientcmdapi.NewConfig()
	c.Clusters["plinth"] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: p.CA()}
	c.AuthInfos[AdminName] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	c.Contexts["plinth"] = &clientcmdapi.Context{Cluster: "plinth", AuthInfo: AdminName}
	c.CurrentContext = "plinth"
	return clientcmd.Write(*c)
}

// WriteKubeconfig puts the kubeconfig at path, mode 0600. A file that says the same
// already is left alone but for its mode.
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
	if err := writeFile(path, want, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// RESTConfig returns the client configuration of the admin on the server at url,
// without client-go's own rate limit: the server has limits of its own.
func (p *PKI) RESTConfig(url string) *rest.Config {
	cert, key := p.Admin()
	return &rest.Config{
		Host:            url,
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.CA(), CertData: cert, KeyData: key},
	}
}
