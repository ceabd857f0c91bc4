package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// results are the objects that a command has written, for scripts. With --output they take the place of
// the text.
type results struct {
	output  string
	targets []past.Target
	objects []any
}

func (r *results) flag() Flag {
	return outputFlag(&r.output, "`format` in which the objects as they are then are printed, json, yaml or name; by default text says what was done", "json", "yaml", "name")
}

func (r *results) check() error {
	if r.output == "name" {
		return nil
	}
	if checkOutput(r.output) != nil {
		return usagef("--output: %q: write json, yaml or name, or leave it out for text", r.output)
	}
	return nil
}

// text is where the command says what it does.
func (r *results) text(cmd *cobra.Command) io.Writer {
	if r.output == "" {
		return cmd.OutOrStdout()
	}
	return cmd.ErrOrStderr()
}

func (r *results) add(t past.Target, o *unstructured.Unstructured) {
	r.targets = append(r.targets, t)
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	r.objects = append(r.objects, o.Object)
}

// print prints the objects, one as such, or a list as kubectl does.
func (r *results) print(cmd *cobra.Command, list bool) error {
	switch {
	case r.output == "":
		return nil
	case r.output == "name":
		for _, t := range r.targets {
			fmt.Fprintln(cmd.OutOrStdout(), t)
		}
		return nil
	case !list && len(r.objects) == 1:
		return printAs(cmd.OutOrStdout(), r.output, r.objects[0])
	case !list:
		return nil
	}
	return printAs(cmd.OutOrStdout(), r.output, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": append([]any{}, r.objects...)})
}
