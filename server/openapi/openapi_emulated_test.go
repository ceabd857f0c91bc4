package openapi_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

// TestEmulatedRelease: the documents of an older release that is emulated name what that release serves, and nothing else. What
// is served is compared with kube-apiserver elsewhere (TestDiscoveryRecorded).
func TestEmulatedRelease(t *testing.T) {
	if err := kind.Emulate([]string{"1.36"}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kind.Emulate(nil, nil); err != nil {
			t.Fatal(err)
		}
	})
	enabled, err := builtin.ParseEnabled(map[string]string{"api/all": "true"}, builtin.Forward{})
	if err != nil {
		t.Fatal(err)
	}
	server, kinds := serve(t)
	kinds.Replace(kinds.Set().Kinds, builtin.Kinds(builtin.Options{Enabled: enabled}))
	want := servedPaths(kinds)
	if slices.Contains(want, "/apis/certificates.k8s.io/v1 clustertrustbundles") {
		t.Error("1.36 has no ClusterTrustBundles in v1")
	}
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		}
	}
	_, body := get(t, server, "/openapi/v3")
	if err := json.Unmarshal(body, &index); err != nil {
		t.Fatal(err)
	}
	var v3 []string
	for _, document := range index.Paths {
		_, body := get(t, server, document.ServerRelativeURL)
		v3 = append(v3, describedPaths(t, body)...)
	}
	_, body = get(t, server, "/openapi/v2", "Accept", "application/json")
	for name, got := range map[string][]string{"v3": v3, "v2": describedPaths(t, body)} {
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s:\n got %v\nwant %v", name, got, want)
		}
	}
}

// servedPaths are the resources that are served, after the path of their versions.
func servedPaths(kinds *kind.Registry) (all []string) {
	for _, k := range kinds.Set().Kinds {
		for _, v := range k.Versions {
			path := "/apis/" + k.Group + "/" + v.Name
			if k.Group == "" {
				path = "/api/" + v.Name
			}
			all = append(all, path+" "+k.Resource)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// describedPaths are the resources in the paths of a document.
func describedPaths(t *testing.T, document []byte) (all []string) {
	t.Helper()
	var doc struct{ Paths map[string]any }
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	for path := range doc.Paths {
		parts := strings.Split(strings.Trim(path, "/"), "/")
		versioned := 3 // apis, group, version
		if parts[0] == "api" {
			versioned = 2
		}
		if len(parts) <= versioned || parts[0] != "api" && parts[0] != "apis" {
			continue
		}
		of, resource := "/"+strings.Join(parts[:versioned], "/"), parts[versioned:]
		if len(resource) > 2 && resource[0] == "namespaces" && resource[2] != "status" && resource[2] != "finalize" {
			resource = resource[2:]
		}
		all = append(all, of+" "+resource[0])
	}
	return all
}
