package main

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// clients returns clients with a kubeconfig.
func clients(t *testing.T, kubeconfig string) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

func whoIs(t *testing.T, client kubernetes.Interface) (authenticationv1.UserInfo, error) {
	t.Helper()
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

// expectUser fails the test unless the credentials are those of a user in a group who is no master.
func expectUser(t *testing.T, client kubernetes.Interface, name, group string) {
	t.Helper()
	who, err := whoIs(t, client)
	must(t, err)
	if who.Username != name || !slices.Contains(who.Groups, group) || slices.Contains(who.Groups, "system:masters") {
		t.Errorf("the user is %+v, want %s in %s", who, name, group)
	}
}

// expectForbidden runs what must be refused.
func expectForbidden(t *testing.T, all map[string]func() error) {
	t.Helper()
	for name, refused := range all {
		if err := refused(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// request waits for a request for a certificate.
func (c *realCluster) request(t *testing.T, signer, user string) (found *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	c.soon(t, user+" requests a certificate of "+signer, func() bool {
		list, err := c.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.signerName=" + signer})
		must(t, err)
		i := slices.IndexFunc(list.Items, func(r certificatesv1.CertificateSigningRequest) bool { return r.Spec.Username == user })
		if i >= 0 {
			found = &list.Items[i]
		}
		return i >= 0
	})
	return found
}

// autoApproved waits until the controller manager has approved and signed the request of a user
// for a kubelet's client certificate.
func (c *realCluster) autoApproved(t *testing.T, user string) {
	t.Helper()
	c.soon(t, "the request of "+user+" is approved and signed", func() bool {
		r := c.request(t, certificatesv1.KubeAPIServerClientKubeletSignerName, user)
		return len(r.Status.Certificate) > 0 && slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved && c.Reason == "AutoApproved"
		})
	})
}

// authority returns plinth's.
func (c *realCluster) authority(t *testing.T) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.plinth.dir, "pki", "ca.crt"))
	must(t, err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatal("no certificate in ca.crt")
	}
	return pool
}

// currentCertificate returns the client certificate in the folder of a kubelet.
func (c *realCluster) currentCertificate(t *testing.T, n *realNode) *x509.Certificate {
	t.Helper()
	folder := n.shell.path("/var/lib/kubelet/pki")
	current, err := os.Readlink(filepath.Join(folder, "kubelet-client-current.pem")) // as the node names it
	must(t, err)
	text, err := os.ReadFile(filepath.Join(folder, filepath.Base(current)))
	must(t, err)
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatal("no certificate in kubelet-client-current.pem")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: c.authority(t), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	must(t, err)
	return certificate
}
