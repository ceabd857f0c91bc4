package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientrest "k8s.io/client-go/rest"
)

// trustError says that client and server do not trust each other's credentials. It has the whole story, so
// that nothing else is printed.
type trustError struct {
	text string
	err  error
}

func (e *trustError) Error() string { return e.text }
func (e *trustError) Unwrap() error { return e.err }

// endedText says of a certificate whose time is not now when that was, or will be; else "".
func endedText(c *x509.Certificate) string {
	now := time.Now()
	switch {
	case now.After(c.NotAfter):
		return fmt.Sprintf("ended at %s, %s", c.NotAfter.UTC().Format(time.RFC3339), until(c.NotAfter))
	case now.Before(c.NotBefore):
		return fmt.Sprintf("is not valid before %s: is the clock of this machine right?", c.NotBefore.UTC().Format(time.RFC3339))
	}
	return ""
}

// clientCertificate returns the certificate that a kubeconfig shows; nil if it has none.
func clientCertificate(config *clientrest.Config) *x509.Certificate {
	text := config.CertData
	if len(text) == 0 && config.CertFile != "" {
		text, _ = os.ReadFile(config.CertFile) // which the client has read
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return c
}

// unauthorized says why a server may not take the credentials of a kubeconfig (401).
func (a *statusClient) unauthorized() error {
	c := a.certificate
	switch {
	case c != nil && endedText(c) != "":
		return &trustError{text: fmt.Sprintf("%s refuses the client certificate of %q in the kubeconfig: it %s; make another one with plinth certs renew or plinth kubeconfig, or write another --kubeconfig", a.server, c.Subject.CommonName, endedText(c))}
	case c != nil:
		return &trustError{text: fmt.Sprintf("%s refuses the client certificate of %q in the kubeconfig: it is not of an authority that the server knows; write the --kubeconfig of that server", a.server, c.Subject.CommonName)}
	}
	return &trustError{text: fmt.Sprintf("%s refuses the credentials in the kubeconfig: a token may have ended, or be of another server; write another --kubeconfig", a.server)}
}

// unreachable says what to do about a server that cannot be reached.
func (a *statusClient) unreachable(err error, instead string) error {
	var verify *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var alert *net.OpError
	advice := ""
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil && endedText(invalid.Cert) != "":
		return &trustError{fmt.Sprintf("%s shows a certificate of %q that %s; renew it with plinth certs renew, or restart the server", a.server, invalid.Cert.Subject.CommonName, endedText(invalid.Cert)), err}
	case errors.As(err, &authority):
		advice = "its certificate is of another authority than the one in the kubeconfig: write the --kubeconfig of that server, which is in its data directory"
	case errors.As(err, &name):
		advice = "write a --server with a name or address that its certificate has, or start it with --tls-san"
	case errors.As(err, &verify):
		advice = "write the --kubeconfig of that server"
	case a.certificate != nil && endedText(a.certificate) != "" && errors.As(err, &alert) && alert.Op == "remote error":
		return a.unauthorized() // a proxy has looked at it
	default:
		return fmt.Errorf("cannot reach plinth at %s: %w; start plinth serve, or write another %s", a.server, err, instead)
	}
	return &trustError{fmt.Sprintf("cannot trust the server at %s: %s; %s", a.server, oneLine(err), advice), err}
}

// askedBy returns what errors of requests with a kubeconfig are explained by; nil if it names no server.
func askedBy(config *clientrest.Config) *statusClient {
	server, _, err := clientrest.DefaultServerUrlFor(config)
	if err != nil {
		return nil
	}
	return &statusClient{server: server, certificate: clientCertificate(config)}
}

// explain says of an error of a request what to do about it. The API's own errors stay as they are.
func (a *statusClient) explain(err error) error {
	var detail *url.Error
	switch {
	case a == nil:
		return err
	case apierrors.IsUnauthorized(err):
		return a.unauthorized()
	case errors.As(err, &detail):
		return a.unreachable(detail.Err, "--kubeconfig or --context")
	}
	return err
}

// distrust says of an error of a request whether client and server do not trust each other; nil if it is another one.
func (a *statusClient) distrust(err error) error {
	if apierrors.IsUnauthorized(err) {
		return a.unauthorized()
	}
	var told *trustError
	var detail *url.Error
	if errors.As(err, &detail) && errors.As(a.unreachable(detail.Err, ""), &told) {
		return told
	}
	return nil
}
