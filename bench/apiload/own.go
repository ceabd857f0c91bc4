package apiload

import (
	"context"
	"errors"
	"os"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/bench/measure"
	"github.com/plinth-io/plinth/dialects"
)

// Own is a plinth on a database that was made for it.
type Own struct {
	*measure.Plinth
	Name  string // of the kind of database
	Files string // directory of SQLite's files

	command []string
	data    string
	scratch *measure.Scratch
}

// StartOwn starts plinth serve on a scratch database beside the one that dsn names. Everything that
// is written to files is in dir.
func StartOwn(ctx context.Context, command []string, dir, dsn string) (_ *Own, err error) {
	o := &Own{Name: dialects.Scheme(dsn), command: command}
	if o.scratch, err = measure.NewScratch(ctx, dsn, dir); err != nil {
		return nil, err
	}
	o.Files = o.scratch.Dir
	if o.data, err = os.MkdirTemp(dir, "data-"); err == nil {
		o.Plinth, err = measure.StartPlinth(ctx, command, o.data, o.scratch.DSN)
	}
	if err != nil {
		return nil, errors.Join(err, o.Stop(ctx))
	}
	return o, nil
}

// Restart ends the process and starts another on the same database.
func (o *Own) Restart(ctx context.Context) error {
	err := o.Plinth.Stop()
	o.Plinth = nil
	if err == nil {
		o.Plinth, err = measure.StartPlinth(ctx, o.command, o.data, o.scratch.DSN)
	}
	return err
}

// Config is how the admin reaches the server.
func (o *Own) Config() (*clientrest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
}

// Stop ends the process, and removes its database and its data.
func (o *Own) Stop(ctx context.Context) (err error) {
	if o.Plinth != nil {
		err = o.Plinth.Stop()
	}
	return errors.Join(err, o.scratch.Drop(context.WithoutCancel(ctx)), os.RemoveAll(o.data))
}
