package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"github.com/plinth-io/plinth/server/upstream"
)

// aboutEtcd says what to do about an etcd that flag names and that cannot be reached. instead is what may be
// written in its place.
func aboutEtcd(flag string, err error, instead string) error {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var noTLS tls.RecordHeaderError
	var network *net.OpError
	advice := "check that the etcd runs and takes connections from here, or write " + instead
	switch {
	case errors.Is(err, upstream.ErrPlaintext):
		return fmt.Errorf("%s: %w", flag, err)
	case errors.As(err, &authority):
		advice = "write --etcd-cafile with the authority of the etcd's certificate"
	case errors.As(err, &name):
		advice = "write a URL with a name or address that the etcd's certificate has"
	case errors.As(err, &noTLS):
		advice = "it speaks no TLS: write http://"
	case errors.As(err, &network) && network.Op == "remote error":
		advice = "write --etcd-certfile and --etcd-keyfile with a certificate that the etcd takes"
	case errors.As(err, &network):
	default:
		return fmt.Errorf("%s: %w", flag, err)
	}
	return fmt.Errorf("%s: %w; %s", flag, err, advice)
}
