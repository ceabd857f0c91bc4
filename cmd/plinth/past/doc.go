// Package past reads what the API group history.plinth.io has of objects, and brings back what was:
// the work behind plinth log, get --at, diff, blame, undo, trash, undelete and forget.
//
// It is a client. It asks a server through an ordinary kubeconfig and writes through the API, so that
// authorization, admission and validation decide as for every other change. It owns the meaning of
// moments (2h, 14:00, 12345, ~1), the text in which objects are compared, whom a line is blamed on, and
// what of an old state is written back. It must not know flags, terminals, or where output goes.
package past
