package server

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/sqlstore"
)

const (
	// restFor is how long nothing may be written until a server counts as at rest, and again how
	// long it is watched then.
	restFor = 1500 * time.Millisecond
	// failFor is how long servers are watched whose controllers fail.
	failFor = 5 * time.Second
)

// heartbeats are written at intervals by design: servers, and whoever leads, renew their Leases.
const heartbeats = "/registry/coordination.k8s.io/leases/"

// busy is in the Event of an alarm that a busy machine raises.
var busy = []byte("Alarm database_slow")

// No controller is woken by its own writes. At rest nothing is written. A controller that fails for
// the same reason again and again writes nothing either, or, if each try fails in other words, at
// most one change of an object a second, and ever fewer.
func TestControllersWriteLittle(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		s, _ := startBoth(t, d, Config{Controllers: []string{"*", "podgc"}}, func(s *Server) {
			s.times.Maintain, s.times.Repair, s.waitForInstances = 100*time.Millisecond, 100*time.Millisecond, time.Second // so that each comes by often
		})
		w := &writes{t: t, s: s, client: clientOf(t, s)}
		w.rest()
		if found := w.during(restFor); len(found) > 0 {
			t.Errorf("written at rest: %v", found)
		}
		states := failing(w)
		for _, f := range states {
			w.objects(f.objects)
		}
		inOtherWords := map[string]bool{}
		for _, f := range states {
			apitest.Eventually(t, f.name+" fails", func() bool { return w.says(f.path, f.says) })
			inOtherWords[f.otherWords] = true
		}
		w.rest(slices.Collect(maps.Keys(inOtherWords))...)
		for key, at := range w.during(failFor) {
			if !inOtherWords[key] {
				t.Errorf("%s was written %d times in %v while its controller fails in the same way: %s", key, len(at), failFor, w.value(key))
				continue
			}
			for i, pause := range pauses(at) {
				if pause < time.Second {
					t.Errorf("%s: write %d came %v after the one before", key, i+1, pause)
				}
			}
		}
	})
}

// failure is an object whose controller fails.
type failure struct {
	name    string
	objects []string // METHOD PATH BODY, in this order
	path    string   // of the object that tells of the failure
	says    string   // what is in that object then
	// otherWords is the key of the object if each try fails in other words.
	otherWords string
}

