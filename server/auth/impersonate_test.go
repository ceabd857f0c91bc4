package auth

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestImpersonated(t *testing.T) {
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
			got, err := Impersonated(r, test.who, Authorizer{})
			if err != nil {
				if !strings.Contains(err.Error(), test.want) || !apierrors.IsForbidden(err) && !errors.Is(err, ErrImpersonation) {
					t.Errorf("error %v, want %s", err, test.want)
				}
				return
			}
			for name := range r.Header {
				if strings.HasPrefix(name, "Impersonate-") {
					t.Errorf("%s stays", name)
				}
			}
			if text := got.GetName() + " " + strings.Join(got.GetGroups(), ","); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}
