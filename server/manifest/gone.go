package manifest

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// alike returns an object of a version that has no types any more with the fields that the version
// has which replaces it. These versions differ in the metrics of autoscaling/v2beta1 only.
func alike(obj map[string]any, gvk schema.GroupVersionKind) map[string]any {
	spec, _ := obj["spec"].(map[string]any)
	metrics, _ := spec["metrics"].([]any)
	if gvk.Group != "autoscaling" || gvk.Version != "v2beta1" || metrics == nil {
		return obj
	}
	list := make([]any, len(metrics))
	for i, m := range metrics {
		list[i] = m
		if metric, ok := m.(map[string]any); ok {
			list[i] = withTargets(metric)
		}
	}
	obj, spec = maps.Clone(obj), maps.Clone(spec)
	obj["spec"], spec["metrics"] = spec, list
	return obj
}

// withTargets returns a metric of autoscaling/v2beta1 in the form of autoscaling/v2.
func withTargets(metric map[string]any) map[string]any {
	metric = maps.Clone(metric)
	for kind, value := range metric {
		source, ok := value.(map[string]any)
		if !ok {
			continue
		}
		s := sourceOf(maps.Clone(source))
		switch kind {
		case "object":
			s.move("target", s, "describedObject")
			s.describe("selector")
			s.aim("Value", "targetValue", "value")
			s.aim("AverageValue", "averageValue", "averageValue")
		case "pods":
			s.describe("selector")
			s.aim("AverageValue", "targetAverageValue", "averageValue")
		case "resource", "containerResource":
			s.aim("AverageValue", "targetAverageValue", "averageValue")
			s.aim("Utilization", "targetAverageUtilization", "averageUtilization")
		case "external":
			s.describe("metricSelector")
			s.aim("AverageValue", "targetAverageValue", "averageValue")
			s.aim("Value", "targetValue", "value")
		}
		metric[kind] = map[string]any(s)
	}
	return metric
}

// sourceOf is a metric without its type.
type sourceOf map[string]any

// move moves a field, if it is there, into a map under another name, and reports whether it was.
func (s sourceOf) move(name string, into map[string]any, as string) bool {
	value, ok := s[name]
	if ok && value != nil {
		delete(s, name)
		into[as] = value
	}
	return ok && value != nil
}

// describe moves what says which metric it is.
func (s sourceOf) describe(selector string) {
	metric := map[string]any{}
	s.move("metricName", metric, "name")
	s.move(selector, metric, "selector")
	s["metric"] = metric
}

// aim moves a value that is to be reached. The last one gives the target its type.
func (s sourceOf) aim(kind, name, as string) {
	target, ok := s["target"].(map[string]any)
	if !ok {
		target = map[string]any{}
	}
	if s.move(name, target, as) {
		target["type"] = kind
		s["target"] = target
	}
}
