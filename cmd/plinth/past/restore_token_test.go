package past

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/server/servertest"
)

const botToken = "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, " +
	"metadata: {name: bot, annotations: {kubernetes.io/service-account.name: bot}}, data: {more: bW9yZQ==}}"

// TestToken brings back Secrets with the token of a service account: not with a token that was taken back, be
// it that the Secret was deleted, or that it got another token.
func TestToken(t *testing.T) {
	t.Parallel()
	f := start(t, servertest.Options{Controllers: []string{"serviceaccount-token"}})
	f.create(f.c, "serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}}")
	bot := f.target("secrets", "bot")
	f.create(f.c, "secrets", botToken)
	first := f.token(bot, "")
	before := f.now(bot)

	f.change(f.c, bot, func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "data", "token") })
	second := f.token(bot, first)
	step, err := f.c.Reverter.Undo(f.Context(), bot, momentOf(t, before))
	if err == nil && !step.Empty() {
		f.do(step, nil)
	}
	f.must(err)
	if now := f.token(bot, ""); now != second {
		t.Error("undo has brought back a token that was taken back")
	}

	f.remove(f.c, bot)
	step, err = f.c.Reverter.Undelete(f.Context(), bot, Moment{})
	f.must(err)
	if after := f.do(step, nil); !step.Token || tokenOf(after) != "" || after.GetAnnotations()["kubernetes.io/service-account.uid"] != "" {
		t.Errorf("undeleted: %v", after.Object)
	}
	if third := f.token(bot, ""); third == first || third == second {
		t.Error("undelete has brought back a token")
	}
	if more, _, _ := unstructured.NestedString(f.now(bot).Object, "data", "more"); more != "bW9yZQ==" {
		t.Errorf("what somebody has added is %q", more)
	}
}

// token waits until the Secret has a token other than one, and returns it.
func (f *fixture) token(t Target, other string) (token string) {
	f.Helper()
	f.eventually(func() error {
		if token = tokenOf(f.now(t)); token == "" || token == other {
			return errors.New("there is no token")
		}
		return nil
	})
	return token
}

func tokenOf(o *unstructured.Unstructured) string {
	token, _, _ := unstructured.NestedString(o.Object, "data", "token")
	return token
}

func momentOf(t *testing.T, o *unstructured.Unstructured) Moment {
	m, ok := parseMoment(o.GetResourceVersion(), time.Now())
	if !ok {
		t.Fatal(o.GetResourceVersion())
	}
	return m
}

// TestFixedToken knows which tokens come again with the name of their Secret.
func TestFixedToken(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{`{"alg":"RS256","kid":"x"}`: true, `{"alg":"ES256"}`: false, `{`: false, ``: false} {
		token := base64.RawURLEncoding.EncodeToString([]byte(header)) + ".e30.x"
		secret := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"token": base64.StdEncoding.EncodeToString([]byte(token))}}}
		if got := hasFixedToken(secret); got != want {
			t.Errorf("%s: %v", header, got)
		}
	}
	if !isAccountToken((&fixture{T: t}).parse(botToken)) {
		t.Error("a token is not known as one")
	}
}
