package history_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/servertest"
)

// past is a server whose history is read.
type past struct {
	t      *testing.T
	config *clientrest.Config
	client kubernetes.Interface
}

func open(t *testing.T) *past {
	srv := servertest.Start(t)
	return &past{t, srv.Config, kubernetes.NewForConfigOrDie(srv.Config)}
}

// as is the same server for somebody else.
func (p *past) as(user string) *past {
	config := clientrest.CopyConfig(p.config)
	config.Impersonate.UserName = user
	return &past{p.t, config, kubernetes.NewForConfigOrDie(config)}
}

// get reads a path below the group version into a value.
func (p *past) get(path string, into any) error {
	result := p.client.CoreV1().RESTClient().Get().RequestURI("/apis/history.plinth.io/v1/" + path).Do(p.t.Context())
	if err := result.Error(); err != nil {
		return err
	}
	raw, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// changes lists changes as lines "ACTION RESOURCE/NAME", the newest first.
func (p *past) changes(path string) (lines []string, m metav1.ListMeta) {
	p.t.Helper()
	var list historyv1.ChangeList
	if err := p.get(path, &list); err != nil {
		p.t.Fatalf("%s: %v", path, err)
	}
	for _, c := range list.Items {
		lines = append(lines, fmt.Sprint(c.Action, " ", c.Object.Resource, "/", c.Object.Name))
	}
	return lines, list.ListMeta
}

func (p *past) want(path string, want ...string) {
	p.t.Helper()
	if got, _ := p.changes(path); !slices.Equal(got, want) {
		p.t.Errorf("%s: %q, want %q", path, got, want)
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (p *past) configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Data: map[string]string{"v": value}}
}

// fill makes a namespace in which jane creates and changes a and b, and root deletes b.
func (p *past) fill() (versions []string) {
	ctx, t := p.t.Context(), p.t
	must[*corev1.Namespace](t)(p.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}))
	p.allow("jane", "configmaps", "create", "update", "get")
	jane := p.as("jane").client.CoreV1().ConfigMaps("shop")
	note := func(m *corev1.ConfigMap, err error) {
		versions = append(versions, must[*corev1.ConfigMap](t)(m, err).ResourceVersion)
	}
	note(jane.Create(ctx, p.configMap("a", "1"), metav1.CreateOptions{FieldManager: "editor"}))
	note(jane.Create(ctx, p.configMap("b", "1"), metav1.CreateOptions{}))
	note(jane.Update(ctx, p.configMap("a", "2"), metav1.UpdateOptions{FieldManager: "editor"}))
	if err := p.client.CoreV1().ConfigMaps("shop").Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	return versions
}

// allow lets a user do something in the namespace shop.
func (p *past) allow(user, resource string, verbs ...string) {
	p.allowNamed(user, resource, nil, verbs...)
}

func (p *past) allowNamed(user, resource string, names []string, verbs ...string) {
	group := ""
	if resource == "changes" || resource == "versions" {
		group = historyv1.GroupName
	}
	p.allowIn(group, user, resource, names, verbs...)
}

func (p *past) allowIn(group, user, resource string, names []string, verbs ...string) {
	name := user + "-" + resource
	ctx := p.t.Context()
	must[*rbacv1.Role](p.t)(p.client.RbacV1().Roles("shop").Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs}},
	}, metav1.CreateOptions{}))
	must[*rbacv1.RoleBinding](p.t)(p.client.RbacV1().RoleBindings("shop").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{}))
}

const inShop = "namespaces/shop/changes?fieldSelector="

func selecting(terms ...string) string { return url.QueryEscape(strings.Join(terms, ",")) }

