// Package allocate gives Services their addresses and node ports.
//
// Upstream's storage of Services decides what a Service needs, and calls the allocators of this
// package. A taken address is an IPAddress object and a taken port is a row of its own, each
// in the store with the address or port in its key. So there is no state in memory, and two
// servers cannot give out the same address: the second finds the key taken.
//
// The package owns the rows of ports and the hooks of Services. It does not know the tables
// of Kinds or the controllers that repair allocations.
package allocate
