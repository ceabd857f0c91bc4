package policies

import (
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/manifest/metrics"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	staticsource "k8s.io/apiserver/pkg/admission/plugin/policy/manifest/source"
)

// static is how policies come from files.
type static[P, B object, E generic.Evaluator] struct {
	plugin  metrics.ManifestType
	load    func(dir string) (policies []P, bindings []B, hash string, err error) // checks and completes them
	compile func(P) (E, error)
}

// follow reads the policies in files, if there are to be any, and reads them again when they change.
func (p *policies[P, B, E]) follow(s static[P, B, E]) error {
	m := p.o.Manifests
	if m == nil || m.Dir == "" {
		return nil
	}
	load := func(dir string) (policies []P, bindings []B, hash string, err error) {
		err = m.Load(func() (string, error) {
			policies, bindings, hash, err = s.load(dir)
			return hash, err
		})
		return policies, bindings, hash, err
	}
	compile := func(policy P) (E, error) {
		compiled, err := s.compile(policy)
		m.Compiled(err)
		return compiled, err
	}
	nameOf := func(b B) string { return p.of.binding(b).GetPolicyName().Name }
	files := staticsource.NewStaticPolicySource(m.Dir, m.Identity, compile, load, nameOf, s.plugin)
	if err := files.LoadInitial(); err != nil {
		return err
	}
	if err := p.build(); err != nil {
		return err
	}
	p.static = files
	m.Follow(files.RunReloadLoop)
	return nil
}

// inFiles returns the policies in files with a rule that a write may match.
func (p *policies[P, B, E]) inFiles(a apiadmission.Attributes, o apiadmission.ObjectInterfaces) (found []generic.PolicyHook[P, B, E]) {
	if p.static == nil {
		return nil
	}
	for _, hook := range p.static.Hooks() {
		if mayMatch(p.of.policy(hook.Policy).GetMatchConstraints(), a, o) {
			found = append(found, hook)
		}
	}
	return found
}
