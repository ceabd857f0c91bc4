// Package discovery tells clients which groups, versions and resources are served: the
// classic documents, one for each path, and the aggregated one that has everything in a
// single answer.
//
// The package owns these documents and their ETags. Documents are made from the kind registry's
// Set once for each of its generations, and each is encoded once for each requested media
// type. The package must not know objects, only Kinds and extension servers.
package discovery

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/plinth-io/plinth/server/aggregator"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
)

// Discovery answers for /, /api, /apis and everything below that is not a resource.
type Discovery struct {
	// CBOR says that documents are also there in CBOR, as in upstream but for those of group versions of custom
	// resources and the list at /api. It is set before the first request.
	CBOR bool
	// Unread is the answer about a group version, or with an empty version a group, that is not there because what
	// defines it cannot be read: clients must not take it for one that does not exist. nil: it is not there. It is set
	// before the first request.
	Unread func(group, version string) error

	kinds      *kind.Registry
	extensions *aggregator.Services
	paths      []string // of the rest of the server, for /

	mu   sync.Mutex
	docs *documents // of the newest generation that was asked for; guarded by mu
}

// New describes what kinds holds and what extension servers serve. paths are further paths
// that GET / lists.
func New(kinds *kind.Registry, extensions *aggregator.Services, paths ...string) *Discovery {
	return &Discovery{kinds: kinds, extensions: extensions, paths: paths}
}

// encodings encode discovery's types, which have their kind and apiVersion set already; the
// scheme behind them has nothing to convert.
type encodings struct {
	serializer.CodecFactory
	mediaTypes []string
}

var (
	codecs     = newEncodings()
	cborCodecs = newEncodings(serializer.WithSerializer(cbor.NewSerializerInfo))
)

func newEncodings(more ...serializer.CodecFactoryOptionsMutator) *encodings {
	factory := serializer.NewCodecFactory(runtime.NewScheme(), more...)
	mediaTypes, _ := negotiation.MediaTypesForSerializer(factory)
	return &encodings{factory, mediaTypes}
}

func (d *Discovery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := d.serve(w, r); err != nil {
		response.WriteError(w, r, err)
	}
}

func (d *Discovery) serve(w http.ResponseWriter, r *http.Request) error {
	docs := d.current()
	if r.URL.Path == "/" || r.URL.Path == "/index.html" {
		responsewriters.WriteRawJSON(http.StatusOK, metav1.RootPaths{Paths: docs.list(d.paths)}, w)
		return nil
	}
	path := strings.TrimRight(r.URL.Path, "/")
	codecs := d.codecs(docs, path)
	if err := docs.check(path, r, codecs); err != nil {
		return cmp.Or(d.unread(docs, path), err)
	}
	if path == "/api" || r.URL.Path == "/apis" { // but not /apis/
		// The aggregated document wins wherever in Accept it stands.
		if accepted, info, err := negotiation.NegotiateOutputMediaType(r, codecs, aggregatedOnly{}); err == nil && accepted.Convert != nil {
			return docs.serveAggregated(w, r, path, *accepted.Convert, info)
		}
	}
	if path == "/api" {
		return writeCoreVersions(w, r)
	}
	_, info, err := negotiation.NegotiateOutputMediaType(r, codecs, negotiation.DefaultEndpointRestrictions)
	if err != nil {
		return err
	}
	return docs.serve(w, path, info)
}

// unread is the answer of Unread about a path without a document.
func (d *Discovery) unread(docs *documents, path string) error {
	inGroup, found := strings.CutPrefix(path, "/apis/")
	if d.Unread == nil || !found || docs.byPath[path] != nil {
		return nil
	}
	group, version, _ := strings.Cut(inGroup, "/")
	return d.Unread(group, version)
}

// codecs encode the document at path.
func (d *Discovery) codecs(docs *documents, path string) *encodings {
	group, _, versioned := strings.Cut(strings.TrimPrefix(path, "/apis/"), "/")
	if isCustom := strings.HasPrefix(path, "/apis/") && versioned && !docs.set.HasGroup(group); d.CBOR && !isCustom {
		return cborCodecs
	}
	return codecs
}

// check finds out whether path is there. Upstream's /apis, its groups and all of custom
// resources answer every method alike: they are not behind the router that looks at
// methods and media types.
func (d *documents) check(path string, r *http.Request, codecs *encodings) error {
	group, _, versioned := strings.Cut(strings.TrimPrefix(path, "/apis/"), "/")
	switch inGroup := strings.HasPrefix(path, "/apis/"); {
	case path == "/apis" && !strings.HasPrefix(r.URL.Path, "/apis//"):
		return nil
	case path == "/apis", inGroup && d.byPath["/apis/"+group] == nil:
		return response.ErrNoPath
	case inGroup && !versioned:
		return nil
	case inGroup && !d.set.HasGroup(group) && d.byPath[path] == nil:
		return response.ErrNoPath
	case inGroup && !d.set.HasGroup(group):
		return nil
	case path != "/api" && d.byPath[path] == nil:
		return response.NotFound()
	}
	return response.Routed(r, codecs.mediaTypes...)
}

// Paths are those that GET / lists now.
func (d *Discovery) Paths() []string { return d.current().list(d.paths) }

// current returns the documents of what is served now.
func (d *Discovery) current() *documents {
	set, found := d.kinds.Set(), d.extensions.Discovered()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.docs == nil || d.docs.set != set || d.docs.found != found {
		d.docs = newDocuments(set, found)
	}
	return d.docs
}

// writeCoreVersions writes /api, which is not there in CBOR.
func writeCoreVersions(w http.ResponseWriter, r *http.Request) error {
	_, info, err := negotiation.NegotiateOutputMediaType(r, codecs, negotiation.DefaultEndpointRestrictions)
	if err != nil {
		return err
	}
	return write(w, info, coreVersions(r))
}

// coreVersions is /api. It names the address that the client has reached, so that it
// differs between requests and isn't kept; like upstream's it has no apiVersion.
func coreVersions(r *http.Request) *metav1.APIVersions {
	v := &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		v.ServerAddressByClientCIDRs = []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: addr.String()}}
	}
	return v
}

func write(w http.ResponseWriter, info runtime.SerializerInfo, obj runtime.Object) error {
	body, err := runtime.Encode(info.Serializer, obj)
	if err != nil {
		return fmt.Errorf("encode %T: %w", obj, err)
	}
	return respond(w, info.MediaType, body)
}

func respond(w http.ResponseWriter, contentType string, body []byte) error {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // a client that is gone is nobody's error
	return nil
}
