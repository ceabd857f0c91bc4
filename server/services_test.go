package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
)

const (
	servicesPath  = "/api/v1/namespaces/default/services"
	addressesPath = "/apis/networking.k8s.io/v1/ipaddresses"
)

// wired is a server on which a test creates Services.
type wired struct {
	t      *testing.T
	client *http.Client
	url    string
}

func openWired(t *testing.T, c Config) *wired {
	s := start(t, c)
	return &wired{t, apitest.Admin(t, s), s.URL()}
}

// do sends a request; it may be called by any goroutine. Code 0 stands for no answer.
func (w *wired) do(method, path, body string) (code int, answer string) {
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Error(err)
		return 0, ""
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// shape has the fields of a Service that the tests compare: type, family policy and families,
// addresses, and ports.
type shape struct {
	Spec struct {
		Type                string   `json:"type"`
		ClusterIPs          []string `json:"clusterIPs"`
		IPFamilyPolicy      string   `json:"ipFamilyPolicy"`
		IPFamilies          []string `json:"ipFamilies"`
		HealthCheckNodePort int      `json:"healthCheckNodePort"`
		Ports               []struct {
			NodePort int `json:"nodePort"`
		} `json:"ports"`
	} `json:"spec"`
	Message string `json:"message"`
}

func shapeOf(t *testing.T, body string) (s shape) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return s
}

func (s shape) String() string {
	text := fmt.Sprintf("%s %v", s.Spec.Type, s.Spec.ClusterIPs)
	if s.Spec.IPFamilyPolicy != "" {
		text += fmt.Sprintf(" %s %v", s.Spec.IPFamilyPolicy, s.Spec.IPFamilies)
	}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			text += fmt.Sprintf(" :%d", p.NodePort)
		}
	}
	if s.Spec.HealthCheckNodePort != 0 {
		text += fmt.Sprintf(" health:%d", s.Spec.HealthCheckNodePort)
	}
	return text
}

// step is a request about the Service name and what kube-apiserver, with a range of
// 10.0.0.0/24, answers: the Service's shape, or a part of the message.
type step struct {
	method, name, spec string
	code               int
	want               string
}

func (w *wired) play(steps []step) {
	w.t.Helper()
	for i, s := range steps {
		path, query, _ := strings.Cut(s.name, "?")
		name, _, _ := strings.Cut(path, "/")
		url, body := servicesPath+"/"+path, s.spec
		switch s.method {
		case "POST":
			url, body = servicesPath, `{"metadata":{"name":"`+name+`"},"spec":`+s.spec+`}`
		case "PATCH":
			if strings.HasPrefix(s.spec, `{"type`) || strings.HasPrefix(s.spec, `{"cl`) || strings.HasPrefix(s.spec, `{"ip`) || strings.HasPrefix(s.spec, `{"ext`) {
				body = `{"spec":` + s.spec + `}`
			}
		case "ADDRESS":
			code, answer := w.do("GET", addressesPath+"/"+s.name, "")
			var a struct {
				Spec struct {
					ParentRef struct{ Name string } `json:"parentRef"`
				} `json:"spec"`
			}
			if err := json.Unmarshal([]byte(answer), &a); err != nil || code != s.code || a.Spec.ParentRef.Name != s.want {
				w.t.Errorf("%d: address %s: %d of %q, want %d of %q", i, s.name, code, a.Spec.ParentRef.Name, s.code, s.want)
			}
			continue
		}
		if query != "" {
			url += "?" + query
		}
		code, answer := w.do(s.method, url, body)
		got := shapeOf(w.t, answer)
		ok := code == s.code && (code >= 400 && strings.Contains(got.Message, s.want) || code < 400 && (s.want == "" || got.String() == s.want))
		if !ok {
			w.t.Errorf("%d: %s %s %s: %d %s %s, want %d %s", i, s.method, s.name, s.spec, code, got, got.Message, s.code, s.want)
		}
	}
}

