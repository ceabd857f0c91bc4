package auth

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
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// ErrImpersonation is wrapped by the error for headers that name no user.
var ErrImpersonation = errors.New("without impersonating a user")

// Impersonated returns whom a request is to be made as: who, unless it has Impersonate-
// headers. Then who needs the right to impersonate the user and each group, uid and extra
// that they name; the error is a Forbidden status otherwise, or wraps ErrImpersonation. The
// headers are taken out: whoever the request is handed to is told the result, if anything.
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
func Impersonated(r *http.Request, who user.Info, authz authorizer.Authorizer) (user.Info, error) {
	asked := impersonation(r.Header)
	if asked == nil {
		return who, nil
	}
	if asked.Name == "" {
		return nil, fmt.Errorf("requested %v %w", asked.references(), ErrImpersonation)
	}
	for _, a := range asked.permissions() {
		a.User, a.Verb, a.ResourceRequest = who, "impersonate", true
		if err := Check(r.Context(), authz, a); err != nil {
			return nil, err
		}
	}
	become := asked.complete()
	audit.LogImpersonatedUser(audit.AuditEventFrom(r.Context()), become)
	maps.DeleteFunc(r.Header, func(name string, _ []string) bool {
		return slices.Contains(impersonates, name) || strings.HasPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
	})
	return become, nil
}

// impersonates are the headers besides those of extras, which have a prefix in common.
var impersonates = []string{
	authenticationv1.ImpersonateUserHeader, authenticationv1.ImpersonateGroupHeader, authenticationv1.ImpersonateUIDHeader,
}

// impersonated is what the headers of a request ask for.
type impersonated struct{ user.DefaultInfo }

// impersonation reads the headers; nil if there are none of it.
func impersonation(h http.Header) *impersonated {
	names, groups, uids := h[authenticationv1.ImpersonateUserHeader], h[authenticationv1.ImpersonateGroupHeader], h[authenticationv1.ImpersonateUIDHeader]
	if len(names)+len(groups)+len(uids) == 0 && !hasExtra(h) {
		return nil
	}
	asked := &impersonated{user.DefaultInfo{Name: h.Get(authenticationv1.ImpersonateUserHeader), UID: h.Get(authenticationv1.ImpersonateUIDHeader)}}
	asked.Groups = slices.Clone(groups)
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

// permissions are what a caller must be allowed to impersonate, one by one.
func (u *impersonated) permissions() []authorizer.AttributesRecord {
	var list []authorizer.AttributesRecord
	if namespace, name, err := serviceaccount.SplitUsername(u.Name); err == nil {
		list = append(list, authorizer.AttributesRecord{APIVersion: "v1", Resource: "serviceaccounts", Namespace: namespace, Name: name})
	} else {
		list = append(list, authorizer.AttributesRecord{APIVersion: "v1", Resource: "users", Name: u.Name})
	}
	for _, group := range u.Groups {
		list = append(list, authorizer.AttributesRecord{APIVersion: "v1", Resource: "groups", Name: group})
	}
	group := authenticationv1.SchemeGroupVersion
	if u.UID != "" {
		list = append(list, authorizer.AttributesRecord{APIGroup: group.Group, APIVersion: group.Version, Resource: "uids", Name: u.UID})
	}
	for key, values := range u.Extra {
		for _, value := range values {
			list = append(list, authorizer.AttributesRecord{APIGroup: group.Group, APIVersion: group.Version, Resource: "userextras", Subresource: key, Name: value})
		}
	}
	return list
}

// complete adds the groups that come with being somebody.
func (u *impersonated) complete() user.Info {
	if namespace, _, err := serviceaccount.SplitUsername(u.Name); err == nil && len(u.Groups) == 0 {
		u.Groups = serviceaccount.MakeGroupNames(namespace)
	}
	everybody := user.AllAuthenticated
	if u.Name == user.Anonymous {
		everybody = user.AllUnauthenticated
	}
	if !slices.Contains(u.Groups, user.AllAuthenticated) && !slices.Contains(u.Groups, user.AllUnauthenticated) {
		u.Groups = append(u.Groups, everybody)
	}
	return &u.DefaultInfo
}
