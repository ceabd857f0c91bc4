package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/debugging"
	"github.com/plinth-io/plinth/server/peers"
)

// TestOwnCertificates comes to each route with each certificate that servers show to others, where
// everything is allowed to everybody who is known. They are nobody's; one of a server opens the route of servers.
func TestOwnCertificates(t *testing.T) {
	dir := t.TempDir()
	data, proxies, shown, key := filepath.Join(dir, "data"), filepath.Join(dir, "proxies.crt"), filepath.Join(dir, "shown.crt"), filepath.Join(dir, "shown.key")
	before := start(t, Config{DataDir: data})
	authority, err := before.pki.FrontProxyCA()
	must(t, err)
	must(t, os.WriteFile(proxies, authority, 0o600))
	fromFile, fromFileKey, err := before.pki.Client("caller", []string{"system:masters"}, time.Hour)
	must(t, err)
	must(t, os.WriteFile(shown, fromFile, 0o600))
	must(t, os.WriteFile(key, fromFileKey, 0o600))
	must(t, before.Close())

	who := authn.NewOptions()
	who.RequestHeader.ClientCAFile = proxies // somebody's mistake: the server is its own front proxy
	may := authz.NewOptions()
	may.Modes = []string{"AlwaysAllow"}
	p := &parties{server: start(t, Config{
		DataDir: data, Authentication: who, Authorization: may, ServeSnapshots: true, Debugging: debugging.Options{Profiling: true},
		KubeletCertificate: shown, KubeletKey: key,
	})}
	made := func(name string, groups ...string) []byte {
		text, _, err := p.server.pki.Client(name, groups, time.Hour)
		must(t, err)
		return text
	}
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(data, "pki", name+".crt"))
		must(t, err)
		return text
	}
	_, err = p.server.pki.Kubelet()
	must(t, err)
	_, err = p.server.pki.Peer()
	must(t, err)
	_, err = p.server.pki.FrontProxy()
	must(t, err)
	asBoss := http.Header{"X-Remote-User": {"boss"}, "X-Remote-Group": {"system:masters"}}
	p.add("kubelets", "", read("apiserver-kubelet-client"), nil)
	p.add("kubelets as boss", "", read("apiserver-kubelet-client"), http.Header{"Impersonate-User": {"boss"}})
	p.add("kubelets, from a file", "", fromFile, nil)
	p.add("kubelets, from a file of another server", "", made("caller", "system:masters"), nil)
	p.add("extension servers", "", read("front-proxy-client"), asBoss)
	p.add("servers", "", read("apiserver-peer-client"), asBoss)
	p.add("servers, of an older one", "", made("plinth-kubelet-client", "system:masters"), nil)

	questions := resourceQuestions(p.server.kinds.Set())[:200]
	questions = append(questions, pathQuestions(t, p.server.guard.Paths(), p.server.kinds.Set())...)
	asked, opened := 0, 0
	for _, q := range questions {
		for _, i := range p.list {
			a := p.ask(t, i, q.method, q.target, nil)
			asked++
			if q.target == peers.Path && strings.HasPrefix(i.name, "servers") {
				if opened++; a.code == 401 || a.code == 403 {
					t.Errorf("%s of %s: %d %s", q, i.name, a.code, a.body)
				}
				continue
			}
			if a.code != 401 || !strings.Contains(a.body, `"message":"Unauthorized"`) && q.method != "HEAD" {
				t.Errorf("%s of %s: %d %s, want 401", q, i.name, a.code, a.body)
			}
		}
	}
	if asked < 1000 || opened == 0 {
		t.Errorf("only %d questions, %d of them answered", asked, opened)
	}
	ann := p.add("ann", "ann", made("ann"), nil)
	if a := p.ask(t, ann, "GET", "/api/v1/secrets", nil); a.code != 200 {
		t.Errorf("somebody else: %d %s", a.code, a.body)
	}
}
