// Package controllers runs upstream's controllers inside the server: those without which deleted objects
// would never disappear, and those that create what other programs wait for (namespaces, garbage, service
// accounts, quotas …).
//
// Controllers are clients of the API: they write through a client-go configuration like any other program, so
// that admission, rules and conflicts apply. They read from the store: their informers hold no second copy of
// the objects.
//
// Package cluster creates the objects with which a cluster begins, and package definitions implements custom
// resources.
package controllers
