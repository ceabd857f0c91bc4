package builtin

import (
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
			Subresources: subresources(status(job.StatusStrategy)),
		},
	)
}
