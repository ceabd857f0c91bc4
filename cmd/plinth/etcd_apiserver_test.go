package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rpctypes "go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// apiserverVariable says which dialects TestKubeAPIServer runs on, separated by commas. Without it
// there is nothing to test here: to build kube-apiservers takes minutes, so that make test-etcd asks
// for it and nobody else does.
const apiserverVariable = "PLINTH_TEST_APISERVER"

// TestKubeAPIServer runs kube-apiservers of two releases, as they are, on plinth etcd.
func TestKubeAPIServer(t *testing.T) {
	if os.Getenv(apiserverVariable) == "" {
		t.Skipf("%s is not set; make test-etcd sets it", apiserverVariable)
	}
	bin := t.TempDir()
	for _, module := range apiserverModules {
		t.Run(module, func(t *testing.T) {
			program, release := buildAPIServer(t, module, bin)
			eachWanted(t, apiserverVariable, func(t *testing.T, d logtest.Dialect) { testAPIServer(t, program, release, d) })
			t.Run("tls", func(t *testing.T) { testAPIServerTLS(t, program) })
		})
	}
}

// testAPIServer gives a kube-apiserver a member of plinth, and a second one where there may be several.
func testAPIServer(t *testing.T, program, version string, d logtest.Dialect) {
	dsn := d.Fresh(t)
	begin := func(args ...string) *etcdProcess {
		return startEtcd(t, t.TempDir(), append([]string{"--dsn=" + dsn}, args...)...)
	}
	p := begin()
	s := startAPIServer(t, program, "--etcd-servers="+p.urls[0], "--etcd-compaction-interval=2s")
	if got := s.get(t, "/version"); !strings.Contains(got, `"gitVersion": "`+version+`"`) {
		t.Errorf("/version: %s", got)
	}
	testTour(t, s)
	testPages(t, s)
	testCustomResources(t, s)
	for _, dir := range kubernetesManifests {
		applyKubernetes(t, func(args ...string) string { t.Helper(); return s.kubectl(t, args...) }, filepath.Join(repository, dir))
	}
	testPageOf(t, s)
	testProgress(t, s)
	testOwnCompaction(t, s, p.client(nil))
	s.noComplaints(t, storageComplaint)
	if t.Failed() {
		return
	}
	before := stateOf(t, s)
	s.stop()
	// From here on nothing is compacted, so that no watch may have to begin anew.
	s.flags = append(s.flags, "--etcd-compaction-interval=1h")
	s.start(t)
	sameState(t, before, stateOf(t, s))
	address := p.host()
	keepsWatching(t, s, "killed", func() {
		p.kill()
		p = begin("--listen-client-urls=http://" + address)
	})
	s.noComplaints(t, storageFault)
	if d.Servers == 1 {
		return
	}
	before = stateOf(t, s)
	s.stop()
	second := begin("--name=two")
	s.flags = append(s.flags, "--etcd-servers="+p.urls[0]+","+second.urls[0])
	s.start(t)
	sameState(t, before, stateOf(t, s))
	keepsWatching(t, s, "survivor", p.kill)
	s.noComplaints(t, storageFault)
}

// testPageOf opens plinth ui for it: all that needs no history is there, and the rest says so.
func testPageOf(t *testing.T, s *stockAPIServer) {
	t.Helper()
	p := showPage(t, filepath.Join(s.dir, "kubeconfig"))
	s.kubectl(t, "create", "deployment", "web", "--image=nginx:2", "-n", "default")
	const web = "objects/deployments.apps/default/web"
	p.has("", http.StatusOK, "Deployment", "keeps no history")
	p.has("kinds/deployments.apps?ns=default", http.StatusOK, "Deployment")
	p.has("rows/deployments.apps?ns=default", http.StatusOK, `"web"`, `"Ready"`)
	p.has(web, http.StatusOK, "nginx:2")
	p.has(web+"/tree", http.StatusOK, "web")
	p.has(web+"/edit", http.StatusOK, "nginx:2")
	p.has("search?q=web", http.StatusOK, "default")
	p.has("rights", http.StatusOK, "system:masters")
	p.has("definitions", http.StatusOK, "Deployment")
	p.has("server", http.StatusOK, "This needs plinth")
	for _, page := range []string{web + "/timeline", web + "/blame", web + "/undo", "now", "trash"} {
		p.has(page, http.StatusNotImplemented, "This server keeps no history")
	}
	p.end()
}