const one = `"ports":[{"port":80}]`

// TestServices creates, changes and deletes Services of all types.
// https://kubernetes.io/docs/concepts/services-networking/service/
func TestServices(t *testing.T) {
	w := openWired(t, Config{ServiceClusterIPRange: []string{"10.0.0.0/24"}})
	w.play([]step{
		{"GET", "kubernetes", "", 200, "ClusterIP [10.0.0.1] SingleStack [IPv4]"},
		{"ADDRESS", "10.0.0.1", "", 200, "kubernetes"},

		{"POST", "a", `{"clusterIP":"10.0.0.200",` + one + `}`, 201, "ClusterIP [10.0.0.200] SingleStack [IPv4]"},
		{"ADDRESS", "10.0.0.200", "", 200, "a"},
		{"POST", "b", `{"clusterIP":"10.0.0.200",` + one + `}`, 422, `spec.clusterIPs: Invalid value: ["10.0.0.200"]: failed to allocate IP 10.0.0.200: provided IP is already allocated`},
		{"POST", "b", `{"clusterIP":"192.168.7.7",` + one + `}`, 422, "the provided network does not match the current range"},
		{"POST", "b", `{"clusterIP":"10.0.0.0",` + one + `}`, 422, "the provided network does not match the current range"},
		{"POST", "b", `{"clusterIP":"10.0.0.255",` + one + `}`, 422, "the provided network does not match the current range"},
		{"POST", "b", `{"clusterIP":"fd00::1",` + one + `}`, 422, "IPv6 is not configured on this cluster"},
		{"POST", "b", `{"clusterIPs":["10.0.0.201"],` + one + `}`, 422, "spec.clusterIP"},
		{"POST", "b", `{"ipFamilyPolicy":"RequireDualStack",` + one + `}`, 422, "this cluster is not configured for dual-stack services"},
		{"POST", "b", `{"ipFamilies":["IPv6"],` + one + `}`, 422, "not configured on this cluster"},
		{"POST", "prefer", `{"clusterIP":"10.0.0.204","ipFamilyPolicy":"PreferDualStack",` + one + `}`, 201, "ClusterIP [10.0.0.204] PreferDualStack [IPv4]"},
		{"POST", "headless", `{"clusterIP":"None","selector":{"a":"b"}}`, 201, "ClusterIP [None] SingleStack [IPv4]"},
		{"POST", "free", `{"clusterIP":"None"}`, 201, "ClusterIP [None] RequireDualStack [IPv4 IPv6]"},
		{"POST", "ext", `{"type":"ExternalName","externalName":"example.com"}`, 201, "ExternalName []"},

		{"POST", "np", `{"type":"NodePort","clusterIP":"10.0.0.206","ports":[{"port":80,"nodePort":30080}]}`, 201, "NodePort [10.0.0.206] SingleStack [IPv4] :30080"},
		{"POST", "b", `{"type":"NodePort","clusterIP":"10.0.0.207","ports":[{"port":80,"nodePort":30080}]}`, 422, "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"},
		{"ADDRESS", "10.0.0.207", "", 404, ""},
		{"POST", "b", `{"type":"NodePort","ports":[{"port":80,"nodePort":80}]}`, 422, "provided port is not in the valid range. The range of valid ports is 30000-32767"},
		{"POST", "both", `{"type":"NodePort","clusterIP":"10.0.0.208","ports":[{"name":"a","port":53,"nodePort":30053},{"name":"b","port":53,"protocol":"UDP","nodePort":30053}]}`, 201,
			"NodePort [10.0.0.208] SingleStack [IPv4] :30053 :30053"},
		{"PUT", "both", `{"metadata":{"name":"both"},"spec":{"type":"NodePort","ports":[{"name":"a","port":53},{"name":"b","port":53,"protocol":"UDP"}]}}`, 200,
			"NodePort [10.0.0.208] SingleStack [IPv4] :30053 :30053"},

		{"POST", "lb", `{"type":"LoadBalancer","clusterIP":"10.0.0.210","allocateLoadBalancerNodePorts":false,` + one + `}`, 201, "LoadBalancer [10.0.0.210] SingleStack [IPv4]"},
		{"POST", "local", `{"type":"LoadBalancer","clusterIP":"10.0.0.211","externalTrafficPolicy":"Local","healthCheckNodePort":30090,"allocateLoadBalancerNodePorts":false,` + one + `}`, 201,
			"LoadBalancer [10.0.0.211] SingleStack [IPv4] health:30090"},
		{"POST", "b", `{"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":30090,"allocateLoadBalancerNodePorts":false,` + one + `}`, 500,
			"failed to allocate requested HealthCheck NodePort 30090: provided port is already allocated"},
		{"PATCH", "local", `{"externalTrafficPolicy":"Cluster"}`, 200, "LoadBalancer [10.0.0.211] SingleStack [IPv4]"},
		{"PATCH", "lb", `{"externalTrafficPolicy":"Local","healthCheckNodePort":30090}`, 200, "LoadBalancer [10.0.0.210] SingleStack [IPv4] health:30090"},
		{"PATCH", "local", `{"externalTrafficPolicy":"Local","healthCheckNodePort":30090}`, 500, "provided port is already allocated"},

		{"POST", "dry?dryRun=All", `{"clusterIP":"10.0.0.220",` + one + `}`, 201, "ClusterIP [10.0.0.220] SingleStack [IPv4]"},
		{"POST", "dry?dryRun=All", `{` + one + `}`, 201, "ClusterIP [10.0.0.0] SingleStack [IPv4]"},
		{"POST", "dry?dryRun=All", `{"clusterIP":"11.0.0.220",` + one + `}`, 422, "is not in the valid range. The range of valid IPs is 10.0.0.0/24"},
		{"POST", "dry?dryRun=All", `{"type":"NodePort",` + one + `}`, 201, "NodePort [10.0.0.0] SingleStack [IPv4] :32769"},
		{"POST", "dry?dryRun=All", `{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}`, 422, "provided port is already allocated"},
		{"ADDRESS", "10.0.0.220", "", 404, ""},

		{"PATCH", "np", `{"type":"ClusterIP"}`, 200, "ClusterIP [10.0.0.206] SingleStack [IPv4]"},
		{"PATCH", "a", `{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}`, 200, "NodePort [10.0.0.200] SingleStack [IPv4] :30080"},
		{"PATCH", "np", `{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}`, 422, "provided port is already allocated"},
		{"PATCH", "np?dryRun=All", `{"type":"NodePort","ports":[{"port":80,"nodePort":30099}]}`, 200, "NodePort [10.0.0.206] SingleStack [IPv4] :30099"},
		{"PATCH", "np", `{"type":"NodePort","ports":[{"port":80,"nodePort":30099}]}`, 200, "NodePort [10.0.0.206] SingleStack [IPv4] :30099"},
		{"PATCH", "a", `{"clusterIP":"10.0.0.221","clusterIPs":["10.0.0.221"]}`, 422, "may not change once set"},
		{"PATCH", "a", `{"type":"ExternalName","externalName":"a.b","clusterIP":null,"clusterIPs":null}`, 200, "ExternalName []"},
		{"ADDRESS", "10.0.0.200", "", 404, ""},
		{"PATCH", "a", `{"type":"ClusterIP","externalName":null,"clusterIP":"10.0.0.200"}`, 200, "ClusterIP [10.0.0.200] SingleStack [IPv4]"},
		{"ADDRESS", "10.0.0.200", "", 200, "a"},

		{"PATCH", "np", `{"metadata":{"finalizers":["x.io/a"]}}`, 200, ""},
		{"DELETE", "np", "", 200, ""},
		{"ADDRESS", "10.0.0.206", "", 200, "np"},
		{"PATCH", "np/status", `{"metadata":{"finalizers":null}}`, 200, ""},
		{"ADDRESS", "10.0.0.206", "", 404, ""},
		{"DELETE", "a", "", 200, ""},
		{"ADDRESS", "10.0.0.200", "", 404, ""},
		{"POST", "again", `{"type":"NodePort","clusterIP":"10.0.0.206","ports":[{"port":80,"nodePort":30099}]}`, 201, "NodePort [10.0.0.206] SingleStack [IPv4] :30099"},
	})
}

