package builtin

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	accountstorage "k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// tokens attaches the subresource by which tokens of service accounts are asked for.
func (a *attaching) tokens() error {
	t := a.Tokens
	if t == nil {
		return nil
	}
	of := func(resource string) rest.Getter { return reader{a.Store, a.kinds[resource]} }
	s, err := accountstorage.NewREST(a.getter, t.Issuer(), t.Audiences(), t.MaxExpiration(),
		of("pods"), of("secrets"), of("nodes"),
		t.ExtendExpiration(), serviceaccount.ExpirationExtensionSeconds*time.Second)
	if err != nil {
		return err
	}
	addPost(a.kinds["serviceaccounts"], "token", authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), s.Token)
	return nil
}

// reader gets objects of one Kind from the store, in hub form.
type reader struct {
	store *sqlstore.Store
	kind  *kind.Kind
}

// Get implements rest.Getter. What is asked for with resourceVersion 0 may be a little old.
func (r reader) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	if options.ResourceVersion != "0" {
		if _, err := r.store.Sync(ctx); err != nil {
			return nil, err
		}
	}
	e := r.store.Get(r.kind.Key(request.NamespaceValue(ctx), name))
	if e == nil {
		return nil, errors.NewNotFound(r.kind.GroupResource(), name)
	}
	return r.kind.Codec.Load(e.JSON)
}
