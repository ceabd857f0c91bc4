package authn_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
)

// Anonymous requests are allowed to all paths, to some, or not at all.
func TestAnonymous(t *testing.T) {
	paths := map[string]any{"enabled": true, "conditions": []map[string]any{{"path": "/livez"}, {"path": "/version/"}}}
	for name, tt := range map[string]struct {
		set   func(*authn.Options)
		codes map[string]int
	}{
		"by default": {func(*authn.Options) {}, map[string]int{"/livez": 200, "/readyz": 200, "/api": 403, "/nothing": 403}},
		"by flag":    {func(o *authn.Options) { o.Anonymous.Allow = false }, map[string]int{"/livez": 401, "/api": 401, "/nothing": 401}},
		"by file": {func(o *authn.Options) {
			o.AuthenticationConfigFile = file(t, configuration(t, "v1beta1", nil, map[string]any{"enabled": false}))
		}, map[string]int{"/livez": 401, "/api": 401}},
		"by path": {func(o *authn.Options) {
			o.AuthenticationConfigFile = file(t, configuration(t, "v1alpha1", nil, paths))
		}, map[string]int{"/livez": 200, "/livez?verbose": 200, "/livez/": 401, "/readyz": 401, "/version/": 200, "/version": 401, "/api": 401, "/nothing": 401, "//livez": 401, "/api/../livez": 401}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, with(tt.set))
			client := apitest.Anonymous(t, s)
			apitest.Eventually(t, "the server is ready", func() bool { // its APIServices are registered soon
				code, _, _ := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/readyz", "")
				return code == http.StatusOK
			})
			client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			for path, want := range tt.codes {
				if code, _, body := apitest.Do(t, client, "GET", s.URL()+path, ""); code != want {
					t.Errorf("GET %s: %d %s, want %d", path, code, body, want)
				}
			}
			if who := adminOf(t, s); strings.Contains(who, "{") {
				t.Error(who)
			}
			// A token that is wrong does not make a request anonymous.
			if code, _, _ := apitest.Send(t, client, credentials{token: "unknown"}.request(t, "GET", s.URL()+"/livez", "")); code != http.StatusUnauthorized {
				t.Errorf("a wrong token: %d", code)
			}
			if status := review(t, s, " "); status.Authenticated != (name == "by default") {
				t.Errorf("TokenReview of nobody: %+v", status)
			}
		})
	}
}

// The file and the flag exclude each other.
func TestAnonymousTwice(t *testing.T) {
	c := with(func(o *authn.Options) {
		o.AuthenticationConfigFile = file(t, configuration(t, "v1beta1", nil, map[string]any{"enabled": true}))
		o.Anonymous.FlagsSet = true
	})
	if err := openError(c); err == nil || !strings.Contains(err.Error(), "flag cannot be set when anonymous field is configured") {
		t.Error(err)
	}
}
