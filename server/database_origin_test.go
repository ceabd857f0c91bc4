package server

import (
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
)

// TestOrigin writes in several ways, and reads in the database who has done what: people, people who
// are somebody else, controllers, and the server itself.
func TestOrigin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plinth.db")
	s := start(t, Config{DSN: "sqlite://" + file, Controllers: []string{"*"}})
	admin := configAs(t, s, "jane", "system:masters")
	as := func(c *clientrest.Config, who string) *kubernetes.Clientset {
		c = clientrest.CopyConfig(c)
		c.UserAgent = "tool/1.0"
		if who != "" {
			c.Impersonate = clientrest.ImpersonationConfig{UserName: who, Groups: []string{"system:masters"}}
		}
		return kubernetes.NewForConfigOrDie(c)
	}
	ctx := t.Context()
	jane, bob := as(admin, ""), as(admin, "bob")
	_, err := jane.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{FieldManager: "setup"})
	must(t, err)
	maps := jane.CoreV1().ConfigMaps("shop")
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = bob.CoreV1().ConfigMaps("shop").Patch(ctx, "one", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"b"}}`), metav1.PatchOptions{FieldManager: "gitops"})
	must(t, err)
	_, err = jane.CoreV1().Namespaces().Patch(ctx, "shop", types.MergePatchType, []byte(`{"status":{"phase":"Active","conditions":[{"type":"Odd","status":"True","lastTransitionTime":"2024-01-02T03:04:05Z"}]}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	must(t, bob.CoreV1().ConfigMaps("shop").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=one"}))
	db, err := sql.Open("sqlite3", file)
	must(t, err)
	defer db.Close()
	history := func(where string) (out []string) {
		t.Helper()
		rows, err := db.QueryContext(ctx, `SELECT who || ' ' || impersonator || ' ' || verb || ' ' || subresource || ' ' || manager || ' ' || action FROM history WHERE length(audit_id) = 36 AND `+where+` ORDER BY revision`)
		must(t, err)
		defer rows.Close()
		for rows.Next() {
			var s string
			must(t, rows.Scan(&s))
			out = append(out, s)
		}
		must(t, rows.Err())
		return out
	}
	if got, want := history(`resource = 'configmaps' AND name = 'one'`), []string{
		"jane  create  tool created", "bob jane patch  gitops changed", "bob jane deletecollection  tool deleted"}; !slices.Equal(got, want) {
		t.Errorf("ConfigMap: %q, want %q", got, want)
	}
	if got, want := history(`resource = 'namespaces' AND name = 'shop'`), []string{"jane  create  setup created", "jane  patch status tool changed"}; !slices.Equal(got, want) {
		t.Errorf("Namespace: %q, want %q", got, want)
	}
	apitest.Eventually(t, "a controller has made the service account", func() bool {
		return len(history(`namespace = 'shop' AND resource = 'serviceaccounts' AND name = 'default' AND who LIKE 'system:serviceaccount:%' AND verb = 'create'`)) > 0
	})
	var unknown int
	must(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM history WHERE who IS NULL OR who = ''`).Scan(&unknown))
	if unknown > 0 {
		t.Errorf("%d changes of nobody", unknown)
	}
}
