package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/authn"
)

// permit lets everybody do what is no impersonation, and members of system:masters and whoever it names be somebody
// else. It remembers what it was asked about impersonation.
type permit struct {
	names []string // of users, groups, UIDs and extras that anybody may be
	verbs []string // of requests that anybody may make as a user of the kind user-info
	fail  error
	asked []authorizer.Attributes
}

func (p *permit) authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if !strings.HasPrefix(a.GetVerb(), "impersonate") {
		return authorizer.DecisionAllow, "", nil
	}
	p.asked = append(p.asked, a)
	switch {
	case slices.Contains(a.GetUser().GetGroups(), user.SystemPrivilegedGroup):
		return authorizer.DecisionAllow, "", nil
	case strings.HasPrefix(a.GetVerb(), "impersonate-on:"):
		if slices.Contains(p.verbs, a.GetVerb()) {
			return authorizer.DecisionAllow, "", nil
		}
	case a.GetVerb() == "impersonate" && len(p.verbs) > 0: // not with the old right
	case slices.Contains(p.names, a.GetName()):
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "not in the list", p.fail
}

// whoami asks a Guard who the request is made as, and by whom: the name and the groups, and the caller if he is
// somebody else.
func whoami(t *testing.T, p *permit, who user.Info, headers http.Header) (int, string) {
	t.Helper()
	g := newGuard()
	g.o.Authorizer = authorizer.AuthorizerFunc(p.authorize)
	g.impersonation = newImpersonation(g.o.Authorizer)
	g.Route("/whoami", func(x *Call) error {
		for name, values := range x.Request().Header {
			if strings.HasPrefix(name, "Impersonate-") && values[0] != "" {
				t.Errorf("%s stays", name)
			}
		}
		text := x.User.GetName() + " " + strings.Join(x.User.GetGroups(), ",")
		if by := audit.Impersonator(x.Request().Context()); by != "" {
			text += " by " + by
		}
		_, err := fmt.Fprint(x.Response(), text)
		return err
	})
	r, w := httptest.NewRequestWithContext(t.Context(), "GET", "/whoami", nil), httptest.NewRecorder()
	r.Header = headers
	g.ServeHTTP(w, r.WithContext(authn.WithUser(r.Context(), who)))
	return w.Code, w.Body.String()
}

func TestImpersonate(t *testing.T) {
	root := &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	bob := &user.DefaultInfo{Name: "bob", Groups: []string{user.AllAuthenticated}}
	for _, test := range []struct {
		name    string
		who     user.Info
		headers []string
		code    int
		want    string // what whoami returns, or part of an error's text
	}{
		{"nobody", root, nil, 200, "root system:masters,system:authenticated"},
		{"a user", root, []string{"Impersonate-User", "bob"}, 200, "bob system:authenticated by root"},
		{"a user in groups", root, []string{"Impersonate-User", "bob", "Impersonate-Group", "a", "Impersonate-Group", "b"}, 200, "bob a,b,system:authenticated by root"},
		{"the anonymous", root, []string{"Impersonate-User", "system:anonymous"}, 200, "system:anonymous system:unauthenticated by root"},
		{"a user who is not known", root, []string{"Impersonate-User", "bob", "Impersonate-Group", "system:unauthenticated"}, 200, "bob system:unauthenticated by root"},
		{"a service account", root, []string{"Impersonate-User", "system:serviceaccount:ns:sa"}, 200, "system:serviceaccount:ns:sa system:serviceaccounts,system:serviceaccounts:ns,system:authenticated by root"},
		{"a service account in groups", root, []string{"Impersonate-User", "system:serviceaccount:ns:sa", "Impersonate-Group", "a"}, 200, "system:serviceaccount:ns:sa a,system:authenticated by root"},
		{"a node", root, []string{"Impersonate-User", "system:node:n"}, 200, "system:node:n system:nodes,system:authenticated by root"},
		{"an empty name", root, []string{"Impersonate-User", ""}, 200, "root system:masters,system:authenticated"},
		{"an empty name and UID", bob, []string{"Impersonate-User", "", "Impersonate-Uid", ""}, 200, "bob system:authenticated"},
		{"a user with an extra", root, []string{"Impersonate-User", "bob", "Impersonate-Uid", "7", "Impersonate-Extra-Acme%2fscope", "x"}, 200, "bob system:authenticated by root"},
		{"a UID without a user", root, []string{"Impersonate-Uid", "7"}, 400, "without impersonating a user name"},
		{"a group without a user", root, []string{"Impersonate-Group", "a"}, 400, "without impersonating a user name"},
		{"an extra without a user", root, []string{"Impersonate-Extra-Scope", "x"}, 400, "without impersonating a user name"},
		{"without the right", bob, []string{"Impersonate-User", "root"}, 403, `User \"bob\" cannot impersonate-on:user-info:get path \"/whoami\": not in the list`},
		{"oneself without the right", bob, []string{"Impersonate-User", "bob", "Impersonate-Group", "system:masters"}, 403, "forbidden"},
	} {
		t.Run(test.name, func(t *testing.T) {
			headers := http.Header{}
			for i := 0; i < len(test.headers); i += 2 {
				headers.Add(test.headers[i], test.headers[i+1])
			}
			code, text := whoami(t, &permit{}, test.who, headers)
			if code != test.code || code == 200 && text != test.want || !strings.Contains(text, test.want) {
				t.Errorf("%d %s, want %d %s", code, text, test.code, test.want)
			}
		})
	}
}

// Each part of an identity needs a permission of its own, with the old right and with the one for a request of this
// kind. An authorizer that fails allows nothing.
func TestImpersonatePermissions(t *testing.T) {
	who := &user.DefaultInfo{Name: "eve"}
	h := http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {"dev"}, "Impersonate-Uid": {"7"}, "Impersonate-Extra-Scope.x%2fy": {"view"}}
	all := []string{"bob", "dev", "view", "7"}
	resources := map[string]string{"bob": "users", "dev": "groups", "view": "userextras/scope.x/y", "7": "uids"}
	for _, verbs := range [][]string{nil, {"impersonate-on:user-info:get"}} {
		for missing := range len(all) + 1 {
			names := slices.Clone(all)
			if missing < len(all) {
				names = slices.Delete(names, missing, missing+1)
			}
			p := &permit{names: names, verbs: verbs}
			code, text := whoami(t, p, who, h.Clone())
			if want := map[bool]int{true: 200, false: 403}[missing == len(all)]; code != want {
				t.Errorf("%v, without number %d: %d %s", verbs, missing, code, text)
			}
			for _, a := range p.asked {
				resource := strings.TrimSuffix(a.GetResource()+"/"+a.GetSubresource(), "/")
				if a.GetUser().GetName() != "eve" || a.IsResourceRequest() && resource != resources[a.GetName()] {
					t.Errorf("%v, number %d asks for %s %s %q", verbs, missing, a.GetVerb(), resource, a.GetName())
				}
			}
		}
	}
	if code, text := whoami(t, &permit{fail: errors.New("the authorizer is away")}, who, h.Clone()); code != 403 || !strings.Contains(text, "away") {
		t.Errorf("an authorizer that fails: %d %s", code, text)
	}
}
