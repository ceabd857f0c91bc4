package control_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/plinth-io/plinth/server/control"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
)

// repairing is a cluster with its own addresses and ports.
type repairing struct {
	*cluster
	t      *testing.T
	config control.Config
}

func openRepairing(t *testing.T) *repairing {
	c := openCluster(t)
	bootstrap(t, c, here)
	ports := allocate.NewPorts(c.store, utilnet.PortRange{Base: 30000, Size: 2768})
	return &repairing{c, t, control.Config{Client: c.config, Store: c.store, Kinds: c.kinds, Ports: ports, Logf: t.Logf}}
}

// service makes a Service that has an address, a node port and a health check's.
func (r *repairing) service(name, ip string, port int32) *corev1.Service {
	r.t.Helper()
	no := false
	svc, err := r.client.CoreV1().Services("default").Create(r.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIP: ip, AllocateLoadBalancerNodePorts: &no,
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, HealthCheckNodePort: port + 1,
			Ports: []corev1.ServicePort{{Port: 80, NodePort: port}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return svc
}

func (r *repairing) pass(grace time.Duration) {
	r.t.Helper()
	if err := control.RepairOnce(r.t.Context(), r.config, grace); err != nil {
		r.t.Fatal(err)
	}
}

// address is whose an address is; "" if it is nobody's.
func (r *repairing) address(ip string) string {
	r.t.Helper()
	a, err := r.client.NetworkingV1().IPAddresses().Get(r.t.Context(), ip, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return ""
	} else if err != nil {
		r.t.Fatal(err)
	}
	return a.Spec.ParentRef.Namespace + "/" + a.Spec.ParentRef.Name
}

// reported are the reasons of the events so far, sorted.
func (r *repairing) reported() string {
	r.t.Helper()
	list, err := r.client.CoreV1().Events("").List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	var reasons []string
	for _, e := range list.Items {
		reasons = append(reasons, e.Reason)
	}
	slices.Sort(reasons)
	return strings.Join(reasons, " ")
}

func (r *repairing) deleteAddress(ip string) {
	r.t.Helper()
	if err := r.client.NetworkingV1().IPAddresses().Delete(r.t.Context(), ip, metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repairing) takeAddress(ip, service string, labels map[string]string) {
	r.t.Helper()
	_, err := r.client.NetworkingV1().IPAddresses().Create(r.t.Context(), &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip, Labels: labels},
		Spec:       networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: service}},
	}, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
}

func owner(name string) networkingv1.ParentReference {
	return networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: name}
}

var managed = map[string]string{"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io", "ipaddress.kubernetes.io/ip-family": "IPv4"}

// Where all is in order nothing is written.
func TestRepairNothing(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	revision := r.store.Revision()
	r.pass(0)
	if now := r.store.Revision(); now != revision || r.reported() != "" {
		t.Errorf("revision %d, was %d, reported %q", now, revision, r.reported())
	}
}

func TestRepairAddresses(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	r.deleteAddress("10.96.0.7")
	r.pass(time.Minute)
	if got := r.address("10.96.0.7"); got != "default/a" || r.reported() != "ClusterIPNotAllocated" {
		t.Errorf("missing: of %q, reported %q", got, r.reported())
	}
	r.deleteAddress("10.96.0.7")
	r.takeAddress("10.96.0.7", "nobody", managed)
	r.pass(0)
	if got := r.address("10.96.0.7"); got != "default/a" {
		t.Errorf("somebody else's: of %q", got)
	}
	r.deleteAddress("10.96.0.7")
	r.takeAddress("10.96.0.7", "a", nil)
	r.pass(time.Minute)
	a, err := r.client.NetworkingV1().IPAddresses().Get(t.Context(), "10.96.0.7", metav1.GetOptions{})
	if err != nil || a.Labels["ipaddress.kubernetes.io/managed-by"] != "ipallocator.k8s.io" {
		t.Errorf("without labels: %v %v", a, err)
	}
}

// What was taken for a Service that never came is given back, but not before it could come.
func TestRepairLeaks(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	r.takeAddress("10.96.0.8", "nobody", managed)
	r.takeAddress("10.96.0.9", "a", managed)
	r.takeAddress("10.96.0.10", "nobody", map[string]string{"ipaddress.kubernetes.io/managed-by": "somebody"})
	for _, port := range []int{30100, 30101} {
		if err := r.config.Ports.Take(t.Context(), port, owner([]string{"nobody", "a"}[port-30100])); err != nil {
			t.Fatal(err)
		}
	}
	r.pass(time.Minute)
	if r.address("10.96.0.8") == "" || r.address("10.96.0.9") == "" || !r.config.Ports.IsTaken(30100) {
		t.Error("taken away too early")
	}
	r.pass(0)
	if r.address("10.96.0.8") != "" || r.address("10.96.0.9") != "" || r.config.Ports.IsTaken(30100) || r.config.Ports.IsTaken(30101) {
		t.Error("still taken")
	}
	if r.address("10.96.0.10") == "" {
		t.Error("an address was deleted that is managed by somebody else")
	}
	if r.address("10.96.0.7") == "" || !r.config.Ports.IsTaken(30007) || !r.config.Ports.IsTaken(30008) {
		t.Error("a Service lost what it has")
	}
	if got := r.reported(); got != "IPAddressNotAllocated IPAddressNotAllocated" {
		t.Errorf("reported %q", got)
	}
}

