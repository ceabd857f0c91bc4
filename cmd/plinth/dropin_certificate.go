package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/pki"
)

// findCertificate finds the serving certificate in --cert-dir. If it is missing, one is made: its
// authority stands behind it, so that clients that trust the file trust the server.
func (o *apiServerOptions) findCertificate() error {
	s := &o.config.Serving
	if s.CertFile != "" || s.KeyFile != "" || o.certDir == "" {
		return nil
	}
	s.CertFile, s.KeyFile = filepath.Join(o.certDir, "apiserver.crt"), filepath.Join(o.certDir, "apiserver.key")
	there, err := cert.CanReadCertAndKey(s.CertFile, s.KeyFile)
	if err == nil && !there {
		err = o.makeCertificate()
	}
	if err != nil {
		return usagef("--cert-dir %s: %v", o.certDir, err)
	}
	return nil
}

func (o *apiServerOptions) makeCertificate() error {
	names, err := o.certificateNames()
	if err != nil {
		return err
	}
	p, err := pki.Open("", names)
	if err != nil {
		return err
	}
	pair, err := p.Serving(nil)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return err
	}
	var chain bytes.Buffer
	for _, der := range pair.Certificate {
		_ = pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: der}) // to memory
	}
	if !bytes.Contains(chain.Bytes(), p.CA()) {
		chain.Write(p.CA())
	}
	if err := cert.WriteCert(o.config.Serving.CertFile, chain.Bytes()); err != nil {
		return err
	}
	return keyutil.WriteKey(o.config.Serving.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}

// certificateNames are what a certificate of this server has to be for.
func (o *apiServerOptions) certificateNames() ([]string, error) {
	ranges, err := allocate.ParseRanges(o.config.ServiceClusterIPRange, o.config.ServiceNodePortRange)
	if err != nil {
		return nil, err
	}
	names := pki.ServingNames(o.bindAddress.String(), nil)
	if a := o.config.AdvertiseAddress; a != nil {
		names = append(names, a.String())
	}
	for _, ip := range ranges.First() {
		names = append(names, ip.String())
	}
	return names, nil
}
