package history_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/dialects/logtest"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/servertest"
)

// TestPagesOfBytes reads versions of which few fit on a page in each form of an answer: all come, once and whole, on
// pages that are no longer than they may be.
func TestPagesOfBytes(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		srv := servertest.Start(t, servertest.Options{DSN: d.Fresh(t)})
		p := &past{t, srv.Config, kubernetes.NewForConfigOrDie(srv.Config)}
		must[*corev1.Namespace](t)(p.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}))
		const large = 900_000
		maps, wide := p.client.CoreV1().ConfigMaps("shop"), strings.Repeat("x", large)
		var want []string
		var first, last string
		for i := range 12 {
			m := p.configMap("a", fmt.Sprint(i, wide))
			var err error
			if i == 0 {
				m, err = maps.Create(t.Context(), m, metav1.CreateOptions{})
				first = must[*corev1.ConfigMap](t)(m, err).ResourceVersion
			} else {
				m, err = maps.Update(t.Context(), m, metav1.UpdateOptions{})
			}
			last = must[*corev1.ConfigMap](t)(m, err).ResourceVersion
			want = append(want, fmt.Sprint(i))
		}
		for i := range 10 {
			last = must[*corev1.ConfigMap](t)(maps.Create(t.Context(), p.configMap(fmt.Sprint("b", i), fmt.Sprint(i, wide)), metav1.CreateOptions{})).ResourceVersion
		}
		slices.Reverse(want)
		one := "namespaces/shop/versions?fieldSelector=" + selecting("object.resource=configmaps", "object.name=a")
		for _, c := range []struct {
			path, accept string
			pages, most  int // pages 0: the first one
			want         []string
		}{
			{one, "application/json", 2, 8 << 20, want},
			{one + "&pretty=true", "application/json", 12, 1 << 20, want},
			{one + "&limit=1", "application/yaml", 0, 1 << 20, want[:1]},
			{one, "application/yaml", 0, 1 << 20, want[:1]},
			{one + "&limit=5", "application/json", 3, 8 << 20, want},
			{one, "application/json;as=Table;v=v1;g=meta.k8s.io", 1, 1 << 20, nil},
			{one, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", 1, 1 << 20, nil},
			{"namespaces/shop/versions?fieldSelector=" + selecting("object.resource=configmaps", "at="+last), "application/json", 2, 8 << 20,
				[]string{"11", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}},
		} {
			if d.Name != "sqlite" && (c.accept != "application/json" || strings.Contains(c.path, "pretty")) {
				continue // what is read from the database is the same
			}
			pages, got := 0, []string(nil)
			for token := ""; ; pages++ {
				raw, err := p.client.CoreV1().RESTClient().Get().RequestURI("/apis/history.plinth.io/v1/"+c.path+"&continue="+url.QueryEscape(token)).
					SetHeader("Accept", c.accept).DoRaw(t.Context())
				if err != nil {
					t.Fatal(c.accept, err)
				}
				if len(raw) > c.most+large/4 {
					t.Errorf("%s: a page of %d bytes", c.accept, len(raw))
				}
				var list historyv1.VersionList
				unmarshal := json.Unmarshal
				if strings.HasSuffix(c.accept, "yaml") {
					unmarshal = func(raw []byte, to any) error { return yaml.Unmarshal(raw, to) }
				}
				if err := unmarshal(raw, &list); err != nil {
					t.Fatal(c.accept, err)
				}
				for _, v := range list.Items {
					if c.want != nil {
						got = append(got, value(t, &v, large))
					}
				}
				if token = list.Continue; token == "" || c.pages == 0 {
					break
				}
			}
			if pages++; c.pages != 0 && pages != c.pages || !slices.Equal(got, c.want) {
				t.Errorf("%s as %s: %d pages, want %d; %q, want %q", c.path, c.accept, pages, c.pages, got, c.want)
			}
		}
		p.watchLarge(first, want, large)
	})
}

// value is what a version has before all that is wide.
func value(t *testing.T, v *historyv1.Version, wide int) string {
	t.Helper()
	var m corev1.ConfigMap
	if err := json.Unmarshal(v.Data.Raw, &m); err != nil {
		t.Fatal(err)
	}
	text := m.Data["v"]
	if m.ResourceVersion != v.Name || len(text) < wide {
		t.Fatalf("version %s has an object of version %q, and %d bytes", v.Name, m.ResourceVersion, len(text))
	}
	return text[:len(text)-wide]
}

// watchLarge follows the versions after the first one.
func (p *past) watchLarge(first string, newest []string, wide int) {
	p.t.Helper()
	path := "/apis/history.plinth.io/v1/namespaces/shop/versions?watch=true&resourceVersion=" + first + "&fieldSelector=" + selecting("object.resource=configmaps", "object.name=a")
	stream, err := p.client.CoreV1().RESTClient().Get().RequestURI(path).Stream(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	defer stream.Close()
	d := json.NewDecoder(stream)
	for _, want := range slices.Backward(newest[:len(newest)-1]) {
		var ev struct {
			Type   string
			Object historyv1.Version
		}
		if err := d.Decode(&ev); err != nil {
			p.t.Fatal(err)
		}
		if got := value(p.t, &ev.Object, wide); got != want {
			p.t.Fatalf("%s %s, want %s", ev.Type, got, want)
		}
	}
}
