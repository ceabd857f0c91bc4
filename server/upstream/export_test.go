package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/encryption"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/upstream"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// memory is a Target for tests.
type memory struct {
	items     map[string]upstream.Item
	fail      error // of Finish
	abandoned bool
}

func (m *memory) Put(_ context.Context, items []upstream.Item) error {
	if m.items == nil {
		m.items = map[string]upstream.Item{}
	}
	for _, item := range items {
		m.items[item.Key] = item
	}
	return nil
}

func (m *memory) Finish(_ context.Context, head int64) (int64, error) { return head, m.fail }

func (m *memory) Abandon(context.Context) error {
	m.abandoned = true
	return nil
}

func newExport(t testing.TB, from changelog.Log, p *encryption.Providers) *upstream.Export {
	t.Helper()
	return &upstream.Export{From: from, Layout: layout(t), Encryption: p, EventTTL: time.Hour}
}

// give exports a log to a target.
func give(t testing.TB, from changelog.Log, to upstream.Target, p *encryption.Providers) upstream.ExportReport {
	t.Helper()
	ex := newExport(t, from, p)
	must(t, ex.Survey(t.Context()))
	report, err := ex.Run(t.Context(), to)
	must(t, err)
	return report
}

// opened returns the value of a pair of an etcd, decrypted, and whether it was encrypted.
func opened(t testing.TB, pair upstream.Pair, p *encryption.Providers) (plain string, sealed bool) {
	t.Helper()
	if !strings.HasPrefix(string(pair.Value), "k8s:enc:") {
		return string(pair.Value), false
	}
	b, err := p.FromUpstream(t.Context(), sealedResource(pair.Key), pair.Key, pair.Value)
	must(t, err)
	return string(b), true
}