func failing(w *writes) []failure {
	webhook, bundle := talkative(w.t)
	hung := hangsUp(w.t)
	service := func(name, port string) string {
		return `{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.` + name + `.example.net"},"spec":{"group":"` + name + `.example.net",
			"version":"v1","groupPriorityMinimum":900,"versionPriority":15,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"` + name + `","port":` + port + `}}}`
	}
	held := `"finalizers":["example.com/held"]`
	return []failure{
		unreadable("away", `"service":{"namespace":"default","name":"nobody"}`, ""),
		unreadable("talks", `"url":"`+webhook+`"`, bundle, "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.talks.example.org"),
		{
			name: "a definition whose stored version was removed",
			objects: []string{
				"POST " + definitionsPath + " " + widgets("removed.example.org", "v1"),
				"POST /apis/removed.example.org/v1/namespaces/default/widgets " + widget("removed", ""),
				"PATCH " + definitionsPath + "/widgets.removed.example.org " + `{"spec":{"versions":` + versions("v2", "v1") + `}}`,
				"PATCH " + definitionsPath + "/widgets.removed.example.org/status " + `{"status":{"storedVersions":["v2"]}}`,
				"PATCH " + definitionsPath + "/widgets.removed.example.org " + `{"spec":{"versions":` + versions("v2") + `}}`,
				"DELETE " + definitionsPath + "/widgets.removed.example.org",
			},
			path: definitionsPath + "/widgets.removed.example.org", says: `"InstanceDeletion`,
		},
		{
			name: "a definition whose instance has a finalizer",
			objects: []string{
				"POST " + definitionsPath + " " + widgets("held.example.org", "v1"),
				"POST /apis/held.example.org/v1/namespaces/default/widgets " + widget("held", held),
				"DELETE " + definitionsPath + "/widgets.held.example.org",
			},
			path: definitionsPath + "/widgets.held.example.org", says: `"InstanceDeletionCheck"`,
		},
		{
			name: "a definition whose kind another one has",
			objects: []string{
				"POST " + definitionsPath + " " + widgets("twice.example.org", "v1"),
				"POST " + definitionsPath + " " + strings.ReplaceAll(widgets("twice.example.org", "v1"), "widgets", "gadgets"),
			},
			path: definitionsPath + "/gadgets.twice.example.org", says: `Conflict"`,
		},
		{
			name: "a definition whose webhook has a damaged bundle",
			objects: []string{"POST " + definitionsPath + " " + strings.Replace(widgets("bundle.example.org", "v1", "v2"), `"scope"`,
				`"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"caBundle":"Cg==","url":"`+webhook+`"}}},"scope"`, 1)},
			path: definitionsPath + "/widgets.bundle.example.org", says: `"InvalidCABundle"`,
		},
		{
			name: "a definition in Kubernetes' own group that is not approved",
			objects: []string{"POST " + definitionsPath + " " + strings.Replace(widgets("mine.k8s.io", "v1"), `"metadata":{`,
				`"metadata":{"annotations":{"api-approved.kubernetes.io":"unapproved, a test"},`, 1)},
			path: definitionsPath + "/widgets.mine.k8s.io", says: `"UnapprovedAnnotation"`,
		},
		{
			name:    "an APIService without its Service",
			objects: []string{"POST " + apiServices + " " + service("nowhere", "443")},
			path:    apiServices + "/v1.nowhere.example.net", says: `"ServiceNotFound"`,
		},
		{
			name: "an APIService whose server hangs up",
			objects: []string{
				"POST /api/v1/namespaces/default/services " + strings.Replace(extService, `"ext"`, `"hung"`, 1),
				"POST " + apiServices + " " + service("hung", hung),
			},
			path: apiServices + "/v1.hung.example.net", says: `"FailedDiscoveryCheck"`,
			otherWords: "/registry/apiregistration.k8s.io/apiservices/v1.hung.example.net",
		},
		{
			name: "a namespace with an object that has a finalizer",
			objects: []string{
				`POST /api/v1/namespaces {"metadata":{"name":"held"}}`,
				`POST /api/v1/namespaces/held/configmaps {"metadata":{"name":"a",` + held + `}}`,
				"DELETE /api/v1/namespaces/held",
			},
			path: "/api/v1/namespaces/held", says: `"SomeFinalizersRemain"`,
		},
		{
			name: "a namespace with an object that cannot be converted",
			objects: []string{
				`POST /api/v1/namespaces {"metadata":{"name":"talks"}}`,
				"POST " + definitionsPath + " " + widgets("unread.example.org", "v1"),
				"POST /apis/unread.example.org/v1/namespaces/talks/widgets " + widget("unread", ""),
				"PATCH " + definitionsPath + "/widgets.unread.example.org " + converts(`"url":"`+webhook+`"`, bundle),
				"DELETE /api/v1/namespaces/talks",
			},
			path: "/api/v1/namespaces/talks", says: `"ContentDeletionFailed"`, otherWords: "/registry/core/namespaces/talks",
		},
		{
			name: "cluster roles that select each other",
			objects: []string{
				aggregated("one", "two"), aggregated("two", "one"),
				roleFor("one", "configmaps"), roleFor("one", "secrets"), roleFor("two", "pods"), roleFor("two", "nodes"),
			},
			path: clusterRoles + "/one", says: `"nodes"`,
		},
		{
			name: "a policy with an expression of a wrong type",
			objects: []string{`POST ` + admissionPolicies + ` {"metadata":{"name":"wrong"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":["apps"],
				"apiVersions":["v1"],"operations":["CREATE"],"resources":["deployments"]}]},"validations":[{"expression":"object.nothing > 1"}]}}`},
			path: admissionPolicies + "/wrong", says: `"expressionWarnings"`,
		},
		{
			name: "a quota that is used up",
			objects: []string{
				`POST /api/v1/namespaces/default/configmaps {"metadata":{"name":"counted"}}`,
				`POST /api/v1/namespaces/default/resourcequotas {"metadata":{"name":"full"},"spec":{"hard":{"configmaps":"0"}}}`,
			},
			path: "/api/v1/namespaces/default/resourcequotas/full", says: `"used":{"configmaps":"`,
		},
		{
			name: "an owner that waits for what it owns",
			objects: []string{
				`POST /api/v1/namespaces/default/secrets {"metadata":{"name":"owner"}}`,
				`POST /api/v1/namespaces/default/secrets {"metadata":{"name":"owned",` + held + `,"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"owner","uid":"UID","blockOwnerDeletion":true}]}}`,
				`DELETE /api/v1/namespaces/default/secrets/owner {"propagationPolicy":"Foreground"}`,
			},
			path: "/api/v1/namespaces/default/secrets/owned", says: `"deletionTimestamp"`,
		},
		{
			name: "a claim that a pod uses",
			objects: []string{
				`POST /api/v1/nodes {"metadata":{"name":"n"}}`, // or podgc ends the pod
				`POST /api/v1/namespaces/default/persistentvolumeclaims {"metadata":{"name":"used"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`,
				`POST /api/v1/namespaces/default/pods {"metadata":{"name":"user"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"used"}}]}}`,
				`DELETE /api/v1/namespaces/default/persistentvolumeclaims/used`,
			},
			path: "/api/v1/namespaces/default/persistentvolumeclaims/used", says: `"deletionTimestamp"`,
		},
		{
			name:    "a flow schema without its priority level",
			objects: []string{`POST /apis/flowcontrol.apiserver.k8s.io/v1/flowschemas {"metadata":{"name":"dangling"},"spec":{"priorityLevelConfiguration":{"name":"nobody"}}}`},
			path:    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/dangling", says: `"status":"True"`,
		},
		{
			name: "a namespace in which nothing can be created",
			objects: []string{
				`POST ` + admissionPolicies + ` {"metadata":{"name":"shut"},"spec":{"matchConstraints":{"namespaceSelector":{"matchLabels":{"shut":"yes"}},"resourceRules":[{"apiGroups":[""],
					"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps","serviceaccounts"]}]},"validations":[{"expression":"false"}]}}`,
				`POST ` + admissionPolicies[:len(admissionPolicies)-len("policies")] + `policybindings {"metadata":{"name":"shut"},"spec":{"policyName":"shut","validationActions":["Deny"]}}`,
				`POST /api/v1/namespaces {"metadata":{"name":"shut","labels":{"shut":"yes"}}}`,
			},
			path: "/api/v1/namespaces/shut", says: `"Active"`,
		},
	}
}

