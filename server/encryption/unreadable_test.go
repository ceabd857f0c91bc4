package encryption_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/utils/ptr"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/encryption"
)

const noKey = "no matching key was found for the provided AES transformer"

// lost makes a server whose Secrets default/lost0 … are encrypted with a key that it does not
// know, and default/kept with one that it knows.
func lost(t *testing.T, dsn string, n int) *instance {
	t.Helper()
	s := start(t, dsn, encryption.Options{ConfigFile: configFile(t, secretsBy("aesgcm a"))})
	for i := range n {
		s.put(t, fmt.Sprintf("lost%d", i), "1")
	}
	s.stop(t)
	s = start(t, dsn, encryption.Options{ConfigFile: configFile(t, secretsBy("aesgcm b"))})
	s.put(t, "kept", "1")
	return s
}

// TestUnreadable starts a server without the key of some Secrets, and without the feature to delete them. All else is served.
func TestUnreadable(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, false)
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		s := lost(t, d.Fresh(t), 2)
		secrets := s.client.CoreV1().Secrets("default")
		s.get(t, "kept")
		if _, err := s.client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		refused := func(what, message string, err error) {
			t.Helper()
			if !apierrors.IsInternalError(err) || err.Error() != "Internal error occurred: "+message {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := secrets.Get(t.Context(), "lost0", metav1.GetOptions{})
		refused("get", noKey, err)
		_, err = secrets.List(t.Context(), metav1.ListOptions{})
		refused("list", `unable to transform key "/registry/secrets/default/lost0": `+noKey, err)
		_, err = secrets.Update(t.Context(), secret("lost0", "2"), metav1.UpdateOptions{})
		refused("update", noKey, err)
		_, err = secrets.Patch(t.Context(), "lost0", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
		refused("patch", noKey, err)
		refused("delete", noKey, secrets.Delete(t.Context(), "lost0", metav1.DeleteOptions{}))
		ignore := true // without effect, because the feature is off
		refused("unsafe delete", noKey, secrets.Delete(t.Context(), "lost0", metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: &ignore}))
		if _, err := secrets.Create(t.Context(), secret("lost0", "2"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("create: %v", err)
		}
		one, err := secrets.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=kept"})
		if err != nil || len(one.Items) != 1 {
			t.Errorf("list of one: %v", err)
		}
	})
}

// TestDamaged starts a server on a value that was cut off, at which upstream's aescbc panics. All else
// is served.
func TestDamaged(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		o := encryption.Options{ConfigFile: configFile(t, secretsBy("aescbc a"))}
		s := start(t, dsn, o)
		s.put(t, "cut", "1")
		s.put(t, "kept", "1")
		s.stop(t)
		update := "UPDATE log SET value = %s WHERE %s = '" + secretKeys + "cut'"
		cut := "k8s:enc:aescbc:v1:a:0000000000000000"
		db := open(t, dsn)
		var err error
		switch d.Name {
		case "postgres":
			_, err = db.Exec(fmt.Sprintf(update, "$1", "key"), []byte(cut))
		case "mariadb":
			_, err = db.Exec(fmt.Sprintf(update, "?", "`key`"), []byte(cut))
		default:
			_, err = db.Exec(fmt.Sprintf(update, "?", "key"), []byte(cut))
		}
		if err != nil {
			t.Fatal(err)
		}
		db.Close()
		s = start(t, dsn, o)
		s.get(t, "kept")
		s.put(t, "new", "1")
		if _, err := s.client.CoreV1().Secrets("default").Get(t.Context(), "cut", metav1.GetOptions{}); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "the stored data is damaged") {
			t.Errorf("get: %v", err)
		}
	})
}

// TestUnsafeDelete names and deletes Secrets that cannot be read, with the feature for it.
func TestUnsafeDelete(t *testing.T) {
	for _, d := range logtest.Dialects {
		t.Run(d.Name, func(t *testing.T) { unsafeDelete(t, d.Fresh(t)) })
	}
}

