package past

import (
	"errors"
	"strings"
	"testing"

	clientrest "k8s.io/client-go/rest"
)

// TestAbsent asks for what has never been, as one who may get Secrets and as one who may not.
func TestAbsent(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.create(f.c, "roles", `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
- {apiGroups: [history.plinth.io], resources: [changes, versions], verbs: [get, list]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
`)
	f.create(f.c, "rolebindings", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ann}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
`)
	f.create(f.c, "secrets", "{apiVersion: v1, kind: Secret, metadata: {name: there}}")
	config := clientrest.CopyConfig(f.server.Config)
	config.Impersonate.UserName = "ann"
	ann, err := New(config, nil)
	f.must(err)
	var newest *page
	f.eventually(func() (err error) { // the authorizer sees the binding a moment later
		newest, err = ann.History.page(f.Context(), changes, Query{Namespace: "default"}, 1, "")
		return err
	})
	now := moment(newest.ResourceVersion)
	ask := map[string]func(c *Client, target Target) error{
		"get": func(c *Client, target Target) error {
			_, err := c.History.MustBeAt(f.Context(), target, now)
			return err
		},
		"diff": func(c *Client, target Target) error {
			_, err := c.History.Compare(f.Context(), target, Moment{Back: 1}, Moment{}, View{})
			return err
		},
		"blame": func(c *Client, target Target) error {
			_, err := c.History.Blame(f.Context(), target, now, View{})
			return err
		},
	}
	for name, ask := range ask {
		for _, secret := range []string{"there", "never"} {
			err := ask(ann, f.target("secrets", secret))
			if err == nil || err.Error() != "forbidden: you may not get secrets/"+secret+" in the namespace default, so you do not see its history either; ask for that right" {
				t.Errorf("%s %s: %v", name, secret, err)
			}
		}
		err := ask(ann, f.target("configmaps", "never"))
		var mistake *Mistake
		if err == nil || errors.As(err, &mistake) || !strings.Contains(err.Error(), "not there") {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.must(ann.History.MayGet(f.Context(), f.target("configmaps", "")))
	if ann.History.MayGet(f.Context(), f.target("secrets", "")) == nil {
		t.Error("ann may get Secrets")
	}
}
