package upstream

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ExportReport says what became of the rows of a log.
type ExportReport struct {
	Revision int64 `json:"revision"` // of the log
	// EtcdRevision is the newest of the etcd afterwards, 0 if nothing was written. If it is less than
	// Revision, clients may have seen newer ones.
	EtcdRevision int64 `json:"etcdRevision,omitempty"`
	Objects      int64 `json:"objects"`
	// Resources say, as Converted, how many objects a kube-apiserver stores in which other version
	// than plinth.
	Resources []ResourceReport `json:"resources"`
	// LeftOut are rows that a kube-apiserver does not need, and NotWritten objects that are lost, each
	// by reason, with plinth's keys.
	LeftOut    []SkipReport `json:"leftOut,omitempty"`
	NotWritten []SkipReport `json:"notWritten,omitempty"`
}

// exportTally collects what an ExportReport says.
type exportTally struct {
	objects             int64
	resources           map[schema.GroupResource]*ResourceReport
	leftOut, notWritten map[string][]string
}

func newExportTally() *exportTally {
	return &exportTally{resources: map[schema.GroupResource]*ResourceReport{}, leftOut: map[string][]string{}, notWritten: map[string][]string{}}
}

// wrote counts an object. converted is its version in the etcd, if that is another one than in the log.
func (t *exportTally) wrote(of schema.GroupResource, converted string) {
	r := t.resources[of]
	if r == nil {
		r = &ResourceReport{Group: of.Group, Resource: of.Resource, Converted: map[string]int64{}}
		t.resources[of] = r
	}
	t.objects++
	r.Objects++
	if converted != "" {
		r.Converted[converted]++
	}
}

func (t *exportTally) report(revision, etcd int64) ExportReport {
	out := ExportReport{Revision: revision, EtcdRevision: etcd, Objects: t.objects, LeftOut: skips(t.leftOut), NotWritten: skips(t.notWritten)}
	for _, r := range t.resources {
		out.Resources = append(out.Resources, *r)
	}
	slices.SortFunc(out.Resources, func(a, b ResourceReport) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return out
}
