package history_test

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/servertest"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// TestCopiedNamespace reads, with rights in a namespace alone, what came with it by a copy, which writes
// objects before their namespaces; and nothing of that when the namespace was made anew.
func TestCopiedNamespace(t *testing.T) {
	dir := t.TempDir()
	from, to := "sqlite://"+filepath.Join(dir, "from.db"), "sqlite://"+filepath.Join(dir, "to.db")
	p, stop := openOn(t, from)
	p.fill()
	p.allow("ann", "configmaps", "get", "create", "update")
	p.allow("ann", "changes", "list")
	stop()
	copyTo(t, to, from)

	p, stop = openOn(t, to)
	defer stop()
	ann := p.as("ann")
	ann.want("namespaces/shop/changes", "copied configmaps/a")
	must[*corev1.ConfigMap](t)(ann.client.CoreV1().ConfigMaps("shop").Update(t.Context(), p.configMap("a", "3"), metav1.UpdateOptions{}))
	ann.want("namespaces/shop/changes", "changed configmaps/a", "copied configmaps/a")

	a := &anew{past: p}
	a.endNamespace("shop")
	a.makeNamespace("shop")
	p.allow("ann", "configmaps", "get")
	p.allow("ann", "changes", "list")
	ann.want("namespaces/shop/changes")
}

// openOn starts a server on a database. stop ends it.
func openOn(t *testing.T, dsn string) (p *past, stop func()) {
	srv := servertest.Start(t, servertest.Options{DSN: dsn, Controllers: []string{"namespace-controller"}})
	return &past{t, srv.Config, kubernetes.NewForConfigOrDie(srv.Config)}, func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}
}

func copyTo(t *testing.T, to, from string) {
	t.Helper()
	var logs []changelog.Log
	for _, dsn := range []string{to, from} {
		log, err := dialects.Open(t.Context(), dsn, dialects.Options{})
		if err != nil {
			t.Fatal(strings.TrimPrefix(dsn, "sqlite://"), err)
		}
		defer log.Close()
		logs = append(logs, log)
	}
	if _, err := transfer.Copy(t.Context(), logs[0], logs[1], transfer.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
}