// testTour is kubectl's quick tour.
func testTour(t *testing.T, s *stockAPIServer) {
	t.Helper()
	expect := func(want, got string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
	s.kubectl(t, "create", "namespace", "tour")
	in := func(args ...string) string { t.Helper(); return s.kubectl(t, append(args, "-n", "tour")...) }
	in("create", "deployment", "web", "--image=nginx", "--replicas=2")
	expect("nginx", in("get", "deployments", "-o", "wide"))
	in("scale", "deployment", "web", "--replicas=5")
	expect("5", in("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"))
	in("set", "image", "deployment/web", "nginx=nginx:2")
	in("label", "deployment", "web", "tier=front")
	expect("deployment.apps/web", in("get", "deployments", "-l", "tier=front", "-o", "name"))
	events := watchWith(t, s, "get", "configmaps", "-n", "tour", "-w", "--output-watch-events", "--no-headers")
	in("create", "configmap", "a", "--from-literal=n=1")
	in("patch", "configmap", "a", "--type=merge", `--patch={"data":{"n":"2"}}`)
	in("annotate", "configmap", "a", "example.com/note=x")
	const manifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"tour"},"data":{"n":%q}}`
	s.kubectlWith(t, fmt.Sprintf(manifest, "b", "1"), "apply", "-f", "-")
	s.kubectlWith(t, fmt.Sprintf(manifest, "b", "2"), "apply", "-f", "-")
	s.kubectlWith(t, fmt.Sprintf(manifest, "c", "1"), "apply", "--server-side", "-f", "-")
	s.kubectlWith(t, fmt.Sprintf(manifest, "c", "2"), "apply", "--server-side", "-f", "-")
	in("wait", "configmap/c", "--for=jsonpath={.data.n}=2", "--timeout=60s")
	in("delete", "configmap", "a")
	in("wait", "configmap/a", "--for=delete", "--timeout=60s")
	for _, want := range []string{"ADDED a", "MODIFIED a", "MODIFIED a", "ADDED b", "MODIFIED b", "ADDED c", "MODIFIED c", "DELETED a"} {
		if got := nextLine(t, events); got != want {
			t.Errorf("kubectl get -w printed %q, want %q", got, want)
		}
	}
	in("delete", "deployment", "web")
	if out := in("get", "deployments", "-o", "name"); out != "" {
		t.Errorf("deployments after delete: %s", out)
	}
}

// watchWith returns the lines that a watching kubectl prints. It returns when the watch goes on.
func watchWith(t *testing.T, s *stockAPIServer, args ...string) <-chan string {
	t.Helper()
	cmd := s.command(t, args...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range lines { // until its end
		}
		_ = cmd.Wait()
	})
	mark := func() {
		s.kubectl(t, "create", "configmap", "mark", "-n", "tour")
		s.kubectl(t, "delete", "configmap", "mark", "-n", "tour")
	}
	for {
		mark()
		select {
		case line := <-lines:
			if !strings.Contains(line, "mark") {
				t.Fatalf("kubectl %s printed %q", strings.Join(args, " "), line)
			}
			return lines
		case <-time.After(500 * time.Millisecond):
		}
	}
}

var watchLine = regexp.MustCompile(`^([A-Z]+)\s+(\S+)`)

// nextLine returns the kind and the name of the next event that is not of the mark.
func nextLine(t *testing.T, lines <-chan string) string {
	t.Helper()
	for {
		select {
		case line, more := <-lines:
			found := watchLine.FindStringSubmatch(line)
			if !more || found == nil {
				t.Fatalf("kubectl get -w printed %q", line)
			}
			if found[2] != "mark" {
				return found[1] + " " + found[2]
			}
		case <-time.After(patience):
			t.Fatal("kubectl get -w prints nothing")
		}
	}
}

// testPages lists in pages, all of one revision while objects come and go.
func testPages(t *testing.T, s *stockAPIServer) {
	t.Helper()
	ctx := withPatience(t)
	s.kubectl(t, "create", "namespace", "pages")
	maps := s.kube.CoreV1().ConfigMaps("pages")
	for i := range 25 {
		_, err := maps.Create(ctx, configMap(fmt.Sprintf("m-%02d", i), "1"), metav1.CreateOptions{})
		must(t, err)
	}
	if out := s.kubectl(t, "get", "configmaps", "-n", "pages", "--chunk-size=10", "-o", "name"); strings.Count(out, "m-") != 25 {
		t.Errorf("kubectl get --chunk-size: %s", out)
	}
	var names []string
	revision, token := "", ""
	for {
		page, err := maps.List(ctx, metav1.ListOptions{Limit: 10, Continue: token})
		must(t, err)
		for i := range page.Items {
			names = append(names, page.Items[i].Name)
		}
		if revision == "" {
			revision = page.ResourceVersion
		}
		if page.ResourceVersion != revision {
			t.Errorf("a page of revision %s, not %s", page.ResourceVersion, revision)
		}
		if token = page.Continue; token == "" {
			break
		}
		_, err = maps.Create(ctx, configMap(fmt.Sprintf("z-%02d", len(names)), "1"), metav1.CreateOptions{})
		must(t, err)
		must(t, maps.Delete(ctx, fmt.Sprintf("m-%02d", 25-len(names)/10), metav1.DeleteOptions{}))
	}
	if len(names) != 25 || !slices.IsSorted(names) {
		t.Errorf("%d names: %v", len(names), names)
	}
}

const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 9}}}, status: {type: object, properties: {ready: {type: boolean}}}}}}
`

