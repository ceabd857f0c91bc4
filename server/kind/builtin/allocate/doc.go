// Package allocate gives Services their addresses and node ports.
//
// What a Service needs, and when, is decided by upstream's storage of Services, which finds
// here the allocators that it asks. An address that is taken is an IPAddress object and a
// port that is taken a row of its own, each of them under the address or port as its key, in
// the store. So there is nothing to keep in memory, and no two servers can give out the same
// one: the second finds the key taken.
package allocate
