package auth

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// public are the paths that everybody may get, as upstream's bootstrap ClusterRole
// system:public-info-viewer has them. A trailing * stands for any rest.
var public = []string{"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*", "/version", "/version/"}

// Authorizer allows members of system:masters everything and everybody else the public
// paths. It is an upstream authorizer.Authorizer and authorizer.RuleResolver.
type Authorizer struct{}

// Authorize implements authorizer.Authorizer.
func (Authorizer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if who := a.GetUser(); who != nil && slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	if !a.IsResourceRequest() && a.GetVerb() == "get" && isPublic(a.GetPath()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
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
func (Authorizer) RulesFor(_ context.Context, who user.Info, _ string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
		return []authorizer.ResourceRuleInfo{&authorizer.DefaultResourceRuleInfo{
				Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"},
			}},
			[]authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{
				Verbs: []string{"*"}, NonResourceURLs: []string{"*"},
			}}, false, nil
	}
	return nil, []authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{
		Verbs: []string{"get"}, NonResourceURLs: public,
	}}, false, nil
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
	if decision == authorizer.DecisionAllow {
		return nil
	}
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	return responsewriters.ForbiddenStatusError(what, reason)
}
