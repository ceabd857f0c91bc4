package past

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Client asks one server.
type Client struct {
	config    *clientrest.Config
	rest      clientrest.Interface
	objects   dynamic.Interface
	discovery discovery.CachedDiscoveryInterface
	mapper    *restmapper.DeferredDiscoveryRESTMapper

	// Distrust says of an error of a request whether client and server do not trust each other; nil if it is another
	// one. Without the function nobody says so.
	Distrust func(error) error

	kept string // see Kept
}

// Kept says since when everything is kept that was asked for last, and how more would be; nothing if all of
// it is there.
func (c *Client) Kept() string { return c.kept }

// because is Kept as the end of an error.
func (c *Client) because() string {
	if c.kept == "" {
		return ""
	}
	return "; " + c.kept
}

// noteKept takes what a server says about the end of its history, which comes as a warning.
func (c *Client) noteKept(warnings []net.WarningHeader) {
	c.kept = ""
	for _, w := range warnings {
		if strings.Contains(w.Text, historyv1.NotKept) {
			c.kept = w.Text
		}
	}
}

// New returns a client. It asks nothing yet.
func New(config *clientrest.Config) (*Client, error) {
	config = clientrest.CopyConfig(config)
	config.QPS = -1                // the server has its own limits
	config.UserAgent = undoManager // as whose deletions are noted, which have no field manager
	config.WarningHandler = clientrest.NoWarnings{}
	c := &Client{config: config}
	withCodecs := clientrest.CopyConfig(config)
	withCodecs.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := clientrest.UnversionedRESTClientFor(withCodecs)
	if err != nil {
		return nil, mistakef("kubeconfig: %v", err)
	}
	c.rest = client
	if c.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, mistakef("kubeconfig: %v", err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, mistakef("kubeconfig: %v", err)
	}
	c.discovery = memory.NewMemCacheClient(found)
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(c.discovery)
	return c, nil
}

func (c *Client) hasHistory() bool {
	groups, err := c.discovery.ServerGroups()
	if err != nil {
		return true // nobody knows
	}
	for _, group := range groups.Groups {
		if group.Name == historyv1.GroupName {
			return true
		}
	}
	return false
}

// Query says which changes are asked for.
type Query struct {
	Namespace string // empty: all namespaces, and objects that are in none
	Fields    []string
	Limit     int // most changes; 0: all
}

// With returns the query with one more condition.
func (q Query) With(field, value string) Query {
	fields := append([]string(nil), q.Fields...)
	q.Fields = append(fields, field+"="+escape(value))
	return q
}

// Without returns the query with a condition that a field has not a value.
func (q Query) Without(field, value string) Query {
	fields := append([]string(nil), q.Fields...)
	q.Fields = append(fields, field+"!="+escape(value))
	return q
}

// escape writes a value for a field selector.
func escape(value string) string {
	return strings.NewReplacer(`\`, `\\`, `,`, `\,`, `=`, `\=`).Replace(value)
}

func (q Query) selector() string { return strings.Join(q.Fields, ",") }

// ToObject returns the query for one object.
func (q Query) ToObject(t Target) Query {
	q.Namespace = t.Namespace
	if t.Kind.Name() != "" {
		q = q.With(historyv1.FieldResource, t.Kind.Name())
	}
	if t.Name != "" {
		q = q.With(historyv1.FieldName, t.Name)
	}
	if t.Namespace == "" && t.Name != "" && !t.Anywhere {
		q = q.With(historyv1.FieldNamespace, "") // the server need not look in all namespaces then
	}
	return q
}

func (q Query) path(resource string) []string {
	path := []string{"apis", historyv1.GroupName, historyv1.GroupVersion.Version}
	if q.Namespace != "" {
		path = append(path, "namespaces", q.Namespace)
	}
	return append(path, resource)
}

// page is a list with its items as they came.
type page struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []json.RawMessage `json:"items"`
}

const (
	changes  = "changes"
	versions = "versions"
	// pageSize is small for versions, because each of them has an object.
	changesPage, versionsPage = 500, 100
)

// pages asks for one page after the other.
func (c *Client) pages(ctx context.Context, resource string, q Query) iter.Seq2[*page, error] {
	size := changesPage
	if resource == versions {
		size = versionsPage
	}
	return func(yield func(*page, error) bool) {
		next, left := "", q.Limit
		for {
			limit := size
			if q.Limit > 0 {
				limit = min(size, left)
			}
			p, err := c.page(ctx, resource, q, limit, next)
			if !yield(p, err) || err != nil {
				return
			}
			left -= len(p.Items)
			if next = p.Continue; next == "" || q.Limit > 0 && left <= 0 {
				return
			}
		}
	}
}

func (c *Client) page(ctx context.Context, resource string, q Query, limit int, next string) (*page, error) {
	request := c.rest.Get().AbsPath(q.path(resource)...).Param("limit", strconv.Itoa(limit))
	if len(q.Fields) > 0 {
		request = request.Param("fieldSelector", q.selector())
	}
	if next != "" {
		request = request.Param("continue", next)
	}
	result := request.Do(ctx)
	if next == "" {
		c.noteKept(result.Warnings())
	}
	text, err := read(result)
	if err != nil {
		return nil, c.explain(err)
	}
	p := new(page)
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s does not answer as a plinth: %w", c.config.Host, err)
	}
	return p, nil
}

// read returns the body of an answer. Unlike Raw it reads the Status that an error has.
func read(r clientrest.Result) ([]byte, error) {
	if err := r.Error(); err != nil {
		return nil, err
	}
	return r.Raw()
}

// Changes returns changes, the newest first.
func (c *Client) Changes(ctx context.Context, q Query) iter.Seq2[historyv1.Change, error] {
	return items[historyv1.Change](c.pages(ctx, changes, q))
}

// Versions returns versions, the newest first.
func (c *Client) Versions(ctx context.Context, q Query) iter.Seq2[historyv1.Version, error] {
	return items[historyv1.Version](c.pages(ctx, versions, q))
}

func items[T any](pages iter.Seq2[*page, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for p, err := range pages {
			var none T
			if err != nil {
				yield(none, err)
				return
			}
			for _, text := range p.Items {
				var item T
				err := json.Unmarshal(text, &item)
				if !yield(item, err) || err != nil {
					return
				}
			}
		}
	}
}

// RawChanges returns the list of changes as the API has it, of all pages.
func (c *Client) RawChanges(ctx context.Context, q Query) (any, error) {
	var all *page
	for p, err := range c.pages(ctx, changes, q) {
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = p
			continue
		}
		all.Items = append(all.Items, p.Items...)
		all.Continue, all.RemainingItemCount = p.Continue, p.RemainingItemCount
	}
	return all, nil
}

// first returns the first of a sequence, nil if it has none.
func first[T any](all iter.Seq2[T, error]) (*T, error) {
	for item, err := range all {
		if err != nil {
			return nil, err
		}
		return &item, nil
	}
	return nil, nil
}

// timeText writes a time for a field selector.
func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }
