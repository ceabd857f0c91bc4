package server

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/kind"
)

// rights says who may do what: for a resource or a path, and a verb, the names of identities,
// "NAME" or, for a resource, "NAME@SCOPE" where only one scope is open to them. Those who may do
// everything are not named.
type rights map[string]map[string][]string

// readRights reads lines such as
//
//	deployments.apps/scale get,patch=account@team create=
//	/healthz get=everybody
func readRights(t *testing.T, file string) rights {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	r := rights{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if r[words[0]] != nil {
			t.Errorf("%s: two rows for %s", file, words[0])
		}
		r[words[0]] = map[string][]string{}
		for _, word := range words[1:] {
			verbs, names, _ := strings.Cut(word, "=")
			for verb := range strings.SplitSeq(verbs, ",") {
				r[words[0]][verb] = strings.Split(names, ",")
			}
		}
	}
	return r
}

// groups of identities, for rows where they are the same.
var groupsOfIdentities = map[string][]string{
	"everybody":     {"anonymous", "basic", "nobody", "reader", "deputy", "deputy as reader", "account", "node"},
	"authenticated": {"nobody", "reader", "deputy", "deputy as reader", "account", "node"},
	"reader":        {"reader", "deputy as reader"},
}

// allowed tells whether the rows allow a question to an identity.
func (r rights) allowed(q question, name string) bool {
	if name == "admin" {
		return true
	}
	for _, word := range r[q.row][q.verb] {
		who, scope, scoped := strings.Cut(word, "@")
		if (who == name || slices.Contains(groupsOfIdentities[who], name)) && (!scoped || scope == q.scope) {
			return true
		}
	}
	return false
}

// question is a request and what it asks of the authorizer.
type question struct {
	row   string // of a file of rights
	verb  string
	scope string // "all", or a namespace
	// served is false if the path does not have the method; the authorizer is asked all the same.
	// first is true for one version of each resource, and for routes that are no resources.
	served, first bool

	method, target string
}

func (q question) String() string { return q.method + " " + q.target }

// resourceQuestions are the requests for all resources of a registry, in all versions.
func resourceQuestions(set *kind.Set) (all []question) {
	for _, k := range set.Kinds {
		for _, v := range k.Versions {
			for _, q := range kindQuestions(k, v.Name) {
				q.first = v.Name == k.Versions[0].Name
				all = append(all, q)
			}
		}
	}
	return all
}

func kindQuestions(k *kind.Kind, version string) (all []question) {
	base := groupPath(k.Group, version)
	row := k.GroupResource().String()
	scopes := []string{"all"}
	if k.Namespaced {
		scopes = []string{"all", "team", "other"}
	}
	for _, scope := range scopes {
		within := ""
		if scope != "all" {
			within = "/namespaces/" + scope
		}
		path := base + within + "/" + k.Resource
		all = append(all, collectionQuestions(k, row, scope, path, base+"/watch"+within+"/"+k.Resource)...)
		if k.Namespaced && scope == "all" {
			continue
		}
		all = append(all, itemQuestions(row, scope, path+"/absent", k.Verbs)...)
		for name, sub := range k.Subresources {
			all = append(all, itemQuestions(row+"/"+name, scope, path+"/absent/"+name, subresourceVerbs(sub))...)
		}
	}
	return all
}

func collectionQuestions(k *kind.Kind, row, scope, path, watch string) []question {
	elsewhere := k.Namespaced && scope == "all"          // only reads go across namespaces
	nothing := "?dryRun=All&labelSelector=absent%3Dtrue" // of what a collection has is deleted
	ask := func(verb string, served bool, method, target string) question {
		return question{row: row, verb: verb, scope: scope, served: served, method: method, target: target}
	}
	return []question{
		ask("list", k.Can("list"), "GET", path),
		ask("list", false, "HEAD", path),
		ask("create", k.Can("create") && !elsewhere, "POST", path),
		ask("deletecollection", k.Can("deletecollection") && !elsewhere, "DELETE", path+nothing),
		ask("update", false, "PUT", path),
		ask("patch", false, "PATCH", path),
		ask("", false, "OPTIONS", path),
		ask("", false, "FROB", path),
		ask("watch", k.Can("watch"), "GET", path+"?watch=1"),
		ask("watch", false, "HEAD", path+"?watch=1"),
		ask("watch", k.Can("watch"), "GET", watch),
	}
}

// verbsOf are the verbs of methods on what has a name.
var verbsOf = map[string]string{"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "OPTIONS": "", "FROB": ""}

func itemQuestions(row, scope, path string, verbs []string) (all []question) {
	for method, verb := range verbsOf {
		served := slices.Contains(verbs, verb) && method != "HEAD"
		all = append(all, question{row: row, verb: verb, scope: scope, served: served, method: method, target: path})
	}
	return all
}

// subresourceVerbs are the verbs of a subresource, also of those that a client is connected to.
func subresourceVerbs(sub *kind.Subresource) []string {
	verbs := slices.Clone(sub.Verbs)
	if sub.Connect != nil {
		for _, method := range sub.Connect.ConnectMethods() {
			verbs = append(verbs, verbsOf[method])
		}
	}
	if sub.Post != nil {
		verbs = append(verbs, "create")
	}
	if sub.Stream != nil {
		verbs = append(verbs, "get")
	}
	return verbs
}

// samples are paths for routes that have a parameter.
var samples = map[string][]string{
	"/debug/flags/*": {"/debug/flags/v"},
	"/debug/pprof/*": {"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/profile", "/debug/pprof/trace"},
	"/api/*":         {"/api/v1", "/api/v2", "/api/"},
	"/apis/*":        {"/apis/apps", "/apis/apps/v1", "/apis/absent.example.com/v1", "/apis/"},
	"/openapi/v3/*":  {"/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1", "/openapi/v3/absent"},
	"/version/*":     {"/version/", "/version/absent"},

	snapshotsPath + "/*": {snapshotsPath + "/1", snapshotsPath + "/1/rewind"},
}

// pathQuestions are the requests for all routes that are no resources, with the versions of a
// registry.
func pathQuestions(t *testing.T, routes []string, set *kind.Set) (all []question) {
	t.Helper()
	for _, path := range groupPaths(set) {
		all = append(all, question{scope: "all", verb: "get", method: "GET", target: path, served: true})
	}
	var paths []string
	for _, route := range append(routes, "/absent", "//") {
		if !strings.Contains(route, "*") {
			paths = append(paths, route)
			continue
		}
		if samples[route] == nil {
			t.Errorf("the route %s has no sample path", route)
		}
		paths = append(paths, samples[route]...)
	}
	for _, path := range paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "FROB"} {
			all = append(all, question{scope: "all", verb: strings.ToLower(method), method: method, target: path, served: true, first: true})
		}
	}
	return all
}

// groupPaths are the paths of discovery and of schemas that groups and versions have.
func groupPaths(set *kind.Set) []string {
	paths := map[string]bool{}
	for _, k := range set.Kinds {
		for _, v := range k.Versions {
			path := groupPath(k.Group, v.Name)
			paths[path], paths["/openapi/v3"+path] = true, true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

func groupPath(group, version string) string {
	if group == "" {
		return "/api/" + version
	}
	return "/apis/" + group + "/" + version
}

// path finds the row of a path, which may end with "*".
func (r rights) path(path string) (string, error) {
	row := path
	for r[row] == nil {
		cut := strings.LastIndex(strings.TrimSuffix(row, "/*"), "/")
		if cut < 0 {
			return "", fmt.Errorf("%s has no row", path)
		}
		row = row[:cut] + "/*"
	}
	return row, nil
}
