// Package controllers runs upstream's controllers inside the server: those without which
// objects would not end, and those that fill in what others wait for (namespaces, garbage,
// service accounts, quotas …).
//
// Controllers are clients of the API: they write through a client-go configuration as any
// other program would, so that admission, rules and conflicts apply. What they watch is read
// from the store, where it is at hand: their informers hold no second copy of the objects.
//
// What a cluster begins with is package cluster's, custom resources are package definitions'.
package controllers
