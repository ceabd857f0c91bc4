package authz

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/plinth-io/plinth/server/selectors"
)

// Attributes returns the attributes of a request for an authorizer (upstream:
// endpoints/filters.GetAuthorizerAttributes).
func Attributes(who user.Info, info *apirequest.RequestInfo) authorizer.AttributesRecord {
	a := authorizer.AttributesRecord{
		User:            who,
		Verb:            info.Verb,
		Namespace:       info.Namespace,
		APIGroup:        info.APIGroup,
		APIVersion:      info.APIVersion,
		Resource:        info.Resource,
		Subresource:     info.Subresource,
		Name:            info.Name,
		ResourceRequest: info.IsResourceRequest,
		Path:            info.Path,
	}
	if info.FieldSelector != "" || info.LabelSelector != "" {
		addSelectors(&a, info)
	}
	return a
}

// addSelectors adds the selectors of a list, a watch or a deletecollection. A selector that has too many terms, which
// the verb will refuse, or that cannot be parsed is left out, and so restricts nothing.
func addSelectors(a *authorizer.AttributesRecord, info *apirequest.RequestInfo) {
	if info.FieldSelector != "" {
		selector, err := parsed("fieldSelector", info.FieldSelector, fields.ParseSelector)
		if err != nil {
			a.FieldSelectorParsingErr = err
		} else if requirements := selector.Requirements(); len(requirements) > 0 {
			a.FieldSelectorRequirements = requirements
		}
	}
	if info.LabelSelector != "" {
		selector, err := parsed("labelSelector", info.LabelSelector, func(text string) (labels.Selector, error) { return labels.Parse(text) })
		if err != nil {
			a.LabelSelectorParsingErr = err
		} else if requirements, _ := selector.Requirements(); len(requirements) > 0 {
			a.LabelSelectorRequirements = requirements
		}
	}
}

func parsed[S any](name, text string, parse func(string) (S, error)) (selector S, err error) {
	if err := selectors.Check(name, text); err != nil {
		return selector, err
	}
	return parse(text)
}

// Result is upstream's word for a decision, for metrics.
func Result(decision authorizer.Decision, err error) string {
	switch {
	case decision == authorizer.DecisionAllow:
		return "allowed"
	case err != nil:
		return "error"
	case decision == authorizer.DecisionDeny:
		return "denied"
	}
	return "no-opinion"
}

// Annotate notes a decision and its reason in the audit event in ctx, if there is one (upstream:
// endpoints/filters/authorization.go).
func Annotate(ctx context.Context, decision authorizer.Decision, reason string, err error) {
	switch {
	case decision == authorizer.DecisionAllow:
		apiaudit.AddAuditAnnotations(ctx, decisionAnnotation, "allow", reasonAnnotation, reason)
	case err != nil:
		apiaudit.AddAuditAnnotation(ctx, reasonAnnotation, "internal error")
	default:
		apiaudit.AddAuditAnnotations(ctx, decisionAnnotation, "forbid", reasonAnnotation, reason)
	}
}

const (
	decisionAnnotation = "authorization.k8s.io/decision"
	reasonAnnotation   = "authorization.k8s.io/reason"
)