func TestServicesOfTwoFamilies(t *testing.T) {
	w := openWired(t, Config{ServiceClusterIPRange: []string{"10.0.0.0/24", "fd00:10::/112"}})
	w.play([]step{
		{"GET", "kubernetes", "", 200, "ClusterIP [10.0.0.1] SingleStack [IPv4]"},
		{"POST", "a", `{"ipFamilyPolicy":"RequireDualStack","clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7","fd00:10::7"],` + one + `}`, 201,
			"ClusterIP [10.0.0.7 fd00:10::7] RequireDualStack [IPv4 IPv6]"},
		{"ADDRESS", "fd00:10::7", "", 200, "a"},
		{"POST", "b", `{"ipFamilyPolicy":"RequireDualStack","clusterIP":"10.0.0.8","clusterIPs":["10.0.0.8","fd00:10::7"],` + one + `}`, 422, "failed to allocate IP fd00:10::7"},
		{"ADDRESS", "10.0.0.8", "", 404, ""},
		{"PATCH", "a", `{"ipFamilyPolicy":"SingleStack"}`, 200, "ClusterIP [10.0.0.7] SingleStack [IPv4]"},
		{"ADDRESS", "fd00:10::7", "", 404, ""},
		{"PATCH", "a", `{"ipFamilyPolicy":"PreferDualStack","clusterIPs":["10.0.0.7","fd00:10::9"]}`, 200, "ClusterIP [10.0.0.7 fd00:10::9] PreferDualStack [IPv4 IPv6]"},
		{"PATCH", "a", `{"clusterIPs":["10.0.0.7"],"ipFamilies":["IPv4"]}`, 422, "must be 'SingleStack' to release the secondary cluster IP"},
		{"POST", "six", `{"ipFamilies":["IPv6"],"clusterIP":"fd00:10::a",` + one + `}`, 201, "ClusterIP [fd00:10::a] SingleStack [IPv6]"},
		{"DELETE", "a", "", 200, ""},
		{"ADDRESS", "10.0.0.7", "", 404, ""},
		{"ADDRESS", "fd00:10::9", "", 404, ""},
	})
	code, body := w.do("POST", servicesPath, `{"metadata":{"name":"any"},"spec":{"ipFamilyPolicy":"PreferDualStack",`+one+`}}`)
	if ips := shapeOf(t, body).Spec.ClusterIPs; code != 201 || len(ips) != 2 || !strings.HasPrefix(ips[0], "10.0.0.") || !strings.HasPrefix(ips[1], "fd00:10::") {
		t.Errorf("%d %v", code, ips)
	}
}

