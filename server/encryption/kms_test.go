package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kms/pkg/service"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/encryption"
)

// plugin is a key service with keys of its own, which can be made to misbehave.
type plugin struct {
	socket string
	key    atomic.Pointer[string] // the name of the present key
	mood   atomic.Pointer[string] // "", garbage, garbled (all but Status is garbage), slow or refuses
	calls  atomic.Int64           // of Encrypt and Decrypt
	asked  atomic.Int64           // calls of Status
	grpc   *service.GRPCService
	ended  chan struct{}
}

func startPlugin(t testing.TB, key string) *plugin {
	t.Helper()
	dir, err := os.MkdirTemp("", "kms") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &plugin{socket: filepath.Join(dir, "s")}
	p.key.Store(&key)
	p.be("")
	p.start()
	t.Cleanup(p.stop)
	return p
}

// start returns when the plugin listens.
func (p *plugin) start() {
	p.grpc, p.ended = service.NewGRPCService(p.socket, time.Minute, p), make(chan struct{})
	go func(s *service.GRPCService, ended chan struct{}) { _ = s.ListenAndServe(); close(ended) }(p.grpc, p.ended)
	for range 1000 {
		if c, err := net.Dial("unix", p.socket); err == nil {
			c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (p *plugin) stop() {
	for p.grpc != nil {
		p.grpc.Close()
		select {
		case <-p.ended:
			p.grpc = nil
			_ = os.Remove(p.socket)
		case <-time.After(10 * time.Millisecond): // it had not begun to listen
		}
	}
}

func (p *plugin) be(mood string)     { p.mood.Store(&mood) }
func (p *plugin) rotate(name string) { p.key.Store(&name) }

// impatient is the timeout of a server whose key service is slow.
const impatient = 2 * time.Second

func (p *plugin) act() error {
	switch *p.mood.Load() {
	case "slow":
		time.Sleep(2 * impatient)
	case "refuses":
		return errors.New("the vault is closed")
	}
	return nil
}

func (p *plugin) Status(context.Context) (*service.StatusResponse, error) {
	p.asked.Add(1)
	if *p.mood.Load() == "garbage" {
		return &service.StatusResponse{Version: "v9", Healthz: "perhaps", KeyID: ""}, nil
	}
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: *p.key.Load()}, p.act()
}

func (p *plugin) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	p.calls.Add(1)
	if strings.HasPrefix(*p.mood.Load(), "garb") {
		return &service.EncryptResponse{Ciphertext: nil, KeyID: strings.Repeat("x", 3000)}, nil
	}
	name := *p.key.Load()
	return &service.EncryptResponse{Ciphertext: mask(name, data), KeyID: name}, p.act()
}

func (p *plugin) Decrypt(_ context.Context, _ string, r *service.DecryptRequest) ([]byte, error) {
	p.calls.Add(1)
	if strings.HasPrefix(*p.mood.Load(), "garb") {
		return []byte("garbage"), nil
	}
	return mask(r.KeyID, r.Ciphertext), p.act()
}

// mask stands for encryption: the test looks at what plinth does, not at what a vault does.
func mask(key string, data []byte) []byte {
	out := bytes.Clone(data)
	for i := range out {
		out[i] ^= key[i%len(key)] | 0x80
	}
	return out
}

func healthOf(t testing.TB, s *instance, path string) (int, string) {
	t.Helper()
	client, err := clientrest.HTTPClientFor(s.config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.Get(s.URL() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// TestKMS encrypts by a key service of the second version, which goes away and rotates its key.
func TestKMS(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn, p := d.Fresh(t), startPlugin(t, "key1")
		o := encryption.Options{ConfigFile: configFile(t, secretsBy(fmt.Sprintf("kms vault-%s %s", d.Name, p.socket), "identity"))}
		s := start(t, dsn, o)
		apitest.Eventually(t, "the key is there", func() bool { code, _ := healthOf(t, s, "/readyz"); return code == 200 })
		before := p.calls.Load()
		for i := range 20 {
			s.put(t, fmt.Sprintf("s%d", i), "1")
		}
		if n := p.calls.Load() - before; n > 1 {
			t.Errorf("%d calls of the key service for 20 Secrets", n)
		}
		if got := form(t, dsn, secretKeys+"s0"); !strings.HasPrefix(got, "kms:v2:vault-") {
			t.Errorf("stored as %s", got)
		}
		if code, body := healthOf(t, s, "/readyz?verbose"); code != 200 || !strings.Contains(body, "[+]kms-providers ok") {
			t.Errorf("readyz: %d %s", code, body)
		}
		// Without the key service nothing can be read after a restart, and all when it is back.
		s.stop(t)
		p.stop()
		s = start(t, dsn, o)
		if _, err := s.client.CoreV1().Secrets("default").Get(t.Context(), "s0", metav1.GetOptions{}); !apierrors.IsInternalError(err) {
			t.Errorf("without the key service: %v", err)
		}
		if _, err := s.client.CoreV1().Secrets("default").Create(t.Context(), secret("x", "1"), metav1.CreateOptions{}); !apierrors.IsInternalError(err) || strings.Contains(err.Error(), "nothing was written") {
			t.Errorf("create without the key service: %v", err)
		}
		if _, err := s.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("others without the key service: %v", err)
		}
		p.start()
		apitest.Eventually(t, "all Secrets are read", func() bool {
			all, err := s.client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
			return err == nil && len(all.Items) == 20
		})
		// Another key: what is stored is stale.
		p.rotate("key2")
		s.stop(t)
		s = start(t, dsn, o)
		apitest.Eventually(t, "the new key is used", func() bool { code, _ := healthOf(t, s, "/readyz"); return code == 200 })
		now := s.get(t, "s1")
		again, err := s.client.CoreV1().Secrets("default").Update(t.Context(), now, metav1.UpdateOptions{})
		if err != nil || again.ResourceVersion == now.ResourceVersion {
			t.Errorf("an update without changes does not rewrite: %v", err)
		}
		third, err := s.client.CoreV1().Secrets("default").Update(t.Context(), again, metav1.UpdateOptions{})
		if err != nil || third.ResourceVersion != again.ResourceVersion {
			t.Errorf("a second update rewrites again: %v", err)
		}
		code, metrics := healthOf(t, s, "/metrics")
		for _, name := range []string{
			"apiserver_storage_transformation_operations_total", "apiserver_storage_transformation_duration_seconds",
			"apiserver_envelope_encryption_key_id_hash_total", "apiserver_envelope_encryption_kms_operations_latency_seconds",
		} {
			if code != 200 || !strings.Contains(metrics, name+"{") && !strings.Contains(metrics, name+"_count{") {
				t.Errorf("metrics (%d) have no %s", code, name)
			}
		}
		if strings.Contains(metrics, "key2") {
			t.Error("metrics name the key")
		}
	})
}

// TestUnwellKMS has a key service that refuses, hangs and answers nonsense, and then is well. All
// else is served meanwhile.
func TestUnwellKMS(t *testing.T) {
	t.Parallel()
	dsn, p := logtest.SQLite(t), startPlugin(t, "key1")
	o := encryption.Options{ConfigFile: configFile(t, secretsBy(fmt.Sprintf("kms vault-unwell %s %v", p.socket, impatient), "identity"))}
	p.be("refuses")
	s := start(t, dsn, o)
	secrets := s.client.CoreV1().Secrets("default")
	for _, mood := range []string{"refuses", "slow", "garbage"} {
		p.be(mood)
		apitest.Eventually(t, "the check notices that the key service "+mood, func() bool {
			code, body := healthOf(t, s, "/healthz")
			return code == http.StatusInternalServerError && strings.Contains(body, "[-]kms-providers failed")
		})
		if code, body := healthOf(t, s, "/livez"); code != 200 {
			t.Errorf("livez: %s", body)
		}
		if _, err := secrets.Create(t.Context(), secret(mood, "1"), metav1.CreateOptions{}); !apierrors.IsInternalError(err) {
			t.Errorf("%s: create: %v", mood, err)
		}
		if _, err := s.client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("%s: others: %v", mood, err)
		}
	}
	p.be("")
	apitest.Eventually(t, "the key service is well", func() bool { code, _ := healthOf(t, s, "/readyz"); return code == 200 })
	s.put(t, "a", "1")
}

