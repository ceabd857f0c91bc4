package upstream

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ExportReport is the result of an export.
type ExportReport struct {
	Revision int64 `json:"revision"` // of the log
	// EtcdRevision is the newest revision of the etcd afterwards; 0 if nothing was written. If it is less
	// than Revision, clients may have seen newer revisions.
	EtcdRevision int64 `json:"etcdRevision,omitempty"`
	Objects      int64 `json:"objects"`
	// Resources has the exported resources. Converted counts the objects that a kube-apiserver stores in
	// another version than plinth.
	Resources []ResourceReport `json:"resources"`
	// LeftOut are rows that a kube-apiserver does not need. NotWritten are objects that are lost. Both are by
	// reason, with plinth's keys.
	LeftOut    []SkipReport `json:"leftOut,omitempty"`
	NotWritten []SkipReport `json:"notWritten,omitempty"`
}

// exportTally collects the contents of an ExportReport.
type exportTally struct {
	objects             int64
	resources           map[schema.GroupResource]*ResourceReport
	leftOut, notWritten map[string][]string
}

func newExportTally() *exportTally {
	return &exportTally{resources: map[schema.GroupResource]*ResourceReport{}, leftOut: map[string][]string{}, notWritten: map[string][]string{}}
}

// wrote counts an object. converted is its version in the etcd, if that differs from the log's.
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
