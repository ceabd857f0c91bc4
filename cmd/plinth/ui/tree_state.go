package ui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// stateColumns are those of kubectl's tables that tell in a word how an object is.
var stateColumns = []string{"Ready", "Completions", "Status", "Phase", "State"}

// placeOf is where the nodes of a tree are that one list has.
type placeOf struct{ resource, namespace string }

// addStates writes into trees how their objects are, from the tables of their kinds. What has no such column, or cannot
// be read, has no state.
func (b *treePage) addStates() {
	if !b.at.IsNow() {
		return
	}
	byPlace := map[placeOf]map[string]*treeNode{}
	for _, root := range b.Roots {
		for _, n := range append(root.flat(), root) {
			p := placeOf{n.Resource, n.Namespace}
			if byPlace[p] == nil {
				byPlace[p] = map[string]*treeNode{}
			}
			byPlace[p][n.Name] = n
		}
	}
	kinds, _ := b.conn.served()
	var group errgroup.Group
	group.SetLimit(sweepAtOnce)
	var mu sync.Mutex // nodes may be in several trees
	for _, k := range kinds {
		for p, nodes := range byPlace {
			if p.resource == k.Name() {
				group.Go(func() error {
					table, err := b.tableFor(k, p.namespace, nodes)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						setStates(table, nodes)
					}
					return err
				})
			}
		}
	}
	_ = group.Wait()
}

// tableFor reads the table of some objects of a kind in a namespace.
func (b *treePage) tableFor(k past.Served, namespace string, nodes map[string]*treeNode) (*metav1.Table, error) {
	request := b.conn.rest.Get().SetHeader("Accept", asTable).Param("limit", "1000")
	target := k.In(namespace, "")
	if len(nodes) == 1 {
		for name := range nodes {
			target.Name = name
		}
	}
	table := new(metav1.Table)
	return table, decode(request.AbsPath(pathOf(target)...).Do(b.ctx()), table)
}

func setStates(table *metav1.Table, nodes map[string]*treeNode) {
	for _, r := range table.Rows {
		var o metav1.PartialObjectMetadata
		if json.Unmarshal(r.Object.Raw, &o) != nil || nodes[o.Name] == nil {
			continue
		}
		n := nodes[o.Name]
		if words := stateWords(table.ColumnDefinitions, r.Cells); n.State == "" && len(words) > 0 {
			n.State = strings.Join(words, " · ")
			n.Good = verdictOf(words)
		}
	}
}

func stateWords(columns []metav1.TableColumnDefinition, cells []any) (words []string) {
	for i, c := range columns {
		if i < len(cells) && c.Priority == 0 && slices.Contains(stateColumns, c.Name) && word(cells[i]) != "" {
			words = append(words, word(cells[i]))
		}
	}
	return words
}

// goodWords and badWords are states about which nobody has to think.
var (
	goodWords = []string{"Running", "Ready", "Active", "Bound", "Complete", "Completed", "Succeeded", "True", "Available"}
	badWords  = []string{"Failed", "Error", "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "Evicted", "OOMKilled", "Lost", "False", "NotReady", "Unknown"}
)

// verdictOf tells whether the words of a state are good ones: 2/3 is not.
func verdictOf(words []string) string {
	good := ""
	for _, w := range words {
		var ready, all int
		if n, _ := fmt.Sscanf(w, "%d/%d", &ready, &all); n == 2 {
			if ready < all && !slices.ContainsFunc(words, func(w string) bool { return w == "Completed" || w == "Complete" }) {
				return "warn"
			}
			good = "yes"
			continue
		}
		if slices.Contains(badWords, w) {
			return "no"
		}
		if slices.Contains(goodWords, w) {
			good = "yes"
		}
	}
	return good
}
