package etcdtest_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/utils/clock"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// TestUpstreamStorage runs the tests that kube-apiserver's storage has to pass through its client of etcd
// and this endpoint, each on an empty key space.
func TestUpstreamStorage(t *testing.T) {
	eachEndpoint(t, func(t *testing.T, plinth endpoint) {
		for _, name := range slices.Sorted(maps.Keys(upstreamTests)) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				upstreamTests[name](t.Context(), t, newUpstream(t, plinth(t)))
			})
		}
	})
}

// TestUpstreamStorageAlone is apart, as these tests set feature gates, which are the whole process's.
func TestUpstreamStorageAlone(t *testing.T) {
	for _, d := range logtest.Dialects {
		for _, name := range slices.Sorted(maps.Keys(upstreamGateTests)) {
			t.Run(d.Name+"/"+name, func(t *testing.T) {
				upstreamGateTests[name](t.Context(), t, plinthOn(d, sqlstore.Options{})(t))
			})
		}
	}
}

// Lists and watches are tested as kube-apiserver makes them, with RangeStream, and without.
var upstreamGateTests = map[string]func(context.Context, *testing.T, string){
	"GetListWithoutErrorAggregation": func(ctx context.Context, t *testing.T, address string) {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, false)
		storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, newUpstream(t, address), corruptError(ctx))
	},
	"ListPaged": func(ctx context.Context, t *testing.T, address string) {
		withoutStreams(t)
		u := newUpstream(t, address)
		storagetesting.RunTestList(ctx, t, u, u.compact, false, u.lists)
		if n := u.reads.GetStreamReadsAndReset(); n > 0 {
			t.Errorf("%d streams, want none", n)
		}
	},
	"ConsistentListPaged": func(ctx context.Context, t *testing.T, address string) {
		withoutStreams(t)
		u := newUpstream(t, address)
		storagetesting.RunTestConsistentList(ctx, t, u, u.increase, false, true, false)
	},
	"WatchSemanticsConcurrent": func(ctx context.Context, t *testing.T, address string) {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.ConcurrentWatchObjectDecode, true)
		storagetesting.RunWatchSemantics(ctx, t, newUpstream(t, address))
	},
	"WatchSemantics":                          alone(storagetesting.RunWatchSemantics),
	"WatchSemanticsPaged":                     paged(storagetesting.RunWatchSemantics),
	"WatchSemanticInitialEventsExtended":      alone(storagetesting.RunWatchSemanticInitialEventsExtended),
	"WatchSemanticInitialEventsExtendedPaged": paged(storagetesting.RunWatchSemanticInitialEventsExtended),
	"WatchListMatchSingle":                    alone(storagetesting.RunWatchListMatchSingle),
	"WatchListMatchSinglePaged":               paged(storagetesting.RunWatchListMatchSingle),
	"SendInitialEvents":                       alone(storagetesting.RunSendInitialEventsBackwardCompatibility),
}

func alone(test func(context.Context, *testing.T, storage.Interface)) func(context.Context, *testing.T, string) {
	return func(ctx context.Context, t *testing.T, address string) { test(ctx, t, newUpstream(t, address)) }
}

func paged(test func(context.Context, *testing.T, storage.Interface)) func(context.Context, *testing.T, string) {
	return func(ctx context.Context, t *testing.T, address string) {
		withoutStreams(t)
		test(ctx, t, newUpstream(t, address))
	}
}

func withoutStreams(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.EtcdRangeStream, false)
}

