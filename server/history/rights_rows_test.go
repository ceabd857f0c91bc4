package history_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/apitest"
	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/servertest"
)

// anew is a server with a namespace and a definition that were deleted and made again, and a namespace that
// was not made again. The objects before and after are told apart by their resourceVersions.
type anew struct {
	*past
	marks map[string]string // names of versions, by their resourceVersions
	revs  map[string]string // and the other way round
}

var things = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}

// identities of the rows. The owner has everything in the namespace shop, as its former owner had.
var identities = []string{"owner", "wide", "former", "admin"}

// sightRow says what each identity finds where: names of versions, or a reason.
type sightRow struct {
	route                      string
	owner, wide, former, admin string
}

func (r *sightRow) want(identity string) string {
	return map[string]string{"owner": r.owner, "wide": r.wide, "former": r.former, "admin": r.admin}[identity]
}

// Paths with {NAME} have the revision of that version there.
const (
	secretsOf = "fieldSelector=object.resource%3Dsecrets,object.name%3Dlogin"
	thingsOf  = "fieldSelector=object.resource%3Dthings.example.com"
	inH       = "/apis/history.plinth.io/v1/namespaces/shop/"
	allH      = "/apis/history.plinth.io/v1/"
	inCore    = "/api/v1/namespaces/shop/secrets"
	inThings  = "/apis/example.com/v1/namespaces/shop/things"
	exactly   = "?resourceVersionMatch=Exact&resourceVersion="
)

var sightRows = []sightRow{
	// A namespace that was made anew.
	{inH + "changes?" + secretsOf, "new", "gone new old", "gone new old", "gone new old"},
	{inH + "versions?" + secretsOf, "new", "gone new old", "gone new old", "gone new old"},
	{inH + "versions?" + secretsOf + ",action%3Ddeleted", "", "gone", "gone", "gone"},
	{inH + "versions?" + secretsOf + ",at%3D{old}", "", "old", "old", "old"},
	{inH + "versions?fieldSelector=at%3D{old},object.kind%3DSecret", "", "old", "old", "old"},
	{inH + "versions?" + secretsOf + ",at%3D{new}", "new", "new", "new", "new"},
	{inH + "versions?" + secretsOf + ",metadata.name%3D{old}", "", "old", "old", "old"},
	{inH + "versions?limit=1&" + secretsOf + ",until%3D{old}", "", "old", "old", "old"},
	{inH + "versions/{old}", "NotFound", "old", "old", "old"},
	{inH + "versions/{gone}", "NotFound", "gone", "gone", "gone"},
	{inH + "versions/{new}", "new", "new", "new", "new"},
	{inH + "changes/{old}", "NotFound", "old", "old", "old"},
	{inH + "changes?watch=true&resourceVersion={before}&" + secretsOf, "new", "gone new old", "gone new old", "gone new old"},
	{inH + "versions?watch=true&resourceVersion={before}&" + secretsOf, "new", "gone new old", "gone new old", "gone new old"},
	{allH + "versions?" + secretsOf + ",object.namespace%3Dshop", "Forbidden", "gone new old", "gone new old", "gone new old"},
	{allH + "versions?" + secretsOf, "Forbidden", "gone lost new old", "gone new old", "gone lost new old"},
	{allH + "versions?" + secretsOf + ",at%3D{old}", "Forbidden", "lost old", "old", "lost old"},
	{allH + "namespaces/lost/versions?" + secretsOf, "Forbidden", "lost", "", "lost"},
	{allH + "namespaces/lost/versions/{lost}", "Forbidden", "lost", "NotFound", "lost"},
	// The same through the resource itself.
	{inCore + exactly + "{old}", "Expired", "old", "Expired", "old"},
	{inCore + exactly + "{new}", "new", "new", "new", "new"},
	{inCore + exactly + "{old}&fieldSelector=metadata.name%3Dlogin", "Expired", "old", "Expired", "old"},
	{inCore + "?limit=5&resourceVersion={old}", "Expired", "old", "Expired", "old"},
	{inCore + "?continue={token}", "Expired", "old", "Expired", "old"},
	{inCore + "?resourceVersion={old}", "new", "new", "new", "new"},
	{inCore + "?watch=true&resourceVersion={before}", "Expired", "gone new old", "Expired", "gone new old"},
	{inCore + "?watch=true&resourceVersion={before}&fieldSelector=metadata.name%3Dlogin", "Expired", "gone new old", "Expired", "gone new old"},
	{"/api/v1/watch/namespaces/shop/secrets?resourceVersion={before}", "Expired", "gone new old", "Expired", "gone new old"},
	{inCore + "?watch=true&resourceVersion={made}", "new", "new", "new", "new"},
	{"/api/v1/namespaces/lost/secrets" + exactly + "{lost}", "Forbidden", "lost", "Forbidden", "lost"},
	// A definition that was made anew: what was before is no object of the one that is there now.
	{inH + "changes?" + thingsOf, "thing", "thing", "formerthing thing", "formerthing thing"},
	{inH + "versions?" + thingsOf, "thing", "thing", "formerthing thing", "formerthing thing"},
	{inH + "versions?" + thingsOf + ",at%3D{formerthing}", "", "", "formerthing", "formerthing"},
	{inH + "versions/{formerthing}", "NotFound", "NotFound", "formerthing", "formerthing"},
	{allH + "versions?" + thingsOf, "Forbidden", "thing", "formerthing thing", "formerthing thing"},
	{inH + "changes?watch=true&resourceVersion={before}&" + thingsOf, "thing", "thing", "formerthing thing", "formerthing thing"},
	{inThings + exactly + "{formerthing}", "Expired", "Expired", "Expired", "Expired"},
	{inThings + "?watch=true&resourceVersion={before}", "Expired", "Expired", "Expired", "Expired"},
	{"/apis/example.com/v1/things" + exactly + "{formerthing}", "Forbidden", "Expired", "Expired", "Expired"},
	{inThings, "thing", "thing", "thing", "thing"},
}

