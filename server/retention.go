package server

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// checkRetention refuses rules that have no effect because a resource of Kubernetes has another group, or is
// stored as another one. It does not know custom resources.
func checkRetention(retention *changelog.Retention) error {
	if len(retention.Rules()) == 0 {
		return nil
	}
	kinds := builtin.Kinds(builtin.Options{})
	for _, r := range retention.Rules() {
		if strings.HasPrefix(r.Resource, "*") {
			continue
		}
		if meant := meantResource(kinds, schema.ParseGroupResource(r.Resource)); meant != "" {
			return fmt.Errorf("%q: write %s", r.Resource, meant)
		}
	}
	return nil
}

// meantResource returns the resource as which objects of gr are stored, or one with the same name if
// gr is none of the core group; else nothing.
func meantResource(kinds []*kind.Kind, gr schema.GroupResource) (meant string) {
	for _, k := range kinds {
		stored := schema.GroupResource{Group: k.Stored.Group, Resource: k.Stored.Resource}
		switch {
		case stored == gr:
			return ""
		case k.GroupResource() == gr:
			return stored.String()
		case gr.Group == "" && (k.Resource == gr.Resource || k.Singular == gr.Resource):
			meant = stored.String()
		}
	}
	return meant
}

// warnOfRetention logs rules for resources that neither plinth nor a definition has at the start. A definition
// may come later, so that this is no error.
func warnOfRetention(logger *slog.Logger, retention *changelog.Retention, kinds []*kind.Kind) {
	if len(unknownRules(retention, kinds)) == 0 {
		return // as by default, when a start need not make all kinds once more
	}
	for _, r := range unknownRules(retention, slices.Concat(kinds, builtin.Kinds(builtin.Options{}))) {
		logger.Warn("there is no such resource now, so a rule of --keep has no effect", "rule", r.String())
	}
}

// unknownRules returns the rules that fit none of kinds.
func unknownRules(retention *changelog.Retention, kinds []*kind.Kind) (unknown []changelog.Rule) {
	known := map[string]bool{"*": true}
	for _, k := range kinds {
		stored := schema.GroupResource{Group: k.Stored.Group, Resource: k.Stored.Resource}
		known[stored.String()], known["*."+cmp.Or(stored.Group, "core")] = true, true
	}
	return slices.DeleteFunc(retention.Rules(), func(r changelog.Rule) bool { return known[r.Resource] })
}
