package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrInterrupted says that a run was ended before everything was measured.
var ErrInterrupted = errors.New("interrupted before everything was measured")

// Step is one of the measurements of a run R.
type Step[R any] struct {
	Name, What string
	Do         func(R, context.Context) error
	For        []string // names of steps that need this one
	Named      bool     // it is made only if it is named
}

// Steps are made in their order.
type Steps[R any] []Step[R]

// Names returns the names of all steps.
func (all Steps[R]) Names() (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// Measure makes the steps that only names, and those that they need; if it names none, all but those that must be named. say tells what is
// being done.
func (all Steps[R]) Measure(ctx context.Context, r R, only []string, say func(format string, args ...any)) error {
	for _, s := range all {
		if len(only) > 0 && !slices.ContainsFunc(only, s.serves) || len(only) == 0 && s.Named {
			continue
		}
		say("%s", s.What)
		if err := s.Do(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", s.What, err)
		}
	}
	return nil
}

// serves tells whether a step is the one of that name, or is needed by it.
func (s *Step[R]) serves(name string) bool { return s.Name == name || slices.Contains(s.For, name) }
