package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// shownPage is a plinth ui, and a browser without scripts that it has let in.
type shownPage struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	base   string
	client *http.Client
}

// showPage starts plinth ui for a kubeconfig, and opens the address that it prints.
func showPage(t *testing.T, kubeconfig string) *shownPage {
	t.Helper()
	cmd, stderr := plinth(t, nil, "ui", "--kubeconfig", kubeconfig)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	found := regexp.MustCompile(`^(http://127\.0\.0\.1:\d+/[0-9a-f]+/)\?key=[0-9a-f]+`).FindStringSubmatch(line)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err != nil || found == nil {
		t.Fatalf("printed %q: %v: %s", line, err, stderr)
	}
	jar, err := cookiejar.New(nil)
	must(t, err)
	p := &shownPage{t, cmd, stderr, found[1], &http.Client{Jar: jar, Timeout: 30 * time.Second}}
	if code, text := p.get("?" + strings.SplitN(strings.Fields(line)[0], "?", 2)[1]); code != http.StatusOK {
		t.Fatalf("the address that was printed: %d: %s", code, text)
	}
	return p
}

// get returns what a path below the base answers to a browser.
func (p *shownPage) get(path string) (code int, text string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.base+path, nil)
	must(p.t, err)
	request.Header.Set("Accept", "text/html")
	answer, err := p.client.Do(request)
	must(p.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(p.t, err)
	return answer.StatusCode, string(body)
}

// has fails the test if a path does not answer with the code and all the texts.
func (p *shownPage) has(path string, code int, texts ...string) {
	p.t.Helper()
	got, body := p.get(path)
	_, shown, _ := strings.Cut(body, "<main")
	shown = shown[:min(2000, len(shown))]
	if got != code {
		p.t.Errorf("%q answers %d, not %d: %s", path, got, code, shown)
		return
	}
	for _, text := range texts {
		if !strings.Contains(body, text) {
			p.t.Errorf("%q has no %q: %s", path, text, shown)
		}
	}
}

// end sends Ctrl-C, after which the command has ended well and has said nothing.
func (p *shownPage) end() {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(syscall.SIGINT))
	if err := p.cmd.Wait(); err != nil || p.stderr.Len() > 0 {
		p.t.Errorf("after Ctrl-C: %v: %s", err, p.stderr)
	}
}

// TestUI opens the page that plinth ui serves.
func TestUI(t *testing.T) {
	t.Parallel()
	server := serveFor(t, filepath.Join(t.TempDir(), "data"), logtest.SQLite(t))
	_, err := kubernetes.NewForConfigOrDie(server.config(t)).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a", "of-the-page"), metav1.CreateOptions{})
	must(t, err)
	p := showPage(t, server.kubeconfig())
	p.has("", http.StatusOK, "ConfigMap", "kubernetes-admin")
	p.has("objects/configmaps/default/a", http.StatusOK, "of-the-page")
	p.has("objects/configmaps/default/a/timeline", http.StatusOK, "created")
	if answer, err := http.Get(p.base); err != nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("somebody without the cookie: %v, %v", answer, err)
	}

	ended, key := clientPair(t, "ada", time.Now().Add(-time.Hour))
	old := showPage(t, writeKubeconfig(t, server.url, &clientcmdapi.AuthInfo{ClientCertificateData: ended, ClientKeyData: key}))
	old.has("", http.StatusUnauthorized, "Not signed in", "plinth certs check")
	if text := old.stderr.String(); !strings.Contains(text, `refuses the client certificate of "ada"`) || strings.Count(text, "\n") != 1 {
		t.Errorf("printed %q", text)
	}

	must(t, server.stop())
	p.has("objects/configmaps/default/a", http.StatusBadGateway, "The server does not answer", "run plinth ui again")
	p.end()
}

// TestUIWarns serves the page for what cannot be asked; a line in the terminal says what is wrong, and so does the page.
func TestUIWarns(t *testing.T) {
	t.Parallel()
	other := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<h1>Hello</h1>")) }))
	t.Cleanup(web.Close)
	gone := httptest.NewTLSServer(http.NotFoundHandler())
	gone.Close()
	for _, tt := range []struct {
		name, server, line, page string
		code                     int
	}{
		{"a server that is away", gone.URL, "connection refused", "The server does not answer", http.StatusBadGateway},
		{"a server that is no Kubernetes", other.URL, "is no Kubernetes API", "No Kubernetes API", http.StatusBadGateway},
		{"a web server", web.URL, "is no Kubernetes API", "No Kubernetes API", http.StatusBadGateway},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := showPage(t, writeKubeconfig(t, tt.server, nil))
			p.has("", tt.code, tt.page)
			p.has("now", tt.code, tt.page)
			if text := p.stderr.String(); !strings.Contains(text, tt.line) || strings.Count(text, "\n") != 1 {
				t.Errorf("printed %q, no line with %q", text, tt.line)
			}
		})
	}
}

// writeKubeconfig writes a kubeconfig for a server whose certificate is not looked at.
func writeKubeconfig(t *testing.T, server string, user *clientcmdapi.AuthInfo) string {
	t.Helper()
	if user == nil {
		user = clientcmdapi.NewAuthInfo()
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: server, InsecureSkipTLSVerify: true}
	c.AuthInfos["u"] = user
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	c.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*c, file))
	return file
}

// TestUIRefused ends with one line that says what to do.
func TestUIRefused(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	must(t, os.WriteFile(empty, nil, 0o600))
	for _, tt := range []struct {
		args []string
		has  string
	}{
		{nil, "there is no kubeconfig"},
		{[]string{"--kubeconfig", empty}, "names no cluster"},
		{[]string{"--kubeconfig", writeKubeconfig(t, "https://127.0.0.1:1", nil), "--listen", "0.0.0.0:0"}, "the page is for this machine only"},
		{[]string{"--kubeconfig", writeKubeconfig(t, "https://127.0.0.1:1", nil), "--context", "nope"}, "nope"},
	} {
		cmd, stderr := plinth(t, nil, append([]string{"ui"}, tt.args...)...)
		err := cmd.Run()
		if text := stderr.String(); err == nil || !strings.Contains(text, tt.has) || strings.Count(text, "\n") != 1 {
			t.Errorf("plinth ui %v: %v: %q, not one line with %q", tt.args, err, text, tt.has)
		}
	}
}
