package server

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/guard"
	"github.com/plinth-io/plinth/server/kubelettest"
)

// deputy is a server that users try to lead back to itself.
type deputy struct {
	*Server
	admin client
	port  string
	ca    string // its authority, in base64
}

func startDeputy(t *testing.T) *deputy {
	t.Helper()
	s := start(t, Config{Listen: ":0"}, func(s *Server) {
		// What a request that got through would find.
		s.addRoutes = append(s.addRoutes, func(g *guard.Guard) {
			g.Route("/caught", func(x *guard.Call) error { t.Errorf("%s came through", x.User.GetName()); return nil })
		})
	})
	d := &deputy{Server: s, admin: clientOf(t, s), port: strconv.Itoa(s.port()), ca: base64.StdEncoding.EncodeToString(s.pki.CA())}
	d.admin.do("POST", "/api/v1/namespaces", `{"metadata":{"name":"demo"}}`, 201)
	d.admin.do("POST", "/api/v1/namespaces/demo/serviceaccounts", `{"metadata":{"name":"default"}}`, 201)
	d.admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"prober"},"rules":[
		{"apiGroups":[""],"resources":["nodes/proxy","pods/proxy","services/proxy","pods/log","pods/exec"],"verbs":["get","create"]}]}`, 201)
	d.admin.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata":{"name":"prober"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"prober"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"prober"}]}`, 201)
	return d
}

// node makes a node at an address, whose kubelet is at a port, with a pod on it that is at podIP.
func (d *deputy) node(name, kind, address, port, podIP string) {
	d.admin.do("POST", "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q},"status":{"addresses":[{"type":%q,"address":%q}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%s}}}}`, name, kind, address, port), 201)
	d.admin.do("POST", "/api/v1/namespaces/demo/pods", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"nodeName":%[1]q,"containers":[{"name":"c","image":"i"}]}}`, name), 201)
	if podIP == "" {
		return
	}
	body := fmt.Sprintf(`{"status":{"phase":"Running","podIP":%[1]q,"podIPs":[{"ip":%[1]q}]}}`, podIP)
	d.patch("/api/v1/namespaces/demo/pods/"+name+"/status", body)
	d.admin.do("POST", "/api/v1/namespaces/demo/services", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"ports":[{"name":"web","port":443}]}}`, name), 201)
	family := "IPv4"
	if strings.Contains(podIP, ":") {
		family = "IPv6"
	}
	d.admin.do("POST", "/apis/discovery.k8s.io/v1/namespaces/demo/endpointslices", fmt.Sprintf(`{"metadata":{"name":"%[1]s-1","labels":{"kubernetes.io/service-name":%[1]q}},"addressType":%[4]q,
		"endpoints":[{"addresses":[%[2]q],"targetRef":{"kind":"Pod","namespace":"demo","name":%[1]q}}],"ports":[{"name":"web","port":%[3]s}]}`, name, podIP, port, family), 201)
}

func (d *deputy) patch(path, body string) {
	r, err := http.NewRequest("PATCH", d.URL()+path, strings.NewReader(body))
	must(d.admin.t, err)
	r.Header.Set("Content-Type", mergePatch)
	answer, err := d.admin.http.Do(r)
	must(d.admin.t, err)
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		text, _ := io.ReadAll(answer.Body)
		d.admin.t.Fatalf("PATCH %s: %d %s", path, answer.StatusCode, text)
	}
}

// forwarder connects what comes to its port to the server's, as NAT and load balancers do.
func (d *deputy) forwarder(t *testing.T) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", "127.0.0.1:"+d.port)
			if err != nil {
				from.Close()
				continue
			}
			go func() { _, _ = io.Copy(to, from); to.Close() }()
			go func() { _, _ = io.Copy(from, to); from.Close() }()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port
}

// machine is an IPv4 address at which others find this machine, and thus the server; "" if there is none.
func machine(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return ""
}

// refusal is in each error for an address of a server.
const refusal = "address not allowed"

