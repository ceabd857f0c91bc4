package builtin

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirest "k8s.io/apiserver/pkg/registry/rest"
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
			Attributes:   attributes{"status.successful": absentIs("0", "status.succeeded")},
			Hooks:        kind.Hooks{CheckDelete: warnOfOrphans},
			Subresources: subresources(status(job.StatusStrategy)),
		},
	)
}

// warnOfOrphans warns a client that deletes a Job without a propagation policy: the pods stay,
// unlike the dependents of every other kind.
func warnOfOrphans(ctx context.Context, _ string, options *metav1.DeleteOptions) error {
	//lint:ignore SA1019 the field is deprecated, and still served
	silent := options.PropagationPolicy != nil || options.OrphanDependents != nil
	if !silent && job.Strategy.DefaultGarbageCollectionPolicy(ctx) == apirest.OrphanDependents {
		warning.AddWarning(ctx, "", "child pods are preserved by default when jobs are deleted; "+
			"set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning")
	}
	return nil
}
