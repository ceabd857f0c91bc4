package server

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plinth-io/plinth/server/fielderr"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/pki"
	"github.com/plinth-io/plinth/server/servingcert"
)

// certificates are those of the server, and the kubeconfig that has one of them.
type certificates struct {
	pki     *pki.PKI
	serving *servingcert.Chooser // what clients are shown

	logger     *slog.Logger
	server     string // https://HOST:PORT, for the kubeconfig
	kubeconfig string // its file; empty without a data directory
}

// openCertificates reads the certificates of the data directory and makes those that are missing.
func openCertificates(c *Config, at *listening, services allocate.Ranges, lives pki.Lives) (s certificates, err error) {
	s = certificates{logger: c.Log, server: at.url}
	dir := ""
	if c.DataDir != "" {
		dir = filepath.Join(c.DataDir, "pki")
		s.kubeconfig = filepath.Join(c.DataDir, "kubeconfig")
	}
	host, _, _ := net.SplitHostPort(c.Listen)
	names := pki.ServingNames(host, c.SANs)
	names = append(names, advertisedNames(c.AdvertiseAddress, at.ip, at.own())...)
	for _, ip := range services.First() {
		names = append(names, ip.String())
	}
	if s.pki, err = pki.OpenFor(dir, names, lives); err != nil {
		return s, err
	}
	if err := s.pki.Unwritten(); err != nil {
		s.logger.Warn("a certificate was made and could not be written", "err", err)
	}
	if s.serving, err = servingcert.Open(c.Serving, s.pki.Serving); err != nil {
		return s, configError("%w", fielderr.Below("Serving", err))
	}
	if weak := c.Serving.Insecure(); len(weak) > 0 {
		s.logger.Warn("use of insecure ciphers", "names", strings.Join(weak, ","))
	}
	return s, nil
}

// ends returns when the certificates in use end, by the names of their files.
func (s *certificates) ends() map[string]time.Time {
	ends := s.pki.Ends()
	maps.Copy(ends, s.serving.Ends())
	return ends
}

func (s *certificates) writeKubeconfig() error {
	if s.kubeconfig == "" {
		return nil
	}
	err := s.pki.WriteKubeconfig(s.kubeconfig, s.server)
	if _, missing := os.Stat(s.kubeconfig); err != nil && missing == nil {
		// For example, the disk is full. Clients that know the server can use it all the same.
		s.logger.Warn("the kubeconfig could not be written; the one that is there is of an earlier start", "err", err)
		return nil
	}
	return err
}

// logMade names the certificates that were made or renewed.
func (s *certificates) logMade() {
	if names := s.pki.Made(); len(names) > 0 {
		s.logger.Info("made certificates", "names", strings.Join(names, ","))
	}
}

const (
	certificatesEvery  = 10 * time.Second
	certificatesFailed = 10 * time.Minute // the pause after a renewal that failed
)

// run renews certificates in time, for servers that run longer than a certificate lives, and takes up
// those that plinth certs renew has made. After each renewal it calls renewed.
func (s *certificates) run(ctx context.Context, every time.Duration, renewed func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s.logMade() // some are made at their first use
			if now.Before(next) || !s.pki.Due() {
				continue
			}
		}
		if err := s.renew(renewed); err != nil {
			s.logger.Error("certificates could not be renewed", "err", err)
			next = time.Now().Add(certificatesFailed)
		}
	}
}

func (s *certificates) renew(renewed func()) error {
	changed, err := s.pki.Renew()
	s.logMade()
	renewed()
	if names := s.pki.Taken(); len(names) > 0 {
		s.logger.Info("took up certificates that were renewed in the data directory", "names", strings.Join(names, ","))
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
