package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// raced tells whether this program is built with the race detector.
var raced = func() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()

// burstSize returns how many watches and creates a burst has. Under the race detector each
// takes ten times as long and as much memory.
func burstSize() (watches, creates int) {
	if raced {
		return 400, 250
	}
	return 1200, 400
}

var burstWatches, burstCreates = burstSize()

// TestMemoryAfterBurst makes many changes while there are many watches, and wants the memory
// that this took back within 30 seconds, whether the watches end or stay. By itself the Go
// runtime would take minutes. Under the race detector, which keeps memory of its own, what
// counts is the heap that the runtime has from the system.
func TestMemoryAfterBurst(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("NOT TESTED: there is no /proc to read resident memory from")
	}
	for _, name := range []string{"watches end", "watches stay"} {
		t.Run(name, func(t *testing.T) {
			if raced && name == "watches stay" {
				t.Skip("NOT TESTED under the race detector, whose memory for so many goroutines hides what is given back; make test-quick does")
			}
			t.Parallel()
			p := serveMeasured(t, filepath.Join(t.TempDir(), "data"), "sqlite://:memory:")
			ctx, cancel := context.WithCancel(t.Context())
			b := &burst{url: p.url, clients: burstClients(t, p.config(t))}
			defer b.readers.Wait()
			defer cancel()
			if err := b.open(ctx); err != nil {
				t.Fatal(err)
			}
			before := memoryKiB(t, p)
			created := make(chan error, 1)
			go func() {
				err := b.create(ctx)
				if err == nil {
					b.seen.Wait()
				}
				created <- err
			}()
			peak := 0 // some may have been given back before this machine sees the end
			for busy := true; busy; peak = max(peak, memoryKiB(t, p)) {
				select {
				case err := <-created:
					must(t, err)
					busy = false
				case <-time.After(500 * time.Millisecond):
				}
			}
			if name == "watches end" {
				cancel()
			}
			// Objects and the last versions of pages that are used account for some growth.
			bound := before + (peak-before)/3
			if raced {
				bound = before + (peak-before)*3/4
			}
			// Where other processes keep the server from its work, the burst may look like its own end; then memory is
			// given back once more after 150 seconds.
			begun := time.Now()
			for now := peak; now > bound; time.Sleep(200 * time.Millisecond) {
				if now = memoryKiB(t, p); time.Since(begun) > 180*time.Second {
					t.Fatalf("%d MiB before the burst, %d at most, still %d and not at most %d", before>>10, peak>>10, now>>10, bound>>10)
				}
			}
			t.Logf("%d MiB before the burst, %d at most, %d after %v", before>>10, peak>>10, memoryKiB(t, p)>>10, time.Since(begun).Round(time.Second))
		})
	}
}

// burst is the client side: watches of all ConfigMaps, on a few connections.
type burst struct {
	url     string
	clients []*http.Client
	readers sync.WaitGroup
	seen    sync.WaitGroup // done for each watch that got all changes, or ended
}

// burstClients make four connections each.
func burstClients(t *testing.T, c *clientrest.Config) []*http.Client {
	t.Helper()
	clients := make([]*http.Client, 4)
	for i := range clients {
		tls, err := clientrest.TLSConfigFor(c)
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, DisableCompression: true}
		t.Cleanup(transport.CloseIdleConnections)
		clients[i] = &http.Client{Transport: transport}
	}
	return clients
}

// open opens the watches.
func (b *burst) open(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(50)
	for i := range burstWatches {
		g.Go(func() error {
			response, err := b.do(ctx, i, http.MethodGet, configMaps+"?watch=1&fieldSelector=metadata.name!%3Dkube-root-ca.crt", nil)
			if err != nil {
				return err
			}
			b.seen.Add(1)
			b.readers.Go(func() { b.read(response.Body) })
			return nil
		})
	}
	return g.Wait()
}

// read counts lines: each event is one.
func (b *burst) read(body io.ReadCloser) {
	defer body.Close()
	var once sync.Once
	defer once.Do(b.seen.Done)
	buffer, events := make([]byte, 4<<10), 0
	for {
		n, err := body.Read(buffer)
		if events += strings.Count(string(buffer[:n]), "\n"); events >= burstCreates {
			once.Do(b.seen.Done)
		}
		if err != nil {
			return
		}
	}
}