// notExported tells whether a key of the recorded snapshot is none that export writes: the servers'
// own keys, and the volume claim, whose phase kube-apiserver leaves out of what it stores and adds
// to what it reads; plinth stores it.
func notExported(key string) bool {
	for _, part := range []string{"/masterleases/", "/ranges/", "/leases/kube-system/apiserver-", "compact_rev_key", "/persistentvolumeclaims/"} {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

// storedNowadays returns what kube-apiserver 1.37 stores when it is given what 1.33 has stored, where that differs.
func storedNowadays(t *testing.T, stored string) string {
	t.Helper()
	hub, kind, err := legacyscheme.Codecs.UniversalDecoder().Decode([]byte(stored), nil, nil)
	must(t, err)
	switch kind.Kind {
	case "IPAddress", "ServiceCIDR", "VolumeAttributesClass":
		kind.Version = "v1"
	case "StatefulSet": // has one more default
	default:
		return stored
	}
	protobuf, _ := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	b, err := runtime.Encode(legacyscheme.Codecs.EncoderForVersion(protobuf.Serializer, kind.GroupVersion()), hub)
	must(t, err)
	return string(b)
}

// TestExportBytes imports what a kube-apiserver has stored, and exports the very same bytes.
func TestExportBytes(t *testing.T) {
	p, log := providers(t, "testdata/encryption.yaml"), openLog(t, logtest.SQLite(t))
	take(t, openSnapshot(t), log, p)
	var to memory
	report := give(t, log, &to, p)
	if len(report.NotWritten) > 0 || len(report.LeftOut) != 1 || len(report.LeftOut[0].Keys) != 1 || report.Objects != 219 || int(report.Objects) != len(to.items) {
		t.Errorf("%d objects, not written %v, left out %v", report.Objects, report.NotWritten, report.LeftOut)
	}
	must(t, openSnapshot(t).Each(t.Context(), "", func(page []upstream.Pair) error {
		for _, pair := range page {
			item, there := to.items[pair.Key]
			if notExported(pair.Key) {
				if there && !strings.Contains(pair.Key, "/persistentvolumeclaims/") {
					t.Errorf("%s was exported", pair.Key)
				}
				continue
			}
			want, _ := opened(t, pair, p)
			if strings.HasPrefix(want, "k8s\x00") {
				want = storedNowadays(t, want)
			}
			if got, _ := opened(t, item.Pair, p); got != want {
				t.Errorf("%s:\n%q\nwant\n%q", pair.Key, got, want)
			}
		}
		return nil
	}))
	sealed := map[string]bool{}
	for key, item := range to.items {
		_, sealed[key] = opened(t, item.Pair, p)
		if want := strings.Contains(key, "/secrets/") || strings.Contains(key, "/cars/"); sealed[key] != want {
			t.Errorf("%s: encrypted %v, want %v", key, sealed[key], want)
		}
	}
	checkConverted(t, report.Resources)
}

// pages is a Target that keeps the bytes of the largest page.
type pages struct {
	memory
	largest int
}

func (p *pages) Put(ctx context.Context, items []upstream.Item) error {
	size := 0
	for _, item := range items {
		size += len(item.Value)
	}
	p.largest = max(p.largest, size)
	return p.memory.Put(ctx, items)
}

// TestExportLargeLate exports large objects that come after many small ones, with which pages grow, in pages of few bytes.
func TestExportLargeLate(t *testing.T) {
	const small, large, bytes = 120, 40, 1 << 20
	log := openLog(t, logtest.SQLite(t))
	for i := range small + large {
		data := "1"
		if i >= small {
			data = strings.Repeat("x", bytes)
		}
		name := fmt.Sprintf("c%03d", i)
		_, err := log.Append(t.Context(), []changelog.Change{{
			Key:   "/registry/core/configmaps/default/" + name,
			Value: fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default"},"data":{"a":%q}}`, name, data),
		}})
		must(t, err)
	}
	var to pages
	if report := give(t, log, &to, providers(t, "")); report.Objects != small+large || len(to.items) != small+large {
		t.Errorf("%d objects in the report, %d in the target, want %d", report.Objects, len(to.items), small+large)
	}
	if to.largest > 32<<20 {
		t.Errorf("a page has %d bytes", to.largest)
	}
}

// checkConverted expects that those objects were converted which kube-apiserver stores in other
// versions than plinth.
func checkConverted(t *testing.T, resources []upstream.ResourceReport) {
	t.Helper()
	converted := map[string]map[string]int64{}
	for _, of := range resources {
		if len(of.Converted) > 0 {
			converted[of.Resource] = of.Converted
		}
	}
	want := map[string]map[string]int64{
		"customresourcedefinitions": {"apiextensions.k8s.io/v1beta1": 1},
	}
	if diff := cmp.Diff(want, converted); diff != "" {
		t.Errorf("converted: %s", diff)
	}
}

// TestExportBack exports a log of each dialect to a file, imports that, and has the same log again: of
// the recorded objects, and of one object of each built-in resource.
func TestExportBack(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		p, log := providers(t, "testdata/encryption.yaml"), openLog(t, d.Fresh(t))
		take(t, openSnapshot(t), log, p)
		added := addOfEachKind(t, log, p)
		before, sealed := plainRows(t, log, p)
		file := filepath.Join(t.TempDir(), "export.db")
		to, err := upstream.CreateSnapshot(file)
		must(t, err)
		report := give(t, log, to, p)
		if len(report.NotWritten) > 0 {
			t.Errorf("not written: %v", report.NotWritten)
		}
		back, err := upstream.OpenSnapshot(t.Context(), file)
		must(t, err)
		defer back.Close()
		again := openLog(t, logtest.SQLite(t))
		take(t, back, again, p)
		after, sealedAgain := plainRows(t, again, p)
		for key := range before {
			if strings.Contains(key, "/leases/kube-system/apiserver-") {
				delete(before, key)
			}
		}
		if diff := cmp.Diff(before, after); diff != "" || added < 50 {
			t.Errorf("with %d objects added: %s", added, diff)
		}
		if !slices.Equal(sealed, sealedAgain) {
			t.Errorf("encrypted were %q, are %q", sealed, sealedAgain)
		}
	})
}

// addOfEachKind writes an object of each built-in resource that is stored to a log, without
// definitions, which need more than a name.
func addOfEachKind(t *testing.T, log changelog.Log, p *encryption.Providers) (objects int) {
	t.Helper()
	all, err := builtin.ParseEnabled(map[string]string{"api/all": "true"}, builtin.Forward{})
	must(t, err)
	var batch []changelog.Change
	for _, k := range builtin.Kinds(builtin.Options{Enabled: all}) {
		if k.Virtual != nil || k.Observed != nil || k.Group != k.Stored.Group || k.Kind == "CustomResourceDefinition" {
			continue
		}
		obj := k.Codec.New()
		accessor, err := meta.Accessor(obj)
		must(t, err)
		accessor.SetName("one-of-each")
		accessor.SetUID("5d6e8c62-1a4b-4c4e-8c3f-0a8c5f5b0c11")
		if k.Namespaced {
			accessor.SetNamespace("default")
		}
		value, err := k.Codec.Encode(obj)
		must(t, err)
		key := k.Key(accessor.GetNamespace(), accessor.GetName())
		value, err = p.ToStorage(t.Context(), key, value)
		must(t, err)
		batch = append(batch, changelog.Change{Key: key, Value: value})
	}
	_, err = log.Append(t.Context(), batch)
	must(t, err)
	return len(batch)
}

