//go:build cluster

// Package upstream makes upstream's kube-controller-manager and kube-scheduler components that run inside a server
// (controllers.Component), from their packages app and options.
//
// Neither is run by its own Run: that would register pages for the whole process, listen, elect a leader of its own, and
// end the process when it has lost the lease. The server has all of that. What is taken over is what the components do:
// their flags and configuration, their controllers or plugins, and how these are made and started.
//
// Each is a client of the API with an identity of its own, and each controller of the manager a service account, as with
// kube-controller-manager's use-service-account-credentials. Their informers are their own; their requests take no socket.
//
// Only the program that has the components imports this package: the libraries are linked whole, and cost memory and time at
// every start.
package upstream