func TestChanges(t *testing.T) {
	p := open(t)
	versions := p.fill()
	all := []string{"deleted configmaps/b", "changed configmaps/a", "created configmaps/b", "created configmaps/a"}
	p.want(inShop+selecting("object.kind=ConfigMap"), all...)
	p.want(inShop+selecting("object.resource=configmaps"), all...)
	p.want("changes?fieldSelector="+selecting("object.resource=configmaps", "object.namespace=shop"), all...)
	p.want(inShop+selecting("object.resource=configmaps", "object.name=a"), all[1], all[3])
	p.want(inShop+selecting("object.resource=configmaps", "object.name!=a"), all[0], all[2])
	p.want(inShop+selecting("user=jane"), all[1:]...)
	p.want(inShop+selecting("user=jane", "verb=update"), all[1])
	p.want(inShop+selecting("manager=editor"), all[1], all[3])
	p.want(inShop+selecting("action=deleted"), all[0])
	p.want(inShop+selecting("object.kind=ConfigMap", "since="+versions[1], "until="+versions[2]), all[1:3]...)
	p.want(inShop+selecting("object.kind=ConfigMap", "since="+time.Now().Add(-time.Hour).Format(time.RFC3339)), all...)
	p.want(inShop + selecting("object.kind=ConfigMap", "until="+time.Now().Add(-time.Hour).Format(time.RFC3339)))
	p.want(inShop + selecting("object.namespace=other"))
	p.want("changes?fieldSelector="+selecting("object.resource=namespaces", "object.name=shop", "object.namespace="), "created namespaces/shop")
	p.want("namespaces/shop/changes?labelSelector=a%3Db")
	p.want("namespaces/shop/changes?fieldSelector="+selecting("metadata.name="+versions[0]), all[3])

	var c historyv1.Change
	if err := p.get("namespaces/shop/changes/"+versions[2], &c); err != nil {
		t.Fatal(err)
	}
	admin := c.Impersonator
	if admin == "" || time.Since(c.Time.Time) > time.Hour || c.AuditID == "" {
		t.Errorf("%+v", c)
	}
	c.Time, c.CreationTimestamp, c.AuditID, c.Impersonator = metav1.MicroTime{}, metav1.Time{}, "", ""
	want := fmt.Sprintf(`{"kind":"Change","apiVersion":"history.plinth.io/v1","metadata":{"name":%[1]q,"namespace":"shop","resourceVersion":%[1]q},`+
		`"revision":%[1]s,"time":null,"action":"changed","user":"jane","verb":"update","manager":"editor",`+
		`"object":{"resource":"configmaps","kind":"ConfigMap","namespace":"shop","name":"a","createRevision":%[2]s}}`, versions[2], versions[0])
	if got, _ := json.Marshal(c); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, name := range []string{"0", "x", "0" + versions[2], "99999999", "-1"} {
		if err := p.get("namespaces/shop/changes/"+name, &c); !apierrors.IsNotFound(err) {
			t.Errorf("change %s: %v", name, err)
		}
	}
	if err := p.get("namespaces/default/changes/"+versions[2], &c); !apierrors.IsNotFound(err) {
		t.Errorf("another namespace: %v", err)
	}
	var namespace historyv1.ChangeList
	if err := p.get("changes?fieldSelector="+selecting("object.resource=namespaces", "object.name=shop", "object.namespace="), &namespace); err != nil {
		t.Fatal(err)
	}
	if err := p.get("changes/"+namespace.Items[0].Name, &c); err != nil || c.Object.Name != "shop" {
		t.Errorf("%v, %v", c, err)
	}
}

// TestPages reads a list in pages of each size, while changes are made, which are not in it.
func TestPages(t *testing.T) {
	p := open(t)
	p.fill()
	for i := range 7 {
		must[*corev1.ConfigMap](t)(p.client.CoreV1().ConfigMaps("shop").Create(t.Context(), p.configMap(fmt.Sprint("c", i), ""), metav1.CreateOptions{}))
	}
	selector := "object.resource=configmaps"
	for limit := 1; limit < 13; limit++ {
		all, _ := p.changes(inShop + selecting(selector))
		var paged []string
		var version string
		for token := ""; ; {
			lines, m := p.changes(fmt.Sprintf("%s%s&limit=%d&continue=%s", inShop, selecting(selector), limit, url.QueryEscape(token)))
			paged = append(paged, lines...)
			if token == "" {
				version = m.ResourceVersion
			}
			if len(lines) > limit || m.ResourceVersion != version {
				t.Fatalf("%q, %+v; the list began at %s", lines, m, version)
			}
			if token = m.Continue; token == "" {
				break
			}
			must[*corev1.ConfigMap](t)(p.client.CoreV1().ConfigMaps("shop").Create(t.Context(), p.configMap(fmt.Sprint("d", limit, "-", len(paged)), ""), metav1.CreateOptions{}))
		}
		if !slices.Equal(paged, all) {
			t.Errorf("limit %d: %q, want %q", limit, paged, all)
		}
	}
}

