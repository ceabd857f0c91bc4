package builtin

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"

	"github.com/plinth-io/plinth/server/kind"
)

func batchKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "batch", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "cronjobs", Singular: "cronjob", Kind: "CronJob",
			ShortNames: []string{"cj"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     cronjob.Strategy, Update: cronjob.Strategy, Delete: cronjob.Strategy,
			Subresources: subresources(status(cronjob.StatusStrategy)),
		},
		&kind.Kind{
			Resource: "jobs", Singular: "job", Kind: "Job",
			Categories: []string{"all"},
			Namespaced: true,
			Create:     job.Strategy, Update: job.Strategy, Delete: job.Strategy,
			Attrs:        job.GetAttrs,
			BeforeDelete: warnOfOrphans,
			Subresources: subresources(status(job.StatusStrategy)),
		},
	)
}

// warnOfOrphans tells who deletes a Job without a policy that its pods stay, which is so
// of no other kind.
func warnOfOrphans(ctx context.Context, _ string, options *metav1.DeleteOptions) error {
	//lint:ignore SA1019 it is deprecated, and still served
	silent := options.PropagationPolicy != nil || options.OrphanDependents != nil
	if !silent && job.Strategy.DefaultGarbageCollectionPolicy(ctx) == rest.OrphanDependents {
		warning.AddWarning(ctx, "", "child pods are preserved by default when jobs are deleted; "+
			"set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning")
	}
	return nil
}
