// Package kubelettest has a kubelet without a node, for tests of what goes through one: it
// speaks a kubelet's protocols, with a kubelet's own code, about containers that there are
// not.
package kubelettest

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	streaming "k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

const (
	idleTimeout     = 5 * time.Minute
	creationTimeout = time.Minute
)

// Kubelet is a running one. Its server listens on a loopback address.
type Kubelet struct {
	*httptest.Server
	// Pods is what all ports of all pods lead to; it answers with the request's method,
	// path, query and body.
	Pods *httptest.Server

	mu      sync.Mutex
	clients map[string]int // requests by the common name of their certificate
	more    chan string    // what followed logs get
}

// Start runs a kubelet until the test ends. It lets nobody in but holders of certificates
// that the authority in clientCA, in PEM, has signed for group system:masters.
func Start(t testing.TB, clientCA []byte) *Kubelet {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(clientCA) {
		t.Fatal("no certificate of an authority")
	}
	k := &Kubelet{clients: map[string]int{}, more: make(chan string)}
	k.Pods = httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(k.Pods.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.logs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.exec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", k.attach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.portForward)
	mux.HandleFunc("/", echo)
	k.Server = httptest.NewUnstartedServer(k.authorize(mux))
	k.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	k.StartTLS()
	t.Cleanup(func() {
		k.CloseClientConnections()
		k.Close()
	})
	return k
}

// Port is the one that it listens on.
func (k *Kubelet) Port() int { return k.Listener.Addr().(*net.TCPAddr).Port }

// Requests returns how many there were with a certificate of that common name.
func (k *Kubelet) Requests(name string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clients[name]
}

// Log adds a line to the logs that are followed; it waits until one has it.
func (k *Kubelet) Log(line string) { k.more <- line }

func (k *Kubelet) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.TLS.PeerCertificates[0].Subject
		if who.CommonName != "plinth-kubelet-client" && !slices.Contains(who.Organization, "system:masters") { // for whom the server has roles
			http.Error(w, "Forbidden (user="+who.CommonName+")", http.StatusForbidden)
			return
		}
		k.mu.Lock()
		k.clients[who.CommonName]++
		k.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

// logs has two lines to begin with.
func (k *Kubelet) logs(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("container") == "crashed" {
		http.Error(w, "container \"crashed\" is waiting to start", http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%s: first\n%s: second\n", r.PathValue("pod"), r.PathValue("container"))
	if r.FormValue("follow") != "true" {
		return
	}
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case line := <-k.more:
			fmt.Fprintln(w, line)
		case <-r.Context().Done():
			return
		}
	}
}

func (k *Kubelet) exec(w http.ResponseWriter, r *http.Request) {
	options, err := streaming.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	streaming.ServeExec(w, r, containers{}, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"],
		options, idleTimeout, creationTimeout, streaming.SupportedStreamingProtocols)
}

func (k *Kubelet) attach(w http.ResponseWriter, r *http.Request) {
	options, err := streaming.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	streaming.ServeAttach(w, r, containers{}, r.PathValue("pod"), "", r.PathValue("container"),
		options, idleTimeout, creationTimeout, streaming.SupportedStreamingProtocols)
}

func (k *Kubelet) portForward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, forwarder{k.Pods.Listener.Addr().String()}, r.PathValue("pod"), "",
		options, idleTimeout, creationTimeout, portforward.SupportedProtocols)
}
