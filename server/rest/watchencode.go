package rest

import (
	"encoding/binary"
	"encoding/json"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/plinth-io/plinth/sqlstore"
)

// eventEncoder frames events in the negotiated encoding: JSON objects one after the
// other, or length-prefixed protobuf. Objects inside are the entries' shared renderings.
type eventEncoder struct {
	q       *request
	headers bool // a Table has been sent: later ones are without column definitions
}

// newEventEncoder checks that the encoding can be streamed.
func (q *request) newEventEncoder() (*eventEncoder, error) {
	if q.out.form == asTable {
		if _, err := includeObject(q.values()); err != nil {
			return nil, err
		}
	}
	if q.out.mediaType == mediaYAML {
		return nil, notAcceptable(streamTypes())
	}
	return &eventEncoder{q: q}, nil
}

func streamTypes() []string {
	return []string{mediaJSON + ";stream=watch", mediaProtobuf + ";stream=watch"}
}

func (c *eventEncoder) contentType() string {
	if c.q.out.mediaType == mediaProtobuf {
		return mediaProtobuf + ";stream=watch"
	}
	return mediaJSON
}

// buffer and release lend memory for one pass; an idle watch holds none.
func (c *eventEncoder) buffer() []byte { return (*chunks.Get().(*[]byte))[:0] }

func (c *eventEncoder) release(b []byte) {
	if cap(b) <= 4*chunk {
		b = b[:0]
		chunks.Put(&b)
	}
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
	if q.out.form != asTable {
		return q.encodeEntry(e)
	}
	table, err := q.table([]*sqlstore.Entry{e}, q.out)
	if err != nil {
		return nil, err
	}
	if c.headers {
		table.ColumnDefinitions = nil
	}
	c.headers = true
	return marshalJSON(table)
}

// frame puts an encoded object into an event. A client that wants lists gets none and its
// stream ends: an event has an object.
func (c *eventEncoder) frame(b []byte, t watch.EventType, object []byte) ([]byte, error) {
	if c.q.out.form == asMetadataList && t != watch.Error {
		return b, errGone
	}
	if c.q.out.mediaType != mediaProtobuf {
		b = append(b, `{"type":"`...)
		b = append(b, t...)
		b = append(b, `","object":`...)
		b = append(b, object...)
		return append(b, "}\n"...), nil
	}
	return appendEvent(b, string(t), object), nil
}

// appendEvent appends a metav1.WatchEvent as protobuf after its length. The outer message
// is without the envelope that the object inside has.
func appendEvent(b []byte, t string, object []byte) []byte {
	extension := fieldSize(len(object))
	b = binary.BigEndian.AppendUint32(b, uint32(fieldSize(len(t))+fieldSize(extension)))
	b = append(b, fieldTag(1), byte(len(t))) // types are short
	b = append(append(b, t...), fieldTag(2))
	return appendField(binary.AppendUvarint(b, uint64(extension)), 1, object)
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
	if q.out.form != asObject {
		partial := &metav1.PartialObjectMetadata{}
		partial.APIVersion, partial.Kind = q.out.metaGV.String(), "PartialObjectMetadata"
		partial.ResourceVersion, partial.Annotations = revision, annotations
		if q.out.form == asTable {
			return c.bookmarkTable(partial)
		}
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
	return c.encode(v)
}

func (c *eventEncoder) bookmarkTable(partial *metav1.PartialObjectMetadata) ([]byte, error) {
	table, err := c.q.table(nil, c.q.out)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(partial)
	if err != nil {
		return nil, err
	}
	if c.headers {
		table.ColumnDefinitions = nil
	}
	table.ResourceVersion = partial.ResourceVersion
	table.Rows = []metav1.TableRow{{Cells: []any{}, Object: runtime.RawExtension{Raw: raw}}}
	return marshalJSON(table)
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
	if c.q.out.mediaType == mediaProtobuf {
		return encodeMeta(obj, c.q.out)
	}
	return marshalJSON(obj)
}
