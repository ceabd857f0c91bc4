package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// repairing is a cluster whose addresses and ports a test takes, releases and repairs.
type repairing struct {
	*apitest.API
	t       *testing.T
	cluster *cluster.Cluster
	ports   *allocate.Ports
}

func openRepairing(t *testing.T) *repairing {
	return openRepairingOn(t, apitest.Open(t))
}

func openRepairingOn(t *testing.T, c *apitest.API) *repairing {
	bootstrap(t, c, here)
	ports := allocate.NewPorts(c.Store, utilnet.PortRange{Base: 30000, Size: 2768})
	return &repairing{c, t, open(t, c, here), ports}
}

// service creates a Service with a cluster IP, a node port and, after that, a health check port.
func (r *repairing) service(name, ip string, port int32) *corev1.Service {
	r.t.Helper()
	no := false
	svc, err := r.Client.CoreV1().Services("default").Create(r.t.Context(), &corev1.Service{
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
	if err := r.cluster.RepairOnce(r.t.Context(), grace); err != nil {
		r.t.Fatal(err)
	}
}

// address returns the Service that has an address; "" if the address is not taken.
func (r *repairing) address(ip string) string {
	r.t.Helper()
	a, err := r.Client.NetworkingV1().IPAddresses().Get(r.t.Context(), ip, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	} else if err != nil {
		r.t.Fatal(err)
	}
	return a.Spec.ParentRef.Namespace + "/" + a.Spec.ParentRef.Name
}

// reported returns the reasons of all events so far, sorted.
func (r *repairing) reported() string {
	r.t.Helper()
	list, err := r.Client.CoreV1().Events("").List(r.t.Context(), metav1.ListOptions{})
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
	if err := r.Client.NetworkingV1().IPAddresses().Delete(r.t.Context(), ip, metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repairing) takeAddress(ip, service string, labels map[string]string) {
	r.t.Helper()
	_, err := r.Client.NetworkingV1().IPAddresses().Create(r.t.Context(), &networkingv1.IPAddress{
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

// The repair writes nothing if all Services have their addresses and ports.
func TestRepairNothing(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	revision := r.Store.Revision()
	r.pass(0)
	if now := r.Store.Revision(); now != revision || r.reported() != "" {
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
	a, err := r.Client.NetworkingV1().IPAddresses().Get(t.Context(), "10.96.0.7", metav1.GetOptions{})
	if err != nil || a.Labels["ipaddress.kubernetes.io/managed-by"] != "ipallocator.k8s.io" {
		t.Errorf("without labels: %v %v", a, err)
	}
}

// Addresses and ports that were taken for a Service which was never stored are released, but not
// while the Service may still be stored.
func TestRepairLeaks(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	r.takeAddress("10.96.0.8", "nobody", managed)
	r.takeAddress("10.96.0.9", "a", managed)
	r.takeAddress("10.96.0.10", "nobody", map[string]string{"ipaddress.kubernetes.io/managed-by": "somebody"})
	for _, port := range []int{30100, 30101} {
		if err := r.ports.Take(t.Context(), port, owner([]string{"nobody", "a"}[port-30100])); err != nil {
			t.Fatal(err)
		}
	}
	r.pass(time.Minute)
	if r.address("10.96.0.8") == "" || r.address("10.96.0.9") == "" || !r.ports.IsTaken(30100) {
		t.Error("taken away too early")
	}
	r.pass(0)
	if r.address("10.96.0.8") != "" || r.address("10.96.0.9") != "" || r.ports.IsTaken(30100) || r.ports.IsTaken(30101) {
		t.Error("still taken")
	}
	if r.address("10.96.0.10") == "" {
		t.Error("an address was deleted that is managed by somebody else")
	}
	if r.address("10.96.0.7") == "" || !r.ports.IsTaken(30007) || !r.ports.IsTaken(30008) {
		t.Error("a Service lost what it has")
	}
	if got := r.reported(); got != "IPAddressNotAllocated IPAddressNotAllocated" {
		t.Errorf("reported %q", got)
	}
}

// The repair leaves addresses alone for longer than a request may take, whatever timeout the
// server is configured with.
func TestRepairGrace(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, time.Minute, time.Hour} {
		if grace := cluster.InTheMaking(timeout); grace <= timeout || grace < time.Minute {
			t.Errorf("requests take %v: what was taken %v ago is given back", timeout, grace)
		}
	}
}

func TestRepairPorts(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	if err := r.ports.Release(t.Context(), 30007, owner("a")); err != nil {
		t.Fatal(err)
	}
	if err := r.ports.Release(t.Context(), 30008, owner("a")); err != nil {
		t.Fatal(err)
	}
	if err := r.ports.Take(t.Context(), 30008, owner("nobody")); err != nil {
		t.Fatal(err)
	}
	r.pass(0)
	for _, port := range []int{30007, 30008} {
		if of, taken := r.ports.Get(port); !taken || of.Owner != owner("a") {
			t.Errorf("port %d: %v of %v", port, taken, of.Owner)
		}
	}
	if got := r.reported(); got != "PortNotAllocated PortNotAllocated" {
		t.Errorf("reported %q", got)
	}
}

// After the repair has read a Service, the Service may lose its address to another Service, which
// is not stored yet. The repair does not take the address away from the other Service.
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
			return r.Client.CoreV1().Services("default").Delete(t.Context(), svc.Name, metav1.DeleteOptions{})
		}},
		{"as it was", time.Minute, func(svc *corev1.Service) error {
			r.deleteAddress("10.96.0.7")
			return r.ports.Release(t.Context(), 30007, owner(svc.Name))
		}},
	} {
		svc := r.service("a", "10.96.0.7", 30007)
		ok(end.of(svc))
		r.takeAddress("10.96.0.7", "b", managed)
		ok(r.ports.Take(t.Context(), 30007, owner("b")))
		ok(r.cluster.RepairService(t.Context(), end.grace, svc))
		if got := r.address("10.96.0.7"); got != "default/b" {
			t.Errorf("%s: address of %q", end.name, got)
		}
		if port, _ := r.ports.Get(30007); port.Owner != owner("b") {
			t.Errorf("%s: port of %v", end.name, port.Owner)
		}
		r.deleteAddress("10.96.0.7")
		ok(r.ports.Release(t.Context(), 30007, owner("b")))
	}
}

// An address that two Services have is reported once and not repaired.
func TestRepairConflicts(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	r.deleteAddress("10.96.0.7")
	for _, port := range []int{30007, 30008} {
		if err := r.ports.Release(t.Context(), port, owner("a")); err != nil {
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
	r.cluster = open(t, r.API, withPorts(t, here, "31000-31099"))
	if err := r.Client.NetworkingV1().ServiceCIDRs().Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.pass(time.Minute)
	// Both Services, a and kubernetes, are out of the range.
	if got := r.reported(); got != "ClusterIPOutOfRange ClusterIPOutOfRange PortOutOfRange PortOutOfRange" {
		t.Errorf("reported %q", got)
	}
}

// If somebody deletes the IPAddress of a Service, the repair creates it again at once.
func TestRepairFollows(t *testing.T) {
	r := openRepairing(t)
	r.service("a", "10.96.0.7", 30007)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.cluster.Run(ctx)
	}()
	defer func() { cancel(); <-done }()
	for range 3 {
		r.deleteAddress("10.96.0.7")
		apitest.Eventually(t, "the address is back", func() bool { return r.address("10.96.0.7") == "default/a" })
	}
}

// sealed encrypts the objects of a resource. Without the key they cannot be read.
type sealed struct {
	prefix string
	keep   bool // the key is there
}

func (s sealed) ToStorage(_ context.Context, key string, value []byte) ([]byte, error) {
	if !strings.HasPrefix(key, s.prefix) {
		return value, nil
	}
	return append([]byte("sealed:"), value...), nil
}

func (s sealed) FromStorage(_ context.Context, _ string, stored []byte) ([]byte, bool, error) {
	value, is := bytes.CutPrefix(stored, []byte("sealed:"))
	if is && !s.keep {
		return nil, false, errors.New("the key is lost")
	}
	return value, false, nil
}

// A Service that cannot be decrypted keeps its address and port: nothing is repaired without it.
func TestRepairWaitsForKeys(t *testing.T) {
	for name, prefix := range map[string]string{
		"services": lister.ServicePrefix, "addresses": object.Prefix("networking.k8s.io", "ipaddresses"), "ranges": object.Prefix("networking.k8s.io", "servicecidrs"),
	} {
		t.Run(name, func(t *testing.T) {
			file := "sqlite://" + filepath.Join(t.TempDir(), "a.db")
			openWith := func(key bool) *repairing {
				store := storetest.Open(t, file, sqlstore.Options{Transformer: sealed{prefix, key}})
				return openRepairingOn(t, apitest.OpenOn(t, store))
			}
			again := func(r *repairing, key bool) *repairing {
				if err := r.Store.Close(); err != nil {
					t.Fatal(err)
				}
				return openWith(key)
			}
			r := openWith(true)
			r.service("a", "10.96.0.10", 30100)
			r = again(r, false)
			before := r.Store.Revision()
			if err := r.cluster.RepairOnce(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "the key is lost") {
				t.Errorf("without the key: %v", err)
			}
			if _, taken := r.ports.Get(30100); !taken || r.Store.Revision() != before {
				t.Errorf("something was repaired without the key: port taken: %v, %d changes", taken, r.Store.Revision()-before)
			}
			r = again(r, true)
			r.pass(0)
			if got := r.address("10.96.0.10"); got != "default/a" {
				t.Errorf("with the key: the address is %q's", got)
			}
		})
	}
}
