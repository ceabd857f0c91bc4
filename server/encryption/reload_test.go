package encryption_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/encryption"
)

// TestReload takes up a file, keeps what was when the file is broken, and takes up the next.
func TestReload(t *testing.T) {
	dsn, file := logtest.SQLite(t), configFile(t, secretsBy("aesgcm a"))
	s := start(t, dsn, encryption.Options{ConfigFile: file, AutomaticReload: true})
	s.put(t, "a", "1")
	n := 0
	storedBy := func() string {
		n++
		name := fmt.Sprintf("n%d", n)
		s.put(t, name, "1")
		return form(t, dsn, secretKeys+name)
	}
	writeConfig(t, file, "broken")
	time.Sleep(200 * time.Millisecond)
	if got := storedBy(); got != "aesgcm:v1:a" {
		t.Errorf("with a broken file: %s", got)
	}
	writeConfig(t, file, configText(secretsBy("secretbox b", "aesgcm a")))
	apitest.Eventually(t, "the new key is used", func() bool { return storedBy() == "secretbox:v1:b" })
	if got := string(s.get(t, "a").Data["value"]); got != "1" {
		t.Errorf("a has %q", got)
	}
}

// TestRotation rotates a key under load, with two servers where they can share a database: the
// new key is read everywhere, then written everywhere, then all is rewritten, then the old key
// goes. Meanwhile the authentication of the clients is configured anew again and again. No request
// fails, and in the end everything can be read without the old key.
func TestRotation(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		r := rotate(t, d)
		ctx, stop := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for i, s := range r.servers {
			client := r.clientOf(t, s)
			for j := range writers {
				load.Go(func() { write(ctx, t, client, fmt.Sprintf("s%d-%d", i, j), &r.writes[i][j]) })
			}
			load.Go(func() { read(ctx, t, client, &r.reads) })
			load.Go(func() { r.reconfigure(ctx, t, i) })
		}
		r.replace(t, "aesgcm:v1:c", secretsBy("aesgcm a", "aesgcm b", "identity"), rule{"configmaps", []string{"aesgcm c", "identity"}})
		r.replace(t, "secretbox:v1:d", secretsBy("aesgcm b", "aesgcm a", "identity"), rule{"configmaps", []string{"secretbox d", "aesgcm c", "identity"}})
		r.awaitWrites(t) // those that were on their way when the file came into effect
		r.rewrite(t)
		r.replace(t, "secretbox:v1:e", secretsBy("aesgcm b"), rule{"configmaps", []string{"secretbox e", "secretbox d", "aesgcm c", "identity"}})
		r.awaitWrites(t)
		stop()
		load.Wait()
		r.finish(t)
	})
}

// writers are how many clients write to each server.
const writers = 2

// rotation is a cluster whose configurations are replaced.
type rotation struct {
	dsn             string
	servers         []*instance
	keys, issuers   []string // files of each server
	old, next       *issuer
	probes, renewed int
	writes          [2][writers]atomic.Int64
	reads           atomic.Int64
}

