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

// Each server of a shared database has a Lease in kube-system by which it is known to be
// there, as each kube-apiserver has, and which names the address that it adds to the
// kubernetes Service. The others take a server that has died out of the Service when its Lease
// has expired. A server that is alone has no Lease: its database would never be idle.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/1965-kube-apiserver-identity
const (
	// IdentityLabel is that of these Leases.
	IdentityLabel = "apiserver.kubernetes.io/identity"
	identityValue = "kube-apiserver"
	addressNote   = "plinth.io/address"
	portNote      = "plinth.io/port" // at that address
	// What plinth status shows of a server: the release of plinth, the revision that reads saw when the
	// Lease was renewed, and for how long they lacked what others had written.
	versionNote  = "plinth.io/version"
	revisionNote = "plinth.io/revision"
	lagNote      = "plinth.io/lag"
	// TellNote says where the others tell this server that they have written, see package peers. A
	// server without it hears of that otherwise, or is of an older version.
	TellNote = "plinth.io/tell"
)

// replica is one server among those of the database.
type replica struct {
	*clients
	at     Address
	name   string // of its Lease
	ttl    time.Duration
	rounds int // so far
	begun  time.Time
	store  *sqlstore.Store
	// seen are the Leases of the others, and since when they are as they are. The clock is
	// this server's own: those of others may be wrong.
	seen map[string]observed
}

type observed struct {
	version string
	since   time.Time
}

// newReplica names the Lease after the host, as upstream does, and after the address and port,
// because a host may have several servers. Leases expire after ttl.
func newReplica(c *clients, store *sqlstore.Store, at Address, ttl time.Duration) *replica {
	host, _ := os.Hostname()
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%v:%d", host, at.IP, at.Port))
	name := "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
	return &replica{clients: c, store: store, at: at, name: name, ttl: ttl, begun: time.Now()}
}

// replicaJob keeps the servers' Leases, which expire after three rounds without a renewal.
func (c *Cluster) replicaJob() job {
	every := c.config.Times.CheckReplicas
	return job{
		every: every, atOnce: true, do: newReplica(c.clients, c.config.Store, c.config.Here, 3*every).run,
		failed: "this server could not look after its Lease and the kubernetes Service; it is tried again",
	}
}

// run keeps this server's address in the kubernetes Service and takes out those of servers
// that have died. It renews the server's own Lease every other time.
func (r *replica) run(ctx context.Context) error {
	r.rounds++
	return r.round(ctx, r.rounds%2 == 1)
}

// round renews the server's own Lease, if that is due, and brings the Service in line with all.
func (r *replica) round(ctx context.Context, renew bool) (err error) {
	defer func() {
		if err != nil {
			r.seen = nil // the others may not have been able to renew theirs either
		}
	}()
	if renew {
		if err := r.renew(ctx); err != nil {
			return fmt.Errorf("renew lease %s: %w", r.name, err)
		}
	}
	live, err := r.look(ctx)
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

// notes are the annotations of the server's own Lease.
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
	Tell     string // where it is told that others have written; empty: it need not be told

	address, port string
}

// Addresses are those at which clients find the server. Where an older one does not tell its port, it is
// taken to have the one that is given.
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

// Others returns the other servers that have Leases, as far as the store knows, which runs no SQL. The
// Lease of one that has died is there until somebody notices.
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

// liveServers are those that are there.
type liveServers struct {
	ips   []string // sorted
	ports []string // empty: that of an older release, which does not tell it
}

// has tells whether one of the servers has the port, or may have it.
func (l liveServers) has(port int) bool {
	return slices.Contains(l.ports, strconv.Itoa(port)) || slices.Contains(l.ports, "")
}

// look returns the live servers that clients can reach. It deletes the expired Leases of others.
func (r *replica) look(ctx context.Context) (live liveServers, err error) {
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

// leave gives up the server's Lease. other tells whether another server has its address.
func (r *replica) leave(ctx context.Context) (other bool, err error) {
	leases := r.coordination.Leases(metav1.NamespaceSystem)
	if err := leases.Delete(ctx, r.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	live, err := r.look(ctx)
	return slices.Contains(live.ips, r.at.IP.String()), err
}

// Replica is a server as its Lease tells of it.
type Replica struct {
	Name     string // its identity
	Address  string // empty: others cannot reach it
	Version  string // empty: an older release
	Since    time.Time
	Seen     time.Time // when the Lease was renewed
	Revision int64
	Lag      time.Duration
}

// ReadReplica reads a Lease; ok is false if it is not that of a server.
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
