package main

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "example.com/site-operator/v1"
)

// hooks are the webhooks of admission; that of conversion comes with them.
type hooks struct{ client.Reader }

func addWebhooks(mgr ctrl.Manager) error {
	h := hooks{mgr.GetAPIReader()}
	return ctrl.NewWebhookManagedBy(mgr, &v1.Site{}).WithDefaulter(h).WithValidator(h).Complete()
}

func (hooks) Default(_ context.Context, site *v1.Site) error {
	if site.Spec.Replicas == nil {
		site.Spec.Replicas = new(int32)
		*site.Spec.Replicas = 1
	}
	if site.Spec.Image.Repository == "" {
		site.Spec.Image = v1.Image{Repository: "nginx", Tag: "stable"}
	}
	if len(site.Spec.Hosts) > 0 {
		if site.Labels == nil {
			site.Labels = map[string]string{}
		}
		site.Labels["web.example.com/host"] = site.Spec.Hosts[0]
	}
	return nil
}

func (h hooks) ValidateCreate(ctx context.Context, site *v1.Site) (admission.Warnings, error) {
	return h.validate(ctx, site)
}

func (h hooks) ValidateUpdate(ctx context.Context, _, site *v1.Site) (admission.Warnings, error) {
	return h.validate(ctx, site)
}

func (hooks) ValidateDelete(_ context.Context, site *v1.Site) (admission.Warnings, error) {
	if site.Annotations["web.example.com/protected"] != "" {
		return nil, fmt.Errorf("the site is protected")
	}
	return nil, nil
}

// validate asks the server whether another site has one of the hosts.
func (h hooks) validate(ctx context.Context, site *v1.Site) (admission.Warnings, error) {
	var warnings admission.Warnings
	if site.Spec.Image.Tag == "latest" {
		warnings = append(warnings, "spec.image.tag: latest is another image each day")
	}
	var sites v1.SiteList
	if err := h.List(ctx, &sites); err != nil {
		return warnings, err
	}
	var errs field.ErrorList
	for i, host := range site.Spec.Hosts {
		for _, other := range sites.Items {
			if other.UID != site.UID && slices.Contains(other.Spec.Hosts, host) {
				errs = append(errs, field.Invalid(field.NewPath("spec", "hosts").Index(i), host, "belongs to "+other.Namespace+"/"+other.Name))
			}
		}
	}
	if len(errs) > 0 {
		return warnings, apierrors.NewInvalid(v1.GroupVersion.WithKind("Site").GroupKind(), site.Name, errs)
	}
	return warnings, nil
}