func unsafeDelete(t *testing.T, dsn string) {
	s := lost(t, dsn, 102)
	secrets := s.client.CoreV1().Secrets("default")
	corrupt := func(name string) string {
		return "StorageError: corrupt object, Code: 7, Key: /registry/secrets/default/" + name +
			", ResourceVersion: 0, AdditionalErrorMsg: data from the storage is not transformable revision=0: " + noKey
	}
	_, err := secrets.List(t.Context(), metav1.ListOptions{})
	if status := statusOf(err); status.Reason != metav1.StatusReasonStoreReadError || status.Code != 500 ||
		status.Message != "failed to read one or more secrets from the storage" || status.Details.Kind != "secrets" || status.Details.Name != "list" ||
		len(status.Details.Causes) != 101 || status.Details.Causes[100].Type != metav1.CauseTypeTooMany ||
		status.Details.Causes[0] != (metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Field: "/registry/secrets/default/lost0", Message: corrupt("lost0")}) {
		t.Errorf("list: %+v", status)
	}
	if _, err := secrets.Get(t.Context(), "lost0", metav1.GetOptions{}); err == nil || err.Error() != "Internal error occurred: "+corrupt("lost0") {
		t.Errorf("get: %v", err)
	}
	if err := secrets.Delete(t.Context(), "lost0", metav1.DeleteOptions{}); err == nil || err.Error() != "Internal error occurred: "+corrupt("lost0") {
		t.Errorf("delete: %v", err)
	}
	now, err := s.client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := secrets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: now.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	ignore := true
	unsafe := metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: &ignore}
	body, code := s.deleteRaw(t, "lost0", unsafe)
	if want := `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"lost0","kind":"Secret"},"code":200}`; strings.TrimSpace(body) != want || code != 200 {
		t.Errorf("unsafe delete: %d %s", code, body)
	}
	select {
	case ev := <-w.ResultChan():
		status, _ := ev.Object.(*metav1.Status)
		if ev.Type != watch.Error || status == nil || status.Reason != metav1.StatusReasonStoreReadError ||
			status.Message != "saw a DELETED event, but object data is corrupt - data from the storage is not transformable revision=0: "+noKey {
			t.Errorf("watch: %v", ev)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the watch hears nothing of the deletion")
	}
	if _, err := secrets.Get(t.Context(), "lost0", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after the deletion: %v", err)
	}
	if err := secrets.Delete(t.Context(), "kept", unsafe); !apierrors.IsConflict(err) ||
		!strings.HasSuffix(err.Error(), "Key: /registry/secrets/default/kept, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage") {
		t.Errorf("unsafe delete of an object that can be read: %v", err)
	}
	if err := secrets.Delete(t.Context(), "never", unsafe); !apierrors.IsNotFound(err) {
		t.Errorf("unsafe delete of no object: %v", err)
	}
	if err := secrets.DeleteCollection(t.Context(), unsafe, metav1.ListOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "is not allowed with DELETECOLLECTION") {
		t.Errorf("of a collection: %v", err)
	}
	dry := unsafe
	dry.DryRun = []string{metav1.DryRunAll}
	if err := secrets.Delete(t.Context(), "lost1", dry); err != nil {
		t.Errorf("dry run: %v", err)
	}
	if _, err := secrets.Get(t.Context(), "lost1", metav1.GetOptions{}); apierrors.IsNotFound(err) {
		t.Error("a dry run deleted an object")
	}
	mayNotUnsafely(t, s, unsafe)
	for i := 2; i < 102; i++ {
		if err := secrets.Delete(t.Context(), fmt.Sprintf("lost%d", i), unsafe); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := secrets.List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 1 {
		t.Errorf("list in the end: %v", err)
	}
}

// mayNotUnsafely tries the deletion as somebody who may delete Secrets, and no more.
func mayNotUnsafely(t *testing.T, s *instance, unsafe metav1.DeleteOptions) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "deleter"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"delete"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "deleter"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "deleter"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "eve"}}}
	rbac := s.client.RbacV1()
	if _, err := rbac.Roles("default").Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := rbac.RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config := clientrest.CopyConfig(s.config)
	config.Impersonate = clientrest.ImpersonationConfig{UserName: "eve"}
	secrets := kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default")
	err := secrets.Delete(t.Context(), "lost1", unsafe)
	if !apierrors.IsForbidden(err) || !strings.HasPrefix(err.Error(), `secrets "lost1" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: `) {
		t.Errorf("without the permission: %v", err)
	}
	role.Rules[0].Verbs = append(role.Rules[0].Verbs, "unsafe-delete-ignore-read-errors")
	if _, err := rbac.Roles("default").Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := secrets.Delete(t.Context(), "lost1", unsafe); err != nil {
		t.Errorf("with the permission: %v", err)
	}
}

