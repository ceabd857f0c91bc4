package server

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/peers"
)

// startPeers starts two servers on a fresh database of MariaDB, with one authority or with two.
func startPeers(t *testing.T, sameAuthority bool) (one, other *Server) {
	t.Helper()
	dsn, dir := logtest.MariaDB(t), t.TempDir()
	quick := func(s *Server) { s.times.CheckReplicas = 200 * time.Millisecond }
	one = start(t, Config{DSN: dsn, DataDir: filepath.Join(dir, "one")}, quick)
	if sameAuthority {
		must(t, os.CopyFS(filepath.Join(dir, "other", "pki"), os.DirFS(filepath.Join(dir, "one", "pki"))))
		must(t, filepath.Walk(filepath.Join(dir, "other"), func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				err = os.Chmod(path, 0o600)
			}
			return err
		}))
	}
	other = start(t, Config{DSN: dsn, DataDir: filepath.Join(dir, "other"), NewAuthority: !sameAuthority}, quick)
	return one, other
}

// TestPeers has two servers tell each other of writes, so that they poll seldom and see them at once.
func TestPeers(t *testing.T) {
	one, other := startPeers(t, true)
	apitest.Eventually(t, "both are heard", func() bool { return one.peers.All() && other.peers.All() })
	events, err := apitest.Typed(t, other).CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer events.Stop()
	maps := apitest.Typed(t, one).CoreV1().ConfigMaps("default")
	// In a row, because a busy machine is slow at times; one that was not told is as fast in one of five cases.
	const enough, soon = 5, 200 * time.Millisecond
	inTime := 0
	for i := 0; i < 50 && inTime < enough; i++ {
		time.Sleep(1200 * time.Millisecond) // the quiet time after which polling is calm
		name := fmt.Sprint("a-", i)
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		must(t, err)
		at := time.Now()
		for event := range events.ResultChan() {
			if m, ok := event.Object.(*corev1.ConfigMap); ok && m.Name == name {
				break
			}
		}
		took := time.Since(at)
		t.Logf("the event came after %v", took)
		if inTime++; took > soon {
			inTime = 0
		}
	}
	if inTime < enough {
		t.Errorf("events came later than %v time and again", soon)
	}
}

// TestPeersOfOtherAuthorities has two servers that do not know each other's certificates: neither tells the other,
// and both go on to poll as often as alone.
func TestPeersOfOtherAuthorities(t *testing.T) {
	one, other := startPeers(t, false)
	apitest.Eventually(t, "both know of each other", func() bool {
		return !one.peers.All() && !other.peers.All()
	})
	for range 20 { // a server begins to tell others at once
		time.Sleep(100 * time.Millisecond)
		if one.peers.All() || other.peers.All() {
			t.Fatal("a server hears another one that it does not trust")
		}
	}
}

// TestWake refuses whoever may not tell a server that others have written.
func TestWake(t *testing.T) {
	one := start(t, Config{DSN: logtest.MariaDB(t)})
	path := func(to string) string {
		return one.URL() + peers.Path + "?from=b&revision=1&to=" + to
	}
	identity := ownLease(t, one)
	for _, c := range []struct {
		what, method, url string
		client            *http.Client
		code              int
	}{
		{"another server", http.MethodPost, path(identity), clientAs(t, one, "plinth-server"), http.StatusNoContent},
		{"an older server", http.MethodPost, path(identity), clientAs(t, one, "plinth-kubelet-client", "system:masters"), http.StatusNoContent},
		{"another server that asks for something else", http.MethodGet, one.URL() + "/api/v1/namespaces", clientAs(t, one, "plinth-server"), http.StatusUnauthorized},
		{"a request to a kubelet that was led back", http.MethodPost, path(identity), clientAs(t, one, "plinth-kubelet-client"), http.StatusUnauthorized},
		{"an admin", http.MethodPost, path(identity), apitest.Admin(t, one), http.StatusNoContent},
		{"a message for another server", http.MethodPost, path("c"), apitest.Admin(t, one), http.StatusNotFound},
		{"no revision", http.MethodPost, one.URL() + peers.Path + "?from=b&to=" + identity, apitest.Admin(t, one), http.StatusBadRequest},
		{"a get", http.MethodGet, path(identity), apitest.Admin(t, one), http.StatusMethodNotAllowed},
		{"nobody", http.MethodPost, path(identity), apitest.Anonymous(t, one), http.StatusForbidden},
		{"a user", http.MethodPost, path(identity), clientAs(t, one, "jane"), http.StatusForbidden},
		{"a node", http.MethodPost, path(identity), clientAs(t, one, "system:node:a", "system:nodes"), http.StatusForbidden},
	} {
		if code, _, body := apitest.Do(t, c.client, c.method, c.url, ""); code != c.code {
			t.Errorf("%s: %d, want %d: %s", c.what, code, c.code, body)
		}
	}
	alone := start(t, Config{})
	if code, _, _ := apitest.Do(t, apitest.Admin(t, alone), http.MethodPost, alone.URL()+peers.Path, ""); code != http.StatusNotFound {
		t.Errorf("a server without others answers %d", code)
	}
}

// ownLease waits for the Lease of a server on a shared database, and returns its holder.
func ownLease(t *testing.T, s *Server) (identity string) {
	t.Helper()
	apitest.Eventually(t, "the server's Lease", func() bool {
		all, err := apitest.Typed(t, s).CoordinationV1().Leases(metav1.NamespaceSystem).List(context.Background(),
			metav1.ListOptions{LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver"})
		must(t, err)
		if len(all.Items) == 1 {
			identity = *all.Items[0].Spec.HolderIdentity
		}
		return identity != ""
	})
	return identity
}