// TestDeputyProxies has nodes, pods and Services at addresses of the server, in several forms. Whoever may
// use the proxies gets nothing through them, neither as the server nor as anybody.
func TestDeputyProxies(t *testing.T) {
	d := startDeputy(t)
	forms := []struct{ name, kind, address, port, podIP string }{
		{"loopback", "InternalIP", "127.0.0.1", d.port, ""},
		{"loopback6", "InternalIP", "::1", d.port, ""},
		{"unspecified", "InternalIP", "0.0.0.0", d.port, ""},
		{"unspecified6", "InternalIP", "::", d.port, ""},
		{"localhost", "Hostname", "localhost", d.port, ""},
		{"metadata", "InternalIP", "169.254.169.254", d.port, ""},
		{"metadata6", "InternalIP", "fe80::1", d.port, ""},
		{"service", "InternalIP", "10.96.0.1", "443", "10.96.0.1"},
	}
	if own := machine(t); own != "" {
		forms = append(forms, []struct{ name, kind, address, port, podIP string }{
			{"ip", "InternalIP", own, d.port, own},
			{"mapped", "InternalIP", "::ffff:" + own, d.port, ""},
			{"forwarded", "InternalIP", own, d.forwarder(t), own},
		}...)
	}
	config := configAs(t, d.Server, "prober")
	config.NextProtos = []string{"http/1.1"} // which upgrades need
	prober, err := clientrest.HTTPClientFor(config)
	must(t, err)
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			d.node(f.name, f.kind, f.address, f.port, f.podIP)
			ways := []string{
				"GET /api/v1/nodes/%s/proxy/caught", "GET /api/v1/nodes/%s/proxy/api/v1/secrets", "GET /api/v1/nodes/%s/proxy/plinth/backup",
				"GET /api/v1/nodes/https:%s:" + f.port + "/proxy/caught", "POST /api/v1/nodes/%s/proxy/caught",
				"GET /api/v1/namespaces/demo/pods/%s/log", "POST /api/v1/namespaces/demo/pods/%s/exec?command=x&stdout=1",
			}
			if f.podIP != "" {
				ways = append(ways, "GET /api/v1/namespaces/demo/pods/https:%s:"+f.port+"/proxy/caught",
					"POST /api/v1/namespaces/demo/pods/https:%s:"+f.port+"/proxy/caught",
					"GET /api/v1/namespaces/demo/services/https:%s:web/proxy/caught")
			}
			for _, way := range ways {
				method, path, _ := strings.Cut(fmt.Sprintf(way, f.name), " ")
				r, err := http.NewRequestWithContext(t.Context(), method, d.URL()+path, nil)
				must(t, err)
				if strings.Contains(path, "/exec") {
					r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}, "X-Stream-Protocol-Version": {"v4.channel.k8s.io"}}
				}
				answer, err := prober.Do(r)
				must(t, err)
				body, _ := io.ReadAll(answer.Body)
				answer.Body.Close()
				if answer.StatusCode < 400 || !strings.Contains(string(body), refusal) {
					t.Errorf("%s %s: %d %s", method, path, answer.StatusCode, body)
				}
			}
		})
	}
}

// TestDeputyNeighbours has a kubelet and a pod on the machine of the server, at other ports.
func TestDeputyNeighbours(t *testing.T) {
	d := startDeputy(t)
	k := kubelettest.Start(t, d.pki.CA())
	_, port, err := net.SplitHostPort(k.Listener.Addr().String())
	must(t, err)
	d.node("near", "InternalIP", "127.0.0.1", port, "")
	if body := d.admin.do("GET", "/api/v1/namespaces/demo/pods/near/log?container=c", "", 200); !strings.Contains(body, "first") {
		t.Errorf("log: %q", body)
	}
	own := machine(t)
	if own == "" {
		t.Log("no pod has an address on this machine")
		return
	}
	l, err := net.Listen("tcp", ":0")
	must(t, err)
	pod := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "here") }))
	pod.Listener.Close()
	pod.Listener = l
	pod.StartTLS()
	defer pod.Close()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	d.node("host", "InternalIP", own, port, own)
	for _, path := range []string{"pods/https:host:" + port, "services/https:host:web"} {
		if body := d.admin.do("GET", "/api/v1/namespaces/demo/"+path+"/proxy/", "", 200); body != "here" {
			t.Errorf("%s: %q", path, body)
		}
	}
}

// TestKubeletAsks asks what the caller of kubelets may do, as kubelets do.
func TestKubeletAsks(t *testing.T) {
	c := clientOf(t, start(t, Config{}))
	for what, want := range map[string]bool{
		`"verb":"get","resource":"nodes","subresource":"proxy"`:    true,
		`"verb":"create","resource":"nodes","subresource":"proxy"`: true,
		`"verb":"get","resource":"nodes","subresource":"log"`:      true,
		`"verb":"get","resource":"nodes","subresource":"metrics"`:  true,
		`"verb":"get","resource":"nodes","subresource":"stats"`:    true,
		`"verb":"get","resource":"secrets"`:                        false,
		`"verb":"create","resource":"pods"`:                        false,
		`"verb":"create","resource":"backups","group":"plinth.io"`: false,
	} {
		body := c.do("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
			`{"spec":{"user":"plinth-kubelet-client","groups":["system:authenticated"],"resourceAttributes":{`+what+`}}}`, 201)
		if strings.Contains(body, `"allowed":true`) != want {
			t.Errorf("%s: %s", what, body)
		}
	}
}

