package transfer

import (
	"context"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// CopyInSteps is Copy with small pages, after each of which it follows the source.
func CopyInSteps(ctx context.Context, to, from changelog.Log, o CopyOptions) (Copied, error) {
	c := newCopier(to, from, o)
	c.pages.N, c.walkFor = 3, 0
	return c.copy(ctx)
}

// Rounds are what a copy writes changes in.
func Rounds(changes []changelog.Change) (out [][]changelog.Change) {
	all := make([]sourced, len(changes))
	for i, c := range changes {
		all[i].Change = c
	}
	for _, round := range rounds(all) {
		out = append(out, nil)
		for _, c := range round {
			out[len(out)-1] = append(out[len(out)-1], c.Change)
		}
	}
	return out
}
