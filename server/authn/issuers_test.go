package authn_test

import (
	"crypto/ecdsa"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
)

// believing starts a server with an authentication configuration, and returns its file.
func believing(t *testing.T, jwt ...map[string]any) (s *server.Server, path string, log *apitest.Lines) {
	t.Helper()
	path, log = file(t, configuration(t, "v1beta1", jwt, nil)), &apitest.Lines{}
	c := with(func(o *authn.Options) { o.AuthenticationConfigFile = path })
	c.Log = log.Log()
	return start(t, c), path, log
}

// soon waits until a token is seen as somebody's. The keys of an issuer are read when it is known.
func soon(t *testing.T, s *server.Server, token, want string) {
	t.Helper()
	apitest.Eventually(t, want, func() bool { return credentials{token: token}.who(t, s) == want })
}

// An issuer that begins to sign with a new key is believed at once, also while its tokens are in
// use. Its old key is believed as long as it is published.
func TestIssuerRotatesKeys(t *testing.T) {
	i := newIssuer(t)
	s, _, _ := believing(t, i.jwt("oidc"))
	old := i.token(t, "olga", nil)
	soon(t, s, old, "oidc:olga")
	l := begin(t, s, credentials{token: old}, "oidc:olga")
	for range 3 {
		i.rotate(t)
		l.more(t, 10)
		if got := (credentials{token: i.token(t, "new", nil)}).who(t, s); got != "oidc:new" {
			t.Errorf("with the new key: %s", got)
		}
	}
	l.stop(t)
	stolen := i.keys["key-0"]
	i.mu.Lock()
	maps.DeleteFunc(i.keys, func(id string, _ *ecdsa.PrivateKey) bool { return id != i.signing })
	i.mu.Unlock()
	i.rotate(t)
	if got := (credentials{token: i.token(t, "new", nil)}).who(t, s); got != "oidc:new" {
		t.Errorf("with the newest key: %s", got)
	}
	if got := (credentials{token: i.sign(t, "key-0", stolen, "eve", nil)}).who(t, s); got != unauthorized {
		t.Errorf("with a key that is not published any more: %s", got)
	}
}

// An issuer that is away, slow or spoiled does not keep those out whose key is known, nor anybody
// else; it lets nobody in.
func TestIssuerOutage(t *testing.T) {
	i := newIssuer(t)
	s, _, _ := believing(t, i.jwt("oidc"))
	known := i.token(t, "olga", nil)
	soon(t, s, known, "oidc:olga")
	i.rotate(t)
	unknown := i.token(t, "eve", nil)
	for _, m := range []mood{failing, garbage, gone} {
		i.feels(m)
		if got := (credentials{token: known}).who(t, s); got != "oidc:olga" {
			t.Errorf("mood %d: %s", m, got)
		}
		if got := (credentials{token: unknown}).who(t, s); got != unauthorized {
			t.Errorf("mood %d, new key: %s", m, got)
		}
		if who := adminOf(t, s); strings.Contains(who, "{") {
			t.Error(who)
		}
	}
	i.feels(well)
	i.delay.Store(int64(300 * time.Millisecond))
	if got := (credentials{token: unknown}).who(t, s); got != "oidc:eve" {
		t.Errorf("slow issuer: %s", got)
	}
}

// A server starts although an issuer is away, and believes it later: it may be a pod of this
// cluster.
func TestIssuerComesLater(t *testing.T) {
	i := newIssuer(t)
	i.feels(failing)
	s, _, _ := believing(t, i.jwt("oidc"))
	if status := review(t, s, i.token(t, "olga", nil)); status.Authenticated || !strings.Contains(status.Error, "not initialized") {
		t.Errorf("%+v", status)
	}
	i.feels(well)
	soon(t, s, i.token(t, "olga", nil), "oidc:olga")
}

