package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/fielderr"
	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/tokens"
)

// Open starts the server. When it returns nil, requests are answered and /readyz answers 200; only
// where writing APIServices takes seconds does /readyz follow later. The context bounds the start
// only. An error that wraps ErrConfig says what to write instead; an error that wraps
// changelog.ErrUnavailable, that the database cannot be reached. After an error nothing is left
// running.
func (s *Server) Open(ctx context.Context) (err error) {
	if err := s.config.check(); err != nil {
		return err
	}
	s.boundConnections()
	var end func()
	s.start, end = beginStart(&s.config, s.tellEvery)
	defer end()
	if s.ranges, err = allocate.ParseRanges(s.config.ServiceClusterIPRange, s.config.ServiceNodePortRange); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = aboutDataDir(s.config.DataDir, err)
			s.abandon()
		}
	}()
	plugins, err := s.openFiles()
	if err != nil {
		return err
	}
	// As kubeadm and envtest have it; in a program that has not said otherwise before.
	capabilities.Setup(true, 0)
	var schemas sync.WaitGroup
	schemas.Go(builtin.ReadSchemas)
	defer schemas.Wait()
	if s.listening, err = listen(s.config.Listen, s.config.AdvertiseAddress); err != nil {
		return err
	}
	if s.certificates, err = openCertificates(&s.config, &s.listening, s.ranges, s.certificateLives); err != nil {
		return err
	}
	if err := s.openData(ctx); err != nil {
		return err
	}
	if err := s.wire(plugins); err != nil {
		return err
	}
	if err := s.prepareJobs(); err != nil {
		return err
	}
	if err := s.loadDefinitions(ctx); err != nil {
		return err
	}
	s.serve()
	return s.begin(ctx)
}

// openFiles reads what configures admission plugins and encryption at rest, and opens the
// audit log.
func (s *Server) openFiles() (plugins apiadmission.ConfigProvider, err error) {
	if plugins, err = admission.ReadConfig(s.config.AdmissionConfigFile); err != nil {
		return nil, fieldError("%v: %w", field("AdmissionConfigFile"), err)
	}
	if s.audit, err = audit.Open(s.config.Audit, guard.LongRunning); err != nil {
		return nil, configError("open audit log (--audit-policy-file, --audit-log-path, --audit-webhook-config-file): %w", err)
	}
	if s.encryption, err = encryption.Open(s.config.Encryption, newIdentity()); err != nil {
		return nil, configError("%w", fielderr.Below("Encryption", fielderr.Errorf("%v: %w", field("ConfigFile"), err)))
	}
	if audit.LacksPolicy(s.config.Audit) {
		s.config.Log.Warn("the audit log stays empty without a policy; name its file")
	}
	return plugins, nil
}

// openData opens the database and the tokens, whose keys it may have.
func (s *Server) openData(ctx context.Context) (err error) {
	s.start.at("open the database")
	if s.database, err = openDatabase(ctx, &s.config, s.encryption, s.pki.Fingerprint(), s.start); err != nil {
		return err
	}
	if s.shared {
		s.identity = newIdentity()
	}
	s.parts.set(statePart, works)
	s.start.at("publish the key of tokens")
	s.tokens, err = tokens.Open(ctx, s.config.Tokens, s.pki.SigningKey, s.store, s.shared, s.InProcess(nil))
	if err != nil {
		return fmt.Errorf("open tokens: %w", fielderr.Below("Tokens", err))
	}
	return nil
}

// loadDefinitions serves what the objects in the database define.
func (s *Server) loadDefinitions(ctx context.Context) error {
	s.start.at("serve custom resources")
	if err := s.definitions.Load(ctx); err != nil {
		return fmt.Errorf("serve custom resources: %w", err)
	}
	s.parts.set(definitionsRead, works)
	warnOfRetention(s.config.Log, s.config.Keep, s.kinds.Set().Kinds)
	if err := s.apiServices.Load(ctx); err != nil {
		return fmt.Errorf("serve extensions: %w", err)
	}
	s.parts.set(extensionsRead, works)
	return nil
}

// begin makes a server that answers requests a cluster, and starts its background work.
func (s *Server) begin(ctx context.Context) error {
	s.start.at("make what every cluster begins with")
	if err := s.bootstrap(admission.Unasked(ctx)); err != nil {
		return err
	}
	// Last, because a second process on the same directory must not point clients at
	// itself before it is refused by the database.
	if err := s.certificates.writeKubeconfig(); err != nil {
		return err
	}
	s.highWater.Remember(s.store.Revision(), s.config.Log)
	s.goPart(extensionsJob, s.apiServices.Run)
	s.awaitRegistered(ctx)
	s.startJobs() // after what the start waits for, which they would slow down
	s.parts.set(bootstrapPart, works)
	s.ready.Store(true)
	s.logReady()
	return nil
}

// bootstrap makes the objects of a new cluster, and brings the roles and bindings of its users up
// to date, and what divides the server among them. Without the latter two a server of another
// release can still be used.
func (s *Server) bootstrap(ctx context.Context) error {
	var policy sync.WaitGroup
	policy.Go(func() {
		if err := s.cluster.EnsurePolicy(ctx); err != nil {
			s.config.Log.Warn("bootstrap roles could not be brought up to date; it is tried again", "err", err)
		}
	})
	if s.fairness != nil {
		policy.Go(func() {
			if err := s.fairness.Ensure(ctx); err != nil {
				s.config.Log.Warn("objects of priority and fairness could not be brought up to date; it is tried again", "err", err)
			}
		})
	}
	defer policy.Wait()
	return s.cluster.Bootstrap(ctx)
}

// logReady logs what is served, and from where.
func (s *Server) logReady() {
	s.certificates.logMade()
	chosen := controllers.Chosen(s.config.Controllers)
	s.config.Log.Info("ready",
		"url", s.url,
		"database", dialects.Describe(s.config.DSN),
		"new", s.made,
		"dataDir", absolute(s.config.DataDir),
		"controllers", len(chosen),
		"objects", s.objects(),
		"revision", s.store.Revision(),
		"took", time.Since(s.start.begun))
	s.config.Log.Debug("controllers", "names", strings.Join(chosen, ","))
}
