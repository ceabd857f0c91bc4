package authn_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
)

// TestIdentities has one server with everything on, and every way to be somebody, or not.
func TestIdentities(t *testing.T) {
	w := newWorld(t)
	theirs := authority(t)
	for name, tt := range map[string]struct {
		credentials
		want string
	}{
		"nobody":                    {credentials{}, forbidden},
		"a token that is empty":     {credentials{header: map[string]string{"Authorization": "Bearer "}}, forbidden},
		"a password":                {credentials{header: map[string]string{"Authorization": "Basic YWRtaW46YWRtaW4="}}, forbidden},
		"a token that nobody knows": {credentials{token: "unknown"}, unauthorized},
		"a token that is too long":  {credentials{token: strings.Repeat("x", 65<<10)}, unauthorized},

		"a certificate":                        {credentials{cert: certificate(t, w.people, "ada", time.Hour)}, "ada"},
		"a certificate of a strange authority": {credentials{cert: certificate(t, theirs, "ada", time.Hour)}, unauthorized},
		"a certificate that has ended":         {credentials{cert: certificate(t, w.people, "ada", -time.Minute)}, unauthorized},
		"a certificate without a name":         {credentials{cert: certificate(t, w.people, "", time.Hour)}, unauthorized},
		"a certificate and a bad token":        {credentials{cert: certificate(t, w.people, "ada", time.Hour), token: "unknown"}, "ada"},
		"a bad certificate and a token":        {credentials{cert: certificate(t, theirs, "ada", time.Hour), token: "static-token"}, "steve"},

		"a static token": {credentials{token: "static-token"}, "steve"},

		"a service account":          {credentials{token: w.account(t, "ann")}, "system:serviceaccount:default:ann"},
		"for another audience":       {credentials{token: w.account(t, "ann", "vault")}, unauthorized},
		"a deleted service account":  {credentials{token: w.deletedAccount(t)}, unauthorized},
		"a token with a new account": {credentials{token: w.recreatedAccount(t)}, unauthorized},

		"a bootstrap token":                       {credentials{token: w.bootstrap(t, "aaaaaa", nil)}, "system:bootstrap:aaaaaa"},
		"a bootstrap token with a wrong secret":   {credentials{token: w.bootstrap(t, "bbbbbb", nil)[:7] + "0123456789abcdee"}, unauthorized},
		"a bootstrap token that has ended":        {credentials{token: w.bootstrap(t, "cccccc", map[string]string{"expiration": time.Now().Add(-time.Minute).Format(time.RFC3339)})}, unauthorized},
		"a bootstrap token for signing alone":     {credentials{token: w.bootstrap(t, "dddddd", map[string]string{"usage-bootstrap-authentication": "false", "usage-bootstrap-signing": "true"})}, unauthorized},
		"a bootstrap token with a bad group":      {credentials{token: w.bootstrap(t, "eeeeee", map[string]string{"auth-extra-groups": "system:masters"})}, unauthorized},
		"a bootstrap token that is being deleted": {credentials{token: w.endingBootstrap(t, "ffffff")}, unauthorized},
		"a bootstrap token that never was":        {credentials{token: "gggggg.0123456789abcdef"}, unauthorized},

		"a token of an issuer":                {credentials{token: w.issuer.token(t, "olga", nil)}, "oidc:olga"},
		"of another issuer":                   {credentials{token: newIssuer(t).token(t, "olga", nil)}, unauthorized},
		"of an issuer that says another's":    {credentials{token: newIssuer(t).token(t, "olga", claims{"iss": w.issuer.URL})}, unauthorized},
		"for another audience of an issuer":   {credentials{token: w.issuer.token(t, "olga", claims{"aud": "vault"})}, unauthorized},
		"for several audiences of an issuer":  {credentials{token: w.issuer.token(t, "olga", claims{"aud": []string{"vault", "plinth"}})}, "oidc:olga"},
		"a token of an issuer that has ended": {credentials{token: w.issuer.token(t, "olga", claims{"exp": time.Now().Add(-time.Minute).Unix()})}, unauthorized},
		"with a bad signature":                {credentials{token: spoil(w.issuer.token(t, "olga", nil))}, unauthorized},
		"without a signature":                 {credentials{token: unsigned(w.issuer.token(t, "olga", nil))}, unauthorized},
		"without the claim of the name":       {credentials{token: w.issuer.token(t, "olga", claims{"sub": nil})}, unauthorized},

		"a token of the webhook": {credentials{token: "of-wanda"}, "wanda"},

		"a front proxy":                          {credentials{cert: certificate(t, w.proxies, "gate", time.Hour), header: remoteUser("pia")}, "pia"},
		"a front proxy that names nobody":        {credentials{cert: certificate(t, w.proxies, "gate", time.Hour)}, unauthorized},
		"a front proxy by another name":          {credentials{cert: certificate(t, w.proxies, "door", time.Hour), header: remoteUser("pia")}, unauthorized},
		"a front proxy whose certificate ended":  {credentials{cert: certificate(t, w.proxies, "gate", -time.Minute), header: remoteUser("pia")}, unauthorized},
		"a strange front proxy":                  {credentials{cert: certificate(t, theirs, "gate", time.Hour), header: remoteUser("pia")}, unauthorized},
		"a user by the name of a front proxy":    {credentials{cert: certificate(t, w.people, "gate", time.Hour), header: remoteUser("pia")}, "gate"},
		"headers of a proxy without certificate": {credentials{header: remoteUser("pia")}, forbidden},
		"headers of a proxy and a token":         {credentials{token: "static-token", header: remoteUser("pia")}, "steve"},
	} {
		if got := tt.who(t, w.Server); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	w.checkLog(t)
}

// Users have the groups, UIDs and extras that kube-apiserver gives them, in TokenReviews too.
func TestIdentityDetails(t *testing.T) {
	w := newWorld(t)
	ask := func(c credentials) authenticationv1.UserInfo {
		t.Helper()
		client := c.client(w.Server)
		defer client.CloseIdleConnections()
		_, who := c.ask(t, w.Server, client)
		return who
	}
	proxied := remoteUser("pia")
	proxied["X-Remote-Uid"], proxied["X-Remote-Group"], proxied["X-Remote-Extra-Acme.com%2fScope"] = "7", "ops", "view"
	for name, tt := range map[string]struct {
		credentials
		groups string
		uid    string
		extra  string
	}{
		"certificate": {credentials{cert: certificate(t, w.people, "ada", time.Hour, "dev", "ops")}, "dev ops system:authenticated", "", "authentication.kubernetes.io/credential-id"},
		"static":      {credentials{token: "static-token"}, "dev ops system:authenticated", "uid-7", ""},
		"bootstrap": {credentials{token: w.bootstrap(t, "abcdef", map[string]string{"auth-extra-groups": "system:bootstrappers:x"})},
			"system:bootstrappers system:bootstrappers:x system:authenticated", "", ""},
		"issuer":      {credentials{token: w.issuer.token(t, "olga", claims{"groups": []string{"a", "b"}, "jti": "x"})}, "oidc:a oidc:b system:authenticated", "", "authentication.kubernetes.io/credential-id"},
		"webhook":     {credentials{token: "of-wanda"}, "web system:authenticated", "w7", "scopes"},
		"front proxy": {credentials{cert: certificate(t, w.proxies, "gate", time.Hour), header: proxied}, "ops system:authenticated", "7", "acme.com/scope"},
	} {
		who := ask(tt.credentials)
		var extra []string
		for key := range who.Extra {
			extra = append(extra, key)
		}
		if got := strings.Join(who.Groups, " "); got != tt.groups || who.UID != tt.uid || strings.Join(extra, " ") != tt.extra {
			t.Errorf("%s: groups %q, UID %q, extra %q", name, got, who.UID, extra)
		}
		if tt.token == "" {
			continue
		}
		status := review(t, w.Server, tt.token)
		if !status.Authenticated || status.User.Username != who.Username || !slices.Equal(status.User.Groups, who.Groups) || status.User.UID != who.UID {
			t.Errorf("%s: the TokenReview says %+v", name, status)
		}
		if ours := []string{"https://kubernetes.default.svc.cluster.local"}; !slices.Equal(status.Audiences, ours) {
			t.Errorf("%s: audiences %q", name, status.Audiences)
		}
		if status := review(t, w.Server, tt.token, "vault"); status.Authenticated {
			t.Errorf("%s: for another audience: %+v", name, status)
		}
	}
	if status := review(t, w.Server, "unknown"); status.Authenticated || status.Error != "invalid bearer token" {
		t.Errorf("unknown token: %+v", status)
	}
}

// A token that is revoked is refused by every server of a shared database.
func TestBootstrapTokenRevoked(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		c := with(func(o *authn.Options) { o.BootstrapToken.Enable = true })
		c.DSN = d.Fresh(t)
		one := start(t, c)
		other := one
		if d.Servers > 1 {
			other = start(t, c)
		}
		token := credentials{token: bootstrapToken(t, one, "aaaaaa", nil)}
		apitest.Eventually(t, "the token is good on the other server", func() bool { return token.who(t, other) == "system:bootstrap:aaaaaa" })
		if err := apitest.Typed(t, one).CoreV1().Secrets("kube-system").Delete(t.Context(), "bootstrap-token-aaaaaa", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := token.who(t, one); got != unauthorized {
			t.Errorf("after it was deleted: %s", got)
		}
		apitest.Eventually(t, "the token is refused by the other server", func() bool { return token.who(t, other) == unauthorized })
	})
}

