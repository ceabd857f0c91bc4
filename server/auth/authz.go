package auth

import (
	"context"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// public are the paths that everybody may get, as upstream's bootstrap ClusterRole
// system:public-info-viewer has them. A trailing * stands for any rest.
var public = []string{"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*", "/version", "/version/"}

// issuer are the paths that service accounts may get besides: how others can verify their
// tokens. Upstream's bootstrap ClusterRole system:service-account-issuer-discovery has them.
var issuer = []string{
	"/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks", "/openid/v1/jwks/",
}

// selfReviews are what everybody with good credentials may ask about themselves, as
// upstream's bootstrap ClusterRole system:basic-user has it: resources by group.
var selfReviews = map[string][]string{
	"authentication.k8s.io": {"selfsubjectreviews"},
	"authorization.k8s.io":  {"selfsubjectaccessreviews", "selfsubjectrulesreviews"},
}

// Authorizer allows members of system:masters everything and everybody else the public
// paths and to ask about themselves. It is an upstream authorizer.Authorizer and
// authorizer.RuleResolver.
type Authorizer struct{}

// Authorize implements authorizer.Authorizer.
func (Authorizer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	var groups []string
	if who := a.GetUser(); who != nil {
		groups = who.GetGroups()
	}
	if slices.Contains(groups, user.SystemPrivilegedGroup) || !a.IsResourceRequest() && mayGet(groups, a) || a.IsResourceRequest() && mayAsk(groups, a) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// mayGet is about paths that are no resources.
func mayGet(groups []string, a authorizer.Attributes) bool {
	if a.GetVerb() != "get" {
		return false
	}
	return isPublic(a.GetPath()) || slices.Contains(groups, serviceaccount.AllServiceAccountsGroup) && slices.Contains(issuer, a.GetPath())
}

// mayAsk is about reviews.
func mayAsk(groups []string, a authorizer.Attributes) bool {
	return a.GetVerb() == "create" && a.GetSubresource() == "" &&
		slices.Contains(selfReviews[a.GetAPIGroup()], a.GetResource()) && slices.Contains(groups, user.AllAuthenticated)
}

func isPublic(path string) bool {
	for _, p := range public {
		if prefix, wild := strings.CutSuffix(p, "*"); path == p || wild && strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// RulesFor implements authorizer.RuleResolver.
func (Authorizer) RulesFor(_ context.Context, who user.Info, _ string) (resources []authorizer.ResourceRuleInfo, paths []authorizer.NonResourceRuleInfo, incomplete bool, err error) {
	groups := who.GetGroups()
	if slices.Contains(groups, user.SystemPrivilegedGroup) {
		return []authorizer.ResourceRuleInfo{&authorizer.DefaultResourceRuleInfo{
				Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"},
			}},
			[]authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{
				Verbs: []string{"*"}, NonResourceURLs: []string{"*"},
			}}, false, nil
	}
	paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: []string{"get"}, NonResourceURLs: public})
	if slices.Contains(groups, serviceaccount.AllServiceAccountsGroup) {
		paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: []string{"get"}, NonResourceURLs: issuer})
	}
	if slices.Contains(groups, user.AllAuthenticated) {
		for _, group := range slices.Sorted(maps.Keys(selfReviews)) {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{
				Verbs: []string{"create"}, APIGroups: []string{group}, Resources: selfReviews[group],
			})
		}
	}
	return resources, paths, false, nil
}

// Attributes says what a request asks for in an authorizer's words.
func Attributes(who user.Info, info *request.RequestInfo) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
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
}

// Check returns nil if by allows what, else the 403 that upstream answers.
func Check(ctx context.Context, by authorizer.Authorizer, what authorizer.Attributes) error {
	decision, reason, err := by.Authorize(ctx, what)
	return refusal(what, decision, reason, err)
}

// CheckAudited is Check for a request as such, whose audit event, if there is one in ctx,
// gets the decision and the reason (upstream: endpoints/filters/authorization.go).
func CheckAudited(ctx context.Context, by authorizer.Authorizer, what authorizer.Attributes) error {
	decision, reason, err := by.Authorize(ctx, what)
	switch {
	case decision == authorizer.DecisionAllow:
		audit.AddAuditAnnotations(ctx, decisionAnnotation, "allow", reasonAnnotation, reason)
	case err != nil:
		audit.AddAuditAnnotation(ctx, reasonAnnotation, "internal error")
	default:
		audit.AddAuditAnnotations(ctx, decisionAnnotation, "forbid", reasonAnnotation, reason)
	}
	return refusal(what, decision, reason, err)
}

const (
	decisionAnnotation = "authorization.k8s.io/decision"
	reasonAnnotation   = "authorization.k8s.io/reason"
)

// refusal is what an authorizer's answer means, nil for yes.
func refusal(what authorizer.Attributes, decision authorizer.Decision, reason string, err error) error {
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return apierrors.NewInternalError(err)
	}
	return responsewriters.ForbiddenStatusError(what, reason)
}
