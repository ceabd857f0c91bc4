package tokens_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
)

func accountSecret(name, account string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}
}

// TestSecretTokens follows a token in a secret, as there were before tokens were asked for,
// from its making to its end.
func TestSecretTokens(t *testing.T) {
	c := uncached
	c.Controllers = []string{"serviceaccount-token"}
	aloneAndShared(t, c, func(t *testing.T, one, other *server.Server) {
		account := apitest.AddAccount(t, one, "ann")
		secrets := apitest.Typed(t, one).CoreV1().Secrets("default")
		filled := func(name string) (secret *corev1.Secret) {
			t.Helper()
			if _, err := secrets.Create(t.Context(), accountSecret(name, "ann"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			apitest.Eventually(t, "the secret has a token", func() bool {
				var err error
				if secret, err = secrets.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
					t.Fatal(err)
				}
				return len(secret.Data["token"]) > 0
			})
			return secret
		}
		first, second := filled("first"), filled("second")
		authorities := []string{string(one.RESTConfig().CAData), string(other.RESTConfig().CAData)}
		if !slices.Contains(authorities, string(first.Data["ca.crt"])) || string(first.Data["namespace"]) != "default" ||
			first.Annotations[corev1.ServiceAccountUIDKey] != string(account.UID) {
			t.Errorf("%s %v", first.Data, first.Annotations)
		}
		who := apitest.WhoAmI(t, other, string(first.Data["token"]))
		if who == nil || who.Username != "system:serviceaccount:default:ann" || who.UID != string(account.UID) || len(who.Extra) != 0 {
			t.Fatalf("%+v", who)
		}
		used := time.Now().UTC()
		apitest.Eventually(t, "the secret is marked as used", func() bool {
			secret, err := secrets.Get(t.Context(), "first", metav1.GetOptions{})
			day := ""
			if err == nil {
				day = secret.Labels[serviceaccount.LastUsedLabelKey]
			}
			return day == used.Format(time.DateOnly) || day == used.AddDate(0, 0, 1).Format(time.DateOnly)
		})

		// One that is marked as invalid is refused, and so is one that the secret has no more.
		token := string(first.Data["token"])
		mark := func(patch string) {
			t.Helper()
			if _, err := secrets.Patch(t.Context(), "first", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		mark(`{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":"2026-01-01"}}}`)
		refused(t, "a token is refused that is marked as invalid", other, token)
		mark(`{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":null}}}`)
		apitest.Eventually(t, "without the mark it is good again", func() bool { return apitest.WhoAmI(t, other, token) != nil })
		mark(`{"data":{"token":"c29tZXRoaW5nIGVsc2U="}}`)
		refused(t, "a token is refused that is not in the secret", other, token)

		if err := apitest.Typed(t, one).CoreV1().ServiceAccounts("default").Delete(t.Context(), "ann", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		refused(t, "a token is refused whose account is gone", other, string(second.Data["token"]))
		for _, name := range []string{"first", "second"} {
			apitest.Eventually(t, "the secret goes with the account", func() bool {
				_, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
		}
		if _, err := secrets.Create(t.Context(), accountSecret("of-nobody", "bob"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		apitest.Eventually(t, "the secret of nobody is deleted", func() bool {
			_, err := secrets.Get(t.Context(), "of-nobody", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	})
}

// A secret that an account names was made by a machine: there are better tokens by now.
func TestSecretTokenWarning(t *testing.T) {
	s := start(t, server.Config{Controllers: []string{"serviceaccount-token"}})
	account := apitest.AddAccount(t, s, "ann")
	client := apitest.Typed(t, s).CoreV1()
	if _, err := client.Secrets("default").Create(t.Context(), accountSecret("old", "ann"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	account.Secrets = []corev1.ObjectReference{{Name: "old"}}
	if _, err := client.ServiceAccounts("default").Update(t.Context(), account, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := ""
	apitest.Eventually(t, "the secret has a token", func() bool {
		secret, err := client.Secrets("default").Get(t.Context(), "old", metav1.GetOptions{})
		token = string(secret.Data["token"])
		return err == nil && token != ""
	})
	for range 2 { // the second is out of the cache
		header := headersOf(t, s, token, "/version")
		const want = `299 - "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens."`
		if got := header["Warning"]; len(got) != 1 || got[0] != want {
			t.Errorf("%q", got)
		}
	}
	header := headersOf(t, s, " "+token, "/version")
	const want = `299 - "the provided Authorization header contains extra space before the bearer token, and is ignored"`
	if got := header["Warning"]; len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
}