// TestServicesFull: a full range has no address until a Service is deleted or a ServiceCIDR is
// added.
func TestServicesFull(t *testing.T) {
	w := openWired(t, Config{ServiceClusterIPRange: []string{"10.0.0.0/29"}, ServiceNodePortRange: "30000-30002"})
	for i := range 5 { // of the 6 addresses the kubernetes Service has one
		if code, body := w.do("POST", servicesPath, fmt.Sprintf(`{"metadata":{"name":"a%d"},"spec":{%s}}`, i, one)); code != 201 {
			t.Fatalf("%d: %d %s", i, code, body)
		}
	}
	full := step{"POST", "b", `{` + one + `}`, 500, `Internal error occurred: failed to allocate a serviceIP for Service "b": range is full`}
	w.play([]step{full, {"DELETE", "a3", "", 200, ""}, {"POST", "b", `{` + one + `}`, 201, ""}, {"POST", "c", `{` + one + `}`, 500, "range is full"}})
	if code, body := w.do("POST", "/apis/networking.k8s.io/v1/servicecidrs", `{"metadata":{"name":"more"},"spec":{"cidrs":["10.7.0.0/29"]}}`); code != 201 {
		t.Fatal(body)
	}
	code, body := w.do("POST", servicesPath, `{"metadata":{"name":"c"},"spec":{`+one+`}}`)
	if ips := shapeOf(t, body).Spec.ClusterIPs; code != 201 || len(ips) != 1 || !strings.HasPrefix(ips[0], "10.7.0.") {
		t.Errorf("%d %v", code, ips)
	}
	for i := range 3 {
		w.play([]step{{"POST", fmt.Sprint("n", i), `{"type":"NodePort",` + one + `}`, 201, ""}})
	}
	w.play([]step{{"POST", "n", `{"type":"NodePort",` + one + `}`, 500, "failed to allocate a nodePort: range is full"}})
}

