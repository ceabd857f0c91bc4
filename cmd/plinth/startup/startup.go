// Package startup makes every command begin a tenth sooner: while the packages of the program initialize, the garbage
// collector runs less often. They allocate some 12 MB that stay, of which it would otherwise mark what there is at 4 MB and at 8.
//
// The package imports almost nothing, because Go initializes packages in the order of their import paths as soon as
// what they import is initialized, and so this one comes before those of Kubernetes.
package startup

import "runtime/debug"

// usual is what GOGC says, or Go's default.
var usual = debug.SetGCPercent(800)

// Over has the garbage collector run as usual. main begins with it.
func Over() { debug.SetGCPercent(usual) }
