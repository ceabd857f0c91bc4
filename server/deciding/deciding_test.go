package deciding_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server"
	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/logging"
)

func TestMain(m *testing.M) {
	logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0)
	os.Exit(m.Run())
}

// marker is in every damaged value, and must be in no answer and no log.
const marker = "hunter2"

// damaged is an object whose row is damaged, and what follows from that.
type damaged struct {
	collection string // path
	name       string
	object     string // what is stored
	value      string // what is put in its place
	refuses    string // METHOD PATH BODY of a request that the object concerns; empty: none
	code       int    // of its answer while the object is damaged
	text       string // in that
}

const (
	admission = "/apis/admissionregistration.k8s.io/v1/"
	rbac      = "/apis/rbac.authorization.k8s.io/v1/"
	flow      = "/apis/flowcontrol.apiserver.k8s.io/v1/"
	hook      = `{"metadata":{"name":"hook"},"webhooks":[{"name":"a.example.com","clientConfig":{"url":"https://127.0.0.1:1/"},"sideEffects":"None","failurePolicy":"Ignore","admissionReviewVersions":["v1"],
		"rules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}]}]}`
	subject = `"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"eve"}]`
)

func create(path, kind string) string {
	return "POST " + path + ` {"kind":"` + kind + `","apiVersion":"v1","metadata":{"name":"new"}}`
}

