package authn_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
)

func asking(t *testing.T, w *reviewer, ttl time.Duration, version string) (*server.Server, *apitest.Lines) {
	t.Helper()
	log := &apitest.Lines{}
	c := with(func(o *authn.Options) {
		h := o.WebHook
		h.ConfigFile, h.CacheTTL, h.Version = w.kubeconfig(t), ttl, version
		h.RetryBackoff.Duration, h.RetryBackoff.Steps = time.Millisecond, 3
	})
	c.Log = log.Log()
	return start(t, c), log
}

// The webhook is asked in its version for the audiences of the server, once for the time that its
// answer is kept.
func TestWebhookAsked(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			w := newReviewer(t)
			w.knows("t", authenticationv1.UserInfo{Username: "wanda", Groups: []string{"web"}})
			s, _ := asking(t, w, time.Hour, version)
			for range 3 {
				if got := (credentials{token: "t"}).who(t, s); got != "wanda" {
					t.Fatal(got)
				}
			}
			if n := w.calls.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
			if w.last.APIVersion != "authentication.k8s.io/"+version || !slices.Equal(w.last.Spec.Audiences, []string{"https://kubernetes.default.svc.cluster.local"}) {
				t.Errorf("asked %+v", w.last)
			}
			w.forgets("t")
			if got := (credentials{token: "t"}).who(t, s); got != "wanda" {
				t.Errorf("an answer that is kept: %s", got)
			}
			for range 2 {
				if got := (credentials{token: "unknown"}).who(t, s); got != unauthorized {
					t.Errorf("unknown: %s", got)
				}
			}
			if n := w.calls.Load(); n != 2 {
				t.Errorf("asked %d times", n)
			}
			if _, _, text := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/metrics", ""); !strings.Contains(text, "authentication_token_cache_request_total") {
				t.Error("/metrics does not count the answers that were kept")
			}
			// Others are not asked about: who has a certificate, or a token that is known here.
			if who := adminOf(t, s); strings.Contains(who, "{") || w.calls.Load() != 2 {
				t.Errorf("%s, asked %d times", who, w.calls.Load())
			}
		})
	}
}

// A token that the webhook has forgotten is refused when the answer has been kept long enough.
func TestWebhookRevokes(t *testing.T) {
	w := newReviewer(t)
	w.knows("t", authenticationv1.UserInfo{Username: "wanda"})
	s, _ := asking(t, w, 100*time.Millisecond, "v1")
	soon(t, s, "t", "wanda")
	w.forgets("t")
	soon(t, s, "t", unauthorized)
}

// A webhook that is away, slow or spoiled lets nobody in and keeps nobody else out. Its failures
// are not kept.
func TestWebhookOutage(t *testing.T) {
	w := newReviewer(t)
	w.knows("t", authenticationv1.UserInfo{Username: "wanda"})
	w.knows("x", authenticationv1.UserInfo{Username: "xavier"})
	s, log := asking(t, w, time.Hour, "v1")
	soon(t, s, "t", "wanda")
	for _, m := range []mood{failing, garbage, gone} {
		w.feels(m)
		before := w.calls.Load()
		if got := (credentials{token: "x"}).who(t, s); got != unauthorized {
			t.Errorf("mood %d: %s", m, got)
		}
		if n := w.calls.Load() - before; m == failing && n != 3 {
			t.Errorf("mood %d: asked %d times", m, n)
		}
		if got := (credentials{token: "t"}).who(t, s); got != "wanda" {
			t.Errorf("mood %d, an answer that is kept: %s", m, got)
		}
		if who := adminOf(t, s); strings.Contains(who, "{") {
			t.Error(who)
		}
	}
	w.feels(well)
	w.delay.Store(int64(300 * time.Millisecond))
	if got := (credentials{token: "x"}).who(t, s); got != "xavier" {
		t.Errorf("slow: %s", got)
	}
	if text := log.All(); strings.Contains(text, "of-the-webhook") {
		t.Error("the log has the token of the webhook")
	}
}

// A webhook that does not answer holds a request for as long as the request may take.
func TestWebhookDelay(t *testing.T) {
	w := newReviewer(t)
	s := start(t, with(func(o *authn.Options) { o.WebHook.ConfigFile, o.WebHook.Version = w.kubeconfig(t), "v1" }))
	w.delay.Store(int64(24 * time.Hour))
	c := credentials{token: "t"}
	client := c.client(s)
	defer client.CloseIdleConnections()
	if code, _, body := apitest.Send(t, client, c.request(t, "GET", s.URL()+"/apis?timeout=3s", "")); code != http.StatusUnauthorized {
		t.Errorf("%d %s", code, body)
	}
	if w.calls.Load() == 0 {
		t.Error("the webhook was not asked")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	w.Close() // waits for the request, which the server has given up
}
