package openapi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// overview returns the route of a document that belongs to no resource: discovery, the version, or the issuer
// of tokens.
func (g *groupVersion) overview() *route {
	mediaTypes := withoutCBOR.objects
	r := &route{method: "GET", path: "/" + g.path + "/", consumes: mediaTypes, produces: mediaTypes, answers: []int{200}}
	o := operations{g: g}
	switch {
	case g.path == "version":
		r.id, r.tag, r.description = "getCodeVersion", "version", "get the version information for this server"
		r.consumes, r.produces, r.answer = mediaTypes[:1], mediaTypes[:1], &version.Info{}
	case "/"+g.path == serviceaccount.OpenIDConfigPath:
		r.id, r.tag = "getServiceAccountIssuerOpenIDConfiguration", "WellKnown"
		r.description = "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'"
		r.consumes, r.produces, r.answer = nil, mediaTypes[:1], ""
	case "/"+g.path == serviceaccount.JWKSPath:
		r.id, r.tag = "getServiceAccountIssuerOpenIDKeyset", "openid"
		r.description = "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)"
		r.consumes, r.produces, r.answer = nil, []string{"application/jwk-set+json"}, ""
	case g.path == "api":
		r.id, r.tag, r.description = "getCoreAPIVersions", "core", "get available API versions"
		r.consumes, r.produces, r.answer = g.media.objects, g.media.objects, &metav1.APIVersions{}
	case g.path == "apis":
		r.id, r.tag, r.description = "getAPIVersions", "apis", "get available API versions"
		r.consumes, r.produces, r.answer = g.media.objects, g.media.objects, &metav1.APIGroupList{}
	case g.version == "":
		r.id, r.tag, r.description = "get"+o.groupName()+"APIGroup", uncapitalized(o.groupName()), "get information of a group"
		r.answer = &metav1.APIGroup{}
	default:
		r.id, r.tag, r.description = o.id("get", "", "APIResources"), o.tag(), "get available resources"
		r.consumes, r.produces, r.answer = g.media.objects, g.media.objects, &metav1.APIResourceList{}
	}
	return r
}