func TestBadSelectors(t *testing.T) {
	p := open(t)
	for _, row := range []struct{ path, want string }{
		{inShop + selecting("color=red"), "field label not supported: color"},
		{inShop + selecting("since=yesterday"), `since: "yesterday" is no revision and no time; write it like 12345 or 2`},
		{inShop + selecting("since=2999-01-01T00:00:00Z"), "since: 2999-01-01T00:00:00Z is in the future"},
		{inShop + selecting("since=99999999"), "since: there is no revision 99999999; the newest is "},
		{inShop + selecting("until=2999-01-01T00:00:00Z"), "until: 2999-01-01T00:00:00Z is in the future"},
		{inShop + selecting("until=99999999"), "until: there is no revision 99999999; the newest is "},
		{inShop + selecting("since!=5"), "since takes no !="},
		{inShop + selecting("at=5"), "ask for versions"},
		{inShop + selecting("with=touched"), "changes come without what they touched; ask for versions"},
		{"versions?fieldSelector=" + selecting("with=all"), `with: "all": write with=touched`},
		{"versions?fieldSelector=" + selecting("with!=touched"), "with takes no !="},
		{"versions?fieldSelector=" + selecting("at=2999-01-01T00:00:00Z"), "in the future"},
		{"namespaces/shop/changes?continue=abc", "continue key is not valid"},
		{"namespaces/shop/changes?continue=e30", "continue key is not valid"},
	} {
		var list historyv1.ChangeList
		err := p.get(row.path, &list)
		if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", row.path, err, row.want)
		}
	}
	var list historyv1.VersionList
	for _, moment := range []string{"1999-01-01T00:00:00Z", "0001-01-01T00:00:00Z"} {
		err := p.get("versions?fieldSelector="+selecting("at="+moment), &list)
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("%s, before the first change: %v", moment, err)
		}
	}
}

// TestRights gives users the right to read the history, and the right to get some objects or none.
func TestRights(t *testing.T) {
	p := open(t)
	versions := p.fill()
	secret := must[*corev1.Secret](t)(p.client.CoreV1().Secrets("shop").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}))
	for _, user := range []string{"joe", "ann", "bob"} {
		p.allow(user, "changes", "get", "list", "watch")
		p.allow(user, "versions", "get", "list", "watch")
	}
	p.allow("ann", "configmaps", "get")
	p.allowNamed("bob", "configmaps", []string{"b"}, "get")
	p.want(inShop+selecting("object.resource=secrets"), "created secrets/s")
	p.as("joe").want("namespaces/shop/changes")
	p.as("ann").want("namespaces/shop/changes", "deleted configmaps/b", "changed configmaps/a", "created configmaps/b", "created configmaps/a")
	p.as("ann").want("namespaces/shop/changes?limit=1&fieldSelector=" + selecting("object.resource=secrets"))
	p.as("bob").want("namespaces/shop/changes", "deleted configmaps/b", "created configmaps/b")
	for _, row := range []struct {
		user, path string
		allowed    bool
	}{
		{"ann", "namespaces/shop/versions/" + versions[0], true},
		{"bob", "namespaces/shop/versions/" + versions[0], false},
		{"bob", "namespaces/shop/versions/" + versions[1], true},
		{"ann", "namespaces/shop/versions/" + secret.ResourceVersion, false},
		{"ann", "namespaces/shop/changes/" + secret.ResourceVersion, false},
	} {
		var v historyv1.Version
		if err := p.as(row.user).get(row.path, &v); (err == nil) != row.allowed || err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("%s: %s: %v", row.user, row.path, err)
		}
	}
	var list historyv1.VersionList
	if err := p.as("bob").get("namespaces/shop/versions?fieldSelector="+selecting("at="+versions[2]), &list); err != nil || len(list.Items) != 1 || list.Items[0].Object.Name != "b" {
		t.Errorf("%+v, %v", list.Items, err)
	}
	for _, path := range []string{"changes", "namespaces/default/changes", "changes/" + versions[0]} {
		if err := p.as("ann").get(path, &list); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	// Who may view a namespace may read its history.
	must[*rbacv1.RoleBinding](t)(p.client.RbacV1().RoleBindings("shop").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "viewer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "plinth:aggregate-to-view"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "viv"}},
	}, metav1.CreateOptions{}))
	p.as("viv").want("namespaces/shop/changes")
}

