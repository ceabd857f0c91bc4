package ui

import (
	"bytes"
	"cmp"
	"embed"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/plinth-io/plinth/cmd/plinth/units"
)

//go:embed templates
var templateFiles embed.FS

// templates are the pages, by the names of their files: each with layout.html and the parts in parts.html. They are read
// when the first page is made.
var templates = sync.OnceValue(readTemplates)

func readTemplates() map[string]*template.Template {
	all := map[string]*template.Template{}
	files, _ := fs.Glob(templateFiles, "templates/*.html")
	for _, file := range files {
		name := path.Base(file)
		t := template.New(name).Funcs(functions)
		all[name] = template.Must(t.ParseFS(templateFiles, "templates/layout.html", "templates/parts.html", file))
	}
	return all
}

// functions are what templates may call besides the methods of a page.
var functions = template.FuncMap{
	"asset": func(name string) string {
		byName, _ := assets()
		return "static/" + byName[name].name
	},
	"ago":        ago,
	"exact":      exact,
	"plus":       func(a, b int) int { return a + b },
	"size":       units.Bytes,
	"count":      units.Count,
	"inlineRows": inlineRows,
	"seconds":    units.Seconds,
	"of":         func(p page, item any) pageItem { return pageItem{p, item} },
}

// pageItem is a part of a page that needs the page's links.
type pageItem struct {
	Page page
	Item any
}

// ago writes how long ago a time was.
func ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	since := time.Since(t)
	if since < time.Second && since > -time.Second {
		return "now"
	}
	if since < 0 {
		return "in " + duration.HumanDuration(-since)
	}
	return duration.HumanDuration(since) + " ago"
}

// exact writes a time for machines and for people who want to know exactly.
func exact(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// page is what a template gets: what all pages have, and the Body of its own.
type page struct {
	Title string
	Nav   string // what is marked in the navigation: a resource, or a page's name
	Code  int    // HTTP status; 0: 200
	Part  bool   // without the frame around it
	Body  any

	*frame
}

// frame is what stands around every page.
type frame struct {
	v          *visit
	Base       string
	Theme      string // light or dark; empty: as the system
	Groups     []navGroup
	Namespaces []string
	Namespace  string
	At         string // the moment as the visitor wrote it; empty: now
	AtTime     time.Time
	Who        string
	Host       string
	Leave      string
	Fault      string // why kinds or namespaces are not known
}

// Link is visit.link, for templates.
func (f *frame) Link(path string, more ...string) string { return f.v.link(path, more...) }

// Object is visit.objectLink, for templates.
func (f *frame) Object(resource, namespace, name, page string, more ...string) string {
	return f.v.objectLink(resource, namespace, name, page, more...)
}

// Here is the address of this page with other parameters.
func (f *frame) Here(more ...string) string {
	u := *f.v.r.URL
	q := u.Query()
	setParams(q, more)
	u.Path, u.RawQuery = path.Join(f.Base, u.Path), q.Encode()
	return u.String()
}

// With is the page with something else as its Body, for parts.
func (p page) With(body any) page {
	p.Body = body
	return p
}

// show answers with a page.
func (v *visit) show(name string, p page) error {
	if p.frame = v.frame(); p.Code >= http.StatusBadRequest {
		p.Fault = "" // the page itself is one
	}
	p.Part = p.Part || v.r.Header.Get("X-Part") != ""
	var b bytes.Buffer
	if err := templates()[name].ExecuteTemplate(&b, "layout", p); err != nil {
		return err
	}
	_ = http.NewResponseController(v.w).SetWriteDeadline(time.Now().Add(slowest))
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(cmp.Or(p.Code, http.StatusOK))
	_, err := io.Copy(v.w, &b)
	return err
}

// barePage is a page without a frame.
type barePage struct {
	Theme string
	Body  any
}

// showBare answers with a page without navigation, for those who are not let in.
func showBare(w http.ResponseWriter, r *http.Request, code int, name string, body any) {
	var b bytes.Buffer
	if err := templates()[name].ExecuteTemplate(&b, "bare", barePage{themeOf(r), body}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.Copy(w, &b)
}

// showEntry goes on to the page from within it: a browser sends a strict cookie only then.
func showEntry(w http.ResponseWriter, r *http.Request, address string) {
	showBare(w, r, http.StatusOK, "entry.html", address)
}

// frame gathers what stands around the page.
func (v *visit) frame() *frame {
	f := &frame{
		v: v, Base: v.s.base, Theme: themeOf(v.r), Namespace: v.namespace, At: v.atText, AtTime: v.at.Time,
		Host: v.s.door.server(v.r), Leave: v.s.door.leave(),
	}
	kinds, err := v.conn.served()
	if err != nil {
		f.Fault = explain(err).Text
	}
	f.Groups = navigation(kinds)
	known := v.conn.remember(v)
	f.Namespaces, f.Who = known.namespaces, known.who
	if len(f.Namespaces) > 0 && v.namespace != "" && !slices.Contains(f.Namespaces, v.namespace) {
		f.Namespaces = append(slices.Clone(f.Namespaces), v.namespace) // it may have been there in the past
	}
	return f
}
