package rest

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
)

// respondView answers with a subresource's body made from the object.
func (q *request) respondView(code int, entry *sqlstore.Entry) error {
	obj, err := q.load(q.ctx, entry)
	if err != nil {
		return err
	}
	view, err := q.sub.View(obj)
	if err != nil {
		return err
	}
	return q.respondHub(code, q.sub.Codec, view)
}

// respondHub answers with an object in hub form that is not in the log.
func (q *request) respondHub(code int, codec kind.Codec, hub runtime.Object) error {
	body, err := codec.Versioned(hub, q.gvk().GroupVersion())
	if err != nil {
		return err
	}
	switch q.out.Form {
	case response.AsTable:
		var tables response.Tables
		if tables, err = q.tables(); err == nil {
			body, err = tables.OfView(hub, body)
		}
	case response.AsMetadata:
		body, err = response.Metadata(hub, q.out.MetaVersion)
	case response.AsMetadataList:
		err = q.out.WrongForm(hub)
	}
	if err != nil {
		return err
	}
	return q.respondObject(code, body)
}
