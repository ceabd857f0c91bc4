package main

import (
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// bringing is what undo and undelete share: they bring back what was, and say what they have done.
type bringing struct {
	consent
	results
}

// asked and done say what a step does and has done.
var (
	asked = map[string]string{"change": "Undo these changes of", "create": "Create", "delete": "The last change created the object. Delete"}
	done  = map[string]string{"change": "undone", "create": "undeleted", "delete": "deleted"}
)

// warnOfLoss says what of the old state is not brought back.
func warnOfLoss(cmd *cobra.Command, step *past.Step) {
	for _, owner := range step.Lost {
		tell(cmd, "%s: its owner is gone, so the reference is left out: %s", step.Target, ownerText(owner))
	}
	if step.Token {
		tell(cmd, "%s: its token stays taken back; it gets a new one if its service account is there", step.Target)
	}
	if step.Status && step.Before == nil {
		tell(cmd, "%s: its status is not brought back; controllers write it anew", step.Target)
	}
}

func ownerText(owner metav1.OwnerReference) string {
	return fmt.Sprintf("%s %s, uid %s", owner.Kind, owner.Name, owner.UID)
}

// play plays a step, and says what it has done.
func (b *bringing) play(cmd *cobra.Command, client *past.Client, step *past.Step) error {
	result, err := client.Reverter.Do(cmd.Context(), step, b.dry())
	if err != nil {
		return err
	}
	what := done[step.Verb()]
	if step.Verb() != "delete" {
		b.add(step.Target, result)
		if !b.dry() {
			what += ", revision " + result.GetResourceVersion()
		}
	}
	fmt.Fprintln(b.text(cmd), printable(fmt.Sprintf("%s %s%s", step.Target, what, b.dryNote())))
	return nil
}

// bringAll undoes one deed after the other. One that fails does not stop those after it.
func (b *bringing) bringAll(cmd *cobra.Command, client *past.Client, deeds []*past.Deed, what string) (failed int, err error) {
	for _, deed := range deeds {
		if err := b.bring(cmd, client, deed); err != nil {
			if cmd.Context().Err() != nil {
				return failed, err
			}
			failed++
			tell(cmd, "%s/%s: not %s: %s", deed.Object.Resource, deed.Object.Name, what, oneLine(err))
		}
	}
	return failed, nil
}

func (b *bringing) bring(cmd *cobra.Command, client *past.Client, deed *past.Deed) error {
	if deed.Because != nil && b.dry() {
		fmt.Fprintln(b.text(cmd), printable(nameOf(deed.Object)+" is not tried, because what it needs is not there yet"))
		return nil
	}
	err := b.bringOnce(cmd, client, deed)
	if apierrors.IsAlreadyExists(err) {
		err = b.bringOnce(cmd, client, deed) // a controller has made it meanwhile, so it is changed
	}
	return err
}

func (b *bringing) bringOnce(cmd *cobra.Command, client *past.Client, deed *past.Deed) error {
	step, err := client.Reverter.UndoDeed(cmd.Context(), deed)
	if err != nil {
		return err
	}
	warnOfLoss(cmd, step)
	return b.play(cmd, client, step)
}