func typed(kind, apiVersion, name, namespace, rest string) string {
	in := ""
	if namespace != "" {
		in = fmt.Sprintf(`,"namespace":%q`, namespace)
	}
	return fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"name":%q%s}%s}`, kind, apiVersion, name, in, rest)
}

// table has the objects in the order in which requests meet them: each refuses what it may concern until it is deleted.
var table = []damaged{
	{admission + "mutatingwebhookconfigurations", "hook", hook, `{bad ` + marker, create("/api/v1/namespaces/default/configmaps?dryRun=All", "ConfigMap"), 500, "not yet ready to handle request"},
	{admission + "validatingadmissionpolicies", "p", `{"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]},"validations":[{"expression":"object.metadata.name != 'new'"}]}}`,
		typed("ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1", "p", "", `,"spec":"`+marker+`"`), create("/api/v1/namespaces/default/configmaps?dryRun=All", "ConfigMap"), 500, "not yet ready to handle request"},
	{admission + "validatingadmissionpolicybindings", "p", `{"metadata":{"name":"p"},"spec":{"policyName":"p","validationActions":["Deny"]}}`,
		typed("ConfigMap", "v1", "p", "", `,"data":{"a":"`+marker+`"}`), create("/api/v1/namespaces/default/configmaps?dryRun=All", "ConfigMap"), 500, "not yet ready to handle request"},
	{admission + "validatingwebhookconfigurations", "hook", hook, ``, create("/api/v1/namespaces/default/configmaps?dryRun=All", "ConfigMap"), 500, "not yet ready to handle request"},
	{"/api/v1/namespaces/default/resourcequotas", "quota", `{"metadata":{"name":"quota"},"spec":{"hard":{"count/configmaps":"10"}}}`,
		marker, create("/api/v1/namespaces/default/configmaps?dryRun=All", "ConfigMap"), 500, "not yet ready to handle request"},
	{"/api/v1/namespaces/default/limitranges", "limits", `{"metadata":{"name":"limits"},"spec":{"limits":[{"type":"PersistentVolumeClaim","max":{"storage":"1Gi"}}]}}`,
		typed("LimitRange", "v1", "limits", "default", `,"spec":{"limits":"`+marker+`"}`),
		`POST /api/v1/namespaces/default/persistentvolumeclaims?dryRun=All {"metadata":{"name":"new"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`, 500, "not yet ready to handle request"},
	{rbac + "namespaces/default/roles", "reader", `{"metadata":{"name":"reader"},"rules":[{"apiGroups":[""],"resources":["services"],"verbs":["get"]}]}`,
		typed("Role", "rbac.authorization.k8s.io/v1", "reader", "default", `,"rules":[{"apiGroups":[""],"resources":["services"],"verbs":["get"]},{"apiGroups":["`+marker+"\xff"+`"],"resources":["a"],"verbs":["get"]}]`), review("default", "services"), 201, `"allowed":false`},
	{rbac + "namespaces/default/rolebindings", "reader", `{"metadata":{"name":"reader"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},` + subject + `}`,
		typed("RoleBinding", "rbac.authorization.k8s.io/v1", "reader", "default", `,"subjects":"`+marker+`"`), review("default", "pods"), 201, `"allowed":false`},
	{rbac + "clusterroles", "seer", `{"metadata":{"name":"seer"},"rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]}]}`, `{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"` + marker + `"}}`, "", 0, ""},
	{rbac + "clusterrolebindings", "seer", `{"metadata":{"name":"seer"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:node-proxier"},` + subject + `}`,
		`{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"seer"},` + marker, review("", "nodes"), 201, `"allowed":false`},
	{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "widgets.example.com", `{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`, typed("CustomResourceDefinition", "apiextensions.k8s.io/v1", "widgets.example.com", "", `,"spec":{"group":"example.com","versions":"`+marker+`"}`),
		"GET /apis/example.com/v1/widgets ", 503, "CustomResourceDefinition of the resource cannot be read"},
	{"/apis/apiregistration.k8s.io/v1/apiservices", "v1.ext.example.com", `{"metadata":{"name":"v1.ext.example.com"},"spec":{"group":"ext.example.com","version":"v1","groupPriorityMinimum":100,"versionPriority":10,"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"ext"}}}`,
		`[` + marker, "GET /apis/ext.example.com/v1/things ", 503, "APIService of the group version cannot be read"},
	{flow + "prioritylevelconfigurations", "slow", `{"metadata":{"name":"slow"},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":1,"limitResponse":{"type":"Reject"}}}}`, `{"` + marker + `":`, "", 0, ""},
	{flow + "flowschemas", "slow", `{"metadata":{"name":"slow"},"spec":{"priorityLevelConfiguration":{"name":"slow"},"matchingPrecedence":9000}}`, `7 ` + marker, "", 0, ""},
	{"/apis/policy/v1/namespaces/default/poddisruptionbudgets", "pdb", `{"metadata":{"name":"pdb"},"spec":{"minAvailable":1}}`, `{"kind":"PodDisruptionBudget","apiVersion":"policy/v1","metadata":{"namespace":"default"}}`, "", 0, ""},
	{"/api/v1/namespaces/default/configmaps", "plain", `{"metadata":{"name":"plain"}}`, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"plain","namespace":"default"},"data":{"a":"` + marker + `}`, "", 0, ""},
	{"/api/v1/namespaces/default/podtemplates", "binary", `{"metadata":{"name":"binary"},"template":{"spec":{"containers":[{"name":"a","image":"b"}]}}}`,
		typed("PodTemplate", "v1", "binary", "default", `,"template":{"metadata":{"annotations":{"a":"`+marker+"\xfe"+`"}}}`), "", 0, ""},
}

// review asks whether eve may get a resource.
func review(namespace, resource string) string {
	return fmt.Sprintf(`POST /apis/authorization.k8s.io/v1/subjectaccessreviews {"spec":{"user":"eve","resourceAttributes":{"namespace":%q,"verb":"get","resource":%q}}}`, namespace, resource)
}

// key is that of the object in the database.
func (d *damaged) key() string {
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(d.collection, "/apis/"), "/api/"), "/")
	group, rest := "core", parts[1:]
	if strings.HasPrefix(d.collection, "/apis/") {
		group, rest = parts[0], parts[2:]
	}
	key := "/registry/" + group + "/" + rest[len(rest)-1] + "/"
	if rest[0] == "namespaces" {
		key += rest[1] + "/"
	}
	return key + d.name
}

// damage puts the value into the newest row.
func (d *damaged) damage(t *testing.T, dialect, dsn string) {
	t.Helper()
	name, value := "key", fmt.Sprintf("X'%x'", d.value)
	switch dialect {
	case "mariadb":
		name = "`key`"
	case "postgres":
		value = fmt.Sprintf(`'\x%x'::bytea`, d.value)
	}
	logtest.Exec(t, dsn, fmt.Sprintf("UPDATE log SET value = %s WHERE %s = '%s'", value, name, d.key()))
}