const (
	clusterRoles      = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	admissionPolicies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
)

func aggregated(name, selects string) string {
	return `POST ` + clusterRoles + ` {"metadata":{"name":"` + name + `","labels":{"part":"` + name + `"}},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"part":"` + selects + `"}}]},"rules":[]}`
}

func roleFor(part, resource string) string {
	return `POST ` + clusterRoles + ` {"metadata":{"name":"` + part + `-` + resource + `","labels":{"part":"` + part + `"}},"rules":[{"apiGroups":[""],"resources":["` + resource + `"],"verbs":["get"]}]}`
}

func widget(group, more string) string {
	return `{"apiVersion":"` + group + `.example.org/v1","kind":"Widget","metadata":{"name":"w",` + strings.TrimPrefix(more+`,"labels":{}`, ",") + `}}`
}

// versions are the versions of a definition; the first is stored.
func versions(names ...string) string {
	_, list, _ := strings.Cut(widgets("any.example.org", names...), `"versions":`)
	return strings.TrimSuffix(list, "}}")
}

// converts is a patch that has a definition store v2 and a webhook convert what is stored in v1.
func converts(webhook, bundle string) string {
	return `{"spec":{"versions":` + versions("v2", "v1") + `,"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{` + webhook + bundle + `}}}}}`
}

// unreadable is a definition that is being deleted and whose instance cannot be converted.
func unreadable(group, webhook, bundle string, otherWords ...string) failure {
	name := definitionsPath + "/widgets." + group + ".example.org"
	return failure{
		name: "a definition whose instances cannot be read: " + group,
		objects: []string{
			"POST " + definitionsPath + " " + widgets(group+".example.org", "v1"),
			"POST /apis/" + group + ".example.org/v1/namespaces/default/widgets " + widget(group, ""),
			"PATCH " + name + " " + converts(webhook, bundle),
			"DELETE " + name,
		},
		path: name, says: `"InstanceDeletionFailed"`, otherWords: strings.Join(otherWords, ""),
	}
}