// TestUnwellKMSWithKey has a key service that refuses, hangs and answers nonsense while a key is at
// hand. Reads go on for good and writes for three minutes, and the checks fail, as upstream's.
func TestUnwellKMSWithKey(t *testing.T) {
	dsn, p := logtest.SQLite(t), startPlugin(t, "key1")
	var ahead atomic.Int64 // how far the clock is ahead by which the key expires
	t.Cleanup(kmsv2.SetNowFuncForTests("vault-key", func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
	s := start(t, dsn, encryption.Options{ConfigFile: configFile(t, secretsBy(fmt.Sprintf("kms vault-key %s %v", p.socket, impatient), "identity"))})
	secrets := s.client.CoreV1().Secrets("default")
	ready := func(path string) bool { code, _ := healthOf(t, s, path); return code == http.StatusOK }
	apitest.Eventually(t, "the key is there", func() bool { return ready("/readyz") })
	s.put(t, "first", "1")
	calls := p.calls.Load()
	for _, mood := range []string{"refuses", "slow", "garbage"} {
		p.be(mood)
		asked := p.asked.Load()
		s.put(t, mood, "1") // before anybody has noticed
		apitest.Eventually(t, "the checks notice that the key service "+mood, func() bool {
			return !ready("/readyz") && !ready("/healthz") && p.asked.Load() > asked
		})
		if !ready("/livez") {
			t.Errorf("%s: livez fails", mood)
		}
		s.put(t, mood+"-noticed", "1")
		s.get(t, "first")
		if all, err := secrets.List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) < 3 {
			t.Errorf("%s: list: %v", mood, err)
		}
		if err := secrets.Delete(t.Context(), mood, metav1.DeleteOptions{}); err != nil {
			t.Errorf("%s: delete: %v", mood, err)
		}
	}
	if n := p.calls.Load() - calls; n > 0 {
		t.Errorf("the key service was asked for %d keys", n)
	}

	// A new key that cannot be had: the old one stays in use, and the checks fail.
	p.rotate("key2")
	p.be("garbled")
	apitest.Eventually(t, "the new key is asked for", func() bool { return !ready("/readyz") && p.calls.Load() > calls })
	s.put(t, "garbled", "1")

	// The old one is not used for ever.
	ahead.Store(int64(4 * time.Minute))
	_, err := secrets.Create(t.Context(), secret("late", "1"), metav1.CreateOptions{})
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), " expired at ") {
		t.Errorf("a write with an old key: %v", err)
	}
	if _, err := secrets.Update(t.Context(), s.get(t, "first"), metav1.UpdateOptions{}); err != nil {
		t.Errorf("an update that changes nothing: %v", err)
	}
	changed := s.get(t, "first")
	changed.Data["value"] = []byte("2")
	if _, err := secrets.Update(t.Context(), changed, metav1.UpdateOptions{}); !apierrors.IsInternalError(err) {
		t.Errorf("an update with an old key: %v", err)
	}
	if all, err := secrets.List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) != 5 {
		t.Errorf("list: %v", err)
	}
	if _, err := s.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("others: %v", err)
	}
	p.be("")
	apitest.Eventually(t, "the key service is well", func() bool { return ready("/readyz") })
	s.put(t, "late", "1")
	if _, err := secrets.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}