// testCustomResources defines a resource and uses it.
func testCustomResources(t *testing.T, s *stockAPIServer) {
	t.Helper()
	s.kubectlWith(t, gadgets, "apply", "-f", "-")
	s.kubectl(t, "wait", "crd/gadgets.example.com", "--for=condition=Established", "--timeout=60s")
	const gadget = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g, namespace: tour}\nspec: {size: 3}\n"
	soon(t, "gadgets are served", func() bool { return s.command(t, "get", "gadgets", "-A").Run() == nil })
	s.kubectlWith(t, gadget, "apply", "--server-side", "-f", "-")
	s.kubectl(t, "patch", "gadget", "g", "-n", "tour", "--type=merge", `--patch={"status":{"ready":true}}`, "--subresource=status")
	s.kubectl(t, "wait", "gadget/g", "-n", "tour", "--for=jsonpath={.status.ready}=true", "--timeout=60s")
	if err := s.command(t, "patch", "gadget", "g", "-n", "tour", "--type=merge", `--patch={"spec":{"size":10}}`).Run(); err == nil {
		t.Error("a gadget of size 10 is accepted")
	}
}

// testProgress sees that kube-apiserver asks plinth for progress: consistent lists come from its
// cache, after writes that the cache of the listed resource hears nothing of.
func testProgress(t *testing.T, s *stockAPIServer) {
	t.Helper()
	ctx := withPatience(t)
	for i := range 5 {
		_, err := s.kube.CoreV1().ConfigMaps("tour").Create(ctx, configMap(fmt.Sprintf("p-%d", i), "1"), metav1.CreateOptions{})
		must(t, err)
		_, err = s.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		must(t, err)
	}
	metrics := s.get(t, "/metrics")
	good := regexp.MustCompile(`(?m)^apiserver_watch_cache_consistent_read_total\{fallback="false",(group="",)?resource="/?pods",success="true"\} [1-9]`)
	bad := regexp.MustCompile(`(?m)^apiserver_watch_cache_consistent_read_total\{fallback="true".*\} [1-9].*$`)
	if !good.MatchString(metrics) {
		t.Errorf("no consistent list came from the cache: %v", linesWith(metrics, "consistent_read"))
	}
	for _, line := range bad.FindAllString(metrics, -1) {
		t.Errorf("consistent lists fell back: %s", line)
	}
}

func linesWith(text, part string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, part) {
			lines = append(lines, line)
		}
	}
	return lines
}

// testOwnCompaction waits until kube-apiserver itself has compacted what the tour has written.
func testOwnCompaction(t *testing.T, s *stockAPIServer, c *clientv3.Client) {
	t.Helper()
	ctx := withPatience(t)
	now, err := c.Get(ctx, "/")
	must(t, err)
	soon(t, "kube-apiserver compacts", func() bool {
		_, err := s.kube.CoreV1().ConfigMaps("tour").Patch(ctx, "b", "application/merge-patch+json", fmt.Appendf(nil, `{"data":{"n":"%d"}}`, time.Now().UnixNano()), metav1.PatchOptions{})
		must(t, err)
		_, err = c.Get(ctx, "/", clientv3.WithRev(now.Header.Revision-1))
		if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
			t.Fatal(err)
		}
		return err != nil
	})
	// Until its cache has noticed, which it does every 15 seconds, a kube-apiserver answers from a snapshot there.
	soon(t, "an exact list of a compacted revision is refused", func() bool {
		_, err := s.kube.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{ResourceVersion: "2", ResourceVersionMatch: metav1.ResourceVersionMatchExact})
		if err != nil && !apierrors.IsResourceExpired(err) {
			t.Fatal(err)
		}
		return err != nil
	})
}