// A server may be told to let requests take long.
func TestRepairGrace(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, time.Minute, time.Hour} {
		if grace := control.InTheMaking(timeout); grace <= timeout || grace < time.Minute {
			t.Errorf("requests take %v: what was taken %v ago is given back", timeout, grace)
		}
	}
}

func TestRepairPorts(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	if err := r.config.Ports.Release(t.Context(), 30007, owner("a")); err != nil {
		t.Fatal(err)
	}
	if err := r.config.Ports.Release(t.Context(), 30008, owner("a")); err != nil {
		t.Fatal(err)
	}
	if err := r.config.Ports.Take(t.Context(), 30008, owner("nobody")); err != nil {
		t.Fatal(err)
	}
	r.pass(0)
	for _, port := range []int{30007, 30008} {
		if of, taken := r.config.Ports.Get(port); !taken || of.Owner != owner("a") {
			t.Errorf("port %d: %v of %v", port, taken, of.Owner)
		}
	}
	if got := r.reported(); got != "PortNotAllocated PortNotAllocated" {
		t.Errorf("reported %q", got)
	}
}

// What a Service had when the repair read it may be another's by the time it comes to it, who
// has taken it and is not stored yet.
func TestRepairStale(t *testing.T) {
	r := openRepairing(t)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range []struct {
		name  string
		grace time.Duration
		of    func(svc *corev1.Service) error
	}{
		{"deleted", 0, func(svc *corev1.Service) error {
			return r.client.CoreV1().Services("default").Delete(t.Context(), svc.Name, metav1.DeleteOptions{})
		}},
		{"as it was", time.Minute, func(svc *corev1.Service) error {
			r.deleteAddress("10.96.0.7")
			return r.config.Ports.Release(t.Context(), 30007, owner(svc.Name))
		}},
	} {
		svc := r.service("a", "10.96.0.7", 30007)
		ok(end.of(svc))
		r.takeAddress("10.96.0.7", "b", managed)
		ok(r.config.Ports.Take(t.Context(), 30007, owner("b")))
		ok(control.RepairService(t.Context(), r.config, end.grace, svc))
		if got := r.address("10.96.0.7"); got != "default/b" {
			t.Errorf("%s: address of %q", end.name, got)
		}
		if port, _ := r.config.Ports.Get(30007); port.Owner != owner("b") {
			t.Errorf("%s: port of %v", end.name, port.Owner)
		}
		r.deleteAddress("10.96.0.7")
		ok(r.config.Ports.Release(t.Context(), 30007, owner("b")))
	}
}

// What two Services have is told once, and left to people.
func TestRepairConflicts(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	r.deleteAddress("10.96.0.7")
	for _, port := range []int{30007, 30008} {
		if err := r.config.Ports.Release(t.Context(), port, owner("a")); err != nil {
			t.Fatal(err)
		}
	}
	r.service("b", "10.96.0.7", 30007)
	for range 2 {
		r.pass(0)
	}
	if got := r.reported(); got != "ClusterIPAlreadyAllocated PortAlreadyAllocated PortAlreadyAllocated" {
		t.Errorf("reported %q", got)
	}
	if got := r.address("10.96.0.7"); got != "default/b" {
		t.Errorf("address of %q", got)
	}
}

func TestRepairOutOfRange(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	r.config.Ports = allocate.NewPorts(r.store, utilnet.PortRange{Base: 31000, Size: 100})
	if err := r.client.NetworkingV1().ServiceCIDRs().Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.pass(time.Minute)
	// Both Services, a and kubernetes, are out of the range.
	if got := r.reported(); got != "ClusterIPOutOfRange ClusterIPOutOfRange PortOutOfRange PortOutOfRange" {
		t.Errorf("reported %q", got)
	}
}

// An address that is deleted under its Service is back at once.
func TestRepairFollows(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		control.RepairServices(ctx, r.config, time.Hour, time.Minute)
	}()
	defer func() { cancel(); <-done }()
	for range 3 {
		r.deleteAddress("10.96.0.7")
		eventually(t, "the address is back", func() bool { return r.address("10.96.0.7") == "default/a" })
	}
}
