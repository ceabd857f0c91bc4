package builtin

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/resourceconfig"
	"k8s.io/apiserver/pkg/server/storage"

	"github.com/plinth-io/plinth/server/kind"
)

// Enabled says which versions of which resources are served. A disabled version disappears
// from paths, discovery and OpenAPI; the stored objects stay.
type Enabled struct {
	config   *storage.ResourceConfig
	settings map[string]string // the result of plainSettings
	forward  Forward

	everything bool // also what is newer than the release that is emulated
}

var stable = regexp.MustCompile(`^v\d+$`)

// DefaultEnabled enables all stable versions, and neither beta nor alpha ones, as
// kube-apiserver does.
func DefaultEnabled() *Enabled {
	config := storage.NewResourceConfig()
	for _, scheme := range Schemes() {
		for _, gv := range scheme.PrioritizedVersionsAllGroups() {
			config.GroupVersionConfigs[gv] = stable.MatchString(gv.Version)
		}
	}
	return &Enabled{config: config}
}

// ParseEnabled changes the default by the settings of kube-apiserver's --runtime-config:
// api/all, api/ga, api/beta, api/alpha, GROUP/VERSION and GROUP/VERSION/RESOURCE, each true
// (or empty) or false. The more specific setting wins. The core group is api, as in paths, or
// empty. The error names a key that matches nothing, or only what is newer than the release that is emulated and not
// wanted by forward.
//
// Versions that Kubernetes has removed are enabled by name only, see Enabled.Removed.
func ParseEnabled(settings map[string]string, forward Forward) (*Enabled, error) {
	e := DefaultEnabled()
	e.forward = forward
	if len(settings) == 0 {
		return e, e.enableSuccessors()
	}
	settings = plainSettings(settings)
	if len(settings) == 1 && settings[resourceconfig.APIAll] == "false" {
		return nil, fmt.Errorf("api/all=false leaves nothing to serve; write what to serve behind it, such as api/all=false,api/v1=true")
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if err := checkSetting(key, settings[key]); err != nil {
			return nil, err
		}
	}
	e.settings = settings
	if _, err := resourceconfig.MergeAPIResourceConfigs(e.config, settings, registered{e.config}); err != nil {
		return nil, err
	}
	if err := e.enableSuccessors(); err != nil {
		return nil, err
	}
	return e, e.checkIntroduced()
}

// registered is a resourceconfig.GroupVersionRegistry of all group versions in a config.
// Upstream has one for each of its servers.
type registered struct{ *storage.ResourceConfig }

func (r registered) IsVersionRegistered(gv schema.GroupVersion) bool {
	_, ok := r.GroupVersionConfigs[gv]
	return ok
}

func (r registered) IsGroupRegistered(group string) bool {
	return len(r.PrioritizedVersionsForGroup(group)) > 0
}

func (r registered) PrioritizedVersionsAllGroups() []schema.GroupVersion {
	return slices.Collect(maps.Keys(r.GroupVersionConfigs))
}

func (r registered) PrioritizedVersionsForGroup(group string) []schema.GroupVersion {
	return slices.DeleteFunc(r.PrioritizedVersionsAllGroups(), func(gv schema.GroupVersion) bool { return gv.Group != group })
}

// plainSettings returns settings with upstream's keys, and with true for empty values.
func plainSettings(settings map[string]string) map[string]string {
	plain := make(map[string]string, len(settings))
	for key, value := range settings {
		plain[coreKey(key)] = cmp.Or(value, "true")
	}
	return plain
}

// coreKey returns upstream's key for the core group's v1, api/v1 and api/v1/RESOURCE.
func coreKey(key string) string {
	if key == "v1" || strings.HasPrefix(key, "v1/") {
		return "/" + key
	}
	if rest, ok := strings.CutPrefix(key, "api/v1"); ok && (rest == "" || rest[0] == '/') {
		return "/v1" + rest
	}
	return key
}

func checkSetting(key, value string) error {
	if value != "true" && value != "false" {
		return fmt.Errorf("%s=%s: write %s=true or %s=false", key, value, key, key)
	}
	parts := strings.Split(key, "/")
	switch {
	case key == resourceconfig.APIAll, key == resourceconfig.APIGA, key == resourceconfig.APIBeta, key == resourceconfig.APIAlpha:
		return nil
	case len(parts) < 2 || len(parts) > 3:
		return fmt.Errorf("%q is no version; write GROUP/VERSION, GROUP/VERSION/RESOURCE, api/all, api/ga, api/beta or api/alpha", key)
	}
	gv := schema.GroupVersion{Group: parts[0], Version: parts[1]}
	if _, known := DefaultEnabled().config.GroupVersionConfigs[gv]; !known {
		return fmt.Errorf("version %q is not known", gv)
	}
	if len(parts) == 3 && !known(gv.WithResource(parts[2])) && !wasRemoved(gv.String(), parts[2]) {
		return fmt.Errorf("resource %q is not known in %s; write its plural name", parts[2], gv)
	}
	return nil
}

// known reports whether a resource exists, enabled or not.
func known(gvr schema.GroupVersionResource) bool {
	if gvr == (schema.GroupVersionResource{Version: "v1", Resource: "bindings"}) {
		return true // bindings are there only with a store
	}
	for _, k := range allKinds() {
		if k.Group == gvr.Group && k.Resource == gvr.Resource && k.Version(gvr.Version) != nil {
			return true
		}
	}
	return false
}

// allKinds are all kinds in all versions that this release of Kubernetes has.
func allKinds() []*kind.Kind {
	all := DefaultEnabled()
	all.everything = true
	for gv := range all.config.GroupVersionConfigs {
		all.config.GroupVersionConfigs[gv] = true
	}
	return Kinds(Options{Enabled: all})
}

// of removes what is disabled from kinds, and adds field managers to the others.
func (e *Enabled) of(kinds []*kind.Kind) []*kind.Kind {
	return slices.DeleteFunc(kinds, func(k *kind.Kind) bool {
		k.Versions = slices.DeleteFunc(k.Versions, func(v kind.Version) bool {
			return !e.config.ResourceEnabled(k.GroupResource().WithVersion(v.Name))
		})
		e.introduce(k)
		addFieldManagers(k)
		return len(k.Versions) == 0
	})
}
