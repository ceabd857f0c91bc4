// Package apiload has what a load on the Kubernetes API consists of: an HTTP client that costs little,
// objects, watches whose events are checked, and the requests of nodes.
//
// It knows of servers what any client knows.
package apiload