// TestUnwellKMSOfReplicas has two servers, one of which cannot get the key of the other: it serves all
// but what is encrypted with that, and soon all when the key service is well.
func TestUnwellKMSOfReplicas(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn, p := d.Fresh(t), startPlugin(t, "key1")
		o := encryption.Options{ConfigFile: configFile(t, secretsBy(fmt.Sprintf("kms vault-replicas-%s %s %v", d.Name, p.socket, impatient), "identity"))}
		here, there := start(t, dsn, o), start(t, dsn, o)
		for _, s := range []*instance{here, there} {
			apitest.Eventually(t, "the key is there", func() bool { code, _ := healthOf(t, s, "/readyz"); return code == 200 })
		}
		here.put(t, "of-here", "1")
		for _, mood := range []string{"refuses", "slow", "garbage"} {
			p.be(mood)
			there.put(t, mood, "1")
			if _, err := there.client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: mood}}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := here.client.CoreV1().ConfigMaps("default").Get(t.Context(), mood, metav1.GetOptions{}); err != nil {
				t.Errorf("%s: others: %v", mood, err)
			}
			secrets := here.client.CoreV1().Secrets("default")
			if _, err := secrets.Get(t.Context(), mood, metav1.GetOptions{}); !apierrors.IsInternalError(err) {
				t.Errorf("%s: get: %v", mood, err)
			}
			if _, err := secrets.List(t.Context(), metav1.ListOptions{}); apierrors.ReasonForError(err) != metav1.StatusReasonStoreReadError {
				t.Errorf("%s: list: %v", mood, err)
			}
			here.get(t, "of-here")
		}
		p.be("")
		apitest.Eventually(t, "all Secrets are read", func() bool {
			all, err := here.client.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
			return err == nil && len(all.Items) == 4
		})
	})
}