// TestDeputyWebhooks has admission and conversion webhooks lead to the server: by URL, by Services of
// each kind, and by a redirect.
func TestDeputyWebhooks(t *testing.T) {
	d := startDeputy(t)
	redirecting := httptest.NewTLSServer(http.RedirectHandler("https://127.0.0.1:"+d.port+"/caught", http.StatusTemporaryRedirect))
	defer redirecting.Close()
	services := "/api/v1/namespaces/demo/services"
	d.admin.do("POST", services, `{"metadata":{"name":"named"},"spec":{"type":"ExternalName","externalName":"localhost"}}`, 201)
	configs := map[string]string{
		"loopback":    `"url":"https://127.0.0.1:` + d.port + `/caught"`,
		"loopback6":   `"url":"https://[::1]:` + d.port + `/caught"`,
		"unspecified": `"url":"https://0.0.0.0:` + d.port + `/caught"`,
		"localhost":   `"url":"https://localhost:` + d.port + `/caught"`,
		"named":       `"service":{"namespace":"demo","name":"named","port":` + d.port + `,"path":"/caught"}`,
		"redirected":  `"url":"` + redirecting.URL + `"`,
		"itself":      `"service":{"namespace":"default","name":"kubernetes","path":"/caught"}`,
		"itself-url":  `"url":"https://kubernetes.default.svc:443/caught"`,
	}
	if own := machine(t); own != "" {
		d.admin.do("POST", services, `{"metadata":{"name":"sliced"},"spec":{"ports":[{"name":"web","port":443}]}}`, 201)
		d.admin.do("POST", "/apis/discovery.k8s.io/v1/namespaces/demo/endpointslices", fmt.Sprintf(`{"metadata":{"name":"sliced-1","labels":{"kubernetes.io/service-name":"sliced"}},"addressType":"IPv4",
			"endpoints":[{"addresses":[%q]}],"ports":[{"name":"web","port":%s}]}`, own, d.port), 201)
		configs["url"] = `"url":"https://` + own + `:` + d.port + `/caught"`
		configs["mapped"] = `"url":"https://[::ffff:` + own + `]:` + d.port + `/caught"`
		configs["sliced"] = `"service":{"namespace":"demo","name":"sliced","path":"/caught"}`
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			ca := d.ca
			if name == "redirected" {
				ca = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: redirecting.Certificate().Raw}))
			}
			config += `,"caBundle":"` + ca + `"`
			hook := fmt.Sprintf(`{"metadata":{"name":"hook"},"webhooks":[{"name":"hook.example.com","clientConfig":{%s},"sideEffects":"None","admissionReviewVersions":["v1"],
				"rules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}],"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"demo"}}}]}`, config)
			want := refusal
			if strings.HasPrefix(name, "itself") {
				want = "path of an extension server"
			}
			for _, kind := range []string{"validating", "mutating"} {
				path := "/apis/admissionregistration.k8s.io/v1/" + kind + "webhookconfigurations"
				d.admin.do("POST", path, hook, 201)
				code, _, body := apitest.Do(t, d.admin.http, "POST", d.URL()+"/api/v1/namespaces/demo/configmaps", `{"metadata":{"name":"a"}}`)
				if code != 500 || !strings.Contains(body, want) {
					t.Errorf("%s: %d %s", kind, code, body)
				}
				d.admin.do("DELETE", path+"/hook", "", 200)
			}
			if want == refusal {
				d.convert(t, name, config)
			}
		})
	}
}

// convert asks for an object in a version that needs the conversion webhook.
func (d *deputy) convert(t *testing.T, name, config string) {
	t.Helper()
	group := strings.ToLower(name) + ".example.com"
	definition := widgets(group, "v1", "v2")
	definition = strings.Replace(definition, `"scope":"Namespaced"`, `"scope":"Namespaced","conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{`+config+`}}}`, 1)
	d.admin.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, 201)
	path := func(version string) string { return "/apis/" + group + "/" + version + "/namespaces/demo/widgets" }
	apitest.Eventually(t, "the custom resource is served", func() bool {
		code, _, _ := apitest.Do(t, d.admin.http, "GET", d.URL()+path("v1"), "")
		return code == 200
	})
	d.admin.do("POST", path("v1"), `{"apiVersion":"`+group+`/v1","kind":"Widget","metadata":{"name":"w"}}`, 201)
	if code, _, body := apitest.Do(t, d.admin.http, "GET", d.URL()+path("v2")+"/w", ""); code != 500 || !strings.Contains(body, refusal) {
		t.Errorf("conversion: %d %s", code, body)
	}
}

// TestDeputyExtensions has an APIService lead to the server.
func TestDeputyExtensions(t *testing.T) {
	d := startDeputy(t)
	forwarded := d.forwarder(t)
	d.admin.do("POST", demoServices, `{"metadata":{"name":"named"},"spec":{"type":"ExternalName","externalName":"localhost"}}`, 201)
	services := map[string]string{
		"a": `{"namespace":"demo","name":"named","port":` + d.port + `}`, "b": `{"namespace":"demo","name":"named","port":` + forwarded + `}`,
	}
	if machine(t) != "" { // else the Service has no endpoint
		services["c"] = `{"namespace":"default","name":"kubernetes","port":443}`
	}
	for group, service := range services {
		name := "v1." + group + ".example.com"
		d.admin.do("POST", apiServices, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"group":%q,"version":"v1","groupPriorityMinimum":900,"versionPriority":15,
			"insecureSkipTLSVerify":true,"service":%s}}`, name, group+".example.com", service), 201)
		if message := d.admin.condition(name, "FailedDiscoveryCheck"); !strings.Contains(message, refusal) {
			t.Errorf("%s: %s", group, message)
		}
	}
}
