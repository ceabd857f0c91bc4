package custom

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
)

// rules are upstream's strategies of one version. They are made at the first request. A request
// decodes an object with the version's codec first, so a schema that cannot be compiled has
// failed the request before.
type rules struct {
	runtime.ObjectTyper
	names.NameGenerator
	namespaced bool
	use        func() (*version, error)
}

var (
	_ apirest.RESTCreateStrategy = rules{}
	_ apirest.RESTUpdateStrategy = rules{}
)

func (r rules) NamespaceScoped() bool                         { return r.namespaced }
func (r rules) AllowCreateOnUpdate(context.Context) bool      { return false }
func (r rules) AllowUnconditionalUpdate(context.Context) bool { return false }
func (r rules) Canonicalize(runtime.Object)                   {}

func (r rules) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	if v, err := r.use(); err == nil {
		v.create.PrepareForCreate(ctx, obj)
	}
}

func (r rules) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	v, err := r.use()
	if err != nil {
		return unusable(err)
	}
	return v.create.Validate(ctx, obj)
}

func (r rules) WarningsOnCreate(ctx context.Context, obj runtime.Object) []string {
	v, err := r.use()
	if err != nil {
		return nil
	}
	return v.create.WarningsOnCreate(ctx, obj)
}

func (r rules) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	if v, err := r.use(); err == nil {
		v.update().update.PrepareForUpdate(ctx, obj, old)
	}
}

func (r rules) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	v, err := r.use()
	if err != nil {
		return unusable(err)
	}
	return v.update().update.ValidateUpdate(ctx, obj, old)
}

func (r rules) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	v, err := r.use()
	if err != nil {
		return nil
	}
	return v.update().update.WarningsOnUpdate(ctx, obj, old)
}

// statusRules are the strategies of writes through /status.
type statusRules struct{ rules }

func (r statusRules) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	if v, err := r.use(); err == nil {
		v.update().status.PrepareForUpdate(ctx, obj, old)
	}
}

func (r statusRules) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	v, err := r.use()
	if err != nil {
		return unusable(err)
	}
	return v.update().status.ValidateUpdate(ctx, obj, old)
}

func (r statusRules) WarningsOnUpdate(ctx context.Context, obj, old runtime.Object) []string {
	v, err := r.use()
	if err != nil {
		return nil
	}
	return v.update().status.WarningsOnUpdate(ctx, obj, old)
}

func unusable(err error) field.ErrorList { return field.ErrorList{field.InternalError(nil, err)} }

// attrs returns labels and selectable fields.
func (r rules) attrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	v, err := r.use()
	if err != nil {
		return nil, nil, err
	}
	return v.attrs(obj)
}

// ConvertToTable implements rest.TableConvertor.
func (r rules) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	v, err := r.use()
	if err != nil {
		return nil, err
	}
	return v.table.ConvertToTable(ctx, obj, options)
}