// create makes the changes.
func (b *burst) create(ctx context.Context) error {
	var g errgroup.Group
	g.SetLimit(32)
	pad := strings.Repeat("x", 1024)
	for i := range burstCreates {
		g.Go(func() error {
			body := fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"cm-%d"},"data":{"a":%q}}`, i, pad)
			response, err := b.do(ctx, i, http.MethodPost, configMaps, strings.NewReader(body))
			if err != nil {
				return err
			}
			return response.Body.Close()
		})
	}
	return g.Wait()
}

func (b *burst) do(ctx context.Context, i int, method, path string, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, b.url+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := b.clients[i%len(b.clients)].Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		response.Body.Close()
		return nil, fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return response, nil
}

// memoryKiB returns the memory that the server has from the system.
func memoryKiB(t *testing.T, p *process) int {
	t.Helper()
	if raced {
		return heapKiB(t, p)
	}
	return residentKiB(t, p)
}

// heapKiB reads from /metrics how much heap the runtime has not given back.
func heapKiB(t *testing.T, p *process) int {
	t.Helper()
	text, err := kubernetes.NewForConfigOrDie(p.config(t)).Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	value := func(name string) float64 {
		_, after, _ := strings.Cut(string(text), "\n"+name+" ")
		line, _, _ := strings.Cut(after, "\n")
		n, err := strconv.ParseFloat(line, 64)
		must(t, err)
		return n
	}
	return int(value("go_memstats_heap_sys_bytes")-value("go_memstats_heap_released_bytes")) >> 10
}

// residentKiB reads VmRSS, resident memory.
func residentKiB(t *testing.T, p *process) int {
	const field = "VmRSS"
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), field+":")
	line, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "kB")))
	if err != nil {
		t.Fatalf("%s of plinth: %v", field, err)
	}
	return n
}

// TestMemoryOfContainer starts plinth in a cgroup of its own and wants it to say what limit it
// has found there.
func TestMemoryOfContainer(t *testing.T) {
	t.Parallel()
	group := makeCgroup(t, 1000<<20)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const line = "GOMEMLIMIT sets another limit limitMiB=900"
	for name, c := range map[string]struct {
		variable string
		want     bool
	}{"by default": {"", true}, "with GOMEMLIMIT": {"GOMEMLIMIT=500MiB", false}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			// The shell joins the cgroup and then becomes plinth.
			cmd := exec.Command("sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(group, "cgroup.procs"),
				self, "serve", "--listen=127.0.0.1:0", "--data-dir="+filepath.Join(dir, "data"))
			cmd.Env = append(os.Environ(), asPlinth+"=1", c.variable)
			p := &process{dir: dir, log: filepath.Join(dir, "log"), exited: make(chan struct{})}
			if err := p.start(cmd); err != nil {
				t.Fatal(err)
			}
			if err := p.stop(); err != nil {
				t.Error(err)
			}
			if strings.Contains(p.logged(), line) != c.want {
				t.Errorf("%q is to be in the log: %v\n%s", line, c.want, p.logged())
			}
		})
	}
}

// makeCgroup makes a memory cgroup, of whichever version this machine has, that may use so
// many bytes. It skips the test where that is not permitted.
func makeCgroup(t *testing.T, limit int) string {
	t.Helper()
	root, file := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat(filepath.Join(root, "memory", "memory.limit_in_bytes")); err == nil {
		root, file = filepath.Join(root, "memory"), "memory.limit_in_bytes"
	}
	group := filepath.Join(root, fmt.Sprintf("plinth-test-%d", os.Getpid()))
	err := os.Mkdir(group, 0o755)
	if err == nil {
		t.Cleanup(func() {
			if err := os.Remove(group); err != nil { // empty, as all in it have ended
				t.Error(err)
			}
		})
		err = os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(limit)), 0o644)
	}
	if err != nil {
		t.Skipf("NOT TESTED: no memory cgroup can be made here: %v", err)
	}
	return group
}
