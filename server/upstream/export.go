package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/encryption"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Export writes the objects of a log as they were at one revision, in the form in which a kube-apiserver
// stores them. Other programs may write to the log at the same time.
type Export struct {
	From   changelog.Log
	Layout *Layout
	// Encryption decrypts the values of the log, and encrypts them again for the kube-apiserver.
	Encryption *encryption.Providers
	// EventTTL is the lifetime of Events after their last change. Not positive: for ever.
	EventTTL time.Duration
	// Progress, which may be nil, is called with the number of objects written so far, and of all rows.
	Progress func(objects, of int64)
	// Abandoning, which may be nil, is called with the error before written objects are removed again.
	Abandoning func(error)

	encodings encodings
	head      int64 // the revision that is exported
	rows      int64 // the number of rows at head
	start     time.Time
	tally     *exportTally
}

// ErrLogCompacted means that the log no longer has the revision that Survey has chosen.
var ErrLogCompacted = errors.New("the database was compacted while it was read, because it serves many changes or keeps little history; stop plinth, then export again")

// ErrNoObjects means that there is nothing to export.
var ErrNoObjects = errors.New("the database holds no objects")

// Target is an etcd, or a file for one, that has no keys below the prefix. Its methods have one caller at a
// time.
type Target interface {
	// Put writes keys that do not exist yet.
	Put(ctx context.Context, items []Item) error
	// Finish makes the written keys durable. head is the revision of the log. It returns the newest revision
	// of the etcd.
	Finish(ctx context.Context, head int64) (revision int64, err error)
	// Abandon is called instead of Finish and removes all written keys. After Finish it does nothing.
	Abandon(ctx context.Context) error
}

// Item is an object for a Target.
type Item struct {
	Pair
	Revision, CreateRevision int64     // in the log
	Expires                  time.Time // zero: never
}

// Survey reads all rows once, before anything is written: it learns the custom resources, and finds out
// whether everything can be decrypted. Call it before Run.
func (ex *Export) Survey(ctx context.Context) (err error) {
	if ex.encodings, err = encodingsOf(ex.Layout); err != nil {
		return err
	}
	if ex.From.Kind() != changelog.KindAPI {
		return fmt.Errorf("%w: only the objects of a Kubernetes API are exported", changelog.ErrKind)
	}
	if err := changelog.HalfCopied(ctx, ex.From); err != nil {
		return err
	}
	head, err := ex.From.Head(ctx)
	if err != nil {
		return err
	}
	ex.head, ex.start = head.Revision, time.Now()
	sealed := &SealedError{}
	err = ex.each(ctx, func(rows []changelog.Row) error {
		for _, r := range rows {
			ex.rows++
			if err := ex.checkRow(ctx, r); err != nil {
				if sealed.Keys++; sealed.Keys == 1 {
					sealed.First, sealed.Err = r.Key, err
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case ex.rows == 0:
		return ErrNoObjects
	case sealed.Keys > 0:
		return sealed
	}
	return nil
}

// checkRow returns an error if a value cannot be decrypted. It learns a custom resource from its definition.
func (ex *Export) checkRow(ctx context.Context, r changelog.Row) error {
	plain, _, err := ex.Encryption.FromStorage(ctx, r.Key, r.Value)
	if err == nil && object.ResourceOf(r.Key) == object.Prefix(definitions.Group, definitions.Resource) {
		_ = ex.Layout.Define(plain) // Run reports what is wrong with a definition
	}
	return err
}

// each calls f with pages of all rows, in the order of keys.
func (ex *Export) each(ctx context.Context, f func([]changelog.Row) error) error {
	for next := ""; ; {
		rows, err := ex.From.State(ctx, next, changelog.End, ex.head, pagePairs)
		if errors.Is(err, changelog.ErrCompacted) {
			return ErrLogCompacted
		}
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := f(rows); err != nil {
			return err
		}
		if !changelog.Full(rows, pagePairs) {
			return nil
		}
		next = rows[len(rows)-1].Key + "\x00"
	}
}

// Run writes the objects to an empty target. The report lists objects that cannot be written. After an error
// the target is empty again, unless the error says otherwise.
func (ex *Export) Run(ctx context.Context, to Target) (ExportReport, error) {
	ex.tally = newExportTally()
	revision, err := ex.write(ctx, to)
	if err != nil {
		if ex.Abandoning != nil {
			ex.Abandoning(err)
		}
		err = errors.Join(err, to.Abandon(context.WithoutCancel(ctx)))
	}
	return ex.tally.report(ex.head, revision), err
}

// Try is Run without a target: it only makes the report.
func (ex *Export) Try(ctx context.Context) (ExportReport, error) { return ex.Run(ctx, discard{}) }

// discard is a Target that discards everything.
type discard struct{}

func (discard) Put(context.Context, []Item) error { return nil }

func (discard) Finish(context.Context, int64) (int64, error) { return 0, nil }

func (discard) Abandon(context.Context) error { return nil }

func (ex *Export) write(ctx context.Context, to Target) (revision int64, err error) {
	err = ex.each(ctx, func(rows []changelog.Row) error {
		items, err := ex.convertPage(ctx, rows)
		if err != nil {
			return err
		}
		if err := to.Put(ctx, items); err != nil {
			return err
		}
		if ex.Progress != nil {
			ex.Progress(ex.tally.objects, ex.rows)
		}
		return ctx.Err() // checked after the last page, too
	})
	if err != nil {
		return 0, err
	}
	return to.Finish(ctx, ex.head)
}

// exported is the result of converting one row.
type exported struct {
	item      Item
	of        schema.GroupResource
	converted string // its version, if that differs from the log's
	err       error  // why it is skipped
}

// convertPage converts rows on all processors.
func (ex *Export) convertPage(ctx context.Context, rows []changelog.Row) ([]Item, error) {
	outcomes := make([]exported, len(rows))
	var group errgroup.Group
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() error {
			for i := w; i < len(rows) && ctx.Err() == nil; i += workers {
				outcomes[i] = ex.convert(ctx, rows[i])
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	items := make([]Item, 0, len(rows))
	for i, o := range outcomes {
		var left *LeftOut
		switch {
		case errors.As(o.err, &left):
			ex.tally.leftOut[left.Why] = append(ex.tally.leftOut[left.Why], rows[i].Key)
		case o.err != nil:
			ex.tally.notWritten[o.err.Error()] = append(ex.tally.notWritten[o.err.Error()], rows[i].Key)
		default:
			ex.tally.wrote(o.of, o.converted)
			items = append(items, o.item)
		}
	}
	return items, nil
}

func (ex *Export) convert(ctx context.Context, r changelog.Row) (o exported) {
	at, err := ex.Layout.findStored(r.Key)
	if err != nil {
		o.err = err
		return o
	}
	o.of = at.resource.name
	o.item = Item{Pair: Pair{Key: ex.Layout.key(at)}, Revision: r.Revision, CreateRevision: r.CreateRevision}
	if at.resource.name == events && ex.EventTTL > 0 {
		o.item.Expires = time.UnixMilli(r.At).Add(ex.EventTTL)
		if !o.item.Expires.After(ex.start) {
			o.err = &LeftOut{whyExpired}
			return o
		}
	}
	plain, _, err := ex.Encryption.FromStorage(ctx, r.Key, r.Value)
	if err != nil {
		o.err = err
		return o
	}
	if why := at.ownReason(plain); why != "" {
		o.err = &LeftOut{why}
		return o
	}
	value, converted, err := ex.encodings.encode(at, plain)
	if err != nil {
		o.err = err
		return o
	}
	o.converted = converted
	o.item.Value, o.err = ex.Encryption.ToUpstream(ctx, at.resource.name, o.item.Key, value)
	return o
}

// Reasons for leaving out rows.
const (
	whyInternal = "plinth's own notes, such as node ports and public keys of tokens"
	whyExpired  = "Events that have expired"
	whyHistory  = "the API group " + historyv1.GroupName + ", which is plinth's own"
	whyServers  = "Leases of plinth's servers"
	whyKubelets = "the rights of plinth's certificate for kubelets"
)

var (
	events       = schema.GroupResource{Resource: "events"}
	leases       = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	apiServices  = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
	clusterRoles = schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}
	roleBindings = schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"}
)

const (
	ownRole  = "plinth:aggregate-to-view" // adds plinth's API group to the role view
	ownLease = "plinth-controllers"       // held by the server whose controllers run
	kubelets = "plinth:kubelet-client"    // binds a role to plinth's user at kubelets
)

// ownReason returns why an object that plinth has made for itself is left out; "" for other objects.
func (p place) ownReason(stored []byte) (why string) {
	switch p.resource.name {
	case clusterRoles:
		if p.name == ownRole {
			return whyHistory
		}
	case roleBindings:
		if p.name == kubelets {
			return whyKubelets
		}
	case apiServices:
		if strings.HasSuffix(p.name, "."+historyv1.GroupName) {
			return whyHistory
		}
	case leases:
		if p.namespace == metav1.NamespaceSystem && (p.name == ownLease || isServer(stored)) {
			return whyServers
		}
	}
	return ""
}

// isServer reports whether a Lease is that of a server, upstream's or plinth's.
func isServer(stored []byte) bool {
	var lease struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	return json.Unmarshal(stored, &lease) == nil && lease.Metadata.Labels["apiserver.kubernetes.io/identity"] != ""
}

// findStored returns the place of the object with a key of plinth's log.
func (l *Layout) findStored(key string) (place, error) {
	prefix := object.ResourceOf(key)
	group, plural := object.SplitPrefix(prefix)
	if group == object.InternalGroup {
		return place{}, &LeftOut{whyInternal}
	}
	r := l.byName[schema.GroupResource{Group: group, Resource: plural}]
	if r == nil {
		return place{}, fmt.Errorf("neither Kubernetes %s nor a CustomResourceDefinition has a resource %s of group %q", release, plural, group)
	}
	return r.split(strings.TrimPrefix(key, prefix))
}

// key returns the object's key in the etcd.
func (l *Layout) key(p place) string {
	return object.Key(l.prefix+p.path, p.namespace, p.name)
}
