package controllers

import (
	"context"
	"errors"
	"sync"
	"weak"

	v1 "k8s.io/api/admissionregistration/v1"
	apiextensionsscheme "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/scheme"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/controller/validatingadmissionpolicystatus"
	builtinopenapi "k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/plinth-io/plinth/sqlstore/object"
)

var policiesPrefix = object.Prefix(v1.GroupName, "validatingadmissionpolicies")

// policyStatusWorkers is upstream's number of workers.
const policyStatusWorkers = 5

// runPolicyStatus runs upstream's controller that type-checks the expressions of ValidatingAdmissionPolicies
// and writes the result to their status. It starts with the first policy, because most clusters have none.
func (m *Manager) runPolicyStatus(ctx context.Context) error {
	if err := awaitFirst(ctx, m.config.Store, policiesPrefix); err != nil || ctx.Err() != nil {
		return err
	}
	return m.onInformers(ctx, m.checkPolicies)
}

func (m *Manager) checkPolicies(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
	types := &schemas{others: &resolver.ClientDiscoveryResolver{Discovery: client.Discovery()}}
	c, err := validatingadmissionpolicystatus.NewController(
		admissionregistration.New(s, "", nil).V1().ValidatingAdmissionPolicies(),
		client.AdmissionregistrationV1().ValidatingAdmissionPolicies(),
		&validating.TypeChecker{SchemaResolver: types, RestMapper: NewMapper(m.config.API.Kinds)})
	if err != nil {
		return err
	}
	s.Start(nil)
	c.Run(ctx, policyStatusWorkers)
	return nil
}

// schemas finds the schemas of types. The schemas of all built-in types take tens of megabytes and policies
// rarely change, so the garbage collector may free them between two checks.
type schemas struct {
	others resolver.SchemaResolver // finds the types that are not built in

	mu      sync.Mutex
	builtin weak.Pointer[resolver.DefinitionsSchemaResolver]
}

// ResolveSchema implements resolver.SchemaResolver.
func (s *schemas) ResolveSchema(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	found, err := s.resolveBuiltin(gvk)
	if errors.Is(err, resolver.ErrSchemaNotFound) {
		return s.others.ResolveSchema(gvk)
	}
	return found, err
}

// resolveBuiltin has one caller at a time: upstream's resolver writes resolved references into definitions
// that the schemas of several types share.
func (s *schemas) resolveBuiltin(gvk schema.GroupVersionKind) (*spec.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := s.builtin.Value()
	if made == nil {
		made = resolver.NewDefinitionsSchemaResolver(builtinopenapi.GetOpenAPIDefinitions, scheme.Scheme, apiextensionsscheme.Scheme)
		s.builtin = weak.Make(made)
	}
	return made.ResolveSchema(gvk)
}
