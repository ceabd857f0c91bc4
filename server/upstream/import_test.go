package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestImport takes the recorded snapshot on each dialect: every object is as the kube-apiserver
// answered it in the version that plinth keeps, and what was encrypted is encrypted.
func TestImport(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		p, log := providers(t, "testdata/encryption.yaml"), openLog(t, d.Fresh(t))
		report := take(t, openSnapshot(t), log, p)
		checkReport(t, report)
		values, sealed := plainRows(t, log, p)
		if want := []string{"/registry/acme.io/cars/default/beetle", "/registry/acme.io/cars/default/sealed", "/registry/core/secrets/default/s", "/registry/core/secrets/default/sealed"}; !slices.Equal(sealed, want) {
			t.Errorf("encrypted are %q", sealed)
		}
		if int(report.Objects) != len(values) {
			t.Errorf("%d objects were taken, and %d are there", report.Objects, len(values))
		}
		asRecorded(t, values)
		head, err := log.Head(t.Context())
		must(t, err)
		if head.Floor <= snapshotRevision {
			t.Errorf("clients of the etcd may have seen revision %d; compacted is %d", snapshotRevision, head.Floor)
		}
		again := &upstream.Import{From: openSnapshot(t), Layout: layout(t), Encryption: p}
		must(t, again.Survey(t.Context()))
		if _, err := again.Run(t.Context(), log); !errors.Is(err, changelog.ErrNotEmpty) || errors.Is(err, changelog.ErrHalfCopied) {
			t.Errorf("a second import: %v", err)
		}
	})
}

func checkReport(t *testing.T, r upstream.Report) {
	t.Helper()
	if r.Revision != snapshotRevision || len(r.NotTaken) > 0 || len(r.LeftOut) != 2 {
		t.Errorf("revision %d, not taken %v, left out %v", r.Revision, r.NotTaken, r.LeftOut)
	}
	converted := map[string]map[string]int64{}
	for _, of := range r.Resources {
		if len(of.Converted) > 0 {
			converted[of.Resource] = of.Converted
		}
	}
	want := map[string]map[string]int64{
		"customresourcedefinitions": {"apiextensions.k8s.io/v1beta1": 1},
		"ipaddresses":               {"networking.k8s.io/v1beta1": 2},
		"servicecidrs":              {"networking.k8s.io/v1beta1": 1},
		"volumeattributesclasses":   {"storage.k8s.io/v1beta1": 1},
	}
	if diff := cmp.Diff(want, converted); diff != "" {
		t.Errorf("converted: %s", diff)
	}
}

// asRecorded compares values of a log with what the kube-apiserver answered.
func asRecorded(t *testing.T, values map[string]string) {
	t.Helper()
	byUID := map[string]map[string]any{} // and apiVersion
	for _, items := range recorded(t) {
		for _, item := range items {
			nowadays(item)
			byUID[uidOf(item)+item["apiVersion"].(string)] = item
		}
	}
	for key, text := range values {
		if strings.HasPrefix(key, "/registry/coordination.k8s.io/leases/") {
			continue // it was renewed meanwhile
		}
		var got map[string]any
		must(t, json.Unmarshal([]byte(text), &got))
		want := byUID[uidOf(got)+got["apiVersion"].(string)]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
		head := text[:strings.Index(text, `"metadata"`)]
		if !strings.HasPrefix(text, `{"kind":`) || strings.Count(head, ":") != 2 {
			t.Errorf("%s begins with %s", key, head)
		}
	}
}

// nowadays makes of what kube-apiserver 1.33 answered what 1.37 answers for the same stored object: times that are not set are
// left out, the default of MaxUnavailableStatefulSet is set, and VolumeAttributesClasses are stored in storage.k8s.io/v1.
func nowadays(item map[string]any) {
	withoutNulls(item)
	switch item["kind"] {
	case "StatefulSet":
		update := item["spec"].(map[string]any)["updateStrategy"].(map[string]any)["rollingUpdate"].(map[string]any)
		update["maxUnavailable"] = 1.0
	case "VolumeAttributesClass":
		if item["apiVersion"] == "storage.k8s.io/v1beta1" {
			item["apiVersion"] = "storage.k8s.io/v1"
		}
	}
}

