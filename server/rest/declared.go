package rest

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
)

// declared runs the declarative validation of a strategy, if the strategy has one.
type declared struct {
	strategy any
	of       *target
}

var _ apirest.DeclarativeValidationStrategy = declared{}

// ValidateDeclaratively implements apirest.DeclarativeValidationStrategy. It does nothing for an object that has
// many errors already, because upstream compares each error of the one validation with each of the other.
func (d declared) ValidateDeclaratively(ctx context.Context, obj, old runtime.Object, errs field.ErrorList, op operation.Type, config apirest.DeclarativeValidationConfig) field.ErrorList {
	s, ok := d.strategy.(apirest.DeclarativeValidationStrategy)
	if !ok || len(errs) > kind.MostErrors/10 {
		return errs
	}
	ctx = d.of.declaredContext(ctx)
	if len(errs) == 0 && d.of.declaredPasses(ctx, obj, old, op, config) {
		return nil
	}
	return kind.LimitErrors(s.ValidateDeclaratively(ctx, obj, old, errs, op, config))
}

// DeclarativeValidationConfig implements apirest.DeclarativeValidationStrategy.
func (d declared) DeclarativeValidationConfig(ctx context.Context, obj, old runtime.Object) apirest.DeclarativeValidationConfig {
	if s, ok := d.strategy.(apirest.DeclarativeValidationStrategy); ok {
		return s.DeclarativeValidationConfig(ctx, obj, old)
	}
	return apirest.DeclarativeValidationConfig{}
}

// declaredContext names the version whose declarative validation is run.
func (t *target) declaredContext(ctx context.Context) context.Context {
	info, ok := apirequest.RequestInfoFrom(ctx)
	v := t.kind.Version(t.version)
	if !ok || v == nil || v.Declared.Empty() {
		return ctx
	}
	as := *info
	as.APIGroup, as.APIVersion = v.Declared.Group, v.Declared.Version
	return apirequest.WithRequestInfo(ctx, &as)
}

// declaredRules is the part of a runtime.Scheme that validates declaratively.
type declaredRules interface {
	Validate(ctx context.Context, options map[string]bool, obj runtime.Object, subresources ...string) field.ErrorList
	ValidateUpdate(ctx context.Context, options map[string]bool, obj, old runtime.Object, subresources ...string) field.ErrorList
}

// declaredPasses says that declarative validation finds nothing, as nearly always. Upstream copies both objects before
// it converts them, and then compares the copies field by field. Here the versioned objects share memory with obj and
// old, so parts that a strategy took over from old are equal by their pointers. If declaredPasses returns false,
// upstream's own function runs, which returns the errors and counts panics.
func (t *target) declaredPasses(ctx context.Context, obj, old runtime.Object, op operation.Type, config apirest.DeclarativeValidationConfig) (passes bool) {
	rules, ok := t.kind.Codec.Objects(ctx).Typer.(declaredRules)
	info, known := apirequest.RequestInfoFrom(ctx)
	if !ok || !known || config.SubresourceGVKMapper != nil {
		return false
	}
	defer func() {
		if recover() != nil {
			passes = false
		}
	}()
	gv := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	var subresources []string
	if info.Subresource != "" {
		subresources = strings.Split(info.Subresource, "/")
	}
	versioned, err := t.kind.Codec.Versioned(obj, gv)
	if err != nil {
		return false
	}
	if op == operation.Create {
		return len(rules.Validate(ctx, config.Options, versioned, subresources...)) == 0
	}
	versionedOld, err := t.kind.Codec.Versioned(old, gv)
	return err == nil && len(rules.ValidateUpdate(ctx, config.Options, versioned, versionedOld, subresources...)) == 0
}