// TestMadeAnew reads what was before a namespace and a definition were made again, by each route.
func TestMadeAnew(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		a := openAnew(t, d.Fresh(t))
		for _, who := range identities {
			t.Run(who, func(t *testing.T) {
				p := a.past
				if who != "admin" {
					p = p.as(who)
				}
				for _, row := range sightRows {
					if got := a.sees(t, p, row.route); got != row.want(who) {
						t.Errorf("%s: %q, want %q", row.route, got, row.want(who))
					}
				}
			})
		}
		a.forget(t)
	})
}

func openAnew(t *testing.T, dsn string) *anew {
	srv := servertest.Start(t, servertest.Options{DSN: dsn, Controllers: []string{"namespace-controller"}})
	a := &anew{&past{t, srv.Config, kubernetes.NewForConfigOrDie(srv.Config)}, map[string]string{}, map[string]string{}}
	a.define()
	a.mark("before", a.makeNamespace("shop"))
	a.makeNamespace("lost")
	a.mark("lost", a.secret("lost"))
	a.mark("formerthing", a.thing())
	a.mark("old", a.secret("shop"))
	a.revs["token"] = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":%s,"start":"a\u0000"}`, a.revs["old"]))
	a.endNamespace("lost")
	a.endNamespace("shop")
	a.undefine()
	a.mark("made", a.makeNamespace("shop"))
	a.define()
	a.grant()
	a.mark("thing", a.thing())
	a.mark("new", a.secret("shop"))
	a.makeNamespace("later") // lists have its revision, which is none of those that are looked for
	a.noteDeletions()
	return a
}

func (a *anew) mark(name, revision string) {
	a.revs[name] = revision
	if name != "before" && name != "made" {
		a.marks[revision] = name
	}
}

// noteDeletions marks the deletions, which nobody is told of: those of lost and of things as what was deleted.
func (a *anew) noteDeletions() {
	var list historyv1.ChangeList
	if err := a.get("changes?fieldSelector="+selecting("action=deleted"), &list); err != nil {
		a.t.Fatal(err)
	}
	for _, c := range list.Items {
		switch o := c.Object; {
		case o.Resource == "secrets" && o.Namespace == "shop":
			a.mark("gone", c.Name)
		case o.Resource == "secrets":
			a.marks[c.Name] = "lost"
		case o.Resource == "things.example.com":
			a.marks[c.Name] = "formerthing"
		}
	}
}

func (a *anew) makeNamespace(name string) (revision string) {
	made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return must[*corev1.Namespace](a.t)(a.client.CoreV1().Namespaces().Create(a.t.Context(), made, metav1.CreateOptions{})).ResourceVersion
}

func (a *anew) endNamespace(name string) {
	if err := a.client.CoreV1().Namespaces().Delete(a.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		a.t.Fatal(err)
	}
	a.until("the namespace is gone", func() bool {
		_, err := a.client.CoreV1().Namespaces().Get(a.t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func (a *anew) until(what string, is func() bool) {
	a.t.Helper()
	apitest.Eventually(a.t, what, is)
}

func (a *anew) secret(namespace string) (revision string) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login"}}
	return must[*corev1.Secret](a.t)(a.client.CoreV1().Secrets(namespace).Create(a.t.Context(), s, metav1.CreateOptions{})).ResourceVersion
}

func (a *anew) thing() (revision string) {
	t := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "it"}}}
	c := dynamic.NewForConfigOrDie(a.config).Resource(things).Namespace("shop")
	return must[*unstructured.Unstructured](a.t)(c.Create(a.t.Context(), t, metav1.CreateOptions{})).GetResourceVersion()
}

