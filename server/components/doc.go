// Package components is about upstream's programs that run inside a server as components of it (controllers.Component):
// what users say of them, and how that is checked. Package upstream below makes the components; only the program that has
// them imports that one, because their libraries are linked whole.
//
// The package must not import these programs.
package components