// write appends objects to a log, in the order of pairs of key and value.
func write(t *testing.T, log changelog.Log, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		_, err := log.Append(t.Context(), []changelog.Change{{Key: pairs[i], Value: []byte(pairs[i+1])}})
		must(t, err)
	}
}

// TestExportSkips has rows that are not written, each with its reason, and all others are.
func TestExportSkips(t *testing.T) {
	log := openLog(t, logtest.SQLite(t))
	const crd = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"cars.acme.io","uid":"2"},"spec":{"group":"acme.io","scope":"Namespaced","names":{"plural":"cars","kind":"Car"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
	write(t, log,
		"/registry/acme.io/cars/n/a", `{"kind":"Car","apiVersion":"acme.io/v1","metadata":{"name":"a","namespace":"n"},"a":"<é>","b":[1.50,12345678901234567890]}`,
		"/registry/apiextensions.k8s.io/customresourcedefinitions/cars.acme.io", crd,
		"/registry/acme.io/boats/n/a", `{"kind":"Boat","apiVersion":"acme.io/v1","metadata":{"name":"a","namespace":"n"}}`,
		"/registry/core/configmaps/n/broken", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"broken"`,
		"/registry/core/configmaps/n/good", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"good","namespace":"n"}}`,
		"/registry/core/events/n/e", `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e","namespace":"n"}}`,
		"/registry/_plinth/nodeports/30000", `{"kind":"NodePort","apiVersion":"plinth.io/v1","metadata":{}}`,
		"/registry/apiregistration.k8s.io/apiservices/v1.history.plinth.io", `{"kind":"APIService","apiVersion":"apiregistration.k8s.io/v1","metadata":{"name":"v1.history.plinth.io"}}`,
		"/registry/rbac.authorization.k8s.io/clusterrolebindings/plinth:kubelet-client", `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"plinth:kubelet-client"}}`,
		"/registry/rbac.authorization.k8s.io/clusterroles/plinth:aggregate-to-view", `{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"plinth:aggregate-to-view"}}`,
		"/registry/rbac.authorization.k8s.io/clusterroles/view", `{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"view"}}`,
		"/registry/coordination.k8s.io/leases/kube-system/apiserver-1", `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"apiserver-1","namespace":"kube-system","labels":{"apiserver.kubernetes.io/identity":"kube-apiserver"}}}`,
		"/registry/coordination.k8s.io/leases/kube-system/plinth-controllers", `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"plinth-controllers","namespace":"kube-system"}}`,
		"/registry/coordination.k8s.io/leases/kube-system/other", `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"other","namespace":"kube-system"}}`,
	)
	p := providers(t, "")
	var to memory
	report := give(t, log, &to, p)
	keys := []string{"acme.io/cars/n/a", "apiextensions.k8s.io/customresourcedefinitions/cars.acme.io", "clusterroles/view", "configmaps/n/good", "events/n/e", "leases/kube-system/other"}
	for _, key := range keys {
		if _, there := to.items["/registry/"+key]; !there {
			t.Errorf("%s is not there", key)
		}
	}
	if len(to.items) != len(keys) || report.Objects != int64(len(keys)) {
		t.Errorf("%d objects: %v", report.Objects, to.items)
	}
	if got, want := string(to.items["/registry/acme.io/cars/n/a"].Value), `{"a":"<é>","apiVersion":"acme.io/v1","b":[1.50,12345678901234567890],"kind":"Car","metadata":{"name":"a","namespace":"n"}}`+"\n"; got != want {
		t.Errorf("the car is %s", got)
	}
	checkWhy(t, slices.Concat(report.NotWritten, report.LeftOut), map[string]string{
		"acme.io/boats/n/a":                                                   "neither Kubernetes " + kind.Major + "." + kind.Minor + " nor a CustomResourceDefinition has a resource boats",
		"core/configmaps/n/broken":                                            "decode ConfigMap",
		"_plinth/nodeports/30000":                                             "plinth's own notes",
		"apiregistration.k8s.io/apiservices/v1.history.plinth.io":             "plinth's own",
		"rbac.authorization.k8s.io/clusterroles/plinth:aggregate-to-view":     "plinth's own",
		"rbac.authorization.k8s.io/clusterrolebindings/plinth:kubelet-client": "kubelets",
		"coordination.k8s.io/leases/kube-system/apiserver-1":                  "Leases of plinth's servers",
		"coordination.k8s.io/leases/kube-system/plinth-controllers":           "Leases of plinth's servers",
	})
}

// checkWhy compares the reasons for which keys were skipped with what they must contain.
func checkWhy(t *testing.T, skips []upstream.SkipReport, want map[string]string) {
	t.Helper()
	why := map[string]string{}
	for _, s := range skips {
		for _, key := range s.Keys {
			why[strings.TrimPrefix(key, "/registry/")] = s.Why
		}
	}
	for key, reason := range want {
		if !strings.Contains(why[key], reason) {
			t.Errorf("%s: %q; want %q", key, why[key], reason)
		}
		delete(why, key)
	}
	if len(why) > 0 {
		t.Errorf("also skipped: %v", why)
	}
}

// TestExportEvents gives Events what remains of their time, and leaves out what has expired.
func TestExportEvents(t *testing.T) {
	log, p := openLog(t, logtest.SQLite(t)), providers(t, "")
	begun := time.Now().Add(-time.Second)
	const event = `{"kind":"Event","apiVersion":"v1","metadata":{"name":"e","namespace":"n"}}`
	write(t, log, "/registry/core/events/n/e", event, "/registry/core/configmaps/n/e", strings.ReplaceAll(event, "Event", "ConfigMap"))
	for ttl, kept := range map[time.Duration]bool{time.Hour: true, 0: true, time.Nanosecond: false} {
		ex, to := newExport(t, log, p), &memory{}
		ex.EventTTL = ttl
		must(t, ex.Survey(t.Context()))
		report, err := ex.Run(t.Context(), to)
		must(t, err)
		item, there := to.items["/registry/events/n/e"]
		switch {
		case there != kept || kept == (len(report.LeftOut) > 0):
			t.Errorf("%v: there %v, left out %v", ttl, there, report.LeftOut)
		case ttl == 0 && !item.Expires.IsZero():
			t.Errorf("for ever: it expires at %v", item.Expires)
		case ttl == time.Hour && (item.Expires.Before(begun.Add(ttl)) || item.Expires.After(time.Now().Add(ttl))):
			t.Errorf("it expires at %v", item.Expires)
		}
		if e := to.items["/registry/configmaps/n/e"].Expires; !e.IsZero() {
			t.Errorf("a ConfigMap expires at %v", e)
		}
	}
}

// TestExportRefused has sources that are refused before anything is written.
func TestExportRefused(t *testing.T) {
	sealed, half, empty := openLog(t, logtest.SQLite(t)), openLog(t, logtest.SQLite(t)), openLog(t, logtest.SQLite(t))
	take(t, openSnapshot(t), sealed, providers(t, "testdata/encryption.yaml"))
	write(t, half, "/registry/core/configmaps/n/a", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n"}}`)
	must(t, half.SetMarks(t.Context(), map[string]string{"copying": "x"}))
	p := providers(t, "")
	var e *upstream.SealedError
	if err := newExport(t, sealed, p).Survey(t.Context()); !errors.As(err, &e) || e.Keys != 4 {
		t.Errorf("encrypted: %v", err)
	}
	if err := newExport(t, half, p).Survey(t.Context()); !errors.Is(err, changelog.ErrHalfCopied) {
		t.Errorf("a half: %v", err)
	}
	if err := newExport(t, empty, p).Survey(t.Context()); !errors.Is(err, upstream.ErrNoObjects) {
		t.Errorf("empty: %v", err)
	}
}

// TestExportOneRevision writes and compacts the log between survey and run.
func TestExportOneRevision(t *testing.T) {
	log, p := openLog(t, logtest.SQLite(t)), providers(t, "")
	named := func(name string) string {
		return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"n"}}`, name)
	}
	write(t, log, "/registry/core/configmaps/n/a", named("a"))
	ex, to := newExport(t, log, p), &memory{fail: errors.New("the disk is full")}
	must(t, ex.Survey(t.Context()))
	write(t, log, "/registry/core/configmaps/n/b", named("b"))
	report, err := ex.Run(t.Context(), to)
	if len(to.items) != 1 || report.Objects != 1 || !errors.Is(err, to.fail) || !to.abandoned {
		t.Errorf("%d objects, %v, abandoned %v", len(to.items), err, to.abandoned)
	}
	write(t, log, "/registry/core/configmaps/n/c", named("c"))
	head, err := log.Head(t.Context())
	must(t, err)
	_, err = log.Compact(t.Context(), head.Revision, 100, nil)
	must(t, err)
	if _, err := ex.Run(t.Context(), to); !errors.Is(err, upstream.ErrLogCompacted) {
		t.Errorf("after compaction: %v", err)
	}
}
