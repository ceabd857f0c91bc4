package allocate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// portPrefix begins the keys of node ports in the log.
var portPrefix = object.Prefix(object.InternalGroup, "nodeports")

// Ports are the node ports in a store.
type Ports struct {
	Range utilnet.PortRange
	store *sqlstore.Store
}

// NewPorts returns the ports in store. Ports outside the range within are not allocated.
func NewPorts(store *sqlstore.Store, within utilnet.PortRange) *Ports {
	return &Ports{within, store}
}

// port is a taken port as it is in the log.
type port struct {
	Kind       string       `json:"kind"`
	APIVersion string       `json:"apiVersion"`
	Metadata   portMetadata `json:"metadata"`
	Spec       struct {
		ParentRef networkingv1.ParentReference `json:"parentRef"`
	} `json:"spec"`
}

type portMetadata struct {
	Name string `json:"name"`
}

func portKey(number int) string { return portPrefix + strconv.Itoa(number) }

// IsTaken reports whether a port is taken.
func (p *Ports) IsTaken(number int) bool { return p.store.Get(portKey(number)) != nil }

// Get returns a port if it is taken.
func (p *Ports) Get(number int) (t Taken, taken bool) {
	e := p.store.Get(portKey(number))
	if e == nil {
		return t, false
	}
	row, err := readPort(e)
	return Taken{number, row.Spec.ParentRef, time.UnixMilli(e.At), e}, err == nil
}

// Take takes a port. The error is portallocator.ErrAllocated if the port is taken.
func (p *Ports) Take(ctx context.Context, number int, owner networkingv1.ParentReference) error {
	row := port{Kind: "NodePort", APIVersion: "_plinth/v1", Metadata: portMetadata{strconv.Itoa(number)}}
	row.Spec.ParentRef = owner
	value, err := json.Marshal(row)
	if err != nil {
		return err
	}
	_, err = p.store.Commit(ctx, sqlstore.Change{Key: portKey(number), Value: value})
	var taken *sqlstore.ConflictError
	if errors.As(err, &taken) {
		return portallocator.ErrAllocated
	} else if err != nil {
		return fmt.Errorf("take port %d: %w", number, err)
	}
	return nil
}

// Release gives a port back if it is owner's.
func (p *Ports) Release(ctx context.Context, number int, owner networkingv1.ParentReference) error {
	if _, err := p.store.Sync(ctx); err != nil { // another server may have taken it
		return fmt.Errorf("give back port %d: %w", number, err)
	}
	err := p.store.Retry(ctx, portKey(number), func(error) bool { return false }, func(e *sqlstore.Entry) error {
		if e == nil {
			return nil
		}
		if row, err := readPort(e); err != nil || row.Spec.ParentRef != owner {
			return err
		}
		_, err := p.store.Commit(ctx, object.Tombstone(e))
		return err
	})
	if err != nil {
		return fmt.Errorf("give back port %d: %w", number, err)
	}
	return nil
}

// Taken is a port that was taken at one moment.
type Taken struct {
	Number int
	Owner  networkingv1.ParentReference
	Since  time.Time

	entry *sqlstore.Entry
}

// Each calls f with every port that is taken.
func (p *Ports) Each(ctx context.Context, f func(Taken)) error {
	from, to := changelog.RangeOf(portPrefix)
	return p.store.Current(portPrefix).Scan(ctx, from, to, func(e *sqlstore.Entry) bool {
		number, err := strconv.Atoi(strings.TrimPrefix(e.Key, portPrefix))
		row, bad := readPort(e)
		if err == nil && bad == nil {
			f(Taken{number, row.Spec.ParentRef, time.UnixMilli(e.At), e})
		}
		return true
	})
}

// Free gives a port back unless it has been given back since, even if its owner has taken it
// again.
func (p *Ports) Free(ctx context.Context, t Taken) error {
	if err := p.store.End(ctx, t.entry); err != nil {
		return fmt.Errorf("give back port %d: %w", t.Number, err)
	}
	return nil
}

func readPort(e *sqlstore.Entry) (row port, err error) {
	err = json.Unmarshal(e.Value, &row)
	return row, err
}
