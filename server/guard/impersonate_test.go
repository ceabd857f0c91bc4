package guard

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
)

func TestImpersonate(t *testing.T) {
	admin := &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	bob := &user.DefaultInfo{Name: "bob", Groups: []string{user.AllAuthenticated}}
	for _, test := range []struct {
		name    string
		who     user.Info
		headers []string
		want    string // name and groups, or an error's text
	}{
		{"nobody", admin, nil, "root system:masters,system:authenticated"},
		{"a user", admin, []string{"Impersonate-User", "bob"}, "bob system:authenticated"},
		{"a user in groups", admin, []string{"Impersonate-User", "bob", "Impersonate-Group", "a", "Impersonate-Group", "b"}, "bob a,b,system:authenticated"},
		{"the anonymous", admin, []string{"Impersonate-User", "system:anonymous"}, "system:anonymous system:unauthenticated"},
		{"the anonymous in a group", admin, []string{"Impersonate-User", "system:anonymous", "Impersonate-Group", "system:authenticated"}, "system:anonymous system:authenticated,system:unauthenticated"},
		{"a user who is not known", admin, []string{"Impersonate-User", "bob", "Impersonate-Group", "system:unauthenticated"}, "bob system:unauthenticated"},
		{"a service account in groups", admin, []string{"Impersonate-User", "system:serviceaccount:ns:sa", "Impersonate-Group", "a"}, "system:serviceaccount:ns:sa a,system:authenticated"},
		{"an empty name", admin, []string{"Impersonate-User", ""}, "root system:masters,system:authenticated"},
		{"an empty name and UID", bob, []string{"Impersonate-User", "", "Impersonate-Uid", ""}, "bob system:authenticated"},
		{"a UID without a user", admin, []string{"Impersonate-Uid", "7"}, "without impersonating a user"},
		{"a service account", admin, []string{"Impersonate-User", "system:serviceaccount:ns:sa"}, "system:serviceaccount:ns:sa system:serviceaccounts,system:serviceaccounts:ns,system:authenticated"},
		{"a user with an extra", admin, []string{"Impersonate-User", "bob", "Impersonate-Uid", "7", "Impersonate-Extra-Acme%2fscope", "x"}, "bob system:authenticated"},
		{"a group without a user", admin, []string{"Impersonate-Group", "a"}, "without impersonating a user"},
		{"an extra without a user", admin, []string{"Impersonate-Extra-Scope", "x"}, "without impersonating a user"},
		{"without the right", bob, []string{"Impersonate-User", "root"}, `users "root" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope`},
		{"oneself without the right", bob, []string{"Impersonate-User", "bob", "Impersonate-Group", "system:masters"}, "is forbidden"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := http.NewRequest("GET", "/api", nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(test.headers); i += 2 {
				r.Header.Add(test.headers[i], test.headers[i+1])
			}
			got, err := impersonate(r, test.who, authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup))
			if err != nil {
				if !strings.Contains(err.Error(), test.want) || !apierrors.IsForbidden(err) && !errors.Is(err, errImpersonation) {
					t.Errorf("error %v, want %s", err, test.want)
				}
				return
			}
			if got == nil {
				got = test.who
			}
			for name, values := range r.Header {
				if strings.HasPrefix(name, "Impersonate-") && values[0] != "" {
					t.Errorf("%s stays", name)
				}
			}
			if text := got.GetName() + " " + strings.Join(got.GetGroups(), ","); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

// permit allows what has one of the names, and remembers what it was asked.
type permit struct {
	names []string
	fail  error
	asked []authorizer.AttributesRecord
}

func (p *permit) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	p.asked = append(p.asked, a.(authorizer.AttributesRecord))
	if slices.Contains(p.names, a.GetName()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "not in the list", p.fail
}

// Each part of an identity needs a permission of its own. An authorizer that fails allows nothing.
func TestImpersonatePermissions(t *testing.T) {
	who := &user.DefaultInfo{Name: "eve"}
	h := http.Header{"Impersonate-User": {"bob"}, "Impersonate-Group": {"dev"}, "Impersonate-Uid": {"7"}, "Impersonate-Extra-Scope%2fx": {"view"}}
	all := []string{"bob", "dev", "view", "7"}
	resources := []string{" users ", " groups ", "authentication.k8s.io userextras scope/x", "authentication.k8s.io uids "}
	for missing := range len(all) + 1 {
		names := slices.Clone(all)
		if missing < len(all) {
			names = slices.Delete(names, missing, missing+1)
		}
		by := &permit{names: names}
		_, err := impersonate(&http.Request{Header: h.Clone()}, who, by)
		if (missing == len(all)) != (err == nil) || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("without number %d: %v", missing, err)
		}
		for i, a := range by.asked {
			if got := a.APIGroup + " " + a.Resource + " " + a.Subresource; got != resources[i] || a.Verb != "impersonate" || a.User != who || !a.ResourceRequest {
				t.Errorf("number %d asks for %q: %+v", i, got, a)
			}
		}
	}
	_, err := impersonate(&http.Request{Header: h}, who, &permit{fail: errors.New("the authorizer is away")})
	if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "away") {
		t.Errorf("an authorizer that fails: %v", err)
	}
}