// upstreamTests are the others that upstream runs on its storage of etcd, in the order of its store_test.go
// and watcher_test.go.
var upstreamTests = map[string]func(context.Context, *testing.T, *upstream){
	"Create": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestCreate(ctx, t, u, u.checkStored)
	},
	"CreateWithTTL":      plain(storagetesting.RunTestCreateWithTTL),
	"CreateWithKeyExist": plain(storagetesting.RunTestCreateWithKeyExist),
	// This one reads an object with a time to live of a second, and does not want it to end.
	"Get": func(ctx context.Context, t *testing.T, u *upstream) {
		u.client.Lease = longLease{u.client.Lease}
		storagetesting.RunTestGet(ctx, t, u)
	},
	"UnconditionalDelete":                plain(storagetesting.RunTestUnconditionalDelete),
	"ConditionalDelete":                  plain(storagetesting.RunTestConditionalDelete),
	"DeleteWithSuggestion":               plain(storagetesting.RunTestDeleteWithSuggestion),
	"DeleteWithSuggestionAndConflict":    plain(storagetesting.RunTestDeleteWithSuggestionAndConflict),
	"DeleteWithConflict":                 plain(storagetesting.RunTestDeleteWithConflict),
	"DeleteWithSuggestionOfDeleted":      plain(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
	"ValidateDeletionWithSuggestion":     plain(storagetesting.RunTestValidateDeletionWithSuggestion),
	"ValidateDeletionWithOnlySuggestion": plain(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
	"PreconditionalDelete":               plain(storagetesting.RunTestPreconditionalDeleteWithSuggestion),
	"PreconditionalDeletePass":           plain(storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
	"DeleteWithConflictAndMissingExpectedDecodeError": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, u, u.decoding.setFailing)
	},
	"DeleteExpectedTransformError": func(ctx context.Context, t *testing.T, u *upstream) {
		restore := func() {}
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, u, func(fail bool) {
			if restore(); fail {
				restore = u.transformer.exchange(corrupt{})
			}
		})
	},
	"DeleteExpectedDecodeError": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, u, u.decoding.setFailing)
	},
	"DeleteWithSuggestionAndMissingExpectedDecodeError": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, u)
	},
	"ListPaging": plain(storagetesting.RunTestListPaging),
	"KeySchema":  plain(storagetesting.RunTestKeySchema),
	"GetListWithErrorAggregation": func(ctx context.Context, t *testing.T, u *upstream) {
		u.Interface = etcd3.NewStoreWithUnsafeCorruptObjectDeletion(u.Interface, schema.GroupResource{Resource: "pods"})
		storagetesting.RunTestGetListWithErrorAggregation(ctx, t, u, corruptError(ctx))
	},
	"GetListNonRecursive": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, u.increase, u)
	},
	"GetListRecursivePrefix": plain(storagetesting.RunTestGetListRecursivePrefix),
	"GuaranteedUpdate": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, u, u.checkStored)
	},
	"GuaranteedUpdateWithTTL": plain(storagetesting.RunTestGuaranteedUpdateWithTTL),
	"GuaranteedUpdateChecksStoredData": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestGuaranteedUpdateChecksStoredData(ctx, t, u)
	},
	"GuaranteedUpdateWithConflict":              plain(storagetesting.RunTestGuaranteedUpdateWithConflict),
	"GuaranteedUpdateWithSuggestionAndConflict": plain(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
	"TransformationFailure": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestTransformationFailure(ctx, t, u)
	},
	"List": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestList(ctx, t, u, u.compact, false, u.lists)
		if u.reads.GetStreamReadsAndReset() == 0 {
			t.Error("no stream")
		}
	},
	"ConsistentList": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestConsistentList(ctx, t, u, u.increase, false, true, false)
	},
	"ListContinuation": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestListContinuation(ctx, t, u, u.checkCalls)
	},
	"ListPaginationRareObject": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, u, u.checkCalls)
	},
	"ListContinuationWithFilter": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, u, u.checkCalls)
	},
	"NamespaceScopedList": plain(storagetesting.RunTestNamespaceScopedList),
	"ListInconsistentContinuation": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, u, u.compact)
	},
	"ListResourceVersionMatch": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestListResourceVersionMatch(ctx, t, u)
	},
	"Stats": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestStats(ctx, t, u, u.codec, u.transformer, false)
	},
	"StatsWithSizes": func(ctx context.Context, t *testing.T, u *upstream) {
		if err := u.EnableResourceSizeEstimation(u.keys); err != nil {
			t.Fatal(err)
		}
		storagetesting.RunTestStats(ctx, t, u, u.codec, u.transformer, true)
	},
	"CompactRevision": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestCompactRevision(ctx, t, u, u.increase, u.compact)
	},

	"Watch":                plain(storagetesting.RunTestWatch),
	"ClusterScopedWatch":   plain(storagetesting.RunTestClusterScopedWatch),
	"NamespaceScopedWatch": plain(storagetesting.RunTestNamespaceScopedWatch),
	"DeleteTriggerWatch":   plain(storagetesting.RunTestDeleteTriggerWatch),
	"WatchFromZero": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestWatchFromZero(ctx, t, u, u.compact)
	},
	"WatchFromNonZero":     plain(storagetesting.RunTestWatchFromNonZero),
	"DelayedWatchDelivery": plain(storagetesting.RunTestDelayedWatchDelivery),
	"WatchError": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestWatchError(ctx, t, u)
	},
	"WatchContextCancel":        plain(storagetesting.RunTestWatchContextCancel),
	"WatcherTimeout":            plain(storagetesting.RunTestWatcherTimeout),
	"WatchDeleteEventObject":    plain(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
	"WatchInitializationSignal": plain(storagetesting.RunTestWatchInitializationSignal),
	"ProgressNotify": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunOptionalTestProgressNotify(ctx, t, u, u.increase)
	},
	"WatchWithUnsafeDelete": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, u, corruptError(ctx))
	},
	"WatchDispatchBookmarks": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, u, false)
	},
	// Bookmarks are made by the cache above. The test creates pods until its watch ends with a context of three seconds, and takes
	// one that ends with it, as on a slow machine, for a failure.
	"WatchBookmarks": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion(ctx, t, unhurried{u.cached(t)})
	},
	"WatchErrorIsBlocking": func(ctx context.Context, t *testing.T, u *upstream) {
		storagetesting.RunWatchErrorIsBlockingFurtherEvents(ctx, t, u)
	},
}

