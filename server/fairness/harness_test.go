package fairness

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/server/apitest"
)

// env is a Controller that runs, with the default objects.
type env struct {
	*testing.T
	*Controller
	api *apitest.API
}

// serverSeats are the shares of the default levels and of the level test: a seat is a share.
const serverSeats = 245 + testSeats

// testSeats are the seats of the level test.
const testSeats = 5

func open(t *testing.T) *env {
	t.Helper()
	api := apitest.Open(t)
	c, err := New(Options{Seats: serverSeats, Timeout: 10 * time.Minute, Store: api.Store, Kinds: api.Kinds, Client: api.Config, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return &env{t, c, api}
}

// eventually waits for something that happens soon.
func (e *env) eventually(what string, done func() bool) {
	e.Helper()
	for end := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			e.Fatal(what)
		}
	}
}

// limit makes the level test with its seats and queues, and sends ann and bob there.
func (e *env) limit(queuing *flowcontrolv1.QueuingConfiguration) {
	e.Helper()
	response := flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}
	if queuing != nil {
		response = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: queuing}
	}
	pl := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "test"}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited,
		Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: ptr.To[int32](testSeats), BorrowingLimitPercent: ptr.To[int32](0), LendablePercent: ptr.To[int32](0), LimitResponse: response,
		},
	}}
	if _, err := e.api.Client.FlowcontrolV1().PriorityLevelConfigurations().Create(e.Context(), pl, metav1.CreateOptions{}); err != nil {
		e.Fatal(err)
	}
	e.createSchema("test", "test", "ann", "bob")
	e.eventually("ann's requests do not come into the level test", func() bool {
		w := e.ask(ann, get)
		return w.level == e.uid("test") && w.code == 200
	})
}

func (e *env) createSchema(name, level string, users ...string) *flowcontrolv1.FlowSchema {
	e.Helper()
	rules := flowcontrolv1.PolicyRulesWithSubjects{
		ResourceRules:    []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"}}},
		NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
	}
	for _, u := range users {
		rules.Subjects = append(rules.Subjects, flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: u}})
	}
	fs, err := e.api.Client.FlowcontrolV1().FlowSchemas().Create(e.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			MatchingPrecedence: 50, PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
			DistinguisherMethod: &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules:               []flowcontrolv1.PolicyRulesWithSubjects{rules},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		e.Fatal(err)
	}
	return fs
}

// level returns the level that a user's requests come into.
func (e *env) level(who user.Info) (l *level) {
	e.Helper()
	e.eventually("the decision is not remembered", func() bool {
		e.ask(who, get)
		d := e.memory.recall(questionOf(get), who)
		if d != nil {
			l = d.level
		}
		return d != nil
	})
	return l
}

// uid returns the UID of a priority level.
func (e *env) uid(level string) string {
	e.Helper()
	pl, err := e.informers.levelLister().Get(level)
	if err != nil {
		e.Fatal(err)
	}
	return string(pl.UID)
}

var (
	ann   = &user.DefaultInfo{Name: "ann", Groups: []string{user.AllAuthenticated}}
	bob   = &user.DefaultInfo{Name: "bob", Groups: []string{user.AllAuthenticated}}
	admin = &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}

	get = &apirequest.RequestInfo{IsResourceRequest: true, Verb: "get", APIPrefix: "api", APIVersion: "v1", Resource: "configmaps", Namespace: "default", Name: "a"}
)

// answer is what became of a request.
type answer struct {
	code       int // 429: it was turned away
	level      string
	retryAfter string
}

func (e *env) ask(who user.Info, info *apirequest.RequestInfo) answer {
	return e.serve(e.Context(), who, info, func(*http.Request) {})
}

func (e *env) serve(ctx context.Context, who user.Info, info *apirequest.RequestInfo, next func(*http.Request)) answer {
	h := http.Header{}
	r := &Request{HTTP: httptest.NewRequestWithContext(ctx, "GET", "/", nil), Header: h, Info: info, User: who}
	a := answer{code: 200}
	if a.retryAfter = e.Serve(r, func(r *http.Request, _ Seat) { next(r) }); a.retryAfter != "" {
		a.code = http.StatusTooManyRequests
	}
	a.level = h.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
	return a
}

// blocked are requests that run until release.
type blocked struct {
	e    *env
	free chan struct{}
	all  sync.WaitGroup
}

// block starts n requests and waits until they run.
func (e *env) block(who user.Info, info *apirequest.RequestInfo, n int) *blocked {
	e.Helper()
	b := &blocked{e: e, free: make(chan struct{})}
	in := make(chan struct{}, n)
	for range n {
		b.all.Go(func() {
			e.serve(e.Context(), who, info, func(*http.Request) { in <- struct{}{}; <-b.free })
		})
	}
	for i := range n {
		select {
		case <-in:
		case <-time.After(2 * time.Minute):
			e.Fatalf("request %d of %d does not run", i+1, n)
		}
	}
	return b
}

func (b *blocked) release() { close(b.free); b.all.Wait() }

// page returns a debug page.
func (e *env) page(path string) string {
	w := httptest.NewRecorder()
	e.Debug().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	text, _ := io.ReadAll(w.Result().Body)
	return string(text)
}

func mustParse(text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil {
		panic(err)
	}
	return u
}
