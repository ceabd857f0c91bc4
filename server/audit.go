package server

import (
	"net/http"

	"github.com/labstack/echo/v4"
	"k8s.io/apiserver/pkg/admission"

	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/auth"
)

// openAudit opens the audit log, if there is to be one.
func (s *Server) openAudit() (err error) {
	if s.audit, err = audit.Open(s.config.Audit, longRunning); err != nil {
		return configError("audit log: %w", err)
	}
	if o := s.config.Audit; o != nil && o.PolicyFile == "" && (o.LogOptions.Path != "" || o.WebhookOptions.ConfigFile != "") {
		s.config.Logf("audit log: nothing is logged without a policy; name its file")
	}
	return nil
}

// beginAudit gives a request the place that its event is put together in.
func (s *Server) beginAudit(x *call) {
	if s.audit != nil {
		x.SetRequest(audit.Begin(x.Request(), x.info, x.Response().Header().Get(auditHeader)))
	}
}

// refuse is for a request that ends with err before it is known who asks.
func (s *Server) refuse(x *call, err error) error {
	if s.audit == nil {
		return err
	}
	w := x.Response().Writer
	defer func() { x.Response().Writer = w }()
	s.audit.Refuse(w, x.Request(), auth.Attributes(nil, x.info), func(w http.ResponseWriter) {
		x.Response().Writer = w
		s.fail(x, err)
	})
	return nil
}

// logged serves a call whose caller is known.
func (s *Server) logged(x *call, next echo.HandlerFunc) error {
	if s.audit == nil {
		return s.admitKnown(x, next)
	}
	w := x.Response().Writer
	defer func() { x.Response().Writer = w }()
	err := s.audit.Serve(w, x.Request(), auth.Attributes(x.who, x.info), func(w http.ResponseWriter) {
		x.Response().Writer = w
		if err := s.admitKnown(x, next); err != nil {
			s.fail(x, err)
		}
	})
	if err != nil {
		return errInternal(x.Request(), err)
	}
	return nil
}

// authorize asks whether the caller may.
func (s *Server) authorize(x *call) error {
	ctx, what := x.Request().Context(), auth.Attributes(x.who, x.info)
	if s.audit == nil {
		return auth.Check(ctx, s.authz, what)
	}
	return auth.CheckAudited(ctx, s.authz, what)
}

// auditAdmission has what plugins annotate a request with put into its event.
func (s *Server) auditAdmission(chain admission.Interface) admission.Interface {
	if s.audit == nil {
		return chain
	}
	return admission.WithAudit(chain)
}