func plain(test func(context.Context, *testing.T, storage.Interface)) func(context.Context, *testing.T, *upstream) {
	return func(ctx context.Context, t *testing.T, u *upstream) { test(ctx, t, u) }
}

// TestUpstreamStorageIsWhole compares what is called here with what upstream exports.
func TestUpstreamStorageIsWhole(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "k8s.io/apiserver/pkg/storage/testing").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	called := map[string]bool{}
	ast.Inspect(parseGo(t, "upstream_test.go"), func(n ast.Node) bool {
		if s, is := n.(*ast.SelectorExpr); is {
			if x, is := s.X.(*ast.Ident); is && x.Name == "storagetesting" {
				called[s.Sel.Name] = true
			}
		}
		return true
	})
	exported := 0
	for _, file := range files {
		for _, d := range parseGo(t, file).Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || !strings.HasPrefix(f.Name.Name, "Run") || strings.HasPrefix(f.Name.Name, "RunBenchmark") {
				continue
			}
			if exported++; !called[f.Name.Name] {
				t.Errorf("%s of upstream is not called", f.Name.Name)
			}
		}
	}
	if exported < 40 {
		t.Errorf("upstream exports only %d tests", exported)
	}
}

func parseGo(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// upstream is kube-apiserver's storage on an endpoint.
type upstream struct {
	storage.Interface
	client      *kubernetes.Client
	codec       runtime.Codec
	decoding    *failingCodec // codec
	transformer *exchangeable
	reads       *storagetesting.KVRecorder
	lists       *storagetesting.KubernetesRecorder
}

const storedPrefix = "test!"

var upstreamCodecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
}()

