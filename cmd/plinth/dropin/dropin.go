// Package dropin is what the two servers of a test's control plane say to each other when plinth
// takes the place of both: the one that is called etcd has a directory, and the one that is called
// kube-apiserver asks it for a database there. It owns that question and its answer. It must not
// know what is in a database, nor the flags of the two.
package dropin

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
)

// page is where an etcd of this package answers the question. Its parameter prefix is the
// kube-apiserver's --etcd-prefix.
const page = "/plinth/database"

// answer is the text of the page.
type answer struct {
	Directory string `json:"directory"` // absolute
	DSN       string `json:"dsn"`
}

// Databases answers kube-apiservers which database is theirs: kube-apiservers with different
// prefixes have different ones, as they have different keys in an etcd.
type Databases struct {
	Directory string // absolute, without a question mark, which a DSN cannot have in its path
	Unsafe    bool   // commits need not survive the machine, as with etcd's --unsafe-no-fsync
}

// Add makes mux answer the question.
func (d Databases) Add(mux *http.ServeMux) {
	mux.HandleFunc("GET "+page, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer{d.Directory, d.dsn(r.URL.Query().Get("prefix"))}) // the client is gone
	})
}

// defaultPrefix is kube-apiserver's.
const defaultPrefix = "registry"

func (d Databases) dsn(prefix string) string {
	name := "plinth.db"
	if prefix = strings.Trim(prefix, "/"); prefix != defaultPrefix {
		name = "plinth-" + strings.ReplaceAll(url.QueryEscape(prefix), "%", "+") + ".db"
	}
	dsn := "sqlite://" + filepath.Join(d.Directory, name)
	if d.Unsafe {
		dsn += "?durability=off"
	}
	return dsn
}
