package server

import (
	"net/http"

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

// refuse is for a request that ends before it is known who asks.
func (s *Server) refuse(x *call, err error) error {
	if s.audit == nil {
		return err
	}
	x.through(s.audit.Refusal(x.answer(func() error { return err }, s.fail)))
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

// through has an audit filter stand between the call and its answer.
func (x *call) through(filter http.Handler) {
	response := x.Response()
	w := response.Writer
	defer func() { response.Writer = w }()
	filter.ServeHTTP(w, x.Request())
	if !response.Committed && !x.answered {
		// The filter itself has answered: the event could not be stored.
		response.Status, response.Committed = http.StatusInternalServerError, true
	}
}

// answer is a handler that serves the call; the writer that it is given sees all of it.
func (x *call) answer(serve func() error, fail func(*call, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.answered = true
		x.Response().Writer = w
		x.SetRequest(r)
		if err := serve(); err != nil {
			fail(x, err)
		}
	})
}
