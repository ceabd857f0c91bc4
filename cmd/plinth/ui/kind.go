package ui

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// kindPage is the list of a kind's objects. Its rows are asked for by the script, page by page.
type kindPage struct {
	Kind           past.Kind
	Name           string // of the kind: deployments.apps
	Rows           string // address of the rows
	Live           string // address of their changes; empty in the past
	Labels, Fields string // selectors
	Past           bool
}

// kind shows the objects of a kind.
func (v *visit) kind() error {
	kind, err := v.past.History.FindPastKind(v.ctx(), v.r.PathValue("resource"))
	if err != nil {
		return err
	}
	name := kind.Name()
	b := kindPage{Kind: kind, Name: name, Labels: v.param("labels"), Fields: v.param("fields"), Past: !v.at.IsNow()}
	selectors := []string{"labels", b.Labels, "fields", b.Fields}
	b.Rows = v.link("rows/"+url.PathEscape(name), selectors...)
	if !b.Past {
		b.Live = v.link("live/rows/"+url.PathEscape(name), selectors...)
	}
	return v.show("kind.html", page{Title: cmp.Or(kind.Kind, name), Nav: name, Body: b})
}

// rowsPage is what the script gets of a list.
type rowsPage struct {
	Columns         []column `json:"columns"`
	Rows            []row    `json:"rows"`
	Continue        string   `json:"continue,omitempty"`
	Remaining       int64    `json:"remaining,omitempty"`
	ResourceVersion string   `json:"resourceVersion,omitempty"`
	Note            string   `json:"note,omitempty"` // that not all is known
}

type column struct {
	Name     string `json:"name"`
	Number   bool   `json:"number,omitempty"`
	Priority int32  `json:"priority,omitempty"`
	Help     string `json:"help,omitempty"`
}

// row is an object of a list.
type row struct {
	Namespace string `json:"s,omitempty"`
	Name      string `json:"n"`
	Created   int64  `json:"c"` // in seconds
	Cells     []any  `json:"v"`
	Link      string `json:"l"`
}

// asTable asks the API for the columns that kubectl shows.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"

// firstRows is how many rows the script gets first: a screen has fewer, and the first ones are to be seen at once.
const firstRows = 250

// mostRows is how many rows the answer has at most.
func (v *visit) mostRows() int {
	if v.param("continue") == "" {
		return min(firstRows, v.s.rowsAtOnce)
	}
	return v.s.rowsAtOnce
}

// rows answers with a page of a list's rows.
func (v *visit) rows() error {
	kind, err := v.past.History.FindPastKind(v.ctx(), v.r.PathValue("resource"))
	if err != nil {
		return err
	}
	if !v.at.IsNow() {
		return v.pastRows(kind)
	}
	request := v.tableRequest(kind).Param("limit", strconv.Itoa(v.mostRows()))
	if next := v.param("continue"); next != "" {
		request = request.Param("continue", next)
	}
	var table metav1.Table
	if err := v.do(request, &table); err != nil {
		return err
	}
	out := rowsPage{Columns: columnsOf(table.ColumnDefinitions), Continue: table.Continue, ResourceVersion: table.ResourceVersion}
	if table.RemainingItemCount != nil {
		out.Remaining = *table.RemainingItemCount
	}
	out.Rows, err = v.rowsOf(kind, &table)
	if err != nil {
		return err
	}
	return v.json(out)
}

// tableRequest is a request for the objects that the list shows.
func (v *visit) tableRequest(kind past.Kind) *clientrest.Request {
	request := v.conn.rest.Get().AbsPath(pathOf(kind.In(v.namespace, ""))...).SetHeader("Accept", asTable)
	for param, selector := range map[string]string{"labelSelector": v.param("labels"), "fieldSelector": v.param("fields")} {
		if selector != "" {
			request = request.Param(param, selector)
		}
	}
	return request
}

// pathOf is the path of objects in the API.
func pathOf(t past.Target) []string {
	gvr := t.Kind.Resource
	path := []string{"apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		path = []string{"api", gvr.Version}
	}
	if t.Namespace != "" {
		path = append(path, "namespaces", t.Namespace)
	}
	if path = append(path, gvr.Resource); t.Name != "" {
		path = append(path, t.Name)
	}
	return path
}

func columnsOf(all []metav1.TableColumnDefinition) []column {
	out := []column{}
	for _, c := range all {
		out = append(out, column{Name: c.Name, Number: c.Type == "integer" || c.Type == "number", Priority: c.Priority, Help: c.Description})
	}
	return out
}

func (v *visit) rowsOf(kind past.Kind, table *metav1.Table) ([]row, error) {
	out := make([]row, 0, len(table.Rows))
	for _, r := range table.Rows {
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(r.Object.Raw, &o); err != nil {
			return nil, err
		}
		out = append(out, row{
			Namespace: o.Namespace, Name: o.Name, Created: o.CreationTimestamp.Unix(), Cells: r.Cells,
			Link: v.objectLink(kind.Name(), o.Namespace, o.Name, ""),
		})
	}
	return out, nil
}

// rowEvent is a change of a list that the script gets.
type rowEvent struct {
	Type    string   `json:"type"` // ADDED, MODIFIED, DELETED
	Columns []column `json:"columns,omitempty"`
	Rows    []row    `json:"rows"`
}

// liveRows sends the changes of a list, from the resourceVersion of its rows on.
func (v *visit) liveRows() error {
	kind, err := v.past.Kinds.Find(v.r.PathValue("resource"))
	if err != nil {
		return err
	}
	from := cmp.Or(v.r.Header.Get("Last-Event-ID"), v.param("rv"))
	body, err := v.tableRequest(kind).Param("watch", "1").Param("allowWatchBookmarks", "true").Param("resourceVersion", from).Stream(v.ctx())
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return v.stream().send("again", "", "the list is too old to go on")
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		return v.stream().send("refused", "", err.Error()) // a browser would ask again and again
	case err != nil:
		return err
	}
	defer body.Close()
	return v.sendRows(kind, json.NewDecoder(body), v.stream())
}

// sendRows passes on what a watch says, until it ends.
func (v *visit) sendRows(kind past.Kind, events *json.Decoder, s *stream) error {
	for {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := events.Decode(&event); err != nil {
			return nil // the browser asks again
		}
		if event.Type == "ERROR" {
			return s.send("again", "", "the watch has ended")
		}
		var table metav1.Table
		if err := json.Unmarshal(event.Object, &table); err != nil {
			return nil
		}
		if event.Type == "BOOKMARK" {
			if err := s.send("bookmark", table.ResourceVersion, true); err != nil {
				return nil
			}
			continue
		}
		rows, err := v.rowsOf(kind, &table)
		if err != nil {
			return nil
		}
		if err := s.send("rows", versionOf(&table), rowEvent{Type: event.Type, Columns: columnsOf(table.ColumnDefinitions), Rows: rows}); err != nil {
			return nil
		}
	}
}

// versionOf is the resourceVersion of an event.
func versionOf(table *metav1.Table) string {
	for _, r := range table.Rows {
		var o metav1.PartialObjectMetadata
		if json.Unmarshal(r.Object.Raw, &o) == nil && o.ResourceVersion != "" {
			return o.ResourceVersion
		}
	}
	return table.ResourceVersion
}
