package ui

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/plinth-io/plinth/server/cluster"
	serverstatus "github.com/plinth-io/plinth/server/status"
)

// serverPage is how the server and its database are. Each part may be one that the visitor may not read, or that only
// plinth has.
type serverPage struct {
	*visit
	*serverstatus.Status
	Fault        *explained
	Resources    []resourceUse
	Certificates []certificate
	Bytes        int64 // of all resources

	Figures      *figures
	FiguresFault *explained
	Address      string // of the figures

	Backup      *backupTurn
	BackupFault *explained
}

// resourceUse is what the objects of a resource take.
type resourceUse struct {
	serverstatus.Resource
	Share float64 // of what the largest one takes, in percent
	Known bool    // it has a page
}

// certificate is one of the data directory.
type certificate struct {
	Name string
	End  time.Time
	Over bool
	Soon bool // over within soon
}

const (
	soon = 30 * 24 * time.Hour
	// firstResources are those that are shown at once.
	firstResources = 12
)

// First and Rest are the resources that are shown at once, and those that one asks for.
func (b *serverPage) First() []resourceUse {
	return b.Resources[:min(firstResources, len(b.Resources))]
}

// Rest are the others.
func (b *serverPage) Rest() []resourceUse { return b.Resources[min(firstResources, len(b.Resources)):] }

// Live is how many rows are of objects that are there.
func (b *serverPage) Live() int64 { return b.Database.Rows - b.Database.Dead }

// KeptShare is how much of what --keep-size allows is used, in percent.
func (b *serverPage) KeptShare() float64 {
	d := b.Database.Size
	if d.KeptBytes == nil || d.KeptBound == 0 {
		return 0
	}
	return min(100, 100*float64(*d.KeptBytes)/float64(d.KeptBound))
}

// Lasts tells whether a fault is not over.
func (b *serverPage) Lasts(f serverstatus.Fault) bool { return f.Until.IsZero() }

// server shows how the server is. Its three requests run at once.
func (v *visit) server() error {
	b := &serverPage{visit: v, Address: v.link("server/figures")}
	var asked sync.WaitGroup
	asked.Go(func() { b.Figures, b.FiguresFault = faultOf(v.conn.figures(v.ctx())) })
	asked.Go(func() { b.Backup, b.BackupFault = faultOf(b.backupTurn()) })
	b.Status, b.Fault = faultOf(v.status())
	asked.Wait()
	for _, fault := range []*explained{b.Fault, b.FiguresFault} {
		if fault != nil && fault.Code == http.StatusForbidden {
			fault.Advice = "The ClusterRole system:monitoring gives this right."
		}
	}
	if b.Status != nil {
		b.fill()
	}
	return v.show("server.html", page{Title: "Server", Nav: "server", Body: b})
}

// faultOf explains the error of a part of the page.
func faultOf[T any](part *T, err error) (*T, *explained) {
	if err == nil {
		return part, nil
	}
	e := explain(err)
	return nil, &e
}

func (b *serverPage) fill() {
	kinds, _ := b.conn.served()
	names := map[string]bool{}
	for _, k := range kinds {
		names[k.Name()] = true
	}
	for _, r := range b.Status.Resources {
		use := resourceUse{Resource: r, Known: names[r.Name]}
		if most := b.Status.Resources[0].Bytes; most > 0 {
			use.Share = 100 * float64(r.Bytes) / float64(most)
		}
		b.Bytes += r.Bytes
		b.Resources = append(b.Resources, use)
	}
	for name, end := range b.Status.Certificates {
		left := end.Sub(b.Time)
		b.Certificates = append(b.Certificates, certificate{name, end, left < 0, left >= 0 && left < soon})
	}
	slices.SortFunc(b.Certificates, func(x, y certificate) int { return cmp.Or(x.End.Compare(y.End), cmp.Compare(x.Name, y.Name)) })
}

// status reads what a plinth tells of itself.
func (v *visit) status() (*serverstatus.Status, error) {
	s := new(serverstatus.Status)
	err := v.get(s, nil, cluster.StatusPath)
	if apierrors.IsNotFound(err) {
		return nil, problem(http.StatusNotFound, "This needs plinth: the server has nothing at %s.", cluster.StatusPath)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// backupTurn is the Lease that says which server made the last backup of those that are made at intervals.
type backupTurn struct {
	Holder string
	Time   time.Time
	Every  time.Duration
}

// Interval writes how often a backup is made.
func (t *backupTurn) Interval() string { return duration.HumanDuration(t.Every) }

// backupTurn returns nothing if no backups are made at intervals.
func (b *serverPage) backupTurn() (*backupTurn, error) {
	var lease coordinationv1.Lease
	err := b.get(&lease, nil, "apis", "coordination.k8s.io", "v1", "namespaces", "kube-system", "leases", "plinth-backup")
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	turn := new(backupTurn)
	if s := lease.Spec; s.HolderIdentity != nil && s.RenewTime != nil && s.LeaseDurationSeconds != nil {
		turn.Holder, turn.Time, turn.Every = *s.HolderIdentity, s.RenewTime.Time, time.Duration(*s.LeaseDurationSeconds)*time.Second
	}
	return turn, nil
}
