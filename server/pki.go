package server

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plinth-io/plinth/server/fielderr"
	"github.com/plinth-io/plinth/server/pki"
	"github.com/plinth-io/plinth/server/servingcert"
)

// openPKI reads the certificates of the data directory and makes those that are missing.
func (s *Server) openPKI() (err error) {
	dir := ""
	if s.config.DataDir != "" {
		dir = filepath.Join(s.config.DataDir, "pki")
	}
	host, _, _ := net.SplitHostPort(s.config.Listen)
	names := pki.ServingNames(host, s.config.SANs)
	names = append(names, advertisedNames(s.config.AdvertiseAddress, s.ip, s.own())...)
	for _, ip := range s.ranges.First() {
		names = append(names, ip.String())
	}
	s.pki, err = pki.OpenFor(dir, names, s.certificateLives)
	if err == nil && s.pki.Unwritten() != nil {
		s.config.Log.Warn("a certificate was made and could not be written", "err", s.pki.Unwritten())
	}
	if err != nil {
		return err
	}
	if s.certificates, err = servingcert.Open(s.config.Serving, s.pki.Serving); err != nil {
		return configError("%w", fielderr.Below("Serving", err))
	}
	if weak := s.config.Serving.Insecure(); len(weak) > 0 {
		s.config.Log.Warn("use of insecure ciphers", "names", strings.Join(weak, ","))
	}
	return nil
}

// certificateEnds returns when the certificates in use end, by the names of their files.
func (s *Server) certificateEnds() map[string]time.Time {
	ends := s.pki.Ends()
	maps.Copy(ends, s.certificates.Ends())
	return ends
}

func (s *Server) writeKubeconfig() error {
	if s.config.DataDir == "" {
		return nil
	}
	file := s.kubeconfigFile()
	err := s.pki.WriteKubeconfig(file, s.url)
	if _, missing := os.Stat(file); err != nil && missing == nil {
		// For example, the disk is full. Clients that know the server can use it all the same.
		s.config.Log.Warn("the kubeconfig could not be written; the one that is there is of an earlier start", "err", err)
		return nil
	}
	return err
}

// tellCertificates names the certificates that were made or renewed.
func (s *Server) tellCertificates() {
	if names := s.pki.Made(); len(names) > 0 {
		s.config.Log.Info("made certificates", "names", strings.Join(names, ","))
	}
}

const (
	certificatesEvery  = 10 * time.Second
	certificatesFailed = 10 * time.Minute // until it is tried again
)

// renewCertificates renews certificates in time, for servers that run longer than a
// certificate lives, and takes up those that plinth certs renew has made.
func (s *Server) renewCertificates(ctx context.Context) {
	tick := time.NewTicker(s.certificatesEvery)
	defer tick.Stop()
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.tellCertificates() // of those that are made at their first use
			if now.Before(next) || !s.pki.Due() {
				continue
			}
		}
		if err := s.renew(); err != nil {
			s.config.Log.Error("certificates could not be renewed", "err", err)
			next = time.Now().Add(certificatesFailed)
		}
	}
}

func (s *Server) renew() error {
	changed, err := s.pki.Renew()
	s.tellCertificates()
	s.authenticator.Renew()
	if names := s.pki.Taken(); len(names) > 0 {
		s.config.Log.Info("took up certificates that were renewed in the data directory", "names", strings.Join(names, ","))
	}
	if err != nil {
		return err
	}
	if changed {
		if err := s.writeKubeconfig(); err != nil {
			return err
		}
	}
	return s.pki.Unwritten()
}