// TestVersions compares the data of versions with what the API said at that time.
func TestVersions(t *testing.T) {
	p := open(t)
	p.fill()
	maps := p.client.CoreV1().ConfigMaps("shop")
	then := map[string]map[string]string{} // by resourceVersion, objects as JSON by name
	snapshot := func() {
		raw := must[[]byte](t)(p.client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/shop/configmaps").DoRaw(t.Context()))
		var list corev1.ConfigMapList
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		objects := map[string]string{}
		for _, m := range list.Items {
			m.TypeMeta = metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}
			objects[m.Name] = string(must[[]byte](t)(json.Marshal(m)))
		}
		then[list.ResourceVersion] = objects
	}
	snapshot()
	for i := range 40 {
		name := fmt.Sprint("m", i%7)
		switch _, err := maps.Get(t.Context(), name, metav1.GetOptions{}); {
		case err != nil:
			must[*corev1.ConfigMap](t)(maps.Create(t.Context(), p.configMap(name, fmt.Sprint(i)), metav1.CreateOptions{}))
		case i%3 == 0:
			if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		default:
			must[*corev1.ConfigMap](t)(maps.Update(t.Context(), p.configMap(name, fmt.Sprint(i)), metav1.UpdateOptions{}))
		}
		snapshot()
	}
	for revision, objects := range then {
		got := map[string]string{}
		for token := ""; ; {
			var list historyv1.VersionList
			path := "namespaces/shop/versions?limit=3&fieldSelector=" + selecting("object.resource=configmaps", "at="+revision) + "&continue=" + url.QueryEscape(token)
			if err := p.get(path, &list); err != nil {
				t.Fatal(err)
			}
			for _, v := range list.Items {
				var m corev1.ConfigMap
				if err := json.Unmarshal(v.Data.Raw, &m); err != nil || m.ResourceVersion != v.Name || v.Revision > number(t, revision) {
					t.Errorf("%s, %v", v.Data.Raw, err)
				}
				got[v.Object.Name] = string(must[[]byte](t)(json.Marshal(m)))
			}
			if token = list.Continue; token == "" {
				break
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(objects) {
			t.Errorf("at %s: %s, want %s", revision, got, objects)
		}
	}
	var list historyv1.VersionList
	if err := p.get("namespaces/shop/versions?fieldSelector="+selecting("object.resource=configmaps", "object.name=b"), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	if gone := list.Items[0]; gone.Action != historyv1.Deleted || !strings.Contains(string(gone.Data.Raw), `"data":{"v":"1"}`) {
		t.Errorf("%s: %s", gone.Action, gone.Data.Raw)
	}
}

func number(t *testing.T, text string) (n int64) {
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestColumns reads what kubectl shows.
func TestColumns(t *testing.T) {
	p := open(t)
	versions := p.fill()
	table := func(path string) (t metav1.Table) {
		raw, err := p.client.CoreV1().RESTClient().Get().RequestURI("/apis/history.plinth.io/v1/"+path).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(p.t.Context())
		if err == nil {
			err = json.Unmarshal(raw, &t)
		}
		if err != nil {
			p.t.Fatal(err)
		}
		return t
	}
	for _, path := range []string{"namespaces/shop/changes/" + versions[2], "namespaces/shop/versions/" + versions[2], inShop + selecting("metadata.name="+versions[2])} {
		got := table(path)
		var header []string
		for _, c := range got.ColumnDefinitions {
			header = append(header, c.Name)
		}
		if want := "Revision Age User Action Object Manager Verb Impersonator Time Audit-ID"; strings.Join(header, " ") != want {
			t.Errorf("%s: %s", path, header)
		}
		cells := got.Rows[0].Cells
		cells[1], cells[7], cells[8], cells[9] = "", "", "", ""
		if want := []any{versions[2], "", "jane", "changed", "configmaps/a", "editor", "update", "", "", ""}; !slices.Equal(cells, want) {
			t.Errorf("%s: %q", path, cells)
		}
	}
	if empty := table(inShop + selecting("user=x")); len(empty.ColumnDefinitions) != 10 || empty.Rows == nil || len(empty.Rows) > 0 {
		t.Errorf("%+v", empty)
	}
}

// TestWatch follows changes from a list on, and as somebody who may see a part of them.
func TestWatch(t *testing.T) {
	p := open(t)
	p.fill()
	p.allow("bob", "changes", "watch")
	p.allowNamed("bob", "configmaps", []string{"x1"}, "get")
	_, m := p.changes(inShop + selecting("object.resource=configmaps"))
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	follow := func(p *past) *json.Decoder {
		stream, err := p.client.CoreV1().RESTClient().Get().RequestURI(watched(m.ResourceVersion)).Stream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stream.Close() })
		return json.NewDecoder(stream)
	}
	all, some := follow(p), follow(p.as("bob"))
	for i := range 3 {
		name := fmt.Sprint("x", i)
		must[*corev1.ConfigMap](t)(p.client.CoreV1().ConfigMaps("shop").Create(t.Context(), p.configMap(name, ""), metav1.CreateOptions{}))
		must[*corev1.Secret](t)(p.client.CoreV1().Secrets("shop").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
		if err := p.client.CoreV1().ConfigMaps("shop").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	next := func(d *json.Decoder, want string) {
		t.Helper()
		var raw json.RawMessage
		var ev struct {
			Type   string
			Object historyv1.Change
		}
		err := d.Decode(&raw)
		if err == nil {
			err = json.Unmarshal(raw, &ev)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(ev.Type, " ", ev.Object.Action, " ", ev.Object.Object.Name); got != want || ev.Object.ResourceVersion == "" {
			t.Fatalf("%s, want %s", raw, want)
		}
	}
	for i := range 3 {
		next(all, fmt.Sprint("ADDED created x", i))
		next(all, fmt.Sprint("ADDED deleted x", i))
	}
	next(some, "ADDED created x1")
	next(some, "ADDED deleted x1")
}

func watched(version string) string {
	return "/apis/history.plinth.io/v1/" + inShop + selecting("object.resource=configmaps") + "&watch=true&resourceVersion=" + version
}

// TestPagesHideWhatIsBetween looks for names that the caller may not see in what leads to the next page,
// and for a page that would only say that there is something hidden.
func TestPagesHideWhatIsBetween(t *testing.T) {
	p := open(t)
	versions := p.fill()
	p.allow("bob", "versions", "list")
	p.allowNamed("bob", "configmaps", []string{"a", "z"}, "get")
	path := "namespaces/shop/versions?limit=1&fieldSelector=" + selecting("object.resource=configmaps", "at="+versions[2])
	page := func(token string) (names []string, next string) {
		var list historyv1.VersionList
		if err := p.as("bob").get(path+"&continue="+token, &list); err != nil {
			t.Fatal(err)
		}
		for _, v := range list.Items {
			names = append(names, v.Object.Name)
		}
		return names, list.Continue
	}
	if names, next := page(""); !slices.Equal(names, []string{"a"}) || next != "" {
		t.Errorf("before there is another: %q, %q", names, next)
	}
	z := must[*corev1.ConfigMap](t)(p.client.CoreV1().ConfigMaps("shop").Create(t.Context(), p.configMap("z", "1"), metav1.CreateOptions{}))
	path = strings.Replace(path, "at%3D"+versions[2], "at%3D"+z.ResourceVersion, 1)
	names, next := page("")
	token := must[[]byte](t)(base64.RawURLEncoding.DecodeString(next))
	if !slices.Equal(names, []string{"a"}) || !strings.Contains(string(token), "configmaps/shop/a") {
		t.Errorf("%q, and the token is %s", names, token)
	}
	if names, next = page(next); !slices.Equal(names, []string{"z"}) || next != "" {
		t.Errorf("the next page: %q, %q", names, next)
	}
}

// TestWatchRefused refuses watches that would need a state: clients that ask for initial events list then.
func TestWatchRefused(t *testing.T) {
	p := open(t)
	versions := p.fill()
	for path, want := range map[string]func(error) bool{
		"changes?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true": apierrors.IsInvalid,
		"versions?watch=true&fieldSelector=at%3D" + versions[0]:                                                apierrors.IsBadRequest,
	} {
		if err := p.get("namespaces/shop/"+path, nil); !want(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSecondGroup shows events to those who may get them in either of their groups.
func TestSecondGroup(t *testing.T) {
	p := open(t)
	p.fill()
	must[*corev1.Event](t)(p.client.CoreV1().Events("shop").Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "shop"}, InvolvedObject: corev1.ObjectReference{Namespace: "shop"},
	}, metav1.CreateOptions{}))
	p.allow("bob", "changes", "list")
	p.allowIn("events.k8s.io", "bob", "events", nil, "get")
	p.as("bob").want("namespaces/shop/changes", "created events/e")
}