func newUpstream(t testing.TB, address string) *upstream {
	t.Helper()
	client := upstreamClient(t, address)
	u := &upstream{client: client, lists: storagetesting.NewKubernetesRecorder(client.Kubernetes)}
	u.decoding = &failingCodec{Codec: apitesting.TestCodec(upstreamCodecs, examplev1.SchemeGroupVersion)}
	u.codec = u.decoding
	u.transformer = &exchangeable{now: storagetesting.NewPrefixTransformer([]byte(storedPrefix), false)}
	u.reads = storagetesting.NewKVRecorder(client.KV, u.lists)
	client.KV, client.Kubernetes = u.reads, u.lists
	// It has a client of its own, because what it reads is not to be counted.
	compactor := etcd3.NewCompactor(upstreamClient(t, address).Client, 0, clock.RealClock{}, nil)
	t.Cleanup(compactor.Stop)
	versioner := storage.APIObjectVersioner{}
	store, err := etcd3.New(client, compactor, u.codec, newPod, newPodList, "", "/pods/", schema.GroupResource{Resource: "pods"},
		u.transformer, etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(u.codec, versioner), versioner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	u.Interface = store
	return u
}

func upstreamClient(t testing.TB, address string) *kubernetes.Client {
	t.Helper()
	client, err := kubernetes.New(clientv3.Config{Endpoints: []string{"http://" + address}, DialTimeout: etcdtest.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// keys returns the names of all objects.
func (u *upstream) keys(ctx context.Context) ([]string, error) {
	r, err := u.client.KV.Get(ctx, "/pods/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(r.Kvs))
	for i, kv := range r.Kvs {
		keys[i] = string(kv.Key)
	}
	return keys, nil
}

func newPod() runtime.Object     { return &example.Pod{} }
func newPodList() runtime.Object { return &example.PodList{} }

// unhurried is a storage whose creations do not end with their context.
type unhurried struct{ storage.Interface }

func (u unhurried) Create(ctx context.Context, key string, object, out runtime.Object, ttl uint64) error {
	return u.Interface.Create(context.WithoutCancel(ctx), key, object, out, ttl)
}

// cached returns kube-apiserver's watch cache on the storage.
func (u *upstream) cached(t *testing.T) storage.Interface {
	t.Helper()
	c, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage: u, Versioner: storage.APIObjectVersioner{}, GroupResource: schema.GroupResource{Resource: "pods"},
		EventsHistoryWindow: cacher.DefaultEventFreshDuration, ResourcePrefix: "/pods/",
		KeyFunc:      func(o runtime.Object) (string, error) { return storage.NamespaceKeyFunc("/pods/", o) },
		GetAttrsFunc: storage.DefaultNamespaceScopedAttr, NewFunc: newPod, NewListFunc: newPodList,
		Codec: upstreamCodecs.LegacyCodec(examplev1.SchemeGroupVersion),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := cacher.NewCacheDelegator(c, u)
	t.Cleanup(func() {
		d.Stop()
		c.Stop()
	})
	return d
}

// checkStored says what may not be in a stored object.
func (u *upstream) checkStored(ctx context.Context, t *testing.T, key string) {
	r, err := u.client.KV.Get(ctx, key)
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("get %s: %v, %v", key, r, err)
	}
	o, err := runtime.Decode(u.codec, r.Kvs[0].Value[len(storedPrefix):])
	if err != nil {
		t.Fatalf("decode %s: %v", key, err)
	}
	//lint:ignore SA1019 the field is deprecated, and must not be stored all the same
	if pod := o.(*example.Pod); pod.ResourceVersion != "" || pod.SelfLink != "" {
		t.Errorf("stored as %v", pod)
	}
}

// checkCalls compares how many objects and pages were read with what the storage needs for them.
// Pages grow to twice the size as long as no page is full.
func (u *upstream) checkCalls(t *testing.T, page, objects uint64) {
	if n := u.transformer.original().GetReadsAndReset(); n != objects {
		t.Errorf("%d objects were read, want %d", n, objects)
	}
	calls := uint64(1)
	for sum := uint64(1); page > 0 && sum < objects; calls++ {
		page = min(2*page, 10_000)
		sum += page
	}
	if n := u.reads.GetReadsAndReset() + u.reads.GetStreamReadsAndReset(); n != calls {
		t.Errorf("%d pages were read, want %d", n, calls)
	}
}

func (u *upstream) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	revision, err := storage.APIObjectVersioner{}.ParseResourceVersion(resourceVersion)
	if err != nil {
		t.Fatal(err)
	}
	at, _, compacted, err := etcd3.Compact(ctx, u.client.Client, 0, int64(revision))
	if err == nil && compacted != int64(revision) { // it was compacted before
		_, _, _, err = etcd3.Compact(ctx, u.client.Client, at, int64(revision))
	}
	if err != nil {
		t.Fatal(err)
	}
	for u.CompactRevision() != int64(revision) {
		if ctx.Err() != nil {
			t.Fatal("the storage has not seen the compaction")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (u *upstream) increase(ctx context.Context, t *testing.T) int64 {
	r, err := u.client.KV.Put(ctx, "increase", "ok")
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

// UpdatePrefixTransformer and UpdateTransformer are asked for by some of the tests.
func (u *upstream) UpdatePrefixTransformer(change storagetesting.PrefixTransformerModifier) func() {
	changed := *u.transformer.original()
	return u.transformer.exchange(change(&changed))
}

func (u *upstream) UpdateTransformer(change storagetesting.TransformerModifier) func() {
	return u.transformer.exchange(change(u.transformer.get()))
}

// exchangeable is a transformer that tests replace.
type exchangeable struct {
	mu  sync.RWMutex
	now value.Transformer
}

func (e *exchangeable) get() value.Transformer {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.now
}

func (e *exchangeable) original() *storagetesting.PrefixTransformer {
	return e.get().(*storagetesting.PrefixTransformer)
}

// exchange returns what undoes it.
func (e *exchangeable) exchange(with value.Transformer) func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.now
	e.now = with
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.now = before
	}
}

func (e *exchangeable) TransformFromStorage(ctx context.Context, data []byte, c value.Context) ([]byte, bool, error) {
	return e.get().TransformFromStorage(ctx, data, c)
}

func (e *exchangeable) TransformToStorage(ctx context.Context, data []byte, c value.Context) ([]byte, error) {
	return e.get().TransformToStorage(ctx, data, c)
}

// corrupt reads nothing.
type corrupt struct{}

var errCorrupt = errors.New("bits flipped")

func (corrupt) TransformFromStorage(context.Context, []byte, value.Context) ([]byte, bool, error) {
	return nil, true, errCorrupt
}

func (corrupt) TransformToStorage(_ context.Context, data []byte, _ value.Context) ([]byte, error) {
	return data, nil
}

// corruptError is what the storage takes for an object that is corrupt, of a type that it does not export.
func corruptError(ctx context.Context) error {
	_, _, err := etcd3.WithCorruptObjErrorHandlingTransformer(corrupt{}).TransformFromStorage(ctx, nil, value.DefaultContext{})
	return err
}

// failingCodec decodes nothing while it fails.
type failingCodec struct {
	runtime.Codec
	fails atomic.Bool
}

func (c *failingCodec) setFailing(fails bool) { c.fails.Store(fails) }

func (c *failingCodec) Decode(data []byte, kind *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if c.fails.Load() {
		return nil, nil, errCorrupt
	}
	return c.Codec.Decode(data, kind, into)
}

// longLease grants leases that outlive a test.
type longLease struct{ clientv3.Lease }

func (l longLease) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return l.Lease.Grant(ctx, ttl+3600)
}