func withoutNulls(fields map[string]any) {
	if at, there := fields["creationTimestamp"]; there && at == nil {
		delete(fields, "creationTimestamp")
	}
	for _, value := range fields {
		if inner, is := value.(map[string]any); is {
			withoutNulls(inner)
		}
	}
}

func uidOf(object map[string]any) string {
	uid, _ := object["metadata"].(map[string]any)["uid"].(string)
	return uid
}

// TestImportLive reads an etcd that runs and gets what a snapshot of it has, at one revision.
func TestImportLive(t *testing.T) {
	url := "http://" + etcdtest.StartAt(t)
	c := client(t, url)
	load(t, c)
	takeLive(t, c, func() (upstream.LiveSource, error) {
		return upstream.OpenEtcd(t.Context(), upstream.Etcd{URLs: []string{url}})
	})
}

// TestImportLargeLate reads large values that come after many small ones, with which pages grow, in pages of few bytes.
func TestImportLargeLate(t *testing.T) {
	const small, large, bytes = 120, 40, 1 << 20
	url := "http://" + etcdtest.StartAt(t)
	c := client(t, url)
	for i := range small {
		c.set(t, fmt.Sprintf("/registry/a/%03d", i), "1")
	}
	for i := range large {
		c.set(t, fmt.Sprintf("/registry/b/%03d", i), strings.Repeat("x", bytes))
	}
	source, err := upstream.OpenEtcd(t.Context(), upstream.Etcd{URLs: []string{url}})
	must(t, err)
	defer source.Close()
	var keys []string
	must(t, source.Each(t.Context(), "/registry/", func(page []upstream.Pair) error {
		size := 0
		for _, p := range page {
			keys, size = append(keys, p.Key), size+len(p.Value)
		}
		if size > 32<<20 {
			t.Errorf("a page of %d keys has %d bytes", len(page), size)
		}
		return nil
	}))
	if len(keys) != small+large || !slices.IsSorted(keys) || len(slices.Compact(keys)) != small+large {
		t.Errorf("%d keys, want %d", len(keys), small+large)
	}
}

// TestImportKine reads what kine keeps in each dialect.
func TestImportKine(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		c := client(t, "http://"+etcdtest.StartKine(t, kineEndpoint(t, dsn)))
		load(t, c)
		takeLive(t, c, func() (upstream.LiveSource, error) { return upstream.OpenKine(t.Context(), dsn, false) })
	})
}

// takeLive imports a source that has what the recorded snapshot has.
func takeLive(t *testing.T, c store, open func() (upstream.LiveSource, error)) {
	t.Helper()
	p := providers(t, "testdata/encryption.yaml")
	c.set(t, "/registry/configmaps/default/gone", "1")
	c.remove(t, "/registry/configmaps/default/gone")
	before := c.revision(t)
	source, err := open()
	must(t, err)
	defer source.Close()
	c.set(t, "/registry/configmaps/default/late", "1")
	live, snapshot := openLog(t, logtest.SQLite(t)), openLog(t, logtest.SQLite(t))
	take(t, source, live, p)
	take(t, openSnapshot(t), snapshot, p)
	got, _ := plainRows(t, live, p)
	want, _ := plainRows(t, snapshot, p)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	head, err := live.Head(t.Context())
	must(t, err)
	if head.Floor < before {
		t.Errorf("the source was at revision %d; compacted is %d", before, head.Floor)
	}
}

// pairs is a Source for tests.
type pairs []upstream.Pair