// Without flags nobody else is believed.
func TestNothingConfigured(t *testing.T) {
	s := start(t, server.Config{})
	for name, c := range map[string]credentials{
		"bootstrap": {token: bootstrapToken(t, s, "aaaaaa", nil)},
		"issuer":    {token: newIssuer(t).token(t, "olga", nil)},
	} {
		if got := c.who(t, s); got != unauthorized {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := (credentials{header: remoteUser("pia"), cert: certificate(t, authority(t), "gate", time.Hour)}).who(t, s); got != unauthorized {
		t.Errorf("front proxy: %s", got)
	}
}

// Options that cannot be are refused in one line, which names the flag.
func TestOptionsRefused(t *testing.T) {
	broken := file(t, "no certificate")
	for name, tt := range map[string]struct {
		set  func(*authn.Options)
		want string
	}{
		"client CA away":   {func(o *authn.Options) { o.ClientCert.ClientCA = "/nowhere" }, "--client-ca-file"},
		"client CA broken": {func(o *authn.Options) { o.ClientCert.ClientCA = broken }, "--client-ca-file"},
		"proxy CA broken":  {func(o *authn.Options) { o.RequestHeader.ClientCAFile = broken }, "--requestheader-client-ca-file"},
		"proxy header":     {func(o *authn.Options) { o.RequestHeader.UsernameHeaders = []string{" "} }, "requestheader-username-headers"},
		"issuer alone":     {func(o *authn.Options) { o.OIDC.IssuerURL, o.OIDC.FlagsSet = "https://a.example", true }, "oidc-issuer-url and oidc-client-id must be specified together"},
		"issuer by http":   {func(o *authn.Options) { o.OIDC.IssuerURL, o.OIDC.ClientID = "http://a.example", "b" }, "--oidc-issuer-url"},
		"unknown algorithm": {func(o *authn.Options) {
			o.OIDC.IssuerURL, o.OIDC.ClientID, o.OIDC.SigningAlgs = "https://a.example", "b", []string{"none"}
		}, `unsupported signing alg: "none"`},
		"file and flags": {func(o *authn.Options) { o.AuthenticationConfigFile, o.OIDC.FlagsSet = broken, true }, "mutually exclusive"},
		"file away":      {func(o *authn.Options) { o.AuthenticationConfigFile = "/nowhere" }, "--authentication-config"},
		"file broken":    {func(o *authn.Options) { o.AuthenticationConfigFile = broken }, "--authentication-config"},
		"file unknown field": {func(o *authn.Options) {
			o.AuthenticationConfigFile = file(t, configuration(t, "v1beta1", []map[string]any{{"isuer": 1}}, nil))
		}, "--authentication-config"},
		"webhook away":    {func(o *authn.Options) { o.WebHook.ConfigFile = "/nowhere" }, "--authentication-token-webhook-config-file"},
		"webhook version": {func(o *authn.Options) { o.WebHook.ConfigFile, o.WebHook.Version = newReviewer(t).kubeconfig(t), "v2" }, `unsupported authentication webhook version "v2"`},
	} {
		err := openError(with(tt.set))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func remoteUser(name string) map[string]string { return map[string]string{"X-Remote-User": name} }

// addBootstrapToken makes the Secret of a bootstrap token, with more data, and returns the token.
func bootstrapToken(t testing.TB, s *server.Server, id string, more map[string]string) string {
	t.Helper()
	data := map[string]string{
		"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
	}
	for key, value := range more {
		data[key] = value
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-" + id}, Type: "bootstrap.kubernetes.io/token", StringData: data}
	if _, err := apitest.Typed(t, s).CoreV1().Secrets("kube-system").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return id + "." + data["token-secret"]
}
