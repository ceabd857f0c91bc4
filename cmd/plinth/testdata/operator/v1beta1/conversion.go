package v1beta1

import (
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	v1 "example.com/site-operator/v1"
)

// moreHosts keeps in this version's annotations the hosts that its spec has no field for.
const moreHosts = "web.example.com/more-hosts"

// ConvertTo makes the Site of the hub.
func (s *Site) ConvertTo(hub conversion.Hub) error {
	in, out := s.DeepCopyObject().(*Site), hub.(*v1.Site)
	out.ObjectMeta, out.Status = in.ObjectMeta, in.Status
	out.Spec = v1.SiteSpec{Hosts: []string{in.Spec.Host}, Replicas: in.Spec.Replicas}
	if more := in.Annotations[moreHosts]; more != "" {
		out.Spec.Hosts = append(out.Spec.Hosts, strings.Split(more, ",")...)
		delete(out.Annotations, moreHosts)
	}
	out.Spec.Image.Repository, out.Spec.Image.Tag, _ = strings.Cut(in.Spec.Image, ":")
	for _, p := range in.Spec.Pages {
		if out.Spec.Pages == nil {
			out.Spec.Pages = map[string]string{}
		}
		out.Spec.Pages[p.Path] = p.Text
	}
	return nil
}

// ConvertFrom makes this version's Site.
func (s *Site) ConvertFrom(hub conversion.Hub) error {
	in := hub.(*v1.Site).DeepCopyObject().(*v1.Site)
	s.ObjectMeta, s.Status = in.ObjectMeta, in.Status
	s.Spec = SiteSpec{Replicas: in.Spec.Replicas, Image: in.Spec.Image.Repository}
	if len(in.Spec.Hosts) > 0 {
		s.Spec.Host = in.Spec.Hosts[0]
	}
	if len(in.Spec.Hosts) > 1 {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[moreHosts] = strings.Join(in.Spec.Hosts[1:], ",")
	}
	if in.Spec.Image.Tag != "" {
		s.Spec.Image += ":" + in.Spec.Image.Tag
	}
	for _, path := range slices.Sorted(maps.Keys(in.Spec.Pages)) {
		s.Spec.Pages = append(s.Spec.Pages, Page{Path: path, Text: in.Spec.Pages[path]})
	}
	return nil
}