// TestDamaged starts a server on damaged rows. Each of them is noticed, shows nothing of itself, refuses what it may concern,
// and can be deleted by an admin, after which all is well.
func TestDamaged(t *testing.T) {
	logtest.Each(t, func(t *testing.T, dialect logtest.Dialect) {
		dsn := dialect.Fresh(t)
		run(t, dsn, &apitest.Lines{}, func(send sender) {
			for _, d := range table {
				if code, body := send("POST", d.collection, d.object); code != 201 {
					t.Fatalf("create %s: %d %s", d.name, code, body)
				}
			}
		})
		for _, d := range table {
			d.damage(t, dialect.Name, dsn)
		}
		var log apitest.Lines
		run(t, dsn, &log, func(send sender) {
			if code, body := send("GET", "/readyz?verbose", ""); code != 500 || !strings.Contains(body, "[-]deciding-objects failed: objects that decide about requests cannot be read: 1 of validatingadmissionpolicies, 1 of validatingadmissionpolicybindings") {
				t.Errorf("readyz: %d %s", code, body)
			}
			apitest.Eventually(t, "the alarms ring", func() bool {
				_, body := send("GET", "/metrics", "")
				return strings.Contains(body, `plinth_alarm{alarm="unreadable"} 1`) && strings.Contains(body, `plinth_alarm{alarm="damage"} 1`)
			})
			for _, d := range table {
				d.shows(t, send, &log)
			}
			discovers := func(want map[string]int) {
				t.Helper()
				for path, want := range want {
					if code, body := send("GET", path, ""); code != want {
						t.Errorf("GET %s: %d %s, want %d", path, code, body, want)
					}
				}
			}
			discovers(map[string]int{
				"/apis/example.com": 503, "/apis/example.com/v1": 503, "/apis/example.com/v7": 503, "/apis/example.org/v1": 404, "/apis/com/v1": 404,
				"/apis/ext.example.com": 503, "/apis/ext.example.com/v1": 503, "/apis/ext.example.com/v2": 404, "/apis/apps/v7": 404,
			})
			for _, d := range table {
				d.refusesUntilDeleted(t, send)
			}
			discovers(map[string]int{"/apis/example.com/v1": 404, "/apis/ext.example.com/v1": 404, "/apis/ext.example.com": 404})
			for _, d := range table {
				if code, answer := send("POST", d.collection+"?dryRun=All", d.object); code != 201 {
					t.Errorf("POST to %s in the end: %d %s", d.collection, code, answer)
				}
			}
			if code, body := send("GET", "/readyz/deciding-objects", ""); code != 200 {
				t.Errorf("readyz in the end: %d %s", code, body)
			}
		})
		if strings.Contains(log.All(), marker) {
			t.Error("the log has a part of a damaged value")
		}
	})
}

// TestUndecodable deletes an object with a field of another type, which is checked by whoever decodes it.
func TestUndecodable(t *testing.T) {
	d := damaged{collection: "/api/v1/namespaces/default/configmaps", name: "plain", object: `{"metadata":{"name":"plain"}}`,
		value: typed("ConfigMap", "v1", "plain", "default", `,"data":7`)}
	logtest.Each(t, func(t *testing.T, dialect logtest.Dialect) {
		dsn := dialect.Fresh(t)
		unsafe := "?ignoreStoreReadErrorWithClusterBreakingPotential=true"
		path := d.collection + "/" + d.name
		run(t, dsn, &apitest.Lines{}, func(send sender) {
			if code, body := send("POST", d.collection, d.object); code != 201 {
				t.Fatalf("create: %d %s", code, body)
			}
			if code, body := send("DELETE", path+unsafe+"&dryRun=All", ""); code != 409 || !strings.Contains(body, "unsafe deletion is not allowed because the object is decodable from storage") {
				t.Errorf("DELETE of what is whole, which the option is not for: %d %s", code, body)
			}
		})
		d.damage(t, dialect.Name, dsn)
		run(t, dsn, &apitest.Lines{}, func(send sender) {
			if code, body := send("DELETE", path, ""); code != 500 || !strings.Contains(body, "of the log") {
				t.Errorf("DELETE: %d %s", code, body)
			}
			if code, body := send("DELETE", path+unsafe, ""); code != 200 {
				t.Errorf("unsafe DELETE: %d %s", code, body)
			}
			if code, body := send("POST", d.collection, d.object); code != 201 {
				t.Errorf("create again: %d %s", code, body)
			}
		})
	})
}

