package admission_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/plinth-io/plinth/server/admission"
)

func TestChain(t *testing.T) {
	refusal := errors.New("no")
	for _, c := range []struct {
		name        string
		first       error
		want        []string
		wantRefused bool
	}{
		{"all agree", nil, []string{"admit 1", "admit 3", "validate 2"}, false},
		{"the first refuses", refusal, []string{"admit 1", "validate 2"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls []string
			chain := admission.Chain{
				&mutator{recorder{"1", apiadmission.Create, &calls, c.first}},
				&validator{recorder{"2", apiadmission.Create, &calls, nil}},
				&mutator{recorder{"3", apiadmission.Create, &calls, nil}},
				&mutator{recorder{"4", apiadmission.Delete, &calls, nil}},
			}
			a := attributes(apiadmission.Create, configMap, configMaps, "a", "x")
			if err := chain.Admit(t.Context(), a, nil); (err != nil) != c.wantRefused {
				t.Errorf("Admit: %v", err)
			}
			if err := chain.Validate(t.Context(), a, nil); err != nil {
				t.Errorf("Validate: %v", err)
			}
			if diff := cmp.Diff(c.want, calls); diff != "" {
				t.Error(diff)
			}
			for op, want := range map[apiadmission.Operation]bool{apiadmission.Create: true, apiadmission.Delete: true, apiadmission.Update: false} {
				if chain.Handles(op) != want {
					t.Errorf("Handles(%s) = %v", op, !want)
				}
			}
		})
	}
}