// keepsWatching breaks the storage while objects are created. What was acknowledged must be there, and
// an informer that runs all the time must have seen it.
func keepsWatching(t *testing.T, s *stockAPIServer, namespace string, breaks func()) {
	t.Helper()
	ctx := withPatience(t)
	s.kubectl(t, "create", "namespace", namespace)
	var seen sync.Map
	factory := informers.NewSharedInformerFactoryWithOptions(s.kube, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { seen.Store(o.(*corev1.ConfigMap).Name, true) }})
	must(t, err)
	informing, end := context.WithCancel(ctx)
	factory.Start(informing.Done())
	defer factory.Shutdown()
	defer end()
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	writing, stop := context.WithCancel(ctx)
	w := startWriters(writing, s, namespace)
	defer w.wait()
	defer stop()
	soon(t, "objects are created", func() bool { return w.count() > 50 })
	breaks()
	before := w.count()
	soon(t, "objects are created again", func() bool { return w.count() > before+50 })
	stop()
	acknowledged := w.wait()
	list, err := s.kube.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	must(t, err)
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = true
	}
	for _, name := range acknowledged {
		if !there[name] {
			t.Errorf("%s was acknowledged and is lost", name)
		}
	}
	soon(t, "the informer has seen all objects", func() bool {
		for name := range there {
			if _, ok := seen.Load(name); !ok {
				return false
			}
		}
		return true
	})
	t.Logf("%s: %d acknowledged, %d there", namespace, len(acknowledged), len(there))
}

// writers create objects, and remember which were acknowledged.
type writers struct {
	group sync.WaitGroup
	mu    sync.Mutex // guards names
	names []string
}

func startWriters(ctx context.Context, s *stockAPIServer, namespace string) *writers {
	w := &writers{}
	for worker := range 4 {
		w.group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("w-%d-%d", worker, i)
				if _, err := s.kube.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(name, "1"), metav1.CreateOptions{}); err != nil {
					time.Sleep(20 * time.Millisecond)
					continue
				}
				w.mu.Lock()
				w.names = append(w.names, name)
				w.mu.Unlock()
			}
		})
	}
	return w
}

func (w *writers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.names)
}

func (w *writers) wait() []string {
	w.group.Wait()
	return w.names
}

// stateOf are the objects that nobody changes now, with their resourceVersions.
func stateOf(t *testing.T, s *stockAPIServer) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, kind := range []string{"namespaces", "configmaps", "gadgets", "crds"} {
		out := s.kubectl(t, "get", kind, "-A", "-o", `jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}={.metadata.resourceVersion}{"\n"}{end}`)
		for line := range strings.Lines(out) {
			if name, revision, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				state[name] = revision
			}
		}
	}
	return state
}

// sameState fails the test if something of before is not there, or is of another revision.
func sameState(t *testing.T, before, after map[string]string) {
	t.Helper()
	if len(before) < 25 {
		t.Errorf("%d objects are too few to prove anything", len(before))
	}
	for name, revision := range before {
		if after[name] != revision {
			t.Errorf("%s was of revision %s, is %q", name, revision, after[name])
		}
	}
}

// testAPIServerTLS has a member that asks for certificates.
func testAPIServerTLS(t *testing.T, program string) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	signed(t, dir, "ca", x509.Certificate{Subject: subjectOf("ca"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, "")
	signed(t, dir, "server", x509.Certificate{Subject: subjectOf("server"), IPAddresses: local, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, "ca")
	signed(t, dir, "client", x509.Certificate{Subject: subjectOf("client"), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, "ca")
	p := startEtcd(t, dir, "--listen-client-urls=https://127.0.0.1:0", "--cert-file="+path("server.crt"), "--key-file="+path("server.key"), "--trusted-ca-file="+path("ca.crt"), "--client-cert-auth")
	s := startAPIServer(t, program, "--etcd-servers="+p.urls[0], "--etcd-cafile="+path("ca.crt"), "--etcd-certfile="+path("client.crt"), "--etcd-keyfile="+path("client.key"))
	testTour(t, s)
	s.noComplaints(t, storageComplaint)
}
