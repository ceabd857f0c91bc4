package audit

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	apiaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// events is a backend that keeps what it gets, in short, unless it is full.
type events struct {
	apiaudit.Backend
	full bool
	got  []string
}

func (e *events) ProcessEvents(list ...*auditinternal.Event) bool {
	for _, event := range list {
		text := string(event.Stage)
		if event.ResponseStatus != nil {
			text += " " + http.StatusText(int(event.ResponseStatus.Code))
		}
		e.got = append(e.got, text)
	}
	return !e.full
}

// rule is a policy of one rule.
type rule apiaudit.RequestAuditConfig

func (r rule) EvaluatePolicyRule(authorizer.Attributes) apiaudit.RequestAuditConfig {
	return apiaudit.RequestAuditConfig(r)
}

func openLog(sink *events, policy rule, longRunning bool) *Log {
	return &Log{
		backend: sink, policy: policy, longRunning: func(*apirequest.RequestInfo) bool { return longRunning },
	}
}

func prepared(t *testing.T) (*httptest.ResponseRecorder, *http.Request) {
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/version", nil)
	return w, r.WithContext(Begin(r.Context(), &apirequest.RequestInfo{Path: "/version", Verb: "get"}, http.Header{"Audit-Id": {"one"}}))
}

// "Each request can be recorded with an associated stage": RequestReceived, ResponseStarted
// for long-running requests, ResponseComplete and Panic.
// https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
func TestStages(t *testing.T) {
	metadata := rule{Level: auditinternal.LevelMetadata}
	answer := func(w http.ResponseWriter) { w.WriteHeader(http.StatusTeapot) }
	for name, tt := range map[string]struct {
		policy      rule
		longRunning bool
		answer      func(http.ResponseWriter)
		want        []string
	}{
		"short":               {metadata, false, answer, []string{"RequestReceived", "ResponseComplete I'm a teapot"}},
		"long-running":        {metadata, true, answer, []string{"RequestReceived", "ResponseStarted I'm a teapot", "ResponseComplete I'm a teapot"}},
		"a body alone":        {metadata, false, func(w http.ResponseWriter) { _, _ = w.Write([]byte("ok")) }, []string{"RequestReceived", "ResponseComplete OK"}},
		"no answer":           {metadata, true, func(http.ResponseWriter) {}, []string{"RequestReceived", "ResponseStarted OK", "ResponseComplete OK"}},
		"a panic":             {metadata, false, func(http.ResponseWriter) { panic("over") }, []string{"RequestReceived", "Panic Internal Server Error"}},
		"a stage is omitted":  {rule{Level: auditinternal.LevelMetadata, OmitStages: []auditinternal.Stage{auditinternal.StageRequestReceived}}, false, answer, []string{"ResponseComplete I'm a teapot"}},
		"nothing is recorded": {rule{Level: auditinternal.LevelNone}, true, answer, nil},
	} {
		sink := &events{}
		w, r := prepared(t)
		func() {
			defer func() { _ = recover() }()
			if err := openLog(sink, tt.policy, tt.longRunning).Serve(w, r, authorizer.AttributesRecord{}, tt.answer); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}()
		if diff := cmp.Diff(tt.want, sink.got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// A request whose first event cannot be stored is not served.
func TestNotStored(t *testing.T) {
	w, r := prepared(t)
	err := openLog(&events{full: true}, rule{Level: auditinternal.LevelMetadata}, false).
		Serve(w, r, authorizer.AttributesRecord{}, func(http.ResponseWriter) { t.Error("it is served") })
	if !errors.Is(err, ErrNotStored) {
		t.Errorf("error %v, want %v", err, ErrNotStored)
	}
}

// A request that is refused before its caller is known has one event, when its answer begins.
func TestRefuse(t *testing.T) {
	sink := &events{}
	w, r := prepared(t)
	openLog(sink, rule{Level: auditinternal.LevelMetadata}, false).
		Refuse(w, r, authorizer.AttributesRecord{}, func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) })
	if want := []string{"ResponseStarted Unauthorized"}; !slices.Equal(sink.got, want) || w.Code != http.StatusUnauthorized {
		t.Errorf("%d, events %q, want %q", w.Code, sink.got, want)
	}
}
