package rest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
)

// eventEncoder frames events in the negotiated encoding: JSON or CBOR objects one after the
// other, or length-prefixed protobuf. Objects inside are the entries' shared renderings.
type eventEncoder struct {
	q       *request
	headers bool // a Table has been sent; later ones have no column definitions
	sent    func(bytes int)
}

// newEventEncoder checks that the encoding can be streamed.
func newEventEncoder(q *request) (*eventEncoder, error) {
	if q.out.Form == response.AsTable {
		if _, err := response.IncludeObject(q.values()); err != nil {
			return nil, err
		}
	}
	if q.out.MediaType == response.MediaYAML {
		return nil, response.NotAcceptable(q.offer().StreamTypes())
	}
	c := &eventEncoder{q: q, sent: func(int) {}}
	if q.api.o.Sent != nil {
		c.sent = q.api.o.Sent(q.gvr())
	}
	return c, nil
}

// append adds one framed event to b.
func (c *eventEncoder) append(b []byte, t watch.EventType, e *sqlstore.Entry) ([]byte, error) {
	object, err := c.object(e)
	if err != nil {
		return b, err
	}
	return c.frame(b, t, object)
}

// object is the event's object in its own encoding, without a newline.
func (c *eventEncoder) object(e *sqlstore.Entry) ([]byte, error) {
	q := c.q
	if q.out.Form != response.AsTable {
		return q.encodeEntry(e, q.out)
	}
	table, err := c.table([]*sqlstore.Entry{e})
	if err != nil {
		return nil, err
	}
	if c.headers {
		table.ColumnDefinitions = nil
	}
	c.headers = true
	return json.Marshal(table)
}

func (c *eventEncoder) table(entries []*sqlstore.Entry) (*metav1.Table, error) {
	tables, err := c.q.tables()
	if err != nil {
		return nil, err
	}
	return tables.Of(c.q.fetched(c.q.ctx, entries))
}

// frame puts an encoded object into an event. If the client accepts only the metadata of lists the stream ends, because
// an event has an object.
func (c *eventEncoder) frame(b []byte, t watch.EventType, object []byte) ([]byte, error) {
	if c.q.out.Form == response.AsMetadataList && t != watch.Error {
		return b, errGone
	}
	c.sent(len(object))
	switch c.q.out.Encoding() {
	case response.Protobuf:
		return appendEvent(b, string(t), object), nil
	case response.CBOR:
		return response.AppendEventCBOR(b, t, object), nil
	}
	b = append(b, `{"type":"`...)
	b = append(b, t...)
	b = append(b, `","object":`...)
	b = append(b, object...)
	return append(b, "}\n"...), nil
}

// lengthPrefix is how many bytes the length of an event in protobuf takes.
const lengthPrefix = 4

// appendEvent appends the length of a metav1.WatchEvent and the event as protobuf. The object in
// it is in an envelope, the event is not.
func appendEvent(b []byte, t string, object []byte) []byte {
	extension := response.FieldSize(len(object))
	b = binary.BigEndian.AppendUint32(b, uint32(response.FieldSize(len(t))+response.FieldSize(extension)))
	b = append(b, response.FieldTag(1), byte(len(t))) // types are short
	b = append(append(b, t...), response.FieldTag(2))
	return response.AppendField(binary.AppendUvarint(b, uint64(extension)), 1, object)
}

// bookmark is a framed BOOKMARK: an empty object with nothing but the revision.
func (c *eventEncoder) bookmark(revision int64, annotations map[string]string) ([]byte, error) {
	object, err := c.bookmarkObject(strconv.FormatInt(revision, 10), annotations)
	if err != nil {
		return nil, err
	}
	return c.frame(nil, watch.Bookmark, object)
}

