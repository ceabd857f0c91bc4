package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Each server of a shared database has a Lease in kube-system, as each kube-apiserver has. It shows that the
// server is alive, and names the address that the server adds to the kubernetes Service. When the Lease has
// expired, the other servers remove that address. A server that is alone has no Lease, because its renewals
// would keep the database from ever being idle.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/1965-kube-apiserver-identity
const (
	// IdentityLabel is the label of these Leases.
	IdentityLabel = "apiserver.kubernetes.io/identity"
	identityValue = "kube-apiserver"
	addressNote   = "plinth.io/address"
	portNote      = "plinth.io/port" // the port at that address
	// These annotations are for plinth status: the release of plinth, the revision that reads saw when the
	// Lease was renewed, and for how long they had lacked the writes of other servers.
	versionNote  = "plinth.io/version"
	revisionNote = "plinth.io/revision"
	lagNote      = "plinth.io/lag"
	// TellNote is the address at which other servers notify this one of their writes; see package peers. A
	// server without it learns of writes in another way, or is of an older version.
	TellNote = "plinth.io/tell"
)

// replica maintains this server's Lease and watches those of the other servers.
type replica struct {
	*clients
	at     Address
	name   string // the name of its Lease
	ttl    time.Duration
	rounds int // so far
	begun  time.Time
	store  *sqlstore.Store
	// seen has the Leases of the other servers, and since when each is unchanged. The times are by this
	// server's clock, because the clocks of others may be wrong.
	seen map[string]observed
}

type observed struct {
	version string
	since   time.Time
}

// newReplica names the Lease after the host, as upstream does, and after address and port, because a host may
// have several servers. The Lease expires after ttl.
func newReplica(c *clients, store *sqlstore.Store, at Address, ttl time.Duration) *replica {
	host, _ := os.Hostname()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%v:%d", host, at.IP, at.Port))
	name := "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
	return &replica{clients: c, store: store, at: at, name: name, ttl: ttl, begun: time.Now()}
}

// replicaJob renews and checks the servers' Leases, which expire after three rounds without a renewal.
func (c *Cluster) replicaJob() job {
	every := c.config.Times.CheckReplicas
	return job{
		every: every, atOnce: true, do: newReplica(c.clients, c.config.Store, c.config.Here, 3*every).run,
		failed: "this server could not look after its Lease and the kubernetes Service; it is tried again",
	}
}

// run keeps this server's address in the kubernetes Service, and removes those of servers that have died.
// Every second call renews the server's own Lease.
func (r *replica) run(ctx context.Context) error {
	r.rounds++
	return r.round(ctx, r.rounds%2 == 1)
}

// round renews the server's own Lease if it is due, and reconciles the Service with all Leases.
func (r *replica) round(ctx context.Context, renew bool) (err error) {
	defer func() {
		if err != nil {
			r.seen = nil // the other servers may have been unable to renew their Leases, too
		}
	}()
	if renew {
		if err := r.renew(ctx); err != nil {
			return fmt.Errorf("renew lease %s: %w", r.name, err)
		}
	}
	live, err := r.readLeases(ctx)
	if err != nil {
		return fmt.Errorf("look for other servers: %w", err)
	}
	if !r.at.reachable() {
		return nil
	}
	return r.changeEndpoints(ctx, r.at.Port, live.has, func([]string) []string { return slices.Clone(live.ips) })
}

func (r *replica) renew(ctx context.Context) error {
	leases := r.coordination.Leases(metav1.NamespaceSystem)
	return retryOnConflict(func() error {
		lease, err := leases.Get(ctx, r.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = leases.Create(ctx, r.renewed(&coordinationv1.Lease{}), metav1.CreateOptions{})
		} else if err == nil {
			_, err = leases.Update(ctx, r.renewed(lease), metav1.UpdateOptions{})
		}
		return err
	})
}

func (r *replica) renewed(lease *coordinationv1.Lease) *coordinationv1.Lease {
	host, _ := os.Hostname()
	now, begun, seconds := metav1.NewMicroTime(time.Now()), metav1.NewMicroTime(r.begun), int32(max(r.ttl/time.Second, 1))
	lease.Namespace, lease.Name = metav1.NamespaceSystem, r.name
	lease.Labels = map[string]string{IdentityLabel: identityValue, corev1.LabelHostname: host}
	lease.Annotations = r.notes()
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &r.at.Identity, LeaseDurationSeconds: &seconds, AcquireTime: &begun, RenewTime: &now}
	return lease
}

// notes returns the annotations of the server's own Lease.
func (r *replica) notes() map[string]string {
	notes := map[string]string{
		versionNote: r.at.Version, revisionNote: strconv.FormatInt(r.store.Revision(), 10), lagNote: r.store.Lag().Round(time.Millisecond).String(),
	}
	if r.at.reachable() {
		notes[addressNote], notes[portNote] = r.at.IP.String(), strconv.Itoa(r.at.Port)
	}
	if r.at.Tell != nil {
		if address := r.at.Tell(); address != "" {
			notes[TellNote] = address
		}
	}
	return notes
}

// Other is another server of a shared database.
type Other struct {
	Identity string
	Tell     string // where others notify it of their writes; empty: it needs no notices

	address, port string
}

// Addresses returns the addresses at which clients find the server. An older release does not publish its
// port; port is then taken for it.
func (o Other) Addresses(port uint16) (all []netip.AddrPort) {
	if o.port != "" {
		if told, err := strconv.ParseUint(o.port, 10, 16); err == nil {
			port = uint16(told)
		}
	}
	if ip, err := netip.ParseAddr(o.address); err == nil {
		all = append(all, netip.AddrPortFrom(ip.Unmap(), port))
	}
	if at, err := netip.ParseAddrPort(o.Tell); err == nil {
		all = append(all, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
	}
	return all
}

// Others returns the other servers that have Leases, by the store, without SQL. The Lease of a dead server
// remains until another server notices that.
func Others(store *sqlstore.Store, identity string) (others []Other) {
	leases := object.Prefix(coordinationv1.GroupName, "leases")
	lister.Each(store, leases, leases+metav1.NamespaceSystem+"/", func(lease *coordinationv1.Lease) {
		holder := lease.Spec.HolderIdentity
		if lease.Labels[IdentityLabel] == identityValue && holder != nil && *holder != identity {
			others = append(others, Other{
				Identity: *holder, Tell: lease.Annotations[TellNote],
				address: lease.Annotations[addressNote], port: lease.Annotations[portNote],
			})
		}
	})
	return others
}

// liveServers are the servers whose Leases have not expired.
type liveServers struct {
	ips   []string // sorted
	ports []string // empty: an older release does not publish its port
}

// has reports whether one of the servers uses the port, or may use it.
func (l liveServers) has(port int) bool {
	return slices.Contains(l.ports, strconv.Itoa(port)) || slices.Contains(l.ports, "")
}

// readLeases returns the live servers that clients can reach. It deletes the expired Leases of other servers.
func (r *replica) readLeases(ctx context.Context) (live liveServers, err error) {
	leases := r.coordination.Leases(metav1.NamespaceSystem)
	all, err := leases.List(ctx, metav1.ListOptions{LabelSelector: IdentityLabel + "=" + identityValue})
	if err != nil {
		return live, err
	}
	seen := make(map[string]observed, len(all.Items))
	for _, lease := range all.Items {
		o := r.observe(&lease)
		if lease.Name != r.name && time.Since(o.since) > r.ttl {
			only := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}}
			if err := leases.Delete(ctx, lease.Name, only); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return live, err
			}
			continue
		}
		seen[lease.Name] = o
		if ip := lease.Annotations[addressNote]; ip != "" {
			live.ips, live.ports = append(live.ips, ip), append(live.ports, lease.Annotations[portNote])
		}
	}
	r.seen = seen
	slices.Sort(live.ips)
	live.ips = slices.Compact(live.ips)
	return live, nil
}

func (r *replica) observe(lease *coordinationv1.Lease) observed {
	if o, known := r.seen[lease.Name]; known && o.version == lease.ResourceVersion {
		return o
	}
	return observed{lease.ResourceVersion, time.Now()}
}

// leave deletes the server's Lease. other reports whether another server has the same address.
func (r *replica) leave(ctx context.Context) (other bool, err error) {
	leases := r.coordination.Leases(metav1.NamespaceSystem)
	if err := leases.Delete(ctx, r.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	live, err := r.readLeases(ctx)
	return slices.Contains(live.ips, r.at.IP.String()), err
}

// Replica is a server as its Lease describes it.
type Replica struct {
	Name     string // its identity
	Address  string // empty: other servers cannot reach it
	Version  string // empty: an older release
	Since    time.Time
	Seen     time.Time // when the Lease was renewed
	Revision int64
	Lag      time.Duration
}

// ReadReplica reads a Lease; ok is false if it does not belong to a server.
func ReadReplica(lease *coordinationv1.Lease) (r Replica, ok bool) {
	if lease.Labels[IdentityLabel] != identityValue || lease.Spec.HolderIdentity == nil || lease.Spec.RenewTime == nil {
		return r, false
	}
	r = Replica{
		Name: *lease.Spec.HolderIdentity, Address: lease.Annotations[addressNote], Version: lease.Annotations[versionNote],
		Since: lease.CreationTimestamp.Time, Seen: lease.Spec.RenewTime.Time,
	}
	if lease.Spec.AcquireTime != nil {
		r.Since = lease.Spec.AcquireTime.Time
	}
	r.Revision, _ = strconv.ParseInt(lease.Annotations[revisionNote], 10, 64)
	r.Lag, _ = time.ParseDuration(lease.Annotations[lagNote])
	return r, true
}
