package guard

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// errImpersonation is wrapped by the error for headers that name no user.
var errImpersonation = errors.New("without impersonating a user")

// impersonate returns the user that a request of who is made as, nil if the request has no
// Impersonate- headers. Otherwise who needs the right to impersonate the user and each group, uid and extra
// that the headers name; otherwise the error is a Forbidden status, or wraps
// errImpersonation. The headers are removed, so that they do not reach a server to which the
// request is proxied.
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
func impersonate(r *http.Request, who user.Info, by authorizer.Authorizer) (user.Info, error) {
	asked := impersonation(r.Header)
	if asked == nil {
		return nil, nil
	}
	if asked.Name == "" {
		return nil, fmt.Errorf("requested %v %w", asked.references(), errImpersonation)
	}
	for _, a := range asked.permissions() {
		a.User, a.Verb, a.ResourceRequest = who, "impersonate", true
		decision, reason, err := by.Authorize(r.Context(), a)
		if err != nil || decision != authorizer.DecisionAllow { // an error is no 500 here, as upstream
			return nil, responsewriters.ForbiddenStatusError(a, reason)
		}
	}
	become := asked.complete()
	apiaudit.LogImpersonatedUser(apiaudit.AuditEventFrom(r.Context()), become)
	maps.DeleteFunc(r.Header, func(name string, _ []string) bool {
		return slices.Contains(impersonates, name) || strings.HasPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
	})
	return become, nil
}

// impersonates are the Impersonate- headers, but for those of extras, which have a common
// prefix.
var impersonates = []string{
	authenticationv1.ImpersonateUserHeader, authenticationv1.ImpersonateGroupHeader, authenticationv1.ImpersonateUIDHeader,
}

// impersonated is the user that the headers of a request ask for.
type impersonated struct{ user.DefaultInfo }

// impersonation reads the headers; it returns nil if there are none.
func impersonation(h http.Header) *impersonated {
	name, uid, groups := h.Get(authenticationv1.ImpersonateUserHeader), h.Get(authenticationv1.ImpersonateUIDHeader), h[authenticationv1.ImpersonateGroupHeader]
	if name == "" && uid == "" && len(groups) == 0 && !hasExtra(h) {
		return nil
	}
	asked := &impersonated{user.DefaultInfo{Name: name, UID: uid, Groups: slices.Clone(groups)}}
	for name, values := range h {
		key, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		key = strings.ToLower(key)
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		if asked.Extra == nil {
			asked.Extra = map[string][]string{}
		}
		asked.Extra[key] = append(asked.Extra[key], values...)
	}
	return asked
}

func hasExtra(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix) {
			return true
		}
	}
	return false
}

// references are the groups, extras and uid in the form in which upstream shows them.
func (u *impersonated) references() (list []corev1.ObjectReference) {
	for _, group := range u.Groups {
		list = append(list, corev1.ObjectReference{Kind: "Group", Name: group})
	}
	gv := authenticationv1.SchemeGroupVersion.String()
	for key, values := range u.Extra {
		for _, value := range values {
			list = append(list, corev1.ObjectReference{Kind: "UserExtra", Name: value, APIVersion: gv, FieldPath: key})
		}
	}
	if u.UID != "" {
		list = append(list, corev1.ObjectReference{Kind: "UID", Name: u.UID, APIVersion: gv})
	}
	return list
}

// permissions returns what the caller must be allowed to impersonate, one by one.
func (u *impersonated) permissions() []authorizer.AttributesRecord {
	var list []authorizer.AttributesRecord
	if namespace, name, err := serviceaccount.SplitUsername(u.Name); err == nil {
		list = append(list, authorizer.AttributesRecord{Resource: "serviceaccounts", Namespace: namespace, Name: name})
	} else {
		list = append(list, authorizer.AttributesRecord{Resource: "users", Name: u.Name})
	}
	for _, group := range u.Groups {
		list = append(list, authorizer.AttributesRecord{Resource: "groups", Name: group})
	}
	group := authenticationv1.SchemeGroupVersion
	for key, values := range u.Extra {
		for _, value := range values {
			list = append(list, authorizer.AttributesRecord{APIGroup: group.Group, APIVersion: group.Version, Resource: "userextras", Subresource: key, Name: value})
		}
	}
	if u.UID != "" {
		list = append(list, authorizer.AttributesRecord{APIGroup: group.Group, APIVersion: group.Version, Resource: "uids", Name: u.UID})
	}
	return list
}

// complete adds the groups that the user is in by its name or by being authenticated.
func (u *impersonated) complete() user.Info {
	if namespace, _, err := serviceaccount.SplitUsername(u.Name); err == nil && len(u.Groups) == 0 {
		u.Groups = serviceaccount.MakeGroupNames(namespace)
	}
	unknown := slices.Contains(u.Groups, user.AllUnauthenticated)
	switch {
	case u.Name == user.Anonymous && !unknown:
		u.Groups = append(u.Groups, user.AllUnauthenticated)
	case u.Name != user.Anonymous && !unknown && !slices.Contains(u.Groups, user.AllAuthenticated):
		u.Groups = append(u.Groups, user.AllAuthenticated)
	}
	return &u.DefaultInfo
}
