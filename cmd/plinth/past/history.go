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
	clientrest "k8s.io/client-go/rest"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// History reads what the API group history.plinth.io has of objects, and removes old versions of them. One goroutine
// uses it at a time, because it remembers what the server said last about the end of its history.
type History struct {
	server *server
	kinds  *Kinds
	kept   string // see Kept
	seen   string // see Seen
}

// Kept says since when everything is kept that was asked for last, and how more would be; nothing if all of
// it is there.
func (h *History) Kept() string { return h.kept }

// Seen is the resourceVersion up to which the changes or versions are that were asked for last: a watch from there on
// misses nothing.
func (h *History) Seen() string { return h.seen }

// because is Kept as the end of an error.
func (h *History) because() string {
	if h.kept == "" {
		return ""
	}
	return "; " + h.kept
}

// noteKept takes what a server says about the end of its history, which comes as a warning.
func (h *History) noteKept(warnings []net.WarningHeader) {
	h.kept = ""
	for _, w := range warnings {
		if strings.Contains(w.Text, historyv1.NotKept) {
			h.kept = w.Text
		}
	}
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
func (h *History) pages(ctx context.Context, resource string, q Query) iter.Seq2[*page, error] {
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
			p, err := h.page(ctx, resource, q, limit, next)
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

func (h *History) page(ctx context.Context, resource string, q Query, limit int, next string) (*page, error) {
	request := h.server.rest.Get().AbsPath(q.path(resource)...).Param("limit", strconv.Itoa(limit))
	if len(q.Fields) > 0 {
		request = request.Param("fieldSelector", q.selector())
	}
	if next != "" {
		request = request.Param("continue", next)
	}
	result := request.Do(ctx)
	if next == "" {
		h.noteKept(result.Warnings())
	}
	text, err := read(result)
	if err != nil {
		return nil, h.explain(err)
	}
	p := new(page)
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fmt.Errorf("%s does not answer as a plinth: %w", h.server.host, err)
	}
	h.seen = p.ResourceVersion
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
func (h *History) Changes(ctx context.Context, q Query) iter.Seq2[historyv1.Change, error] {
	return items[historyv1.Change](h.pages(ctx, changes, q))
}

// Versions returns versions, the newest first.
func (h *History) Versions(ctx context.Context, q Query) iter.Seq2[historyv1.Version, error] {
	return items[historyv1.Version](h.pages(ctx, versions, q))
}

// VersionsPage returns one page of versions, at most as many as the limit of the query, and where the next one begins; empty:
// there is none. The first page begins at "".
func (h *History) VersionsPage(ctx context.Context, q Query, from string) (all []historyv1.Version, next string, err error) {
	limit := versionsPage
	if q.Limit > 0 {
		limit = min(limit, q.Limit)
	}
	p, err := h.page(ctx, versions, q, limit, from)
	if err != nil {
		return nil, "", err
	}
	for version, err := range decoded[historyv1.Version](p) {
		if err != nil {
			return nil, "", err
		}
		all = append(all, version)
	}
	return all, p.Continue, nil
}

func items[T any](pages iter.Seq2[*page, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for p, err := range pages {
			var none T
			if err != nil {
				yield(none, err)
				return
			}
			for item, err := range decoded[T](p) {
				if !yield(item, err) || err != nil {
					return
				}
			}
		}
	}
}

// decoded are the items of a page, until one that cannot be read.
func decoded[T any](p *page) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, text := range p.Items {
			var item T
			err := json.Unmarshal(text, &item)
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// RawChanges returns the list of changes as the API has it, of all pages.
func (h *History) RawChanges(ctx context.Context, q Query) (any, error) {
	var all *page
	for p, err := range h.pages(ctx, changes, q) {
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

// Forget removes all versions of an object but the newest for good.
func (h *History) Forget(ctx context.Context, t Target) (message string, err error) {
	q := Query{}.ToObject(t)
	text, err := read(h.server.rest.Delete().AbsPath(q.path(versions)...).Param("fieldSelector", q.selector()).Do(ctx))
	if err != nil {
		return "", h.explain(err)
	}
	return statusMessage(text)
}

func statusMessage(text []byte) (string, error) {
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err != nil {
		return "", fmt.Errorf("the answer is no Status: %w", err)
	}
	return status.Message, nil
}