func rotate(t *testing.T, d logtest.Dialect) *rotation {
	r := &rotation{dsn: d.Fresh(t), old: newIssuer(t), next: newIssuer(t)}
	for range d.Servers {
		keys, issuers := configFile(t, secretsBy("aesgcm a", "identity")), filepath.Join(t.TempDir(), "authentication.yaml")
		writeConfig(t, issuers, believe(r.old))
		r.keys, r.issuers = append(r.keys, keys), append(r.issuers, issuers)
		r.servers = append(r.servers, start(t, r.dsn, encryption.Options{ConfigFile: keys, AutomaticReload: true}, func(c *server.Config) {
			c.Authentication = authn.NewOptions()
			c.Authentication.AuthenticationConfigFile = issuers
		}))
	}
	_, err := r.servers[0].client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "issued"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: r.old.URL + "#olga"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// clientOf returns a client who has a token of the old issuer, when the server knows that.
func (r *rotation) clientOf(t *testing.T, s *instance) *kubernetes.Clientset {
	client := s.bearing(r.old.token(t, "olga"))
	apitest.Eventually(t, "olga may read", func() bool {
		_, err := client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	return client
}

// reconfigure adds the next issuer and takes it away until ctx ends.
func (r *rotation) reconfigure(ctx context.Context, t *testing.T, i int) {
	for both := true; ctx.Err() == nil; both = !both {
		if both {
			writeConfig(t, r.issuers[i], believe(r.old, r.next))
		} else {
			writeConfig(t, r.issuers[i], believe(r.old))
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// replace replaces the file of each server, and waits until it is in effect: ConfigMaps tell by the
// key that they are stored by.
func (r *rotation) replace(t *testing.T, probe string, rules ...rule) {
	t.Helper()
	for i, file := range r.keys {
		writeConfig(t, file, configText(rules...))
		apitest.Eventually(t, "the file is in effect", func() bool {
			r.probes++
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("probe%d", r.probes)}}
			if _, err := r.servers[i].client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			return form(t, r.dsn, "/registry/core/configmaps/default/"+object.Name) == probe
		})
	}
}

// awaitWrites returns when each writer has begun and ended a write since.
func (r *rotation) awaitWrites(t *testing.T) {
	t.Helper()
	for i := range r.servers {
		for j := range writers {
			n := &r.writes[i][j]
			before := n.Load()
			apitest.Eventually(t, "there are writes", func() bool { return n.Load() > before+1 || t.Failed() })
		}
	}
}

// rewrite stores all Secrets anew, as an operator does.
func (r *rotation) rewrite(t *testing.T) {
	t.Helper()
	secrets := r.servers[len(r.servers)-1].client.CoreV1().Secrets("default")
	list, err := secrets.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		// Who has changed it meanwhile has used the new key.
		if _, err := secrets.Update(t.Context(), &item, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
	}
	r.renewed = len(list.Items)
}

// finish starts a server without the old key, and wants it to read all.
func (r *rotation) finish(t *testing.T) {
	t.Helper()
	for i, s := range r.servers {
		writeConfig(t, r.issuers[i], believe(r.old, r.next))
		nora := s.bearing(r.next.token(t, "nora"))
		apitest.Eventually(t, "the next issuer is believed", func() bool {
			_, err := nora.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			return err == nil
		})
	}
	for _, s := range r.servers {
		s.stop(t) // and writes whose clients have left come to their end
	}
	newest := map[string]string{}
	for _, row := range stored(t, r.dsn) {
		if strings.HasPrefix(row.key, secretKeys) {
			newest[row.key] = formOf(row.value)
		}
	}
	for key, form := range newest {
		if form != "aesgcm:v1:b" {
			t.Errorf("%s is stored as %s", key, form)
		}
	}
	var log apitest.Lines
	again := start(t, r.dsn, encryption.Options{ConfigFile: r.keys[0]}, func(c *server.Config) { c.Log = log.Log() })
	after, err := again.client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(after.Items) != len(newest) || log.Count("cannot be decrypted") > 0 {
		t.Errorf("without the old key %d Secrets of %d are listed: %v; %s", len(after.Items), len(newest), err, log.All())
	}
	t.Logf("%d Secrets, %d rewritten, %d reads during the rotation", len(newest), r.renewed, r.reads.Load())
	if r.renewed == 0 || r.reads.Load() == 0 {
		t.Error("there was no load")
	}
}

// write creates and updates Secrets until ctx ends.
func write(ctx context.Context, t *testing.T, client kubernetes.Interface, prefix string, n *atomic.Int64) {
	secrets := client.CoreV1().Secrets("default")
	for i := 0; ctx.Err() == nil; i++ {
		made, err := secrets.Create(ctx, secret(fmt.Sprintf("%s-%d", prefix, i), "1"), metav1.CreateOptions{})
		if err == nil {
			made.Data["value"] = []byte("2")
			_, err = secrets.Update(ctx, made, metav1.UpdateOptions{})
		}
		if err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil { // somebody else has rewritten it
			t.Errorf("write: %v", err)
			return
		}
		n.Add(1)
	}
}

// read lists Secrets until ctx ends.
func read(ctx context.Context, t *testing.T, client kubernetes.Interface, n *atomic.Int64) {
	for ctx.Err() == nil {
		if _, err := client.CoreV1().Secrets("default").List(ctx, metav1.ListOptions{}); err != nil && ctx.Err() == nil {
			t.Errorf("read: %v", err)
			return
		}
		n.Add(1)
		time.Sleep(5 * time.Millisecond)
	}
}