// TestDamagedKey has a row with a control character in its key. It refuses what the object may concern until it is deleted.
func TestDamagedKey(t *testing.T) {
	policy := damaged{collection: admission + "validatingadmissionpolicies", name: "p", object: `{"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["secrets"]}]},"validations":[{"expression":"false"}]}}`}
	logtest.Each(t, func(t *testing.T, dialect logtest.Dialect) {
		dsn := dialect.Fresh(t)
		run(t, dsn, &apitest.Lines{}, func(send sender) {
			if code, body := send("POST", policy.collection, policy.object); code != 201 {
				t.Fatalf("create: %d %s", code, body)
			}
		})
		name := map[string]string{"mariadb": "`key`"}[dialect.Name]
		logtest.Exec(t, dsn, fmt.Sprintf("UPDATE log SET %[1]s = '%[2]s\x1b' WHERE %[1]s = '%[2]s'", cmp.Or(name, "key"), policy.key()))
		run(t, dsn, &apitest.Lines{}, func(send sender) {
			create := func() int {
				code, _ := send("POST", "/api/v1/namespaces/default/configmaps?dryRun=All", `{"metadata":{"name":"new"}}`)
				return code
			}
			if code := create(); code != 500 {
				t.Errorf("a create while the row is there: %d", code)
			}
			path := policy.collection + "/p%1b"
			if code, body := send("DELETE", path, ""); code != 500 {
				t.Errorf("DELETE: %d %s", code, body)
			}
			if code, body := send("DELETE", path+"?ignoreStoreReadErrorWithClusterBreakingPotential=true", ""); code != 200 {
				t.Errorf("unsafe DELETE: %d %s", code, body)
			}
			if code := create(); code != 201 {
				t.Errorf("a create afterwards: %d", code)
			}
		})
	})
}

// sender sends a request as the admin.
type sender func(method, path, body string) (code int, answer string)

func run(t *testing.T, dsn string, log *apitest.Lines, f func(sender)) {
	t.Helper()
	srv := server.New(server.Config{DSN: dsn, Controllers: []string{}, Log: log.Log()})
	if err := srv.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	client := apitest.Admin(t, srv)
	f(func(method, path, body string) (int, string) {
		t.Helper()
		code, _, answer := apitest.Do(t, client, method, srv.URL()+path, body)
		if strings.Contains(answer, marker) {
			t.Errorf("%s %s answers with a part of a damaged value: %s", method, path, answer)
		}
		return code, answer
	})
}

// shows asserts that reads of the object fail, with its key.
func (d *damaged) shows(t *testing.T, send sender, log *apitest.Lines) {
	t.Helper()
	for _, path := range []string{d.collection + "/" + d.name, d.collection, d.collection + "?limit=500", d.collection + "?watch=true&timeoutSeconds=1"} {
		code, body := send("GET", path, "")
		var status metav1.Status
		if err := json.Unmarshal([]byte(body), &status); err != nil || code != http.StatusInternalServerError || status.Code != 500 || !strings.Contains(body, "object not decodable") || !strings.Contains(body, d.name) {
			t.Errorf("GET %s: %d %s", path, code, body)
		}
	}
	if log.Count(d.key()+" ") == 0 {
		t.Errorf("the log does not name %s", d.key())
	}
}

// refusesUntilDeleted asserts that what the object may concern is refused, as are its change and its ordinary deletion, and that
// the admin can delete it all the same.
func (d *damaged) refusesUntilDeleted(t *testing.T, send sender) {
	t.Helper()
	if d.refuses != "" {
		method, rest, _ := strings.Cut(d.refuses, " ")
		path, body, _ := strings.Cut(rest, " ")
		if code, answer := send(method, path, body); code != d.code || !strings.Contains(answer, d.text) || d.code == 500 && !strings.Contains(answer, d.key()) {
			t.Errorf("with %s damaged, %s %s: %d %s", d.key(), method, path, code, answer)
		}
	}
	path := d.collection + "/" + d.name
	if code, answer := send("DELETE", path, ""); code != 500 || !strings.Contains(answer, "object not decodable") {
		t.Errorf("DELETE %s: %d %s", path, code, answer)
	}
	if code, answer := send("DELETE", path+"?ignoreStoreReadErrorWithClusterBreakingPotential=true", ""); code != 200 {
		t.Errorf("unsafe DELETE %s: %d %s", path, code, answer)
	}
	if code, answer := send("GET", path, ""); code != 404 {
		t.Errorf("GET %s in the end: %d %s", path, code, answer)
	}
}
