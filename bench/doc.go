// Package bench measures plinth on the machine at hand, beside what that machine can do.
//
// A figure alone says little: disks differ by a factor of a thousand and so do commits a
// second. So nearly every line stands against a floor that is measured in the same run,
// in turn with it:
//
//   - the store against the bare driver: one connection, the log's own schema and
//     durability, one row a transaction or a hundred;
//   - the server against a handler that does nothing: echo (the router that plinth uses)
//     or plain net/http, with the same TLS and HTTP/2 settings, writing the same bytes.
//
// Pairs are measured A B A B, each for a short time, and a ratio is the median of the
// ratios of neighbours: a noisy machine disturbs both halves of a pair alike.
//
// plinth and the handlers it is compared with run as processes of their own, so that
// their CPU time and memory are theirs alone; all load comes from the calling process.
// Every database it writes to is made for the purpose and removed at the end; it never
// touches another.
//
// The package starts plinth through package server and knows of it what any client knows. No
// other package but cmd/plinth may import it.
package bench
