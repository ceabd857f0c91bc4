package builtin

// Priorities orders the API groups in discovery, for kind.NewRegistry: the higher, the
// earlier. Clients that are given only a resource's name take it from the first group
// that has it. The numbers are kube-apiserver's own (groupPriorityMinimum of the
// APIServices it registers); groups of custom resources have 1000 there and come last
// here. apiregistration.k8s.io has no such number and is always listed first.
func Priorities() map[string]int {
	return map[string]int{
		"apiregistration.k8s.io":       20000,
		"":                             18000,
		"apps":                         17800,
		"events.k8s.io":                17750,
		"authentication.k8s.io":        17700,
		"authorization.k8s.io":         17600,
		"autoscaling":                  17500,
		"batch":                        17400,
		"certificates.k8s.io":          17300,
		"networking.k8s.io":            17200,
		"policy":                       17100,
		"rbac.authorization.k8s.io":    17000,
		"storage.k8s.io":               16800,
		"admissionregistration.k8s.io": 16700,
		"apiextensions.k8s.io":         16700,
		"scheduling.k8s.io":            16600,
		"coordination.k8s.io":          16500,
		"node.k8s.io":                  16300,
		"discovery.k8s.io":             16200,
		"flowcontrol.apiserver.k8s.io": 16100,
	}
}
