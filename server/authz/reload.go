package authz

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"time"

	"k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics"
	"k8s.io/apiserver/pkg/util/filesystem"
	kubeauthorizer "k8s.io/kubernetes/pkg/kubeapiserver/authorizer"
)

// lookEvery is how often the configuration is read where the file system reports no changes.
const lookEvery = time.Minute

// Run takes up changes of the configuration file until ctx ends; id tells this server from
// others in metrics. A file that is wrong is logged and changes nothing.
func (a *Authorizer) Run(ctx context.Context, id string) {
	file := a.options.AuthorizationConfigurationFile
	if file == "" {
		return
	}
	metrics.RegisterMetrics()
	metrics.RecordAuthorizationConfigLastConfigInfo(id, a.text)
	read := []byte(a.text)
	filesystem.WatchUntil(ctx, lookEvery, file, func() {
		data, err := os.ReadFile(file)
		if err == nil && bytes.Equal(data, read) {
			return
		}
		read = data
		changed := false
		if err == nil {
			changed, err = a.reload(data)
		}
		a.refused.Store(err != nil)
		switch {
		case err != nil:
			metrics.RecordAuthorizationConfigAutomaticReloadFailure(id)
			a.logger.Error("the authorization configuration was not taken up; the one before stays in force", "file", file, "err", err)
		case changed:
			metrics.RecordAuthorizationConfigAutomaticReloadSuccess(id, string(data))
			a.logger.Info("took up a new authorization configuration", "file", file)
		}
	}, func(err error) { a.logger.Debug("watch the authorization configuration", "file", file, "err", err) })
}

// reload puts another configuration in force, and tells whether it differs from the one before.
func (a *Authorizer) reload(data []byte) (changed bool, err error) {
	config, err := kubeauthorizer.LoadAndValidateData(data, a.compiler(), a.required)
	if err != nil || reflect.DeepEqual(config, a.named) {
		return false, err
	}
	made, err := a.chainOf(config)
	if err != nil {
		return false, err
	}
	a.named = config
	a.current.Store(made)
	return true, nil
}