func (p pairs) Revision() int64 { return 7 }
func (p pairs) Close() error    { return nil }
func (p pairs) Each(_ context.Context, prefix string, f func([]upstream.Pair) error) error {
	for _, pair := range p {
		if strings.HasPrefix(pair.Key, prefix) {
			if err := f([]upstream.Pair{pair}); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestImportSkips has keys and values that are not taken, each with its reason, and all others are.
func TestImportSkips(t *testing.T) {
	const good = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"1"}}`
	crd := `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"cars.acme.io","uid":"2"},"spec":{"group":"acme.io","scope":"Namespaced","names":{"plural":"cars","kind":"Car"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	from := pairs{
		{"/registry/acme.io/cars/n/first", []byte(`{ "apiVersion":"acme.io/v1", "b":[1.50, 12345678901234567890], "kind":"Car", "metadata":{"name":"first","namespace":"n","resourceVersion":"5","selfLink":"/x"}, "a":"<é>" }`), 0},
		{"/registry/configmaps/n/a", []byte(good), 0},
		{"/registry/apiextensions.k8s.io/customresourcedefinitions/cars.acme.io", []byte(crd), 0},
		{"/registry/configmaps/n/b", []byte(good), 0},
		{"/registry/configmaps/n/c", []byte("\x00"), 0},
		{"/registry/configmaps/n/d", []byte("k8s\x00\xff\xff"), 0},
		{"/registry/configmaps/n/e\x1b", []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"e\u001b","namespace":"n"}}`), 0},
		{"/registry/configmaps/n", []byte(good), 0},
		{"/registry/configmaps/n/a/b", []byte(good), 0},
		{"/registry/pods/n/a", []byte(good), 0},
		{"/registry/podsecuritypolicies/a", []byte(`{"kind":"PodSecurityPolicy","apiVersion":"policy/v1beta1","metadata":{"name":"a"}}`), 0},
		{"/registry/roles/n/a", []byte(`{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v9","metadata":{"name":"a","namespace":"n"}}`), 0},
		{"/registry/acme.io/cars/n/bus", []byte(`{"kind":"Bus","apiVersion":"acme.io/v1","metadata":{"name":"bus","namespace":"n"}}`), 0},
		{"/registry/acme.io/cars/n/cbor", []byte("\xd9\xd9\xf7\xa0"), 0},
		{"/registry/acme.io/cars/n/cut", []byte(`{"kind":"Car","apiVersion":"acme.io/v1","metadata":{"name":"cut"`), 0},
		{"/registry/acme.io/boats/n/a", []byte(`{"kind":"Boat","apiVersion":"acme.io/v1","metadata":{"name":"a","namespace":"n"}}`), 0},
		{"/registry/health", []byte("{}"), 0},
		{"/registry/masterleases/10.0.0.1", []byte("{}"), 0},
		{"/registry/ranges/serviceips", []byte("{}"), 0},
		{"compact_rev_key", []byte("4"), 0},
		{"/elsewhere/a", []byte("4"), 0},
	}
	p, log := providers(t, ""), openLog(t, logtest.SQLite(t))
	report := take(t, from, log, p)
	values, _ := plainRows(t, log, p)
	want := map[string]string{
		"/registry/acme.io/cars/n/first": `{"kind":"Car","apiVersion":"acme.io/v1","metadata":{"name":"first","namespace":"n"},"a":"<é>","b":[1.50,12345678901234567890]}`,
		"/registry/core/configmaps/n/a":  `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"1"}}`,
	}
	for key, value := range want {
		if values[key] != value {
			t.Errorf("%s is %s", key, values[key])
		}
	}
	if len(values) != 3 || report.Objects != 3 {
		t.Errorf("taken are %v", values)
	}
	why := map[string]string{}
	for _, s := range slices.Concat(report.NotTaken, report.LeftOut) {
		for _, key := range s.Keys {
			why[strings.TrimPrefix(key, "/registry/")] = s.Why
		}
	}
	for key, reason := range map[string]string{
		"configmaps/n/b":        "another name",
		"configmaps/n/c":        "neither JSON nor",
		"configmaps/n/d":        "unexpected EOF",
		"configmaps/n/e\x1b":    "has control characters",
		"configmaps/n":          "does not end with the name",
		"configmaps/n/a/b":      "does not end with the name",
		"pods/n/a":              "it is a ConfigMap",
		"podsecuritypolicies/a": "there is no resource with the path podsecuritypolicies in Kubernetes " + kind.Major + "." + kind.Minor,
		"roles/n/a":             "there is no Role of rbac.authorization.k8s.io/v9 in Kubernetes " + kind.Major + "." + kind.Minor,
		"acme.io/cars/n/bus":    "it is a Bus of acme.io/v1, not a Car",
		"acme.io/cars/n/cbor":   "CBOR",
		"acme.io/cars/n/cut":    "its JSON cannot be read",
		"acme.io/boats/n/a":     "there is no CustomResourceDefinition boats.acme.io",
		"health":                "a probe",
		"masterleases/10.0.0.1": "kube-apiservers' own",
		"ranges/serviceips":     "made again",
	} {
		if !strings.Contains(why[key], reason) {
			t.Errorf("%s: %q; want %q", key, why[key], reason)
		}
		delete(why, key)
	}
	if len(why) > 0 {
		t.Errorf("also skipped: %v", why)
	}
}

// TestImportInterrupted ends in the middle. The log is not served, and the next import begins anew with it.
func TestImportInterrupted(t *testing.T) {
	log, p := openLog(t, logtest.SQLite(t)), providers(t, "")
	source := newMoving()
	source.set("a", 1)
	away := errors.New("it is away")
	im := &upstream.Import{From: failing{source, away}, Layout: layout(t), Encryption: p}
	report, err := im.Run(t.Context(), log)
	if !errors.Is(err, away) || !errors.Is(err, changelog.ErrHalfCopied) || report.Objects != 1 {
		t.Errorf("%d objects, %v", report.Objects, err)
	}
	if err := changelog.HalfCopied(t.Context(), log); !errors.Is(err, changelog.ErrHalfCopied) {
		t.Errorf("afterwards: %v", err)
	}
	source.remove("a")
	source.set("b", 2)
	must(t, source.Refresh(t.Context()))
	im = &upstream.Import{From: source, Layout: layout(t), Encryption: p}
	if report, err := im.Run(t.Context(), log); err != nil || report.Objects != 1 {
		t.Errorf("again: %d objects, %v", report.Objects, err)
	}
	if err := changelog.HalfCopied(t.Context(), log); err != nil {
		t.Errorf("in the end: %v", err)
	}
	head, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := log.State(t.Context(), "", changelog.End, head.Revision, 10)
	if err != nil || len(rows) != 1 || !strings.HasSuffix(rows[0].Key, "/b") {
		t.Errorf("there are %+v, %v", rows, err)
	}
}

// failing is a Source that fails at its end.
type failing struct {
	upstream.Source
	err error
}

func (f failing) Each(ctx context.Context, prefix string, do func([]upstream.Pair) error) error {
	return errors.Join(f.Source.Each(ctx, prefix, do), f.err)
}

// TestImportSealed is refused without the right keys, before anything is written.
func TestImportSealed(t *testing.T) {
	im := &upstream.Import{From: openSnapshot(t), Layout: layout(t), Encryption: providers(t, "")}
	var sealed *upstream.SealedError
	if err := im.Survey(t.Context()); !errors.As(err, &sealed) || sealed.Keys != 2 {
		t.Errorf("%v", err)
	}
	moved := pairs{}
	must(t, openSnapshot(t).Each(t.Context(), "/registry/secrets/", func(page []upstream.Pair) error {
		for _, p := range page {
			moved = append(moved, upstream.Pair{Key: strings.Replace(p.Key, "/default/", "/other/", 1), Value: p.Value})
		}
		return nil
	}))
	im = &upstream.Import{From: moved, Layout: layout(t), Encryption: providers(t, "testdata/encryption.yaml")}
	if err := im.Survey(t.Context()); !errors.As(err, &sealed) || len(moved) != 2 || sealed.Keys != 1 {
		t.Errorf("values under other keys: %v", err)
	}
	im = &upstream.Import{From: moved, Layout: layout(t), Encryption: providers(t, "")}
	im.From = pairs{{Key: "/other/a"}}
	if err := im.Survey(t.Context()); !errors.Is(err, upstream.ErrNoKeys) {
		t.Errorf("no keys: %v", err)
	}
}