func (a *anew) definitions() apiextensions.Interface {
	return apiextensions.NewForConfigOrDie(a.config)
}

func (a *anew) define() {
	preserve := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Kind: "Thing"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}}}},
		},
	}
	all := a.definitions().ApiextensionsV1().CustomResourceDefinitions()
	must[*apiextensionsv1.CustomResourceDefinition](a.t)(all.Create(a.t.Context(), crd, metav1.CreateOptions{}))
	a.until("the custom resource is served", func() bool {
		_, err := dynamic.NewForConfigOrDie(a.config).Resource(things).List(a.t.Context(), metav1.ListOptions{})
		return err == nil
	})
}

func (a *anew) undefine() {
	all := a.definitions().ApiextensionsV1().CustomResourceDefinitions()
	if err := all.Delete(a.t.Context(), "things.example.com", metav1.DeleteOptions{}); err != nil {
		a.t.Fatal(err)
	}
	a.until("the definition is gone", func() bool {
		_, err := all.Get(a.t.Context(), "things.example.com", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// grant gives the identities what they are named after.
func (a *anew) grant() {
	everything := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	objects := rbacv1.PolicyRule{APIGroups: []string{"", "example.com"}, Resources: []string{"secrets", "things"}, Verbs: []string{"*"}}
	history := rbacv1.PolicyRule{APIGroups: []string{historyv1.GroupName}, Resources: []string{"changes", "versions"}, Verbs: []string{"*"}}
	former := rbacv1.PolicyRule{APIGroups: []string{historyv1.GroupName}, Resources: []string{"versions/former"}, ResourceNames: []string{"secrets", "things.example.com"}, Verbs: []string{"get"}}
	a.bind("owner", "shop", everything...)
	a.bind("wide", "", objects, history)
	a.bind("former", "shop", objects)
	a.bind("former", "", history, former)
	a.bind("former", "", rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"list"}})
}

func (a *anew) bind(user, namespace string, rules ...rbacv1.PolicyRule) {
	ctx, t := a.t.Context(), a.t
	role := metav1.ObjectMeta{GenerateName: user + "-"}
	made := must[*rbacv1.ClusterRole](t)(a.client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: role, Rules: rules}, metav1.CreateOptions{}))
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: made.Name}
	who := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
	if namespace == "" {
		must[*rbacv1.ClusterRoleBinding](t)(a.client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: role, RoleRef: ref, Subjects: who}, metav1.CreateOptions{}))
		return
	}
	must[*rbacv1.RoleBinding](t)(a.client.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: role, RoleRef: ref, Subjects: who}, metav1.CreateOptions{}))
}

// sees returns the names of the versions that a route shows, sorted, or the reason why it shows none.
func (a *anew) sees(t *testing.T, p *past, route string) string {
	for name, revision := range a.revs {
		route = strings.ReplaceAll(route, "{"+name+"}", revision)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	stream, err := p.client.CoreV1().RESTClient().Get().RequestURI(route).Stream(ctx)
	if err != nil {
		return string(apierrors.ReasonForError(err))
	}
	defer stream.Close()
	if !strings.Contains(route, "watch") {
		text, err := io.ReadAll(stream)
		if err != nil {
			t.Fatalf("%s: %v", route, err)
		}
		return a.namesIn(string(text))
	}
	last := a.revs["new"]
	if strings.Contains(route, "things") {
		last = a.revs["thing"]
	}
	var text strings.Builder
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		if strings.Contains(lines.Text(), `"reason":"Expired"`) {
			return "Expired"
		}
		text.Write(lines.Bytes())
		if strings.Contains(lines.Text(), versionText(last)) {
			break
		}
	}
	return a.namesIn(text.String())
}

func versionText(revision string) string { return `"resourceVersion":"` + revision + `"` }

func (a *anew) namesIn(text string) string {
	var found []string
	for _, name := range []string{"formerthing", "gone", "lost", "new", "old", "thing"} {
		for revision, marked := range a.marks {
			if marked == name && strings.Contains(text, versionText(revision)) {
				found = append(found, name)
				break
			}
		}
	}
	return strings.Join(found, " ")
}

// forget deletes the versions of a Secret, of which some are from before, as each identity.
func (a *anew) forget(t *testing.T) {
	path := inH + "versions?fieldSelector=object.resource%3Dsecrets,object.name%3Dlogin"
	for _, row := range []struct {
		who     string
		allowed bool
	}{{"owner", false}, {"former", false}, {"wide", true}, {"owner", true}} {
		err := a.as(row.who).client.CoreV1().RESTClient().Delete().RequestURI(path).Do(t.Context()).Error()
		if (err == nil) != row.allowed || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("forget as %s: %v", row.who, err)
		}
	}
}