// talkative is a conversion webhook that refuses each request in other words.
func talkative(t *testing.T) (url, bundle string) {
	var calls atomic.Int64
	hook := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review struct{ Request struct{ UID string } }
		_ = json.NewDecoder(r.Body).Decode(&review)
		fmt.Fprintf(rw, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":%q,"result":{"status":"Failure","message":"refusal %d"}}}`,
			review.Request.UID, calls.Add(1))
	}))
	hook.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(hook.Close)
	authority, err := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}))
	must(t, err)
	return hook.URL, `,"caBundle":` + string(authority)
}

// hangsUp is the port of a server that resets each connection: the error names the client's port.
func hangsUp(t *testing.T) (port string) {
	l, err := net.Listen("tcp", "localhost:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	}()
	_, port, err = net.SplitHostPort(l.Addr().String())
	must(t, err)
	return port
}

// writes counts what is written by anybody.
type writes struct {
	t      *testing.T
	s      *Server
	client client
}

// rest waits until nothing has been written for restFor, but for some keys: what leads to a failure
// may write until then. If a failure itself wrote, at pauses that double, its next write would come
// within failFor.
func (w *writes) rest(but ...string) {
	w.t.Helper()
	apitest.Eventually(w.t, "nothing is written any more", func() bool {
		found := w.during(restFor)
		for _, key := range but {
			delete(found, key)
		}
		return len(found) == 0
	})
}

// during returns when what was written while the time goes by: keys, and the moments of their changes
// in Unix milliseconds. It leaves out heartbeats, and what the server says of a busy machine.
func (w *writes) during(pass time.Duration) map[string][]int64 {
	w.t.Helper()
	from := w.s.store.Revision()
	time.Sleep(pass)
	found, seen := map[string][]int64{}, map[string]bool{}
	for _, k := range w.s.kinds.Set().Kinds {
		prefix := k.Prefix()
		if seen[prefix] || prefix == heartbeats {
			continue
		}
		seen[prefix] = true
		events, _, complete := w.s.store.Since(prefix, from)
		if !complete {
			w.t.Fatalf("the changes of %s are not known", prefix)
		}
		for _, ev := range events {
			if bytes.Contains(ev.Entry.Value, busy) {
				continue
			}
			found[ev.Entry.Key] = append(found[ev.Entry.Key], atOf(ev))
		}
	}
	return found
}

// value is the object that a key has now.
func (w *writes) value(key string) []byte {
	if e := w.s.store.Get(key); e != nil {
		return e.Value
	}
	return nil
}

func atOf(ev *sqlstore.Event) int64 { return ev.Entry.At }

func pauses(at []int64) (all []time.Duration) {
	for i := 1; i < len(at); i++ {
		all = append(all, time.Duration(at[i]-at[i-1])*time.Millisecond)
	}
	return all
}

// objects makes the requests METHOD PATH BODY. UID stands for the UID of the object before.
func (w *writes) objects(requests []string) {
	w.t.Helper()
	uid := ""
	for _, request := range requests {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		apitest.Eventually(w.t, request, func() bool {
			r, err := http.NewRequestWithContext(w.t.Context(), method, w.client.url+path, strings.NewReader(strings.ReplaceAll(body, `"UID"`, `"`+uid+`"`)))
			must(w.t, err)
			r.Header.Set("Content-Type", map[bool]string{true: "application/merge-patch+json", false: "application/json"}[method == "PATCH"])
			code, _, answer := apitest.Send(w.t, w.client.http, r)
			var made struct{ Metadata struct{ UID string } }
			_ = json.Unmarshal([]byte(answer), &made)
			uid = made.Metadata.UID
			// A definition that was made or changed just now is served a moment later.
			if code >= 300 && code != http.StatusNotFound && code != http.StatusConflict && code != http.StatusTooManyRequests {
				w.t.Fatalf("%s: %d %s", request, code, answer)
			}
			return code < 300
		})
	}
}

// says tells whether the object at a path contains a text.
func (w *writes) says(path, text string) bool {
	w.t.Helper()
	_, _, answer := apitest.Do(w.t, w.client.http, "GET", w.client.url+path, "")
	return strings.Contains(answer, text)
}
