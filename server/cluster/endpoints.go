//lint:file-ignore SA1019 clients of the deprecated Endpoints still find the API by them

package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fromMemory reads an object without asking the database for a newer version. If there is one, the following
// write conflicts, and the retry reads it.
var fromMemory = metav1.GetOptions{ResourceVersion: "0"}

// attempts bounds how often a write that conflicts with another server's is tried again.
const attempts = 10

// Leave takes the server's address out of the kubernetes Service. It is for a server that
// stops while others of the same cluster go on.
func (c *Cluster) Leave(ctx context.Context) error {
	at := c.config.Here
	if !at.reachable() {
		return nil
	}
	other, err := newReplica(c.clients, c.config.Store, at, 3*c.config.Times.CheckReplicas).leave(ctx)
	if err != nil {
		return fmt.Errorf("leave the other servers: %w", err)
	}
	if other {
		return nil
	}
	return c.changeEndpoints(ctx, at.Port, anyPort, func(ips []string) []string {
		return slices.DeleteFunc(ips, func(ip string) bool { return ip == at.IP.String() })
	})
}

// beginEndpoint is ensureEndpoint for the start. It only logs the error if the database takes no writes, for
// example because its disk is full: the server can still serve reads and deletes, and Bootstrap runs again
// later.
func (c *Cluster) beginEndpoint(ctx context.Context) error {
	err := c.ensureEndpoint(ctx, c.config.Here, !c.begun)
	if apierrors.IsServiceUnavailable(err) {
		c.config.Logger.Warn("the endpoint of the kubernetes Service could not be brought up to date; it is tried again", "err", err)
		return nil
	}
	return err
}

// ensureEndpoint adds the server's address to the Service's endpoints, or makes it the only one if no other
// server is possible. As in kube-apiserver, servers that share a database write their port only when they
// start: servers with different ports would otherwise overwrite each other's port for ever.
func (c *clients) ensureEndpoint(ctx context.Context, at Address, atStart bool) error {
	if !at.reachable() {
		return nil
	}
	stays := anyPort
	if atStart || !at.shared() {
		stays = noPort
	}
	return c.changeEndpoints(ctx, at.Port, stays, func(ips []string) []string {
		if !at.shared() {
			ips = nil
		}
		if own := at.IP.String(); !slices.Contains(ips, own) {
			ips = append(ips, own)
		}
		slices.Sort(ips)
		return ips
	})
}

// reachable reports whether the address may be in an EndpointSlice: validation refuses loopback and
// unspecified addresses.
func (a Address) reachable() bool {
	return a.IP != nil && !a.IP.IsLoopback() && !a.IP.IsUnspecified()
}

// changeEndpoints applies change to the addresses of the Endpoints object and of the EndpointSlice of the
// same name, which newer clients read. All addresses have one port: the stored one if stays allows it, else
// port. Each write starts from the addresses in its own object, because another server may change the objects
// between the two writes, and one object is still written if the other cannot be.
func (c *clients) changeEndpoints(ctx context.Context, port int, stays func(int) bool, change func(ips []string) []string) (failed error) {
	for _, put := range []func(context.Context, int, func(int) bool, func([]string) []string) error{c.putEndpoints, c.putEndpointSlice} {
		if err := retryOnConflict(func() error { return put(ctx, port, stays, change) }); err != nil && failed == nil {
			failed = fmt.Errorf("endpoints of service %s: %w", serviceName, err)
		}
	}
	return failed
}

func anyPort(int) bool { return true }
func noPort(int) bool  { return false }

// retryOnConflict repeats write, which reads the object before it writes it, until it no longer conflicts
// with the write of another server.
func retryOnConflict(write func() error) (err error) {
	for range attempts {
		err = write()
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
	}
	return err
}

// Endpoints are deprecated in favour of EndpointSlices; clients still read both
func (c *clients) putEndpoints(ctx context.Context, port int, stays func(int) bool, change func(ips []string) []string) error {
	client := c.core.Endpoints(metav1.NamespaceDefault)
	current, err := client.Get(ctx, serviceName, fromMemory)
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, kubernetesEndpoints(port, change(nil)), metav1.CreateOptions{})
		return err
	} else if err != nil {
		return err
	}
	var ips []string
	for _, subset := range current.Subsets {
		for _, address := range subset.Addresses {
			ips = append(ips, address.IP)
		}
		if len(subset.Ports) == 1 && stays(int(subset.Ports[0].Port)) {
			port = int(subset.Ports[0].Port)
		}
	}
	want := kubernetesEndpoints(port, change(ips))
	if equality.Semantic.DeepEqual(current.Subsets, want.Subsets) {
		return nil
	}
	want.ObjectMeta = current.ObjectMeta
	_, err = client.Update(ctx, want, metav1.UpdateOptions{})
	return err
}

func kubernetesEndpoints(port int, ips []string) *corev1.Endpoints {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
		Name:      serviceName,
		Namespace: metav1.NamespaceDefault,
		// The slice is written here, so the mirroring controller must leave it alone.
		Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
	}}
	if len(ips) == 0 {
		return e
	}
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: portName, Port: int32(port), Protocol: corev1.ProtocolTCP}}}
	for _, ip := range ips {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: ip})
	}
	e.Subsets = append(e.Subsets, subset)
	return e
}

func (c *clients) putEndpointSlice(ctx context.Context, port int, stays func(int) bool, change func(ips []string) []string) error {
	client := c.discovery.EndpointSlices(metav1.NamespaceDefault)
	current, err := client.Get(ctx, serviceName, fromMemory)
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, kubernetesSlice(port, change(nil)), metav1.CreateOptions{})
		return err
	} else if err != nil {
		return err
	}
	var ips []string
	for _, endpoint := range current.Endpoints {
		ips = append(ips, endpoint.Addresses...)
	}
	if there := current.Ports; len(there) == 1 && there[0].Port != nil && stays(int(*there[0].Port)) {
		port = int(*there[0].Port)
	}
	want := kubernetesSlice(port, change(ips))
	if equality.Semantic.DeepEqual(current.Endpoints, want.Endpoints) && equality.Semantic.DeepEqual(current.Ports, want.Ports) {
		return nil
	}
	if current.AddressType == want.AddressType {
		want.ObjectMeta = current.ObjectMeta
		_, err = client.Update(ctx, want, metav1.UpdateOptions{})
		return err
	}
	// The type of addresses cannot be changed.
	if err := client.Delete(ctx, serviceName, metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err = client.Create(ctx, want, metav1.CreateOptions{})
	return err
}

func kubernetesSlice(port int, ips []string) *discoveryv1.EndpointSlice {
	name, number, protocol, ready := portName, int32(port), corev1.ProtocolTCP, true
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:      serviceName,
			Namespace: metav1.NamespaceDefault,
			Labels:    map[string]string{discoveryv1.LabelServiceName: serviceName},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &number, Protocol: &protocol}},
	}
	if len(ips) > 0 && !slices.ContainsFunc(ips, isIPv4) {
		s.AddressType = discoveryv1.AddressTypeIPv6
	}
	for _, ip := range ips {
		if isIPv4(ip) == (s.AddressType == discoveryv1.AddressTypeIPv4) {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			})
		}
	}
	return s
}

func isIPv4(ip string) bool { return net.ParseIP(ip).To4() != nil }