func (c *eventEncoder) bookmarkObject(revision string, annotations map[string]string) ([]byte, error) {
	q := c.q
	if q.out.Form != response.AsObject && q.out.Form != response.AsTable {
		partial := &metav1.PartialObjectMetadata{}
		partial.APIVersion, partial.Kind = q.out.MetaVersion.String(), "PartialObjectMetadata"
		partial.ResourceVersion, partial.Annotations = revision, annotations
		return c.encode(partial)
	}
	obj := q.kind.Codec.New()
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(revision)
	m.SetAnnotations(annotations)
	v, err := q.kind.Codec.Versioned(obj, q.kind.GVK(q.version).GroupVersion())
	if err != nil {
		return nil, err
	}
	if q.out.Form == response.AsTable {
		return c.bookmarkTable(obj, v, len(annotations) > 0)
	}
	return c.encode(v)
}

// bookmarkTable is a bookmark as a Table with one row. Annotations of the bookmark are in the row's object, even if the
// client wants rows without objects.
func (c *eventEncoder) bookmarkTable(hub, versioned runtime.Object, says bool) ([]byte, error) {
	tables, err := c.q.tables()
	if err != nil {
		return nil, err
	}
	if says && tables.Include == metav1.IncludeNone {
		tables.Include = metav1.IncludeMetadata
	}
	table, err := tables.OfView(hub, versioned)
	if err != nil {
		return nil, err
	}
	if c.headers {
		table.ColumnDefinitions = nil
	}
	c.headers = true
	return json.Marshal(table)
}

// initialEventsListBlueprint is the annotation with the empty list. Clients of Kubernetes 1.32 and 1.33 that list by a
// watch need it; from 1.34 on clients do without, and upstream's name of it is gone (kubernetes#138167).
const initialEventsListBlueprint = "kubernetes.io/initial-events-list-blueprint"

// initialEventsEnd is the framed bookmark after the initial events. It has an empty list in the
// encoding of the watch, so that a client can make a list of the events, which name no kind of list
// (upstream: endpoints/handlers/response.go).
func (c *eventEncoder) initialEventsEnd(revision int64) ([]byte, error) {
	marks := map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	if c.q.out.Form == response.AsTable { // there were none in 1.33
		return c.bookmark(revision, marks)
	}
	list, err := c.emptyList()
	if err != nil {
		return nil, err
	}
	encoded, err := response.Encode(list, response.Output{MediaType: c.q.out.MediaType})
	if err != nil {
		return nil, err
	}
	marks[initialEventsListBlueprint] = base64.StdEncoding.EncodeToString(encoded)
	return c.bookmark(revision, marks)
}

// emptyList is a list of what the events have, without items.
func (c *eventEncoder) emptyList() (runtime.Object, error) {
	q := c.q
	if q.out.Form == response.AsObject {
		list := q.kind.Codec.NewList()
		if q.kind.Custom != nil { // a codec of a custom resource has one version
			return list, nil
		}
		return q.kind.Codec.Objects(q.ctx).Convertor.ConvertToVersion(list, q.kind.GVK(q.version).GroupVersion())
	}
	var list runtime.Object = &metav1.PartialObjectMetadataList{}
	if q.out.MetaVersion == metav1beta1.SchemeGroupVersion {
		list = &metav1beta1.PartialObjectMetadataList{} // as protobuf it differs
	}
	list.GetObjectKind().SetGroupVersionKind(q.out.MetaVersion.WithKind("PartialObjectMetadataList"))
	return list, nil
}

// failure is a framed ERROR event.
func (c *eventEncoder) failure(status *metav1.Status) ([]byte, error) {
	object, err := c.encode(status)
	if err != nil {
		return nil, err
	}
	return c.frame(nil, watch.Error, object)
}

// encode encodes an object with kind and apiVersion as it stands inside an event.
func (c *eventEncoder) encode(obj runtime.Object) ([]byte, error) {
	if c.q.out.Encoding() == response.JSON {
		return json.Marshal(obj)
	}
	return response.Encode(obj, c.q.out)
}