// Several issuers, whose claims are mapped and checked by expressions.
func TestIssuersByExpressions(t *testing.T) {
	one, two := newIssuer(t), newIssuer(t)
	mapped := two.jwt("two")
	mapped["claimMappings"] = map[string]any{
		"username": map[string]any{"expression": `claims.email.split("@")[0]`},
		"groups":   map[string]any{"expression": `claims.roles.split(",").map(r, "role:" + r)`},
		"uid":      map[string]any{"expression": `claims.sub`},
		"extra":    []map[string]any{{"key": "acme.com/tenant", "valueExpression": `claims.tenant`}},
	}
	mapped["claimValidationRules"] = []map[string]any{
		{"expression": `claims.email_verified == true`, "message": "the address must be verified"},
		{"expression": `claims.hd == "acme.com"`, "message": "the hosted domain must be acme.com"},
		{"expression": `claims.exp - claims.iat <= 86400`, "message": "tokens live for a day at most"},
	}
	mapped["userValidationRules"] = []map[string]any{{"expression": `!user.username.startsWith("system:")`, "message": "no system users"}}
	s, _, _ := believing(t, one.jwt("one"), mapped)
	good := claims{"email": "max@acme.com", "email_verified": true, "roles": "dev,ops", "tenant": "blue", "hd": "acme.com"}
	soon(t, s, one.token(t, "olga", nil), "one:olga")
	soon(t, s, two.token(t, "m-7", good), "max")
	status := review(t, s, two.token(t, "m-7", good))
	if u := status.User; u.UID != "m-7" || !slices.Equal(u.Groups, []string{"role:dev", "role:ops", "system:authenticated"}) || u.Extra["acme.com/tenant"].String() != "[blue]" {
		t.Errorf("%+v", status)
	}
	but := func(change claims) string {
		c := maps.Clone(good)
		maps.Copy(c, change)
		return two.token(t, "m-7", c)
	}
	for message, token := range map[string]string{
		"the hosted domain must be acme.com": but(claims{"hd": "evil.com"}),
		"tokens live for a day at most":      but(claims{"exp": time.Now().Add(48 * time.Hour).Unix()}),
		"no system users":                    but(claims{"email": "system:admin@acme.com"}),
		"no such key: roles":                 but(claims{"roles": nil}),
	} {
		if status := review(t, s, token); status.Authenticated || !strings.Contains(status.Error, message) {
			t.Errorf("%s: %+v", message, status)
		}
	}
}

// The authentication configuration is replaced under load: a new issuer is added, an old one is
// taken away. Files that are broken, or whose issuers do not answer, change nothing.
func TestConfigurationReplaced(t *testing.T) {
	old, next := newIssuer(t), newIssuer(t)
	s, path, log := believing(t, old.jwt("old"))
	olga, nora := credentials{token: old.token(t, "olga", nil)}, credentials{token: next.token(t, "nora", nil)}
	soon(t, s, olga.token, "old:olga")
	olgas, noras := begin(t, s, olga, "old:olga"), begin(t, s, nora, unauthorized)
	tells := func(what string) {
		t.Helper()
		apitest.Eventually(t, "the log tells of "+what, func() bool { return strings.Contains(log.All(), what) })
	}
	replace(t, path, "broken: [")
	tells("yaml")
	replace(t, path, configuration(t, "v1beta1", []map[string]any{{"issuer": map[string]any{"url": "http://plain.example", "audiences": []string{"a"}}}}, nil))
	tells("URL scheme must be https")
	replace(t, path, configuration(t, "v1beta1", []map[string]any{old.jwt("old")}, map[string]any{"enabled": false}))
	tells("changed from initial configuration file")

	noras.expect(unauthorized, "new:nora")
	replace(t, path, configuration(t, "v1beta1", []map[string]any{old.jwt("old"), next.jwt("new")}, nil))
	soon(t, s, nora.token, "new:nora")
	noras.expect("new:nora", "new:nora", "new:nora")
	olgas.expect("old:olga", unauthorized)
	replace(t, path, configuration(t, "v1beta1", []map[string]any{next.jwt("new")}, nil))
	soon(t, s, olga.token, unauthorized)
	olgas.expect(unauthorized, unauthorized, unauthorized)
	before := olgas.asked.Load()
	apitest.Eventually(t, "olga is refused", func() bool { return olgas.asked.Load() > before+20 })
	olgas.stop(t)
	noras.stop(t)

	code, _, metrics := apitest.Do(t, apitest.Admin(t, s), "GET", s.URL()+"/metrics", "")
	for _, want := range []string{
		`apiserver_authentication_config_controller_automatic_reloads_total{apiserver_id_hash="sha256:`,
		`status="success"} 2`, `status="failure"} 3`,
		`authenticated_user_requests{username="other"}`, `authentication_attempts{result="error"}`, `authentication_attempts{result="success"}`,
		`authentication_duration_seconds_count{result="success"}`,
		`apiserver_authentication_jwt_authenticator_latency_seconds`,
	} {
		if code != http.StatusOK || !strings.Contains(metrics, want) {
			t.Errorf("/metrics (%d) has no %s", code, want)
		}
	}
}