// TestUnreadableWebhooks has a webhook configuration that cannot be read: nobody knows what it
// forbids, so nothing is written.
func TestUnreadableWebhooks(t *testing.T) {
	dsn := logtest.SQLite(t)
	hooks := func(key string) encryption.Options {
		return encryption.Options{ConfigFile: configFile(t, rule{"validatingwebhookconfigurations.admissionregistration.k8s.io", []string{"aesgcm " + key}})}
	}
	s := start(t, dsn, hooks("a"))
	none := admissionv1.SideEffectClassNone
	hook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "a.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")}, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{"CREATE"}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
	}}}
	if _, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), hook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.stop(t)
	s = start(t, dsn, hooks("b"))
	_, err := s.client.CoreV1().Secrets("default").Create(t.Context(), secret("a", "1"), metav1.CreateOptions{})
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "not yet ready to handle request") {
		t.Errorf("create: %v", err)
	}
	s.stop(t)
	s = start(t, dsn, hooks("a"))
	s.put(t, "a", "1")
}

func (i *instance) deleteRaw(t *testing.T, name string, o metav1.DeleteOptions) (string, int) {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	code := 0
	b, _ := i.client.RESTClient().Delete().AbsPath("/api/v1/namespaces/default/secrets/"+name).SetHeader("Accept", "application/json").
		SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).StatusCode(&code).Raw()
	return string(b), code
}

func statusOf(err error) *metav1.Status {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return &metav1.Status{Message: fmt.Sprint(err), Details: &metav1.StatusDetails{}}
	}
	s := status.Status()
	return &s
}

// TestUnreadableEvent watches on a server that does not know the key of another one: the watch
// ends with an error, and all heals when the key is known.
func TestUnreadableEvent(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn, file := d.Fresh(t), configFile(t, secretsBy("aesgcm a"))
		one := start(t, dsn, encryption.Options{ConfigFile: configFile(t, secretsBy("aesgcm b", "aesgcm a"))})
		other := start(t, dsn, encryption.Options{ConfigFile: file, AutomaticReload: true})
		secrets := other.client.CoreV1().Secrets("default")
		w, err := secrets.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		one.put(t, "a", "1")
		select {
		case ev := <-w.ResultChan():
			status, _ := ev.Object.(*metav1.Status)
			if ev.Type != watch.Error || status == nil || status.Code != http.StatusInternalServerError || status.Message != "Internal error occurred: "+noKey {
				t.Errorf("event %v", ev)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("no event")
		}
		if _, ok := <-w.ResultChan(); ok {
			t.Error("the watch goes on")
		}
		other.put(t, "b", "1")
		writeConfig(t, file, configText(secretsBy("aesgcm a", "aesgcm b")))
		apitest.Eventually(t, "the Secret is read", func() bool {
			s, err := secrets.Get(t.Context(), "a", metav1.GetOptions{})
			return err == nil && string(s.Data["value"]) == "1"
		})
		all, err := secrets.List(context.Background(), metav1.ListOptions{})
		if err != nil || len(all.Items) != 2 {
			t.Errorf("list: %v", err)
		}
	})
}

// TestNoConfig starts a server without a configuration on encrypted objects.
func TestNoConfig(t *testing.T) {
	dsn := logtest.SQLite(t)
	s := start(t, dsn, encryption.Options{ConfigFile: configFile(t, secretsBy("aesgcm a"))})
	s.put(t, "a", "1")
	s.stop(t)
	s = start(t, dsn, encryption.Options{})
	if _, err := s.client.CoreV1().Secrets("default").Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsInternalError(err) || !strings.HasSuffix(err.Error(), "identity transformer tried to read encrypted data") {
		t.Errorf("get: %v", err)
	}
}
