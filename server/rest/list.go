package rest

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalversionvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"

	"github.com/plinth-io/plinth/server/selectors"
)

// list answers a collection, whole or in pages, from memory where it can.
func (q *request) list() error {
	if q.kind.Observed != nil {
		return q.listObserved()
	}
	options, sel, err := q.listOptions()
	if err != nil {
		return err
	}
	read := q.reader(&sel, true)
	p, err := read.page(q.ctx, options)
	if err != nil {
		return err
	}
	return q.respondList(p)
}

// listOptions reads and checks the parameters that list, watch and deletecollection share.
func (q *request) listOptions() (*metainternalversion.ListOptions, selection, error) {
	options := &metainternalversion.ListOptions{}
	if values := q.values(); len(values) > 0 {
		if err := selectors.CheckQuery(values); err != nil {
			return nil, selection{}, apierrors.NewBadRequest(err.Error())
		}
		if err := decodeOptions(values, options); err != nil {
			return nil, selection{}, err
		}
		if err := invalidOptions("ListOptions", metainternalversionvalidation.ValidateListOptions(options, true)); err != nil {
			return nil, selection{}, err
		}
	}
	if q.refused != nil {
		return nil, selection{}, q.refused
	}
	sel, err := newSelection(&q.target, options.LabelSelector, options.FieldSelector)
	if err == nil && q.kind.Observed == nil {
		err = sel.selectShard(options.ShardSelector)
	}
	return options, sel, err
}
