package debugging

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/flagz"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	zpages "k8s.io/component-base/zpages/features"
	_ "k8s.io/kubernetes/pkg/features" // which has the gates of the pages
)

func TestPages(t *testing.T) {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	flags.String("listen", "127.0.0.1:6443", "")
	flags.String("dsn", "postgres://plinth:open@db/plinth", "")
	if err := flags.SetAnnotation("dsn", "classified", []string{"true"}); err != nil {
		t.Fatal(err)
	}
	made := func() Pages {
		p := Pages{}
		p.AddFlags(flagz.NamedFlagSetsReader{FlagSets: cliflag.NamedFlagSets{FlagSets: map[string]*pflag.FlagSet{"serve": flags}}})
		p.AddStatus(compatibility.NewEffectiveVersionFromString("1.37", "1.36", "1.36"), func() []string { return []string{"/livez", "/version"} })
		return p
	}
	pages := made()
	get := func(path, accept string) string {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept", accept)
		pages[path].ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", path, w.Code)
		}
		return w.Body.String()
	}
	for _, row := range []struct {
		path, accept string
		has          []string
	}{
		{"/flagz", "text/plain", []string{"apiserver flagz", "127.0.0.1:6443", "CLASSIFIED"}},
		{"/flagz", "application/json;as=Flagz;v=v1beta1;g=config.k8s.io", []string{`"apiVersion":"config.k8s.io/v1beta1"`, `"dsn":"CLASSIFIED"`}},
		{"/statusz", "text/plain", []string{"apiserver statusz", "1.37", "/livez"}},
		{"/statusz", "application/json;as=Statusz;v=v1beta1;g=config.k8s.io", []string{`"kind":"Statusz"`, `"/version"`}},
	} {
		got := get(row.path, row.accept)
		for _, has := range row.has {
			if !strings.Contains(got, has) {
				t.Errorf("%s as %s has no %s: %s", row.path, row.accept, has, got)
			}
		}
		if strings.Contains(got, "open") {
			t.Errorf("%s shows a password: %s", row.path, got)
		}
	}
	featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, featuregatetesting.FeatureOverrides{
		zpages.ComponentFlagz: false, zpages.ComponentStatusz: false,
	})
	if pages = made(); len(pages) != 0 {
		t.Errorf("without the feature gates: %v", pages)
	}
}