// TestServicesAtOnce creates many Services at once, through two servers of one database where there
// can be two. No address and no port is allocated twice, and Services that are refused or deleted
// keep none.
func TestServicesAtOnce(t *testing.T) {
	const services = 50
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		c := Config{DSN: d.Fresh(t), ServiceClusterIPRange: []string{"10.0.0.0/25"}, ServiceNodePortRange: "30000-30127"}
		servers := []*wired{openWired(t, c)}
		if d.Servers > 1 {
			servers = append(servers, openWired(t, c))
		}
		each := func(f func(w *wired, i int)) {
			var all sync.WaitGroup
			for i := range services {
				all.Go(func() { f(servers[i%len(servers)], i) })
			}
			all.Wait()
		}
		var mu sync.Mutex
		taken := map[string]int{}
		each(func(w *wired, i int) {
			code, body := w.do("POST", servicesPath, fmt.Sprintf(`{"metadata":{"name":"s%d"},"spec":{"type":"NodePort","ports":[{"name":"a","port":80},{"name":"b","port":81}]}}`, i))
			if code != 201 {
				t.Errorf("service %d: %d %s", i, code, body)
				return
			}
			s := shapeOf(t, body)
			mu.Lock()
			defer mu.Unlock()
			taken[s.Spec.ClusterIPs[0]]++
			taken[fmt.Sprint(s.Spec.Ports[0].NodePort)]++
			taken[fmt.Sprint(s.Spec.Ports[1].NodePort)]++
		})
		for what, n := range taken {
			if n != 1 {
				t.Errorf("%s was given out %d times", what, n)
			}
		}
		each(func(w *wired, i int) {
			if code, body := w.do("DELETE", fmt.Sprintf("%s/s%d", servicesPath, i), ""); code != 200 {
				t.Errorf("%d %s", code, body)
			}
		})
		got := 0
		each(func(w *wired, i int) { // one of them gets the address
			code, body := w.do("POST", servicesPath, fmt.Sprintf(`{"metadata":{"name":"t%d"},"spec":{"clusterIP":"10.0.0.100","ports":[{"port":80}]}}`, i))
			mu.Lock()
			defer mu.Unlock()
			if code == 201 {
				got++
			} else if code != 422 {
				t.Errorf("%d %s", code, body)
			}
		})
		if got != 1 {
			t.Errorf("%d Services have the same address", got)
		}
		_, body := servers[0].do("GET", addressesPath, "")
		var list struct{ Items []any }
		if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Items) != 2 {
			t.Errorf("%d addresses are taken, want that of the kubernetes Service and one: %v", len(list.Items), err)
		}
		each(func(w *wired, i int) { // all ports can be had again
			spec := fmt.Sprintf(`{"metadata":{"name":"u%d"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":%d}]}}`, i, 30000+i)
			if code, body := w.do("POST", servicesPath, spec); code != 201 {
				t.Errorf("port %d: %d %s", 30000+i, code, body)
			}
		})
	})
}
